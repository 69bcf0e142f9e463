"""Work shared among threads, one per core, for numpy's functions that release the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol, TypeVar

from hushbid.protocol import platform
from hushbid.protocol.runtime.blas_threads import one_blas_thread

__all__ = ["Mapped", "in_threads", "threads"]

_T = TypeVar("_T")
_R = TypeVar("_R")


class Mapped(Protocol):
    """Applies a function to each item, in order."""

    def __call__(self, function: Callable[[_T], _R], items: Iterable[_T], /) -> list[_R]: ...


@contextmanager
def threads() -> Iterator[Mapped]:
    """Threads for several calls, with one BLAS thread in each.

    One item alone is computed without: handing it to a thread would take longer than most of them.
    """
    with one_blas_thread(), ThreadPoolExecutor(platform.cores()) as pool:  # which starts none before it must

        def mapped(function: Callable[[_T], _R], items: Iterable[_T], /) -> list[_R]:
            given = list(items)
            return list(pool.map(function, given) if len(given) > 1 else map(function, given))

        yield mapped


def in_threads(function: Callable[[_T], _R], items: Iterable[_T]) -> list[_R]:
    """Apply a function to each item, in order (`threads`)."""
    with threads() as mapped:
        return mapped(function, items)
