"""A table's columns to a schema's numbers, and back, by pyarrow; messages never quote a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hushbid.protocol.data.column import LISTED, WHOLE, Column
from hushbid.protocol.data.images import encoded_images, table_images
from hushbid.protocol.errors import DataError

__all__ = ["encoded_column", "plain_types", "table_of"]


def plain_types(table: Any) -> Any:
    """The same values in types that all versions compute with: no dictionaries, views, large text, halves."""
    for index, field in enumerate(table.schema):
        kind, values = field.type, table.column(index)
        if pa.types.is_run_end_encoded(kind):
            values = pc.run_end_decode(values)
            kind = values.type
        if pa.types.is_dictionary(kind):
            codes, kind = values, kind.value_type
            values = pa.chunked_array(
                [_plain(chunk.dictionary, kind).take(chunk.indices) for chunk in codes.chunks],
                _plain_type(kind),
            )
        else:
            values = _plain(values, kind)
        table = table.set_column(index, field.name, values)
    return table


def _plain_type(kind: Any) -> Any:
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_float16(kind):  # old versions of Arrow find no NaN among halves
        return pa.float32()
    view = pa.types.is_string_view(kind) or pa.types.is_large_string(kind)
    return pa.string() if view else kind


def _plain(values: Any, kind: Any) -> Any:
    return values.cast(_plain_type(kind))


def table_of(parts: Iterable[tuple[Column, npt.NDArray[np.float64]]]) -> Any:
    """The rows that these numbers encode, as a pyarrow.Table.

    Args:
        parts: Each column with its numbers, shape (rows, width), all of which fit (`Column.holds`).
    """
    return pa.table({column.name: _decoded(column, numbers) for column, numbers in parts})


def encoded_column(column: Column, values: Any, where: str) -> npt.NDArray[np.float64]:
    """A column's numbers, shape (rows, width); `where` is its name in messages.

    Raises:
        DataError: A value does not fit; the first such row is named.
    """
    gaps = _flags(pc.is_null(values, nan_is_null=True))
    if gaps.any() and column.missing is None:
        raise _wrong(where, gaps, "is missing", _OWN_GAP if column.kind == "category" else _GAP)
    if column.kind in LISTED:
        return _of_categories(column, values, gaps, where)
    if column.kind == "image":
        return encoded_images(column, values, gaps, where)
    numbers = _numbers(column, values, gaps, where)
    if gaps.any():
        numbers[gaps] = float(column.missing)  # type: ignore[arg-type]  # a number, as `_check_missing` saw to
    return numbers[:, None]


_GAP: Final = "Fill it in, or say by the column's `missing` what a gap stands for."
_OWN_GAP: Final = f'{_GAP[:-1]} (`missing = "own"`: a category of its own).'

_EMPTY: Final = "Make it null (None): that is a gap, and the column's `missing` says what a gap stands for."


def _numbers(column: Column, values: Any, gaps: npt.NDArray[np.bool_], where: str) -> npt.NDArray[np.float64]:
    """Values of a number, an integer or a boolean; arbitrary in gaps."""
    kind = values.type
    boolean = pa.types.is_boolean(kind)
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not (numeric or boolean or pa.types.is_null(kind)) or (boolean and column.kind != "boolean"):
        raise DataError(
            f"{where} holds values of type {kind}, where the schema has a {column.kind}.",
            advice="Convert the column, or correct the schema.",
        )
    inexact = np.zeros(len(values), dtype=np.bool_)
    if pa.types.is_decimal(kind):  # Arrow's own cast is not that of every library, to the last bit
        exact = values.to_pylist()
        rounded = [None if value is None else float(value) for value in exact]
        values = pa.chunked_array([pa.array(rounded, pa.float64())])
        inexact = np.array([value != number for value, number in zip(exact, rounded, strict=True)], np.bool_)
    if boolean:
        values = pc.cast(values, pa.uint8())
    if pa.types.is_integer(kind):
        numbers = _whole(values, where)
    else:
        numbers = np.array(values.cast(pa.float64()).fill_null(np.nan).to_numpy())
    lower: Any
    upper: Any
    lower, upper = (0.0, 1.0) if column.kind == "boolean" else (column.lower, column.upper)
    with np.errstate(invalid="ignore"):
        outside = ~((numbers >= lower) & (numbers <= upper)) & ~gaps
        broken = ((numbers != np.floor(numbers)) | inexact) & ~gaps & (column.kind != "number")
    if outside.any():
        raise _wrong(where, outside, "is out of bounds", _BOUNDS)
    if broken.any():
        raise _wrong(where, broken, "is no whole number", "Round it, or have the schema say number.")
    return np.asarray(numbers)


def _whole(values: Any, where: str) -> npt.NDArray[np.float64]:
    """Whole numbers of any width that float64 represents exactly; 0 in gaps."""
    filled = values.fill_null(0).to_numpy()
    if (large := (filled > WHOLE) | (filled < -WHOLE)).any():
        raise _wrong(where, large, "is out of bounds", _BOUNDS)
    return np.asarray(filled, dtype=np.float64)


_BOUNDS: Final = "Correct it, clip it, or agree on other bounds, which are public."


def _of_categories(
    column: Column, values: Any, gaps: npt.NDArray[np.bool_], where: str
) -> npt.NDArray[np.float64]:
    categories = list(column.categories or ())
    text = isinstance(categories[0], str)
    kind = values.type
    fits = pa.types.is_string(kind) if text else pa.types.is_integer(kind)
    if not text and pa.types.is_floating(kind):  # whole numbers with gaps, as pandas has them
        whole = np.array(values.cast(pa.float64()).fill_null(0.0).to_numpy())
        fits = bool((np.isnan(whole) | (whole == np.floor(whole))).all())
    if not (fits or pa.types.is_null(kind)):
        listed = "text" if text else "integers"
        raise DataError(
            f"{where} holds values of type {kind}, where its categories are {listed}.",
            advice="Convert the column, or correct the schema.",
        )
    known = pa.array(categories, pa.string() if text else pa.int64())
    if not text and pa.types.is_integer(kind):
        values = pa.chunked_array([pa.array(_whole(values, where), mask=gaps)])
    if not pa.types.is_null(kind):
        values = values.cast(pa.string() if text else pa.float64())
        if not text:
            known = known.cast(pa.float64())
    else:
        values = pa.chunked_array([pa.nulls(len(values), known.type)])
    places = pc.index_in(values, value_set=known).combine_chunks()
    found = np.array(places.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    found[gaps] = -1
    strange = (found < 0) & ~gaps
    empty = strange & _flags(pc.equal(values, "").fill_null(False)) if text else np.zeros_like(strange)
    if empty.any():  # as pyarrow reads an empty field of CSV in a column of text
        raise _wrong(where, empty, "is empty text, which is no gap and of no category", _EMPTY)
    if strange.any():
        raise _wrong(where, strange, "is of no category", "Correct it, or agree on more categories.")
    if gaps.any():
        found[gaps] = len(categories) if column.own_gap else categories.index(column.missing)
    if column.kind == "ordinal":
        return np.asarray(found[:, None], dtype=np.float64)
    return np.asarray(found[:, None] == np.arange(column.width), dtype=np.float64)


def _decoded(column: Column, numbers: npt.NDArray[np.float64]) -> Any:
    if column.kind == "number":
        return pa.array(numbers[:, 0])
    if column.kind == "image":
        return table_images(numbers)
    places = numbers.argmax(axis=1) if column.kind == "category" else numbers[:, 0].astype(np.int64)
    if column.kind == "integer":
        return pa.array(places)
    listed: list[Any] = [False, True] if column.kind == "boolean" else list(column.categories or ())
    listed += [None] if column.own_gap else []
    return pa.array(listed).take(pa.array(places))


def _flags(values: Any) -> npt.NDArray[np.bool_]:
    return np.asarray(values.to_numpy(), dtype=np.bool_)


def _wrong(where: str, flags: npt.NDArray[np.bool_], what: str, advice: str) -> DataError:
    more = int(flags.sum()) - 1
    others = f", and those of {more} more rows" if more else ""
    return DataError(f"{where}: row {int(flags.argmax())} (counted from 0) {what}{others}.", advice=advice)
