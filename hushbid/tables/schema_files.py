"""Schemas and files: a draft from a table, rows encoded for a session, delivered rows as a table again."""

from __future__ import annotations

from math import isqrt
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import tomli_w

from hushbid.consumer.delivered import delivered_table
from hushbid.protocol.data.attribute_columns import attribute
from hushbid.protocol.data.column import MEASURED, MOMENTS, Kind
from hushbid.protocol.data.csv_files import source_of
from hushbid.protocol.data.dataset import Allowed, DataColumns, Dataset, Outside
from hushbid.protocol.data.images import is_list
from hushbid.protocol.data.moments import DAY, is_moment, moments_of, table_times
from hushbid.protocol.data.names import is_index
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.data.tables import dataset_of, typed_by_values
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.tables.delivery import writing
from hushbid.tables.frames import ArrowTable, as_arrow, write_table

__all__ = ["MOST_CATEGORIES", "arrays_of", "decode_file", "draft", "encode_file"]

MOST_CATEGORIES: Final = 100
"""Most categories of a text column in a draft: a column with more is left out."""


def draft(path: Path, *, public: bool, label: str | None = None) -> str:
    """A schema for the columns of a CSV or Parquet file, as TOML to be filled in.

    Args:
        public: Whether everybody may see its values: bounds and categories are then read off them. Otherwise
            people fill them in, since they would tell something of private rows.
        label: The column of labels, which points carry and are not compared by.

    Raises:
        DataError: The file cannot be read, or has no such column.
    """
    cells = as_arrow(path, path.name)
    table = typed_by_values(cells, codes=True)
    lines = [
        "# Every party encodes its rows by this file, which is public." if public else
        "# Fill in what is marked by ?, from what everybody may know, and never from private rows."
    ]  # fmt: skip
    if (source := source_of(cells)) is not None and source.said:
        lines.append(f"# {source.said}.")
    if len(set(table.column_names)) != table.num_columns:
        raise DataError(
            f"{path.name} has two columns of one name.", advice="Give every column a name of its own."
        )
    if label is not None and label not in table.column_names:
        raise DataError(
            f"{path.name} has no column {label!r}.", advice="Name the column of labels as the file does."
        )
    for name in table.column_names:
        if name == label:
            lines.append(_left_out(name, "it is the label, which the party's own file names"))
        else:
            lines.append(_drafted(name, table.column(name), public=public))
    return "\n".join(lines) + "\n"


def _left_out(name: str, why: str) -> str:
    return f"\n# {name!r} is left out: {why}"


def _drafted(name: str, column: Any, *, public: bool) -> str:
    """A column's table, with ? where people have to fill in, or why it is left out."""
    kind = None if is_index(name) else _kind(column)
    if kind == "image":
        return _drafted_image(name, column, public=public)
    if kind is None:
        return _left_out(name, _why_no_kind(name, column))
    values: dict[str, Any] = {"name": name, "kind": kind}
    gaps = public and bool(pc.any(pc.is_null(column, nan_is_null=True)).as_py())
    if public and not gaps and len(pc.unique(column)) == 1:
        return _left_out(name, "it is constant: it has one value alone")
    asked = ("lower", "upper") if kind in MEASURED else ("categories",) if kind == "category" else ()
    blank = [f"{key} = ?" for key in asked if not public]
    if public and kind in MEASURED:
        values |= _range(column, kind)
    elif public and kind == "category":
        found = sorted(pc.unique(column.drop_null()).to_pylist())
        if len(found) > MOST_CATEGORIES:
            return _left_out(name, f"it has {len(found)} different texts")
        values["categories"] = found
    if gaps:
        values |= {"missing": "own"} if kind == "category" else {}
        blank += [] if kind == "category" else ["missing = ?  # what a gap stands for"]
    if public:
        try:
            Schema.of([values])
        except ConfigError as refused:
            return _left_out(name, refused.what.rpartition(": ")[2])
    return "\n".join([f"\n[[columns]]\n{tomli_w.dumps(values).rstrip()}", *blank])


def _why_no_kind(name: str, column: Any) -> str:
    if is_index(name):
        return "it is an index that pandas has written, and no column of the table"
    return f"values of type {column.type} have no kind of column"


