"""A search for thousands of short texts in a process's memory: in eight passes, not one for each text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["WORD", "those_in"]

WORD: Final = 8
"""Bytes that are compared at once."""
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
"""2^64 by the golden ratio: its product spreads what differs anywhere in a word over the first bits (Knuth,
The Art of Computer Programming 3, section 6.4)."""
_PLACES: Final = 64
"""How many places of a text are tried for the word that tells it best."""


def those_in(kept: bytes, texts: Collection[bytes]) -> set[bytes]:
    """The texts that occur in `kept`: `{text for text in texts if text in kept}`."""
    told_by: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)
    found = set()
    for text in texts:
        if len(text) >= WORD:
            place = _telling(text)
            told_by[int.from_bytes(text[place : place + WORD], "little")].append((place, text))
        elif text in kept:
            found.add(text)
    words = np.array(sorted(told_by), np.uint64)
    marked = np.zeros(2**16, np.bool_)
    marked[_short(words)] = True
    for shift in range(min(WORD, max(0, len(kept) - WORD + 1))):
        there = np.frombuffer(kept, "<u8", (len(kept) - shift) // WORD, shift)
        near = np.flatnonzero(marked[_short(there)])
        for number in near[np.isin(there[near], words)].tolist():
            start = WORD * number + shift
            waiting = told_by[int(there[number])]
            for place, text in waiting.copy():
                if start >= place and kept.startswith(text, start - place):
                    found.add(text)
                    waiting.remove((place, text))
    return found


def _telling(text: bytes) -> int:
    """The start of its word with most different bytes: one of zeros is everywhere."""
    places = range(min(len(text) - WORD + 1, _PLACES))
    return max(places, key=lambda place: len(set(text[place : place + WORD])))


def _short(words: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
    """A hash of 16 bits for each word."""
    return (words * _ODD) >> np.uint64(48)
