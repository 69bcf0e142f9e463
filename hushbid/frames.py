"""Tables of any library in and out: whatever gives its columns by the Arrow interchange, and files.

pandas, polars, pyarrow and others have the Arrow PyCapsule interface, so that none of them is imported here
unless a table is to be given back as one of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from consumer.store import replace_privately
from protocol.data.encoding import plain_types
from protocol.data.schema import Schema
from protocol.data.tables import read_csv, read_parquet
from protocol.errors import DataError

__all__ = ["ArrowTable", "Frame", "as_arrow", "like", "write_table"]

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
        frame: The table.
        name: What messages call it.
        schema: What it is read for, if for one (`protocol.data.tables.read_csv`).

    Raises:
        DataError: It is no table, or a file that cannot be read.
    """
    if isinstance(frame, str | Path):
        return _read(Path(frame), schema)
    try:
        if isinstance(frame, Mapping):
            return plain_types(pa.table(dict(frame)))
        if hasattr(frame, "__arrow_c_stream__"):
            return plain_types(pa.table(frame))
        if _library(frame) == "pandas":  # before 2.2
            return plain_types(pa.Table.from_pandas(frame, preserve_index=False))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # Its message quotes values.
        raise DataError(
            f"{name}: the table has a column of mixed or unknown types, or two of one name.",
            advice="Give every column a name of its own and one type: numbers, booleans or text.",
        ) from None
    raise DataError(f"{name} is a {type(frame).__name__}, and no table.", advice=_ADVICE)


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


def like(frame: Frame, table: ArrowTable) -> Any:
    """A table as a DataFrame of the library that another one is of; else as it is."""
    library = _library(frame)
    if library == "pandas":
        return table.to_pandas().copy()  # what it has of Arrow's memory cannot be written to
    if library == "polars":
        return importlib.import_module("polars").from_arrow(table)
    return table


def write_table(table: ArrowTable, path: Path) -> None:
    """Write a table as its name's ending says, ``.csv`` or ``.parquet``, readable by its owner only.

    It takes the place of an earlier file as a whole.

    Raises:
        DataError: Another ending, or the file cannot be written.
    """
    name = path.name.lower()
    if not name.endswith((".csv", ".parquet")):
        raise DataError(f"{path} is neither .csv nor .parquet.", advice="Name one of these.")
    try:
        write = pacsv.write_csv if name.endswith(".csv") else pq.write_table
        replace_privately(path, lambda stream: write(table, stream))
    except OSError as error:
        raise DataError(
            f"{path} cannot be written: {error.strerror}.", advice="Make room, or name another place."
        ) from None


def _library(frame: Frame) -> str:
    return type(frame).__module__.partition(".")[0]
