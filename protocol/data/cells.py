"""Types for the cells of a CSV file, which are all text.

A schema's column says by its kind what its cells are; a session may say it of labels. Where nothing says it,
a text becomes a number only if it is how that number is written: `007` and `1` stay two texts.
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hushbid.protocol.data.column import GAP_WORDS, LabelKind

__all__ = [
    "FALSE_WORDS",
    "TRUE_WORDS",
    "Numbers",
    "attribute_of",
    "by_values",
    "flags_of",
    "numbers_of",
    "plain_numbers",
    "without_words",
]

Cells: TypeAlias = Any
"""A pyarrow.ChunkedArray of strings: pyarrow has no types of its own to name."""

Flags: TypeAlias = npt.NDArray[np.bool_]

TRUE_WORDS: Final = ("true", "True", "TRUE")
FALSE_WORDS: Final = ("false", "False", "FALSE")

_NUMBER: Final = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|^[-+]?(?i:inf|infinity|nan)$"
_WITH_COMMA: Final = r"^[-+]?(\d+,?\d*|,\d+)([eE][-+]?\d+)?$|^[-+]?(?i:inf|infinity|nan)$"
_SHORT: Final = 16
"""A number of fewer signs is exact wherever it is whole."""
_LONG: Final = r"^[-+]?\d{16,}\.?0*$"
"""Whole numbers that float64 may not hold."""
_CANONICAL: Final = r"^(0|-?[1-9]\d{0,18})$"
"""How a whole number of 64 bits is written, and nothing else is."""
_AMOUNT: Final = r"^-?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?$|^[-+]?(?i:inf|infinity)$"
"""A number without zeros or a plus before it, which codes have."""


class Numbers(NamedTuple):
    """Cells as numbers.

    Attributes:
        values: Shape (n,), NaN in gaps and where a cell is no number.
        wrong: Which cells are neither a gap nor a number.
        inexact: Which are whole numbers that float64 does not hold.
    """

    values: npt.NDArray[np.float64]
    wrong: Flags
    inexact: Flags


def flags_of(values: Any) -> Flags:
    """Arrow booleans as NumPy's; null is False."""
    filled = values.fill_null(False)
    found = filled.to_numpy(zero_copy_only=False) if isinstance(filled, pa.Array) else filled.to_numpy()
    return np.asarray(found, dtype=np.bool_)


def without_words(cells: Cells, words: Collection[str], *, keep: Collection[object] = ()) -> Cells:
    """The cells with null in place of these words, whatever blanks are around them.

    Args:
        keep: Texts that stay, such as a category of blanks; whatever is no text is passed over.
    """
    found = pc.is_in(pc.utf8_trim_whitespace(cells), value_set=pa.array(sorted(words), pa.string()))
    if blank := [text for text in keep if isinstance(text, str) and text.strip() in words]:
        found = pc.and_not(found, pc.is_in(cells, value_set=pa.array(blank, pa.string())))
    return pc.if_else(found, pa.scalar(None, pa.string()), cells) if pc.any(found).as_py() else cells


def plain_numbers(cells: Cells, *, decimal: str = ".") -> npt.NDArray[np.float64] | None:
    """The cells' numbers if all are short ones without a blank or a gap, which most columns have.

    It saves the looks that `numbers_of` takes at each: no such text is a word for a gap, or beyond 53 bits.
    """
    found = _cast(cells, pa.float64()) if decimal == "." else None
    if found is None:
        return None
    values = np.array(found.fill_null(np.nan).to_numpy())
    longest = pc.max(pc.binary_length(cells)).as_py() or 0
    return None if longest >= _SHORT or np.isnan(values).any() else values


def numbers_of(cells: Cells, *, decimal: str = ".", whole: bool = False) -> Numbers:
    """Read cells as numbers, exactly or not at all where they are whole.

    Args:
        decimal: What stands before fractions.
        whole: Whether all are to be whole numbers, so that every cell has to be exact.
    """
    texts = pc.utf8_trim_whitespace(cells)
    known = flags_of(pc.match_substring_regex(texts, _WITH_COMMA if decimal == "," else _NUMBER))
    if decimal == ",":
        texts = pc.replace_substring(texts, ",", ".")
    texts = pc.if_else(pa.array(known), texts, pa.scalar(None, pa.string()))
    values = np.array(pc.cast(pc.utf8_ltrim(texts, "+"), pa.float64()).fill_null(np.nan).to_numpy())
    inexact = np.zeros(len(values), dtype=np.bool_)
    doubtful = flags_of(pc.match_substring_regex(texts, _LONG))
    if whole:
        plain = flags_of(pc.match_substring_regex(texts, r"^[-+]?\d{1,15}(\.0*)?$"))
        doubtful = known & ~plain & np.isfinite(values)
    for row in np.flatnonzero(doubtful):
        inexact[row] = not _is_exact(texts[int(row)].as_py(), float(values[row]))
    wrong = ~known & flags_of(pc.is_valid(cells))
    return Numbers(values, wrong, inexact)


