"""One thread for BLAS: products here are small, and the threads of one would wait for each other."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, ClassVar, Final

from threadpoolctl import ThreadpoolController

from hushbid.protocol.platform import LIBRARIES

__all__ = ["keep_one_blas_thread", "one_blas_thread"]

_LOCK: Final = threading.Lock()


class _Running:
    """The blocks that are being run, read and written under `_LOCK`.

    Attributes:
        limits: The first limit by each search for libraries, which knows the threads that it found.
    """

    blocks: ClassVar[int] = 0
    limits: ClassVar[dict[ThreadpoolController, Any]] = {}


def keep_one_blas_thread() -> None:
    """Limit BLAS to one thread for the rest of the process."""
    _libraries(len(sys.modules)).limit(limits=1)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in a block, or in each call of a function that this decorates.

    A library that is loaded in the block has all threads until the next block begins, in it or elsewhere.
    All threads are back after the last block that is being run.
    """
    with _LOCK:
        # Later blocks set it too: OpenMP keeps the number for each thread separately.
        libraries = _libraries(len(sys.modules))
        _Running.limits.setdefault(libraries, libraries.limit(limits=1))
        _Running.blocks += 1
    try:
        yield
    finally:
        with _LOCK:
            _Running.blocks -= 1
            if not _Running.blocks:
                for limit in reversed(_Running.limits.values()):  # the first found what was set before
                    limit.restore_original_limits()
                _Running.limits.clear()


@lru_cache(maxsize=1)
def _libraries(_imported: int) -> ThreadpoolController:
    """Every BLAS in the process. A search takes 10 ms, so that it is repeated after imports alone."""
    with LIBRARIES:
        return ThreadpoolController()
