"""Labels or identifiers that many owners chose, as one array of one type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["MAX_STORED_TEXT", "column"]

Value: TypeAlias = int | float | str | None

MAX_STORED_TEXT: Final = 256
"""Longest text that is stored, in characters. An array gives every text the room of its longest, so that one
of 4,000 characters among 20,000 would take 320 MB."""

WIDE_SHARE: Final = 0.25
"""Share of integers beyond int64 from which on a column is uint64. Half of all 64-bit digests lie there;
one owner's odd number must not change everybody's type."""

_FILLERS: Final[dict[type[np.generic], Any]] = {
    np.int64: np.iinfo(np.int64).min,
    np.uint64: np.iinfo(np.uint64).max,
    np.float64: np.nan,
    np.str_: "",
}


def column(values: Sequence[Value]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Values as an array of the type that most of them have, and which of them it holds.

    A number of another type is held where the column's type has it exactly: 3.0 among integers. Nothing
    else is converted. Text is missing if it is blank, holds NUL (NumPy's text cannot end in it), or is
    longer than `MAX_STORED_TEXT`.

    Args:
        values: None where one is missing.

    Returns:
        Both of shape (n,). Where the second is False, the first has a filler that no honest label is: the
        type's least integer (uint64: its largest), NaN, or empty text.
    """
    kind = _kind(values)
    found = [_as(kind, value) for value in values]
    held = np.array([value is not None for value in found], dtype=np.bool_)
    filler = _FILLERS[kind]
    return np.array([filler if value is None else value for value in found], dtype=kind), held


def _kind(values: Sequence[Value]) -> type[np.generic]:
    """The most frequent type; integers before floats before text where they are equally frequent."""
    integers = [value for value in values if type(value) is int]
    floats = sum(type(value) is float for value in values)
    texts = sum(_as(np.str_, value) is not None for value in values)
    most = max(len(integers), floats, texts)
    if len(integers) == most:
        wide = sum(value >= 2**63 for value in integers)
        return np.uint64 if wide and wide >= WIDE_SHARE * most else np.int64
    return np.float64 if floats == most else np.str_


def _as(kind: type[np.generic], value: Value) -> Value:
    """The value as one of the type, or None if it cannot be one exactly."""
    if kind is np.str_:
        usable = isinstance(value, str) and value.strip() and "\0" not in value
        return value if usable and len(str(value)) <= MAX_STORED_TEXT else None
    if value is None or isinstance(value, str):
        return None
    if kind is np.float64:
        return float(value) if float(value) == value else None
    if isinstance(value, float) and not value.is_integer():
        return None
    limits = np.iinfo(np.int64 if kind is np.int64 else np.uint64)
    return int(value) if limits.min <= int(value) <= limits.max else None
