"""How many threads BLAS has, for a while: of threads that share work, each would wait for all the others'."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]


def one_blas_thread() -> AbstractContextManager[Any]:
    """Meanwhile BLAS uses no threads: the products are small, and its threads wait for each other."""
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1)
    return limited


@cache
def _libraries() -> ThreadpoolController:
    """To find them takes milliseconds, and a query far less. Who asks has imported what brings a BLAS."""
    return ThreadpoolController()
