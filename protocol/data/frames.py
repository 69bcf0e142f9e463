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

from hushbid.protocol.data.dataset import DataColumns
from hushbid.protocol.data.encoding import plain_types
from hushbid.protocol.data.formats import format_of
from hushbid.protocol.data.images import arrays_as_lists, is_gap
from hushbid.protocol.data.names import are_header, listed
from hushbid.protocol.data.table_faults import check_present
from hushbid.protocol.errors import DataError
from hushbid.protocol.names import an

__all__ = ["ArrowTable", "Frame", "as_arrow", "library_of"]

ArrowTable: TypeAlias = Any
"""A pyarrow.Table: pyarrow has no types of its own to name."""

Frame: TypeAlias = Any
"""A DataFrame of pandas or polars (a LazyFrame is collected, a named Series is a table of one column), a
pyarrow.Table, another table with the Arrow interchange, a mapping from column names to values, a list of
dictionaries, a structured array of NumPy, or the path of a CSV or Parquet file."""

_ADVICE: Final = (
    "Give a DataFrame, a pyarrow.Table, a mapping of columns, a list of dictionaries, or the path of a CSV "
    "or Parquet file."
)


def as_arrow(frame: Frame, name: str, columns: DataColumns | None = None) -> ArrowTable:
    """A table's columns; those of a CSV file are cells without types (`csv_files.read_cells`).

    Args:
        columns: What is read of the table: no other column matters, whatever it holds. None: all.

    Raises:
        DataError: It is no table, or a file that cannot be read.
    """
    columns = columns or DataColumns()
    if isinstance(frame, str | Path):
        return _read(Path(frame), columns)
    frame = _whole(frame, name)
    names = _names(frame)
    if names is not None and columns.schema is not None:
        check_present(columns.schema.names, names, name)
    frame = _only(frame, columns.used)
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
    raise DataError(f"{name} is {an(type(frame).__name__)}, and no table.", advice=_ADVICE)


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


def _whole(frame: Frame, name: str) -> Frame:
    """Rows in place of what stands for them: a Series, a structured array, dictionaries, or a query.

    Raises:
        DataError: It cannot be made a table without more being said.
    """
    library, kind = library_of(frame), type(frame).__name__
    if library in ("pandas", "polars") and kind == "Series":
        if not isinstance(frame.name, str) or not frame.name:
            raise DataError(
                f"{name} is a Series without a name, which is one column and no table.",
                advice='Give the DataFrame, or the column with its name: `frame[["age"]]`.',
            )
        return frame.to_frame()
    if library == "polars" and kind == "LazyFrame":
        return frame.collect()
    if library == "pyarrow" and kind == "RecordBatchReader":
        raise DataError(
            f"{name} is a RecordBatchReader, which can be read only once.",
            advice="Give the table that `read_all()` makes of it.",
        )
    if isinstance(frame, np.ndarray) and frame.dtype.names and frame.ndim == 1:
        return {column: frame[column] for column in frame.dtype.names}
    if isinstance(frame, list | tuple) and frame and all(isinstance(row, Mapping) for row in frame):
        found = dict.fromkeys(column for row in frame for column in row)
        return {column: [row.get(column) for row in frame] for column in found}
    return frame


def _names(frame: Frame) -> list[str] | None:
    """The columns of a table, if its library is known."""
    if isinstance(frame, Mapping):
        return [str(name) for name in frame]
    library = library_of(frame)
    if library == "pandas" and hasattr(frame, "columns"):
        return [*map(str, frame.columns), *(str(name) for name in frame.index.names if name is not None)]
    if library == "pyarrow" and hasattr(frame, "schema"):
        return list(frame.schema.names)
    return list(frame.columns) if library == "polars" and hasattr(frame, "to_arrow") else None


def _only(frame: Frame, used: frozenset[str]) -> Frame:
    """The columns of a table that are used, if its library is known; all if none is named."""
    if not used:
        return frame
    if isinstance(frame, Mapping):
        return {name: values for name, values in frame.items() if str(name) in used}
    library = library_of(frame)
    if library == "pandas" and hasattr(frame, "columns"):
        kept = frame.loc[:, [str(name) in used for name in frame.columns]]
        return kept.set_axis([str(name) for name in kept.columns], axis="columns")
    names = _names(frame)
    if names is None or not hasattr(frame, "select"):
        return frame
    return frame.select(
        [place if library == "pyarrow" else name for place, name in enumerate(names) if name in used]
    )


def _read(path: Path, columns: DataColumns) -> ArrowTable:
    known = format_of(path)
    if known is None or known.table is None:
        raise DataError(f"{path} is in no format of tables that hushbid reads.", advice=_ADVICE)
    try:
        return known.table(path, columns)
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or 'damaged, or of another format'}.",
            advice="Correct the path, or save the file again.",
        ) from None


def library_of(frame: Frame) -> str:
    """The package of a table's type."""
    return type(frame).__module__.partition(".")[0]
