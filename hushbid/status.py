"""`hushbid status`: what the parties of some state directories, or of a run, do now."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from hushbid.health import MAX_AGE_SECONDS, StateOption, StatesArgument, named_statuses, trouble
from protocol.runtime.command import run_verb
from protocol.runtime.status_file import Status

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["status_command"]

_Parties: TypeAlias = list[dict[str, Any]]
_Read: TypeAlias = Callable[[], list[Status]]

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
        read = named_statuses(context, states, state)
        found = _look(read)
        if watch:
            found = _watch_as_json(read, found) if as_json else _watch(read, found)
        return {"parties": found}

    run_verb(body, as_json=as_json, show=None if watch else _show)


def _look(read: _Read) -> _Parties:
    return [_described(status) for status in read()]


def _described(status: Status) -> dict[str, Any]:
    """A status with its age in seconds, and what is wrong; None: it is well, or has ended well."""
    now = time.time()
    wrong = None
    if not (status.finished and status.exit_code == 0):
        wrong = trouble(status, now, max_age=MAX_AGE_SECONDS, ready=False)
    return {**asdict(status), "age": round(now - status.beat, 3), "trouble": wrong}


def _watch_as_json(read: _Read, found: _Parties) -> _Parties:
    """Print every look but the last, which is the verb's result."""
    while not _all_ended(found):
        sys.stdout.write(json.dumps({"parties": found}) + "\n")
        sys.stdout.flush()
        time.sleep(WATCH_SECONDS)
        found = _look(read)
    return found


def _watch(read: _Read, found: _Parties) -> _Parties:
    from rich.live import Live

    with Live(_table(found), auto_refresh=False) as live:
        while not _all_ended(found):
            time.sleep(WATCH_SECONDS)
            found = _look(read)
            live.update(_table(found), refresh=True)
    return found


def _all_ended(found: _Parties) -> bool:
    return all(party["finished"] for party in found)


def _show(found: Mapping[str, Any]) -> None:
    from rich.console import Console

    Console().print(_table(found["parties"]))


def _table(found: _Parties) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table("party", "phase", "round", "owners here", "last turn", "", box=None, pad_edge=False)
    for party in found:
        phase = "paused" if party["paused"] else party["phase"]
        busy = f" ({party['busy']})" if party["busy"] not in (None, phase) else ""
        table.add_row(
            escape(party["party"]),
            escape(phase + busy),
            "–" if party["role"] == "consumer" else f"{party['round']} of {party['rounds']}",
            "–" if party["owners"] is None else f"{party['owners_connected']} of {party['owners']}",
            "ended" if party["finished"] else f"{party['age']:.1f} s ago",
            escape(party["trouble"] or ""),
        )
    return table
