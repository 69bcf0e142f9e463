"""How options and messages name the columns and arrays of a party's file.

Messages show few names, short, and never a value. Without a header, a table's first row is taken for names.
So they are withheld if one of them is a number: they may be a row of data.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hushbid.protocol.names import listed as first_names

__all__ = ["are_header", "feature_column", "found", "is_index", "is_number", "listed", "split_names"]

_LISTED: Final = 10
"""Number of names that are listed; the rest is counted."""
_LENGTH: Final = 40
"""Number of a name's characters that are shown."""
_DELIMITERS: Final = re.compile(r"[;,|\t]")
"""Other delimiters that a file's cells may really be separated by."""


_INDEX: Final = re.compile(r"__index_level_\d+__")
"""The name under which pandas writes a nameless index as a column of Parquet."""


def is_index(name: str) -> bool:
    """Whether a column is an index of pandas, which is no value of a row; CSV has it without a name."""
    return name == "" or _INDEX.fullmatch(name) is not None


def is_number(text: str) -> bool:
    """Whether a cell's text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def are_header(names: Sequence[str]) -> bool:
    """Whether these names cannot be a row of data, so that messages may show them."""
    return not any(is_number(part) for name in names for part in _DELIMITERS.split(name))


def feature_column(index: int, names: Sequence[str] | None) -> str:
    """A feature column by its place among the feature columns, and its name if known."""
    return f"feature column {index}" + (f" ({_short(names[index])})" if names else "")


def split_names(named: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """The names of columns or arrays that an option gives: a list, or a text with commas between them."""
    if named is None:
        return None
    return tuple(name.strip() for name in named.split(",")) if isinstance(named, str) else tuple(named)


def listed(names: Sequence[str]) -> str:
    """Names in quotes, few and short: "'age', 'income' and 5 more"."""
    return first_names([_short(name) for name in names], _LISTED)


def found(names: Sequence[str]) -> str:
    """The existing columns, for a message about a missing one."""
    if not are_header(names):
        return f"its {len(names)} columns are not listed, as numbers stand in the header or it is missing"
    if len(names) == 1:
        return f"its only column is {listed(names)}"
    return f"its columns are {listed(names)}"


def _short(name: str) -> str:
    return repr(name if len(name) <= _LENGTH else name[: _LENGTH - 1] + "…")
