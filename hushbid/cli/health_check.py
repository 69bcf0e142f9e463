"""The check of `hushbid status --check`; it runs plain command lines without Typer.

Containers and units start one every few seconds, and Typer would take most of its time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from hushbid.protocol.errors import ConfigError, HushbidError
from hushbid.protocol.runtime.ending import run_verb, set_quiet, tell
from hushbid.protocol.runtime.telemetry.status_file import Status, find_statuses

__all__ = [
    "MAX_AGE_SECONDS",
    "check_health",
    "run_plain",
    "show_health",
    "statuses_in",
    "trouble",
    "unnamed",
]

MAX_AGE_SECONDS = 10.0
"""Seconds since a loop's last turn after which it counts as hanging; it turns every second."""
_STATE: Final = "HUSHBID_STATE"
_PLAIN: Final = frozenset({"--ready", "--json", "--quiet", "-q", "--state"})


def run_plain(arguments: Sequence[str]) -> None:
    """Run a check whose arguments are clearly directories and options; else return, for Typer to parse.

    Args:
        arguments: The command line, from the verb on.
    """
    verb, *given = arguments
    flags = {each for each in given if each.startswith("-")}
    if verb == "status" and "--check" not in flags:
        return
    if not flags - ({"--check"} if verb == "status" else set()) <= _PLAIN:
        return
    places: list[Path] = []
    state: Path | None = None
    left = iter(given)
    for each in left:
        if each == "--state":
            if state is not None or not (value := next(left, "-")) or value.startswith("-"):
                return
            state = Path(value)
        elif not each:
            return
        elif not each.startswith("-"):
            places.append(Path(each))
    if state is not None:
        places.append(state)
    elif not places:
        if not (named := os.environ.get(_STATE, "")):
            return
        places.append(Path(named))
    set_quiet(bool({"--quiet", "-q"} & flags))
    ready, as_json = "--ready" in flags, "--json" in flags
    run_verb(
        lambda: check_health(places, ready=ready, max_age=MAX_AGE_SECONDS),
        as_json=as_json,
        show=show_health,
    )


def show_health(found: Mapping[str, Any]) -> None:
    """Print who is alive and who has ended well."""
    for status in found["parties"]:
        does = "has ended well" if status["finished"] else f"is alive: {status['busy'] or status['phase']}"
        tell(f"{status['party']} {does}.")


def check_health(places: Sequence[Path], *, ready: bool, max_age: float) -> dict[str, Any]:
    """The statuses of the parties, if all are alive or have ended well.

    Raises:
        HushbidError: A party is neither, or is alive but not `ready` when that is required.
    """
    statuses = statuses_in(places)
    now = time.time()
    wrong = [(each.party, trouble(each, now, max_age=max_age, ready=ready)) for each in statuses]
    said = [f"{party} {what}." for party, what in wrong if what is not None]
    if said:
        raise HushbidError("\n".join(said), advice="Its log says more.")
    return {"parties": [asdict(status) for status in statuses]}


def statuses_in(places: Sequence[Path]) -> list[Status]:
    """The current statuses of the directories."""
    return [status for place in places for status in find_statuses(place)]


def unnamed() -> ConfigError:
    """The error for a check that names no directory."""
    return ConfigError(
        "No state directory is named.",
        advice="Name the parties' state directories or a run's, or set --state or HUSHBID_STATE.",
    )


def trouble(status: Status, now: float, *, max_age: float, ready: bool) -> str | None:
    """The problem of a party, as a predicate; None if it is well. Times are in seconds, `now` since 1970.

    A party that has ended with exit code 0 is well, and counts as ready. A party that announced a long
    computation is alive as long as its process exists: check where it runs, on the machine or in the
    container.
    """
    if status.finished:
        return None if status.exit_code == 0 else f"has ended with exit code {status.exit_code}"
    if status.busy is not None:
        if not status.is_running:
            return f"was busy ({status.busy}), and its process is gone"
    elif abs(now - status.beat) > max_age:  # a beat in the future: the clock was set back since
        return f"last turned its loop {now - status.beat:.1f} s ago, and {max_age:g} s are allowed"
    if ready and not status.ready:
        return f"is not ready ({status.phase})"
    return None
