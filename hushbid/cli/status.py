"""`hushbid status`: what the parties of some state directories, or of a run, do now."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar

import typer

from hushbid.cli.health import (
    MAX_AGE_SECONDS,
    StateOption,
    StatesArgument,
    named_places,
    statuses_in,
    trouble,
)
from hushbid.protocol.printable import printable
from hushbid.protocol.runtime.command import json_line, run_verb
from hushbid.protocol.runtime.telemetry.status_file import Status

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["described", "json_lines", "status_command", "until"]

_T = TypeVar("_T")

_Parties: TypeAlias = list[dict[str, Any]]

WATCH_SECONDS: Final = 1.0
"""Between two looks of `--watch`."""


def status_command(
    context: typer.Context,
    states: StatesArgument = None,
    state: StateOption = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again every second, until all have ended.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout; with --watch one a look.")
    ] = False,
) -> None:
    """Show what parties do now: phase, round, who is here, and whether their loops turn."""

    def body() -> dict[str, Any]:
        places = named_places(context, states, state)
        if not watch:
            return {"parties": _look(places)}
        with json_lines(_as_json, _all_ended) if as_json else _live() as shows:
            return _as_json(until(lambda: _look(places), _all_ended, shows))

    run_verb(body, as_json=as_json, show=None if watch else _show)


def _look(places: Sequence[Path]) -> _Parties:
    now = time.time()
    return [described(status, now) for status in statuses_in(places)]


def _as_json(parties: _Parties) -> dict[str, Any]:
    return {"parties": parties}


def described(status: Status, now: float) -> dict[str, Any]:
    """A status with its age in seconds, and what is wrong; None: it is well, or has ended well."""
    wrong = None
    if not (status.finished and status.exit_code == 0):
        wrong = trouble(status, now, max_age=MAX_AGE_SECONDS, ready=False)
    return {**asdict(status), "age": round(now - status.beat, 3), "trouble": wrong}


def until(look: Callable[[], _T], over: Callable[[_T], bool], show: Callable[[_T], object]) -> _T:
    """Look every second and show what was seen; returns the first look that is over."""
    while True:
        found = look()
        show(found)
        if over(found):
            return found
        time.sleep(WATCH_SECONDS)


@contextmanager
def json_lines(
    as_json: Callable[[_T], Mapping[str, Any]], over: Callable[[_T], bool]
) -> Iterator[Callable[[_T], None]]:
    """What prints every look as JSON but the last, which is the verb's result."""

    def show(found: _T) -> None:
        if not over(found):
            sys.stdout.write(json_line(as_json(found)))
            sys.stdout.flush()

    yield show


@contextmanager
def _live() -> Iterator[Callable[[_Parties], None]]:
    from rich.live import Live

    from hushbid.cli.terminal import Terminal

    with Live(console=Terminal(), auto_refresh=False) as live:
        yield lambda parties: live.update(_table(parties), refresh=True)


def _all_ended(found: _Parties) -> bool:
    return all(party["finished"] for party in found)


def _show(found: Mapping[str, Any]) -> None:
    from hushbid.cli.terminal import Terminal

    Terminal().print(_table(found["parties"]))


def _table(found: _Parties) -> Table:
    from rich.table import Table

    table = Table("party", "phase", "round", "owners here", "last turn", "", box=None, pad_edge=False)
    for party in found:
        phase = "paused" if party["paused"] else party["phase"]
        done = "" if party["busy_share"] is None else f", {party['busy_share']:.0%}"
        busy = f" ({party['busy']}{done})" if party["busy"] not in (None, phase) else ""
        missing = f"missing: {', '.join(party['missing'])}" if party["missing"] else ""
        sees_rounds = party["round"] or party["role"] != "consumer"  # which sees them only where it weighs
        table.add_row(
            printable(party["party"]),
            printable(phase + busy),
            f"{party['round']} of {party['rounds']}" if sees_rounds else "–",
            "–" if party["owners"] is None else f"{party['owners_connected']} of {party['owners']}",
            "ended" if party["finished"] else f"{party['age']:.1f} s ago",
            printable(party["trouble"] or missing),
        )
    return table
