"""A draft of a schema: the columns of a table, with a ? for everything that people have to fill in."""

from __future__ import annotations

from math import isqrt
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tomli_w

from hushbid.protocol.data.column import BRIGHTEST, MEASURED, MOMENTS, WHOLE, Kind
from hushbid.protocol.data.csv_files import (
    ENCODING_ADVICE,
    NO_TEXT,
    ambiguous,
    ambiguous_error,
    source_of,
)
from hushbid.protocol.data.dataset import DataColumns
from hushbid.protocol.data.dialect import Dialect
from hushbid.protocol.data.images import is_list
from hushbid.protocol.data.moments import DAY, is_moment, moments_of, table_times
from hushbid.protocol.data.names import is_index
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.data.tables import typed_by_values
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.tables.frames import as_arrow

__all__ = ["MOST_CATEGORIES", "draft", "kind_of_values"]

MOST_CATEGORIES: Final = 100
"""Most categories of a text column in a draft: a column with more is left out."""
_GAPS_ALONE: Final = "it has gaps alone, and no value"
_PUBLIC: Final = ("# Every party encodes its rows by this file, which is public.",)
_PRIVATE: Final = (
    "# Fill in what is marked by ?, from what everybody may know, and never from private rows.",
    "# Take out what rows are not to be compared by, such as names and numbers of customers. A column that",
    '# may have gaps needs `missing`: a value, or "own" in a category. An amount counts by its size with',
    '# `scale = "log"`.',
)
_FILLED: Final = (
    "# Gaps are filled: a category of their own, false, or the middle of the bounds.",
    "# A column of one value is kept: its bounds are the value and one more, or twice as much.",
)


def draft(
    path: Path,
    *,
    public: bool,
    label: str | None = None,
    fill: bool = False,
    dialect: Dialect | None = None,
) -> str:
    """A schema for the columns of a CSV or Parquet file, as TOML to be filled in.

    Args:
        public: Whether everybody may see its values: bounds and categories are then read from them. Otherwise
            people fill them in, since they would reveal something of private rows.
        label: The label column: points carry labels, but are not compared by them.
        fill: Whether a public draft fills gaps and keeps constant columns, by a rule stated at its top;
            otherwise people specify the former, and the latter are left out.
        dialect: The declared format of a CSV file.

    Raises:
        ConfigError: Private rows are to be filled.
        DataError: The file cannot be read, lacks the label column, or is ambiguous.
    """
    if fill and not public:
        raise ConfigError(
            "--fill determines from the rows which columns have gaps, and which are constant.",
            advice="Say --public as well, if everybody may know the file; or fill the draft in by hand.",
        )
    cells = as_arrow(path, path.name, DataColumns(dialect=dialect))
    if cells.num_rows == 0:
        raise DataError(f"{path.name} holds no rows.", advice="Give a file with at least one row.")
    _check_cells(path, cells)
    table = typed_by_values(cells, codes=True)
    lines = [*_PUBLIC] if public else [*_PRIVATE]
    lines += _FILLED if fill else ()
    if (source := source_of(cells)) is not None and source.said:
        lines.append(f"# {source.said}.")
    if len(set(table.column_names)) != table.num_columns:
        raise DataError(
            f"{path.name} has two columns of one name.", advice="Give every column a name of its own."
        )
    if label is not None and label not in table.column_names:
        raise DataError(
            f"{path.name} has no column {label!r}.", advice="Give the label column as the file names it."
        )
    for name in table.column_names:
        if name == label:
            lines.append(_left_out(name, "it is the label, which the party's own file names"))
        else:
            lines.append(_drafted(name, table.column(name), public=public, fill=fill))
    return "\n".join(lines) + "\n"


