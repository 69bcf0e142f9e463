"""`hushbid status`: the state of the parties of a run or of state directories: now, live, or as a check."""

from __future__ import annotations

from typing import Annotated

import typer

from hushbid.cli.health import (
    PortOption,
    StateOption,
    StatesArgument,
    WebOption,
    check_port,
    named_places,
)
from hushbid.cli.health_check import MAX_AGE_SECONDS
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.command import fail, run_verb

__all__ = ["status_command"]


def status_command(
    context: typer.Context,
    states: StatesArgument = None,
    state: StateOption = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            "-w",
            help="Keep watching until the session is over; it may start before the session does.",
        ),
    ] = False,
    web: WebOption = False,
    port: PortOption = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="For health checks: exit code 1 unless all are alive or have ended well."
        ),
    ] = False,
    ready: Annotated[
        bool,
        typer.Option(
            "--ready",
            help="With --check: also require that a curator listens, and that an owner or the consumer has "
            "its data loaded.",
        ),
    ] = False,
    max_age: Annotated[
        float,
        typer.Option(
            min=0, help="With --check: seconds since its loop's last turn after which a party counts as dead."
        ),
    ] = MAX_AGE_SECONDS,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout; with --watch one per look.")
    ] = False,
) -> None:
    """Show what the parties of a run or of state directories are doing: round, points, who is missing."""
    _check_web(watch=watch, web=web, port=port, as_json=as_json)
    _check_options(watch=watch, check=check, ready=ready, max_age=max_age, as_json=as_json)
    if check:
        from hushbid.cli.health_check import check_health, show_health

        run_verb(
            lambda: check_health(named_places(context, states, state), ready=ready, max_age=max_age),
            as_json=as_json,
            show=show_health,
        )
    if web:
        from hushbid.cli.web import served

        run_verb(
            lambda: served(named_places(context, states, state), port=port, as_json=as_json), as_json=as_json
        )
    from hushbid.cli.watch import look_once, watched

    looks = watched if watch else look_once
    run_verb(lambda: looks(named_places(context, states, state), as_json=as_json), as_json=as_json)


def _check_options(*, watch: bool, check: bool, ready: bool, max_age: float, as_json: bool) -> None:
    if watch and check:
        wrong = ConfigError("--watch goes on, and --check looks once.", advice="Give one of them.")
    elif not check and (ready or max_age != MAX_AGE_SECONDS):
        wrong = ConfigError("--ready and --max-age belong to --check.", advice="Give --check too.")
    else:
        return
    fail(wrong, as_json=as_json)


def _check_web(*, watch: bool, web: bool, port: int | None, as_json: bool) -> None:
    if web and not watch:
        fail(ConfigError("--web belongs to --watch.", advice="Give --watch too."), as_json=as_json)
    try:
        check_port(port, web=web)
    except ConfigError as error:
        fail(error, as_json=as_json)
