"""The engine of sweeps: one check of many small sessions, in several processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final, TypeVar

from hushbid.evidence.pool import results_of
from hushbid.protocol.errors import HushbidError

__all__ = ["bug", "check_all"]

BLOCK: Final = 10
"""Sessions given to a process together."""

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
    """Check each of many sessions; the results are in the order of the items.

    Args:
        check: Runs an item's session and returns its result; other processes import it.
        items: The parameters in which sessions differ; infinite if `seconds` is given.
        seconds: Time after which no further ones are started; None: all are run.
        progress: Called with the number of sessions so far.
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
    """The error of a session in words: a sweep looks for bugs, so a bug is a finding like others."""
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