def _check_cells(path: Path, cells: Any) -> None:
    """Refuse a CSV file that a party would be refused: not in UTF-8, or with ambiguous commas."""
    source = source_of(cells)
    if source is None:
        return
    for name, column in zip(cells.column_names, cells.columns, strict=True):
        if not pa.types.is_string(column.type):
            raise DataError(f"{path.name}: column {name!r} {NO_TEXT}.", advice=ENCODING_ADVICE)
    if source.dialect.decimal == "." and source.dialect.separator != ",":
        doubtful = [name for name in cells.column_names if ambiguous(cells.column(name))]
        if doubtful:
            raise ambiguous_error(path, doubtful)


def _left_out(name: str, why: str) -> str:
    return f"\n# {name!r} is left out: {why}"


def _drafted(name: str, column: Any, *, public: bool, fill: bool) -> str:
    """A column's table, with ? where people have to fill in, or why it is left out."""
    kind = None if is_index(name) else kind_of_values(column)
    if kind == "image":
        return _drafted_image(name, column, public=public, fill=fill)
    if kind is None:
        return _left_out(name, _why_no_kind(name, column))
    values: dict[str, Any] = {"name": name, "kind": kind}
    empty = pc.is_null(column, nan_is_null=True)
    gaps = public and bool(pc.any(empty).as_py())
    found = pc.unique(column.filter(pc.invert(empty))) if public else None
    if found is not None and not len(found):
        return _left_out(name, _GAPS_ALONE)
    if found is not None and len(found) == 1 and not fill and (not gaps or kind in MEASURED):
        return _left_out(name, f"it is constant: it has one value {'and gaps' if gaps else 'alone'}")
    asked = ("lower", "upper") if kind in MEASURED else ("categories",) if kind == "category" else ()
    blank = [f"{key} = ?" for key in asked if not public]
    if found is not None and kind in MEASURED:
        values |= _range(column, kind, widened=len(found) == 1)
    elif found is not None and kind == "category":
        if len(found) > MOST_CATEGORIES:
            return _left_out(name, f"it has {len(found)} different texts")
        values["categories"] = sorted(found.to_pylist())
    if kind == "category" and (gaps or len(values.get("categories", ())) == 1):
        values["missing"] = "own"
    elif gaps and not fill:
        blank.append("missing = ?  # what a gap stands for")
    if public:
        try:
            schema = Schema.of([values])
            if gaps and fill and kind != "category":
                values["missing"] = _middle(schema)
                Schema.of([values])
        except ConfigError as refused:
            return _left_out(name, refused.what.rpartition(": ")[2])
    return "\n".join([f"\n[[columns]]\n{tomli_w.dumps(values).rstrip()}", *blank])


def _middle(schema: Schema) -> Any:
    """A gap's value in a column: the middle of its bounds, rounded down except for numbers, or false."""
    column = schema.columns[0]
    lower, upper = column.limits
    if column.kind == "boolean":
        return False
    if column.kind == "number":
        return lower / 2 + upper / 2
    middle = (int(lower) + int(upper)) // 2
    return (
        _moment_text(middle * (DAY if column.kind == "date" else 1), column.kind)
        if column.kind in MOMENTS
        else middle
    )


def _why_no_kind(name: str, column: Any) -> str:
    if is_index(name):
        return "it is an index that pandas has written, and no column of the table"
    if pa.types.is_null(column.type):
        return _GAPS_ALONE
    return f"values of type {column.type} have no kind of column"


def _drafted_image(name: str, column: Any, *, public: bool, fill: bool) -> str:
    """As `_drafted`, for a column of images: its type gives their size, or else public values."""
    shape = _shape(column, public=public)
    if shape is None:
        return _left_out(name, "its lists or bytes are of different lengths")
    values: dict[str, Any] = {"name": name, "kind": "image"}
    blank, note = [], ""
    if len(shape) == 1 and shape[0] is not None and (square := _square(shape[0])):
        shape, note = (
            square,
            f"\n# {name!r} is taken for square images of {shape[0]} numbers: look at its size.",
        )
    if len(shape) == 1 or None in shape:
        blank.append("size = ?  # width and height")
    else:
        values |= {"size": [shape[1], shape[0]], "channels": shape[2] if shape[2:] else 1}
    if public and bool(pc.any(pc.is_null(column)).as_py()):
        if fill:
            values["missing"] = BRIGHTEST // 2
        else:
            blank.append("missing = ?  # what a gap stands for: one value for all pixels of an image")
    if public and not blank:
        try:
            Schema.of([values]).encode(pa.table({name: column}), name=name)
        except (ConfigError, DataError) as refused:
            return _left_out(name, refused.what.rpartition(": ")[2])
    return "\n".join([f"{note}\n[[columns]]\n{tomli_w.dumps(values).rstrip()}", *blank])


