"""Tables of any library with the Arrow PyCapsule interface, such as pandas, polars and pyarrow, and files.

None of these libraries is imported here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from hushbid.protocol.data.encoding import plain_types
from hushbid.protocol.data.images import arrays_as_lists, is_gap
from hushbid.protocol.data.names import are_header, listed
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.data.tables import read_csv, read_parquet
from hushbid.protocol.errors import DataError

__all__ = ["ArrowTable", "Frame", "as_arrow", "library_of"]

ArrowTable: TypeAlias = Any
"""A pyarrow.Table: pyarrow has no types of its own to name."""

Frame: TypeAlias = Any
"""A DataFrame of pandas or polars, a pyarrow.Table, another table with the Arrow interchange, a mapping from
column names to values, or the path of a CSV or Parquet file."""

_ADVICE: Final = (
    "Give a DataFrame, a pyarrow.Table, a mapping of columns, or the path of a CSV or Parquet file."
)


def as_arrow(frame: Frame, name: str, schema: Schema | None = None) -> ArrowTable:
    """A table's columns.

    Args:
        schema: The schema to be applied, if any (`hushbid.protocol.data.tables.read_csv`).

    Raises:
        DataError: It is no table, or a file that cannot be read.
    """
    if isinstance(frame, str | Path):
        return _read(Path(frame), schema)
    try:
        if isinstance(frame, Mapping):
            return plain_types(pa.table({column: _listed(values) for column, values in frame.items()}))
        images = _image_columns(frame)
        table = _table(frame.drop(columns=list(images)) if images else frame)
        if table is not None:
            for column, values in images.items():
                table = table.append_column(column, values)
            return plain_types(table)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # Its message quotes values.
        if isinstance(frame, Mapping) and (differing := _differing_lengths(frame)):
            raise DataError(
                f"{name}: {differing}.",
                advice="Give every column a value for each row, and None where there is none.",
            ) from None
        raise DataError(
            _what_is_mixed(frame, name),
            advice="Give every column a name of its own and one type: numbers, booleans or text.",
        ) from None
    raise DataError(f"{name} is a {type(frame).__name__}, and no table.", advice=_ADVICE)


def _differing_lengths(columns: Mapping[Any, Any]) -> str:
    """Which columns are of another length than most; empty if none is. Lengths are the owner's own."""
    lengths = {str(column): len(values) for column, values in columns.items() if hasattr(values, "__len__")}
    if len(lengths) < len(columns) or len(counted := Counter(lengths.values())) < 2:
        return ""
    if not are_header([*lengths]):
        return "its columns differ in length"
    usual = counted.most_common(1)[0][0]
    one = next(column for column, length in lengths.items() if length == usual)
    others = [column for column, length in lengths.items() if length != usual]
    differ = f"columns {listed(others)} differ" if len(others) > 1 else f"column {listed(others)} differs"
    return f"{differ} in length from column {listed([one])}"


def _what_is_mixed(frame: Frame, name: str) -> str:
    """The column that Arrow refuses, and its first row of a minority type, if that can be found."""
    names = [] if library_of(frame) not in ("builtins", "pandas") else [str(column) for column in frame]
    for column in names if are_header(names) and len(set(names)) == len(names) else ():
        try:
            values = list(frame[column])
        except TypeError:
            return f"{name}: column {column!r} is no column of values."
        try:
            pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            kinds = [None if is_gap(value) else _kind(value) for value in values]
            counted = Counter(kind for kind in kinds if kind)
            if len(counted) < 2:
                return f"{name}: column {column!r} has values of mixed or unknown types."
            most = max(counted, key=lambda kind: counted[kind])
            row = next(place for place, kind in enumerate(kinds) if kind not in (None, most))
            return (
                f"{name}: column {column!r} has values of mixed or unknown types: row {row} (counted from 0) "
                f"is {kinds[row]}, where most are {most}."
            )
    return f"{name}: the table has a column of mixed or unknown types, or two of one name."


def _kind(value: Any) -> str:
    for kind, types in (
        ("a boolean", (bool, np.bool_)),
        ("a number", (int, float, np.number)),
        ("text", str),
    ):
        if isinstance(value, types):
            return kind
    return "of another type"


def _table(frame: Frame) -> ArrowTable | None:
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    if library_of(frame) == "pandas":  # before 2.2
        return pa.Table.from_pandas(frame, preserve_index=False)
    return None


def _listed(values: Any) -> Any:
    lists = arrays_as_lists(values)
    return values if lists is None else lists


def _image_columns(frame: Frame) -> dict[str, Any]:
    """Columns of a pandas DataFrame with arrays of several axes, which Arrow refuses."""
    if library_of(frame) != "pandas" or not frame.columns.is_unique:
        return {}
    found = {
        str(name): arrays_as_lists(frame[name].to_numpy())
        for name, kind in frame.dtypes.items()
        if kind.kind == "O" and isinstance(name, str)
    }
    return {name: lists for name, lists in found.items() if lists is not None}


def _read(path: Path, schema: Schema | None) -> ArrowTable:
    name = path.name.lower()
    try:
        if name.endswith(".parquet"):
            return plain_types(read_parquet(path))
        if name.endswith((".csv", ".csv.gz")):
            return plain_types(read_csv(path, schema))
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or 'damaged, or of another format'}.",
            advice="Correct the path, or save the file again.",
        ) from None
    raise DataError(f"{path} is neither CSV nor Parquet.", advice=_ADVICE)


def library_of(frame: Frame) -> str:
    """The package of a table's type."""
    return type(frame).__module__.partition(".")[0]
