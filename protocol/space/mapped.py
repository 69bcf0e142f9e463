"""Files that are mapped into memory: what was read of one need not stay resident."""

from __future__ import annotations

import mmap
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["let_go"]

_DONT_NEED: Final[int | None] = getattr(mmap, "MADV_DONTNEED", None)
"""None: this system has no such advice, and drops pages when it wants memory."""
_SHARED: Final = ("r", "r+")
"""Modes of mappings whose pages are the file's own: nothing is lost with them."""


def let_go(array: npt.NDArray[Any]) -> None:
    """Give the pages of a mapped file back: they are read anew, from file or cache, when they are needed.

    Nothing is done to an array that is in memory.

    Args:
        array: A mapped array or a view of one; what was written to it is kept.
    """
    held: Any = array
    while held is not None and not isinstance(held, mmap.mmap):
        if isinstance(held, np.memmap) and held.mode not in _SHARED:
            return
        held = getattr(held, "base", None)
    if held is not None and _DONT_NEED is not None:
        held.madvise(_DONT_NEED)