def _drafted_image(name: str, column: Any, *, public: bool) -> str:
    """As `_drafted`, for a column of images: its type says their size, or public values do."""
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
        blank.append("missing = ?  # what a gap stands for: one value for all pixels of an image")
    if public and not blank:
        try:
            Schema.of([values]).encode(pa.table({name: column}), name=name)
        except (ConfigError, DataError) as refused:
            return _left_out(name, refused.what.rpartition(": ")[2])
    return "\n".join([f"{note}\n[[columns]]\n{tomli_w.dumps(values).rstrip()}", *blank])


def _square(numbers: int) -> tuple[int, int, int] | None:
    """Height, width and channels of a square image of so many numbers; None: none has as many."""
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


def _range(column: Any, kind: Kind) -> dict[str, Any]:
    """Bounds of the values that are numbers, dates or times; none of a column without any."""
    if kind in MOMENTS:
        numbers = pa.array(moments_of(column.drop_null()).microseconds)
        ends = [pc.min(numbers), pc.max(numbers)]
        shown = [str(table_times(np.array([end.as_py()]))[0].as_py().isoformat()) for end in ends]
        lower, upper = (text[:10] for text in shown) if kind == "date" else shown
        return {"lower": lower, "upper": upper}
    whole = pa.types.is_integer(column.type)
    numbers = column if whole else column.cast(pa.float64())
    numbers = numbers.filter(pc.is_finite(numbers))
    if not len(numbers):
        return {}
    return {"lower": pc.min(numbers).as_py(), "upper": pc.max(numbers).as_py()}


def _kind(column: Any) -> Kind | None:
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
    """The kind of dates or times, of a column that holds such, be it as text."""
    if is_moment(column.type):
        return "date" if pa.types.is_date(column.type) else "datetime"
    if not pa.types.is_string(column.type) or column.null_count == len(column):
        return None
    found = moments_of(column)
    if found.wrong.any() or found.inexact.any():
        return None
    return "datetime" if (found.microseconds % DAY).any() else "date"


def arrays_of(
    schema: Schema, table: ArrowTable, name: str, columns: DataColumns
) -> dict[str, npt.NDArray[Any]]:
    """What a party's ``.npz`` has of a table: ``features``, and ``labels`` and ``identifiers`` if named.

    If rows may lack a label, by `columns`, ``labelled`` says which have one.

    Raises:
        DataError: A row does not fit the schema, or a label or an identifier is missing.
    """
    arrays: dict[str, npt.NDArray[Any]] = {"features": schema.encode(table, name=name)}
    for array, column in (("labels", columns.label), ("identifiers", columns.identifier)):
        if column is None:
            continue
        if table.column_names.count(column) != 1:
            raise DataError(
                f"{name} has no column {column!r}, or several.", advice="Correct the name, or name none."
            )
        arrays[array], labelled, _ = attribute(
            table, column, name, columns, identifier=array == "identifiers"
        )
        if labelled is not None:
            arrays["labelled"] = labelled
    return arrays


def encode_file(
    schema: Schema,
    path: Path,
    output: Path,
    *,
    label: str | None = None,
    identifier: str | None = None,
    outside: Outside | None = None,
) -> Dataset:
    """Write a table's rows as the ``.npz`` that a party's file names.

    Args:
        outside: What becomes of rows that do not fit the schema; None: they are refused.

    Returns:
        What was written, with what was clipped or dropped.

    Raises:
        DataError: A file cannot be read or written, or a row does not fit.
    """
    columns = DataColumns(
        label=label,
        identifier=identifier,
        schema=schema,
        outside=outside or "refuse",
        allowed=Allowed(schema.lower, schema.upper),
    )
    if output.suffix != ".npz":
        raise DataError(f"{output} is no .npz.", advice="Give it that ending.")
    table = as_arrow(path, path.name, columns)
    if table.num_rows == 0:
        raise DataError(f"{path.name} holds no rows.", advice="Give a file with at least one row.")
    found = dataset_of(path, table, columns)
    arrays = {name: getattr(found, name) for name in ("features", "labels", "identifiers")}
    with writing(output) as stream:
        np.savez(stream, **{name: array for name, array in arrays.items() if array is not None})
    return found


def decode_file(
    schema: Schema, path: Path, output: Path, *, label: str = "label"
) -> tuple[int, dict[str, int]]:
    """Write a delivery as a table; returns how many rows it has, and its formulas (`write_table`).

    Raises:
        DataError: As `delivered_table`, or the file cannot be written.
    """
    table = delivered_table(schema, path, label=label)
    formulas = write_table(table, output)
    return int(table.num_rows), formulas
