"""Text of others on its way to a person: labels, names, identifiers, categories, reasons, a peer's error.

It may contain what a terminal acts on (escape sequences), what changes the direction of reading, or a line
break that makes one line look like two. Everything that people read passes `printable`, which shows such
characters as escapes: nothing is dropped, and nothing acts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["printable", "printable_in", "printable_lines", "printable_source"]


def printable(text: str) -> str:
    r"""The text as one line: unprintable characters as escapes, such as ``\x1b``, ``\n`` or ``\u202e``.

    Unprintable are control characters, marks of direction and format, separators other than a space,
    surrogates, and unassigned characters.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def printable_lines(text: str) -> str:
    """The same for a text of our own that has several lines."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def printable_in(value: Any) -> Any:
    """The value with all its texts printable, those in mappings, their keys, lists and tuples among them."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable_in(key): printable_in(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [printable_in(item) for item in value]
    return value


def printable_source(text: str) -> str:
    r"""JSON or TOML that means the same: what is unprintable in its strings is written as ``\uXXXX``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
