"""Labels or identifiers from many owners, as one array of one type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["MAX_STORED_TEXT", "column"]

Value: TypeAlias = int | float | str | None

MAX_STORED_TEXT: Final = 256
"""Longest text that is stored, in characters. An array reserves the length of its longest text for every
entry: one text of 4,000 characters among 20,000 would take 320 MB.
"""

WIDE_SHARE: Final = 0.25
"""A column becomes uint64 if this share of owners each have this share of their integers beyond int64, unless
as many owners have negative ones. Half of all 64-bit digests lie beyond int64; one owner's odd number must
not change everybody's type.
"""

_FAMILIES: Final[tuple[type[np.generic], ...]] = (np.int64, np.float64, np.str_)

_FILLERS: Final[dict[type[np.generic], Any]] = {
    np.int64: np.iinfo(np.int64).min,
    np.uint64: np.iinfo(np.uint64).max,
    np.float64: np.nan,
    np.str_: "",
}


def column(values: Sequence[Value], owners: Sequence[str]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Convert values to an array of the type that most owners have, and say which of them it holds.

    Every owner has one vote, however many points it sells: no single owner decides what the others' labels
    are. A number of another type is held if the column's type represents it exactly: 3.0 among integers.
    Nothing else is converted. Text counts as missing if it is blank, contains NUL (NumPy's text cannot end in
    it), or is longer than `MAX_STORED_TEXT`.

    Args:
        values: None where one is missing.
        owners: The owner of each value.

    Returns:
        Two arrays of shape (n,): the values, and whether each is held. Where the second is False, the first
        has a filler that no honest label equals: the type's least integer (uint64: its largest), NaN, or
        empty text.
    """
    kind = _kind(values, owners)
    found = [_as(kind, value) for value in values]
    held = np.array([value is not None for value in found], dtype=np.bool_)
    filler = _FILLERS[kind]
    return np.array([filler if value is None else value for value in found], dtype=kind), held


def _kind(values: Sequence[Value], owners: Sequence[str]) -> type[np.generic]:
    """The type of most owners' values, one vote per owner; in a tie, the type of most values."""
    held: dict[str, Counter[type[np.generic]]] = {}
    for owner, value in zip(owners, values, strict=True):
        if (kind := _own(value)) is not None:
            held.setdefault(owner, Counter())[kind] += 1
    total = sum(held.values(), Counter[type[np.generic]]())
    votes = Counter(max(_FAMILIES, key=lambda kind: _count(own, kind)) for own in held.values())
    family = max(_FAMILIES, key=lambda kind: (votes[kind], _count(total, kind)))
    if family is not np.int64:
        return family
    wide = sum(own[np.uint64] >= WIDE_SHARE * _count(own, np.int64) > 0 for own in held.values())
    signed = {owner for owner, value in zip(owners, values, strict=True) if type(value) is int and value < 0}
    return np.uint64 if wide > len(signed) and wide >= WIDE_SHARE * votes[np.int64] else np.int64


def _own(value: Value) -> type[np.generic] | None:
    """The type of a single value; None if no column can store it."""
    if isinstance(value, int):
        return np.uint64 if value >= 2**63 else np.int64
    if isinstance(value, float):
        return np.float64
    return None if _as(np.str_, value) is None else np.str_


def _count(own: Counter[type[np.generic]], family: type[np.generic]) -> int:
    return own[family] + (own[np.uint64] if family is np.int64 else 0)


def _as(kind: type[np.generic], value: Value) -> Value:
    """The value converted to the type, or None if that is not exact."""
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
