"""`hushbid status --check`, formerly `hushbid health`: whether parties are alive or have ended well."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from hushbid.cli.health_check import MAX_AGE_SECONDS, check_health, show_health, unnamed
from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.command import verb
from hushbid.protocol.runtime.ranged import ranged

__all__ = [
    "PortOption",
    "StateOption",
    "StatesArgument",
    "WebOption",
    "check_port",
    "health_command",
    "named_places",
]

StatesArgument: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(help="State or run directories; default: --state.", metavar="DIR...", show_default=False),
]
StateOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="Another directory.", envvar="HUSHBID_STATE", show_default=False)
]
WebOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--web",
        help="Serve a page to browsers on this machine until Ctrl-C, even after the session is over.",
    ),
]
PortOption: TypeAlias = Annotated[
    int | None,
    ranged(ranges.Port, help="Port for --web; default: chosen by the system.", show_default=False),
]


@verb(show=show_health)
def health_command(
    context: typer.Context,
    states: StatesArgument = None,
    state: StateOption = None,
    ready: Annotated[
        bool,
        typer.Option(
            "--ready",
            help="Readiness: a curator must also listen, an owner or the consumer have its data loaded.",
        ),
    ] = False,
    max_age: Annotated[
        float,
        typer.Option(
            min=0, help="Seconds since the last turn of its loop after which a party counts as dead."
        ),
    ] = MAX_AGE_SECONDS,
) -> dict[str, Any]:
    """Check whether the parties of state directories are alive or have ended well: exit code 0, else 1."""
    return check_health(named_places(context, states, state), ready=ready, max_age=max_age)


def named_places(context: typer.Context, states: Sequence[Path] | None, state: Path | None) -> list[Path]:
    """The directories named by a verb's arguments and `--state`, or by `HUSHBID_STATE` if neither is given.

    Raises:
        ConfigError: Nothing is named at all.
    """
    places = list(states or ())
    source = context.get_parameter_source("state")
    by_variable = source is not None and source.name == "ENVIRONMENT"
    if state is not None and not (places and by_variable):
        places.append(state)
    if not places:
        raise unnamed()
    return places


def check_port(port: int | None, *, web: bool) -> None:
    """Refuse `--port` where nothing is served.

    Raises:
        ConfigError: It is given without `--web`.
    """
    if port is not None and not web:
        raise ConfigError("--port belongs to --web.", advice="Give --web too.")
