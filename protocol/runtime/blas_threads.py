"""One thread for BLAS: products here are small, and the threads of one would wait for each other."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

from threadpoolctl import ThreadpoolController

from hushbid.protocol.platform import LIBRARIES

__all__ = ["keep_one_blas_thread", "one_blas_thread"]

_LOCK: Final = threading.Lock()
_limits: list[Any] = []
"""The limit of each block that is being run, the first one first; read and written under `_LOCK`."""


def keep_one_blas_thread() -> None:
    """Limit BLAS to one thread for the rest of the process."""
    _libraries(len(sys.modules)).limit(limits=1)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in a block. All threads are back after the last block that is being run."""
    with _LOCK:
        # Later blocks set it too: OpenMP keeps the number for each thread separately.
        _limits.append(_libraries(len(sys.modules)).limit(limits=1))
    try:
        yield
    finally:
        with _LOCK:
            last = _limits.pop()
            if not _limits:  # it is the first's, which found what was set before
                last.restore_original_limits()


@lru_cache(maxsize=1)
def _libraries(_imported: int) -> ThreadpoolController:
    """Every BLAS in the process. A search takes 10 ms, so that it is repeated after imports alone."""
    with LIBRARIES:
        return ThreadpoolController()
