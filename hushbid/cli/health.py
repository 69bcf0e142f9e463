"""`hushbid status --check`: whether parties live, or have ended well, for checks of containers and units.

`hushbid health` is its former name.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from hushbid.protocol.errors import ConfigError, HushbidError
from hushbid.protocol.runtime.command import tell, verb
from hushbid.protocol.runtime.telemetry.status_file import Status, find_statuses

__all__ = [
    "MAX_AGE_SECONDS",
    "StateOption",
    "StatesArgument",
    "check_health",
    "health_command",
    "named_places",
    "show_health",
    "statuses_in",
    "trouble",
]

MAX_AGE_SECONDS = 10.0
"""Age of the last turn of a loop from which on it counts as one that hangs; it turns every second."""

StatesArgument: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(
        help="State directories, or those of runs; else --state.", metavar="DIR...", show_default=False
    ),
]
StateOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="One more of them.", envvar="HUSHBID_STATE", show_default=False)
]


def show_health(found: Mapping[str, Any]) -> None:
    """Print who is alive, and who has ended well."""
    for status in found["parties"]:
        does = "has ended well" if status["finished"] else f"is alive: {status['busy'] or status['phase']}"
        tell(f"{status['party']} {does}.")


@verb(show=show_health)
def health_command(
    context: typer.Context,
    states: StatesArgument = None,
    state: StateOption = None,
    ready: Annotated[
        bool,
        typer.Option(
            "--ready", help="Also: a curator listens, an owner or the consumer has its data loaded."
        ),
    ] = False,
    max_age: Annotated[
        float,
        typer.Option(min=0, help="Seconds since the last turn of its loop after which it is not alive."),
    ] = MAX_AGE_SECONDS,
) -> dict[str, Any]:
    """Whether the parties of state directories are alive, or have ended well: exit code 0 if so, else 1."""
    return check_health(named_places(context, states, state), ready=ready, max_age=max_age)


def check_health(places: Sequence[Path], *, ready: bool, max_age: float) -> dict[str, Any]:
    """The statuses of parties, which all are alive or have ended well.

    Raises:
        HushbidError: One does neither, or lives and is not `ready` if that is asked for.
    """
    statuses = statuses_in(places)
    now = time.time()
    wrong = [(each.party, trouble(each, now, max_age=max_age, ready=ready)) for each in statuses]
    said = [f"{party} {what}." for party, what in wrong if what is not None]
    if said:
        raise HushbidError("\n".join(said), advice="Its log says more.")
    return {"parties": [asdict(status) for status in statuses]}


def statuses_in(places: Sequence[Path]) -> list[Status]:
    """The statuses of directories, read now."""
    return [status for place in places for status in find_statuses(place)]


def named_places(context: typer.Context, states: Sequence[Path] | None, state: Path | None) -> list[Path]:
    """The directories that a verb's arguments and `--state` name; `HUSHBID_STATE`, where nothing else does.

    Raises:
        ConfigError: Nothing is named at all.
    """
    places = list(states or ())
    source = context.get_parameter_source("state")
    by_variable = source is not None and source.name == "ENVIRONMENT"
    if state is not None and not (places and by_variable):
        places.append(state)
    if not places:
        raise ConfigError(
            "No state directory is named.",
            advice="Name the parties' state directories or a run's, or set --state or HUSHBID_STATE.",
        )
    return places


def trouble(status: Status, now: float, *, max_age: float, ready: bool) -> str | None:
    """The problem of a party, as a predicate; None: it is well.

    A party that has ended with exit code 0 is well, and as ready as it will be. One that said that it
    computes something long is alive as long as its process is there: ask on the machine, and in the
    container, that it runs in. Times are in seconds, `now` since 1970.
    """
    if status.finished:
        return None if status.exit_code == 0 else f"has ended with exit code {status.exit_code}"
    if status.busy is not None:
        if not status.is_running:
            return f"was busy ({status.busy}), and its process is gone"
    elif abs(now - status.beat) > max_age:  # a beat of the future: the clock was set back since
        return f"last turned its loop {now - status.beat:.1f} s ago, and {max_age:g} s are allowed"
    if ready and not status.ready:
        return f"is not ready ({status.phase})"
    return None
