"""How a CSV file is written, as its party declares it."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

__all__ = ["Dialect", "declared_encoding"]


@dataclass(frozen=True)
class Dialect:
    """A CSV file's separator, "." or "," before fractions, and encoding; None: found by its content."""

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
