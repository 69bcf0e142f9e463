"""The engine of sweeps: the same check of many small sessions, by as many processes as there are to be."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final, TypeVar

from hushbid.evidence.pool import results_of
from protocol.errors import HushbidError

__all__ = ["bug", "check_all"]

BLOCK: Final = 10
"""Sessions that a process is given together."""

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


def check_all(
    check: Callable[[_Item], _Found],
    items: Iterable[_Item],
    *,
    jobs: int,
    seconds: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[_Found]:
    """Check each of many sessions.

    Args:
        check: Runs the session of an item, and says what came of it; other processes import it.
        items: What the sessions differ in; without end if `seconds` is given.
        jobs: Processes that share the sessions.
        seconds: After which no further ones are begun; None: all are run.
        progress: Called with the sessions so far.

    Returns:
        What came of each, in the order of the items.
    """
    found: dict[int, list[_Found]] = {}
    until = None if seconds is None else time.monotonic() + seconds
    done = 0
    for place, part in results_of(partial(_each, check), _blocks(items, until), jobs=jobs):
        found[place] = part
        done += len(part)
        if progress is not None:
            progress(done)
    return [each for place in sorted(found) for each in found[place]]


def bug(error: Exception) -> str:
    """What a session failed by, in words: a sweep looks for bugs, so that one is a finding like others."""
    return f"{type(error).__name__}: {error.what if isinstance(error, HushbidError) else error}"


def _each(check: Callable[[_Item], _Found], block: Sequence[_Item]) -> list[_Found]:
    return [check(item) for item in block]


def _blocks(items: Iterable[_Item], until: float | None) -> Iterator[list[_Item]]:
    left = iter(items)
    while until is None or time.monotonic() < until:
        block = list(islice(left, BLOCK))
        if not block:
            return
        yield block
