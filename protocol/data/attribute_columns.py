"""Labels and identifiers of tables: integers, floats or text, as the session declares them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hushbid.protocol import limits
from hushbid.protocol.data.cells import attribute_of, flags_of, without_words
from hushbid.protocol.data.column import GAP_WORDS, LabelKind
from hushbid.protocol.data.csv_files import ENCODING_ADVICE, NO_TEXT, source_of, unquoted
from hushbid.protocol.data.dataset import DataColumns, first_empty
from hushbid.protocol.errors import DataError

__all__ = ["Attribute", "attribute", "first_of", "is_text", "type_name"]

Array: TypeAlias = npt.NDArray[Any]
Flags: TypeAlias = npt.NDArray[np.bool_]
Column: TypeAlias = Any
Table: TypeAlias = Any
"""A pyarrow.ChunkedArray and a pyarrow.Table: pyarrow has no types of its own to name."""


class Attribute(NamedTuple):
    """The labels or the identifiers of a table.

    Attributes:
        values: Integers, floats or text, shape (rows,); anything where a row has none.
        held: Which rows have one; None: all.
        unfit: Rows whose cell cannot be one, or that need one and have none, where such are left out.
    """

    values: Array
    held: Flags | None
    unfit: Flags


def attribute(
    table: Table,
    name: str,
    where: str,
    columns: DataColumns,
    *,
    identifier: bool = False,
    rows: Flags | None = None,
) -> Attribute:
    """The labels or the identifiers of a table: integers, floats or text.

    Args:
        name: The column, which is there once.
        where: The table's name in messages.
        columns: What is declared of them, and whether rows may have no label.
        rows: The rows that are read, of a table whose unfit rows are left out. None: all, and none may be
            unfit.

    Raises:
        DataError: One is missing, or of a type that cannot travel or that the session does not declare.
    """
    column, source = table.column(name), source_of(table)
    kind = columns.identifier_kind if identifier else columns.label_kind
    gaps = columns.label_gaps and not identifier
    unfit = np.zeros(len(column), dtype=np.bool_)
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if source is not None:
        if not pa.types.is_string(column.type):
            raise DataError(f"{where}: column {name!r} {NO_TEXT}.", advice=ENCODING_ADVICE)
        column = _without_words(table, name, () if identifier else columns.label_words, kind)
        while isinstance(
            found := attribute_of(
                _only(column, rows, unfit),
                kind,
                decimal=source.dialect.decimal or ".",
                label=not identifier,
                fractions=columns.fractions,
            ),
            tuple,
        ):
            if rows is None:
                row, declared = int(found[0].argmax()), "identifiers" if identifier else "labels"
                raise DataError(
                    f"{where}: row {row} (counted from 0; line {source.line(row)} of the file), column "
                    f"{name!r} {found[1]}, as the session declares its {declared}.",
                    advice="Correct the cell, or agree on another declaration.",
                )
            unfit |= found[0]
        column = found
    if rows is None:
        held = None
        if gaps:
            column, held = _without_gaps(column)
        return Attribute(_values(where, column, name), held, unfit)
    column, bad = _usable(_only(column, rows, unfit), kind, identifier=identifier)
    unfit |= bad
    column, held = _without_gaps(column)
    if not gaps and held is not None:
        unfit |= rows & ~held
    return Attribute(_values(where, column, name), held if gaps else None, unfit)


def _only(column: Column, rows: Flags | None, unfit: Flags) -> Column:
    """The column with null in all other rows, and in those that are unfit."""
    if rows is None or (rows & ~unfit).all():
        return column
    return pc.if_else(pa.array(rows & ~unfit), column, pa.scalar(None, column.type))


def _usable(column: Column, kind: LabelKind | None, *, identifier: bool) -> tuple[Column, Flags]:
    """The column without what cannot travel, and which rows had such a thing.

    Whole amounts become integers where these are declared, or must be: a gap made floats of them.
    """
    bad: Flags = np.zeros(len(column), dtype=np.bool_)
    if is_text(column.type):
        bad = flags_of(pc.greater(pc.binary_length(column), limits.MAX_ATTRIBUTES))
    elif pa.types.is_floating(column.type):
        values = np.array(column.to_numpy(), dtype=np.float64)
        bad = np.isinf(values)
        if identifier or kind == "integer":
            whole = np.isnan(values) | ((np.floor(values) == values) & (np.abs(values) < 2.0**53))
            if identifier and not whole.all():
                return column, bad  # no identifiers: the column is refused
            bad |= ~whole
            column = pa.chunked_array([pa.array(np.where(whole, values, np.nan), from_pandas=True)])
            return pc.cast(column, pa.int64()), bad
    if bad.any():
        column = pc.if_else(pa.array(bad), pa.scalar(None, column.type), column)
    return column, bad


def _without_words(table: Table, name: str, classes: Sequence[str], kind: str | None) -> Column:
    """Cells with null for gaps: words in quotes are none where the cells may be text."""
    cells = table.column(name)
    words = GAP_WORDS.difference(classes)
    found = without_words(cells, words)
    if kind in (None, "text") and found.null_count > without_words(cells, ("",)).null_count:
        quoted = pc.invert(unquoted(table, name, words))
        text = pc.and_(pc.not_equal(pc.utf8_trim_whitespace(cells), ""), quoted)
        found = pc.if_else(text, cells, found)
    return found


def _without_gaps(column: Column) -> tuple[Column, Flags | None]:
    """A column of Arrow with its gaps filled by a value that it has, and which rows had none; None: all.

    A gap is null, NaN, or text that is empty or only white space.
    """
    gaps = pc.is_null(column, nan_is_null=True)
    if is_text(column.type):
        gaps = pc.or_(gaps, pc.fill_null(pc.equal(pc.utf8_trim_whitespace(column), ""), fill_value=False))
    found = flags_of(gaps)
    if not found.any():
        return column, None
    if found.all():
        return pa.chunked_array([pa.array(np.zeros(len(column), dtype=np.int8))]), ~found
    first = column[int((~found).argmax())]
    return pc.if_else(gaps, first, column), ~found


def _values(where: str, column: Column, name: str) -> Array:
    """A label or identifier column without gaps, as integers, floats or text."""
    kind = column.type
    gaps = pc.is_null(column, nan_is_null=True)
    if pc.any(gaps).as_py():
        raise _gap(where, first_of(gaps), name)
    if is_text(kind):
        long = pc.greater(pc.binary_length(column), limits.MAX_ATTRIBUTES)
        if pc.any(long).as_py():
            raise DataError(
                f"{where}: row {first_of(long)} (counted from 0) has a {name!r} of more than"
                f" {limits.MAX_ATTRIBUTES} bytes, which may not travel with a point.",
                advice="Shorten it, or do not name the column.",
            )
        texts = np.asarray(column.to_pylist(), dtype=np.str_)
        if (empty := first_empty(texts)) is not None:
            raise _gap(where, empty, name)
        return texts
    if pa.types.is_boolean(kind):
        column = pc.cast(column, pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise DataError(
            f"{where}: the column {name!r} is of {type_name(kind)}, which cannot travel with a point.",
            advice="Convert it to integers or text, or do not name the column.",
        )
    values: Array = column.to_numpy()
    return values


def is_text(kind: Any) -> bool:
    """Whether a column of this type of pyarrow's holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _gap(where: str, row: int, name: str) -> DataError:
    return DataError(
        f"{where}: row {row} (counted from 0), column {name!r} is missing (empty, NA or NaN).",
        advice="Fill it in, remove the row, or do not name the column.",
    )


def type_name(kind: Any) -> str:
    """A type of Arrow in words: a nested one's full name lists its fields."""
    return "a nested type" if pa.types.is_nested(kind) else f"type {kind}"


def first_of(flags: Column) -> int:
    """The first row whose flag is set; there is one."""
    return int(pc.index(flags, True).as_py())
