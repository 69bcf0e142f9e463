"""One pool of processes, for whatever runs many things of one kind: audits, sweeps, experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, TypeVar

from protocol.extras import need
from protocol.runtime.party import one_blas_thread

__all__ = ["results_of"]

IDLE_SECONDS: Final = 30
"""How long a process waits for more work; the next pool takes over those that are still there."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def results_of(
    work: Callable[[_Item], _Result], items: Iterable[_Item], *, jobs: int
) -> Iterator[tuple[int, _Result]]:
    """Do the same work on each item, with one BLAS thread: a result does not depend on how many share it.

    Args:
        work: A function that other processes can import, or a partial of one.
        items: Taken as processes come free, so that there may be no end to them.
        jobs: Processes; 1: this one alone, which needs no joblib.

    Yields:
        The place of an item, counted from 0, and its result, as soon as it is there: in any order if there
        are several processes.

    Raises:
        ConfigError: Several processes are asked for, and joblib is not installed.
    """
    numbered = enumerate(items)
    if jobs == 1:
        yield from (_done(work, place, item) for place, item in numbered)
        return
    need("joblib", "Work that several processes share")
    from joblib import Parallel, delayed

    # Items are as large as they should be already: joblib is not to put several together.
    pool: Any = Parallel(
        jobs, return_as="generator_unordered", batch_size=1, idle_worker_timeout=IDLE_SECONDS
    )
    yield from pool(delayed(_done)(work, place, item) for place, item in numbered)


def _done(work: Callable[[_Item], _Result], place: int, item: _Item) -> tuple[int, _Result]:
    _one_blas_thread()
    return place, work(item)


@lru_cache
def _one_blas_thread() -> None:
    """Limited once in every process: to look for its libraries takes a while."""
    one_blas_thread()