def _is_exact(text: str, value: float) -> bool:
    try:
        return np.isfinite(value) and Decimal(text) == Decimal(value)
    except InvalidOperation:  # an exponent beyond all that is
        return False


def by_values(column: Any, *, decimal: str = ".") -> Any:
    """A column's cells in the type that all of them have: whole numbers, numbers, booleans, else text.

    For features that no schema describes. A column of gaps alone has the type null.
    """
    if not pa.types.is_string(column.type):
        return column
    if (numbers := plain_numbers(column, decimal=decimal)) is not None:
        whole = _cast(column, pa.int64())
        return pa.chunked_array([pa.array(numbers)]) if whole is None else whole
    cells = without_words(column, GAP_WORDS)
    if cells.null_count == len(cells):
        return pa.chunked_array([pa.nulls(len(cells))])
    texts = pc.utf8_trim_whitespace(cells)
    whole = _cast(pc.utf8_ltrim(texts, "+"), pa.int64()) if _all(texts, r"^[-+]?\d+$") else None
    if whole is not None:
        return whole
    if _all(texts, _WITH_COMMA if decimal == "," else _NUMBER):
        found = numbers_of(cells, decimal=decimal)
        if not found.inexact.any():
            return pa.chunked_array([pa.array(found.values, mask=flags_of(pc.is_null(cells)))])
    if pc.all(pc.is_in(texts, value_set=pa.array([*TRUE_WORDS, *FALSE_WORDS, None]))).as_py():
        return pc.cast(texts, pa.bool_())
    return cells


def _cast(texts: Cells, kind: Any) -> Any | None:
    try:
        return pc.cast(texts, kind)
    except pa.ArrowException:
        return None


def _all(texts: Cells, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def attribute_of(
    cells: Cells,
    kind: LabelKind | None,
    *,
    decimal: str = ".",
    label: bool = True,
    fractions: bool = False,
) -> Any:
    """Labels or identifiers in their type: integers, floats or text; gaps are null already.

    Args:
        kind: What the session declares. None: integers if each text is how its number is written. Amounts are
            told from codes likewise: no zeros before them. Else the texts as they are.
        label: Whether these are labels, which may also be amounts or booleans.
        fractions: Whether declared numbers are floats though all are whole, as far as floats hold them: the
            type of one is then not to tell of others.

    Returns:
        The column, or the rows of cells that are not of the declared kind, and what these are not.
    """
    if kind == "text":
        return cells
    texts = pc.utf8_trim_whitespace(cells)
    written = cells if kind is None else texts
    integers = _cast(written, pa.int64()) if _all(written, _CANONICAL) else None
    floats = fractions and kind == "number"
    if integers is not None and not floats:
        return integers
    words = pa.array([*TRUE_WORDS, *FALSE_WORDS, None])
    if label and pc.all(pc.is_in(texts, value_set=words)).as_py():
        flags = pc.cast(texts, pa.bool_())
        return pc.cast(flags, pa.float64()) if floats else pc.cast(flags, pa.int8())
    if kind is None:
        found = numbers_of(cells, decimal=decimal)
        pattern = _AMOUNT.replace(r"\.", ",") if decimal == "," else _AMOUNT
        if not label or not _all(cells, pattern) or found.inexact.any() or _all(cells, r"^-?\d+$"):
            return cells
        return pa.chunked_array([pa.array(found.values, mask=flags_of(pc.is_null(cells)))])
    found = numbers_of(cells, decimal=decimal, whole=kind == "integer")
    if kind == "number":
        if integers is not None and found.inexact.any():
            return integers
        bad, what = found.wrong | found.inexact, "is no number, or one that would be changed"
    else:
        whole = np.isfinite(found.values) & (found.values == np.floor(found.values))
        gaps = flags_of(pc.is_null(cells))
        bad, what = (~whole | found.inexact | found.wrong) & ~gaps, "is no whole number"
        if not bad.any():
            exact = [None if text is None else int(Decimal(text)) for text in texts.to_pylist()]
            if all(value is None or -(2**63) <= value < 2**63 for value in exact):
                return pa.chunked_array([pa.array(exact, pa.int64())])
            bad = np.array([value is not None and abs(value) >= 2**63 for value in exact])
    if bad.any():
        return bad, what
    return pa.chunked_array([pa.array(found.values, mask=flags_of(pc.is_null(cells)))])
