"""The names of the two parties that every session has (owners choose their own), and names in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["CONSUMER", "CURATOR", "an", "listed"]

CURATOR: Final = "curator"
CONSUMER: Final = "consumer"

_VOWELS: Final = frozenset("aeiou")


def an(noun: str) -> str:
    """A noun of these programs with its indefinite article."""
    return f"{'an' if noun[:1].lower() in _VOWELS else 'a'} {noun}"


def listed(names: Sequence[str], most: int, *, rest: str = "") -> str:
    """The first names, and how many more there are.

    Args:
        rest: What one of these is, such as "other"; empty: they are so many "more".
    """
    more = len(names) - most
    noun = "more" if not rest else rest if more == 1 else f"{rest}s"
    return ", ".join(names[:most]) + (f" and {more} {noun}" if more > 0 else "")