def _square(numbers: int) -> tuple[int, int, int] | None:
    """Height, width and channels of a square image of so many numbers; None: there is no such image."""
    for channels in (1, 3):
        side = isqrt(numbers // channels)
        if side * side * channels == numbers:
            return side, side, channels
    return None


def _shape(column: Any, *, public: bool) -> tuple[int | None, ...] | None:
    """The lengths of a column's lists, level by level, or of its bytes; None for an unknown one.

    None in place of all: the values are public, and of several lengths.
    """
    found: list[int | None] = []
    held, kind = column.combine_chunks(), column.type
    while True:
        length, lists = None, is_list(kind)
        if pa.types.is_fixed_size_list(kind):
            length = kind.list_size
        elif pa.types.is_fixed_size_binary(kind):
            length = kind.byte_width
        elif public:
            lengths = pc.list_value_length(held) if lists else pc.binary_length(held)
            each = pc.unique(lengths.drop_null()).to_pylist()
            if len(each) > 1:
                return None
            length = each[0] if each else None
        found.append(length)
        if not lists:
            return tuple(found)
        held, kind = held.flatten(), kind.value_type
        if not is_list(kind):
            return tuple(found)


def _range(column: Any, kind: Kind, *, widened: bool) -> dict[str, Any]:
    """Bounds of the values that are numbers, dates or times; none of a column without any.

    Args:
        widened: Whether there is only one value, whose bounds have to differ.
    """
    if kind in MOMENTS:
        numbers = pa.array(moments_of(column.drop_null()).microseconds)
        first, last = pc.min(numbers).as_py(), pc.max(numbers).as_py()
        last += (DAY if kind == "date" else 1) * widened
        return {"lower": _moment_text(first, kind), "upper": _moment_text(last, kind)}
    whole = pa.types.is_integer(column.type)
    numbers = column if whole else column.cast(pa.float64())
    numbers = numbers.filter(pc.is_finite(numbers))
    if not len(numbers):
        return {}
    lower, upper = pc.min(numbers).as_py(), pc.max(numbers).as_py()
    if widened and upper < WHOLE:
        upper += max(1, abs(upper))
    return {"lower": lower, "upper": upper}


def _moment_text(microseconds: int, kind: Kind) -> str:
    shown = str(table_times(np.array([microseconds]))[0].as_py().isoformat())
    return shown[:10] if kind == "date" else shown


def kind_of_values(column: Any) -> Kind | None:
    """The kind of a column of a table that `typed_by_values` has typed; None: there is none."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "image"
    if is_list(kind):
        depth, inner = 0, kind
        while is_list(inner):
            depth, inner = depth + 1, inner.value_type
        return "image" if depth <= 3 and pa.types.is_integer(inner) else None
    return _moment(column) or ("category" if pa.types.is_string(kind) else None)


def _moment(column: Any) -> Kind | None:
    """The kind of dates or times in a column that holds them, even as text."""
    if is_moment(column.type):
        return "date" if pa.types.is_date(column.type) else "datetime"
    if not pa.types.is_string(column.type) or column.null_count == len(column):
        return None
    found = moments_of(column)
    if found.wrong.any() or found.inexact.any():
        return None
    return "datetime" if (found.microseconds % DAY).any() else "date"
