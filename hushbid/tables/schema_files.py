"""Schemas and files: rows encoded for a session, and delivered rows as a table again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hushbid.consumer.delivered import delivered_table
from hushbid.protocol.data.attribute_columns import attribute
from hushbid.protocol.data.dataset import DataColumns
from hushbid.protocol.data.dialect import Dialect
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import DataError
from hushbid.tables.delivery import writing
from hushbid.tables.frames import ArrowTable, as_arrow, write_table

__all__ = ["arrays_of", "decode_file", "encode_file"]


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
    dialect: Dialect | None = None,
) -> int:
    """Write a table's rows as the ``.npz`` that a party's file names, and say how many there are.

    Args:
        dialect: What is declared of a CSV file.

    Raises:
        DataError: A file cannot be read or written, or a row does not fit.
    """
    columns = DataColumns(label=label, identifier=identifier, schema=schema, dialect=dialect)
    arrays: dict[str, Any] = arrays_of(schema, as_arrow(path, path.name, columns), path.name, columns)
    if output.suffix != ".npz":
        raise DataError(f"{output} is no .npz.", advice="Give it that ending.")
    with writing(output) as stream:
        np.savez(stream, **arrays)
    return len(arrays["features"])


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
