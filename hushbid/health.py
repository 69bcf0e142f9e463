"""`hushbid health`: whether the party of a state directory lives, for checks of containers and units."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from protocol.errors import HushbidError
from protocol.runtime.command import run_verb
from protocol.runtime.status_file import Status, find_statuses, process_start

__all__ = ["MAX_AGE_SECONDS", "health_command", "trouble"]

MAX_AGE_SECONDS = 10.0
"""Age of the last turn of a loop from which on it counts as one that hangs; it turns every second."""


def health_command(
    state: Annotated[
        Path, typer.Option(help="The party's state directory.", envvar="HUSHBID_STATE", show_default=False)
    ],
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
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Whether the party of a state directory is alive: exit code 0 if so, 1 if not."""

    def body() -> dict[str, Any]:
        statuses = find_statuses(state)
        now = time.time()
        for status in statuses:
            wrong = trouble(status, now, max_age=max_age, ready=ready)
            if wrong is not None:
                raise HushbidError(f"{status.party} {wrong}.", advice="Its log says more.")
        return {"parties": [asdict(status) for status in statuses]}

    run_verb(body, as_json=as_json, show=_show)


def trouble(status: Status, now: float, *, max_age: float, ready: bool) -> str | None:
    """What is wrong with a party, as a predicate; None: it is well.

    A party that said that it computes something long is alive as long as its process is there: ask on the
    machine, and in the container, that it runs in.

    Args:
        status: Its status.
        now: Seconds since 1970.
        max_age: Seconds since the last turn of its loop after which it is not alive.
        ready: Whether it must be ready, too.
    """
    if status.finished:
        return f"has ended with exit code {status.exit_code}"
    if status.busy is not None:
        if not _is_running(status):
            return f"was busy ({status.busy}), and its process is gone"
    elif abs(now - status.beat) > max_age:  # a beat of the future: the clock was set back since
        return f"last turned its loop {now - status.beat:.1f} s ago, and {max_age:g} s are allowed"
    if ready and not status.ready:
        return f"is not ready ({status.phase})"
    return None


def _is_running(status: Status) -> bool:
    if status.process_start is not None:  # else another process that has its number counts as it
        return process_start(status.pid) == status.process_start
    try:
        os.kill(status.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _show(found: Mapping[str, Any]) -> None:
    for status in found["parties"]:
        sys.stdout.write(f"{status['party']} is alive: {status['busy'] or status['phase']}.\n")
