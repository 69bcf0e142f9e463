"""Names: of the two parties that every session has (owners choose theirs), of the usual model, in texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["CONSUMER", "CURATOR", "MODEL", "an", "listed"]

CURATOR: Final = "curator"
CONSUMER: Final = "consumer"

MODEL: Final = "logistic"
"""The downstream model if none is named (`hushbid.consumer.learners`)."""

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
