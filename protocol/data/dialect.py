"""How a CSV file is written, as its party declares it."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

__all__ = ["Dialect", "declared_encoding"]


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written; None: found by its content.

    Attributes:
        separator: Between cells: one character.
        decimal: "." or ",": what stands before a number's fraction.
        encoding: As Python names it, such as "latin-1".
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None


def declared_encoding(given: str) -> str:
    """A declared encoding; raises ValueError if there is none of this name."""
    try:
        "".encode(given)  # raises for what is no encoding of text, too
        return codecs.lookup(given).name
    except LookupError:
        raise ValueError(f"no encoding is named {given!r}; latin-1, cp1252 and utf-16 are some") from None
