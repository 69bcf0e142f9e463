"""Schemas and files: rows encoded for a session, and delivered rows as a table again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.delivered import delivered_table
from hushbid.protocol.data.attribute_columns import attribute
from hushbid.protocol.data.dataset import Allowed, Changes, DataColumns, Outside
from hushbid.protocol.data.dialect import Dialect
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.data.tables import dataset_of
from hushbid.protocol.errors import DataError
from hushbid.protocol.figures import Figures
from hushbid.tables.delivery import writing
from hushbid.tables.frames import ArrowTable, as_arrow, write_table
from hushbid.tables.row_faults import row_faults

__all__ = ["Decoded", "Encoded", "arrays_of", "decode_file", "encode_file"]


@figures(frozen=True)
class Encoded(Figures):
    """The outcome of encoding a table: its size, the changes, by the file's name, and oddities."""

    rows: int
    columns: int
    output: Path
    outside: Mapping[str, Changes]
    warnings: tuple[str, ...]


@figures(frozen=True)
class Decoded(Figures):
    """The outcome of writing a delivery as a table; `formulas` are those of `write_table`."""

    rows: int
    output: Path
    formulas: Mapping[str, int]


def arrays_of(
    schema: Schema, table: ArrowTable, name: str, columns: DataColumns
) -> dict[str, npt.NDArray[Any]]:
    """A table's arrays for a party's ``.npz``: ``features``, and ``labels`` and ``identifiers`` if named.

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
        values, labelled, _ = attribute(table, column, name, columns, identifier=array == "identifiers")
        arrays[array] = np.array(values)  # who has given the table may change it
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
    dialect: Dialect | None = None,
) -> Encoded:
    """Write a table's rows as the ``.npz`` that a party's file names.

    Args:
        outside: Treatment of rows that do not fit the schema; None: they are refused.
        dialect: The declared format of a CSV file.

    Raises:
        DataError: A file cannot be read or written, or a row does not fit.
    """
    columns = DataColumns(
        label=label,
        identifier=identifier,
        schema=schema,
        dialect=dialect,
        outside=outside or "refuse",
        allowed=Allowed(schema.lower, schema.upper),
    )
    if output.suffix != ".npz":
        raise DataError(f"{output} is no .npz.", advice="Give it that ending.")
    table = as_arrow(path, path.name, columns)
    found = dataset_of(path, table, columns)
    arrays = {name: getattr(found, name) for name in ("features", "labels", "identifiers")}
    with writing(output) as stream:
        np.savez(stream, **{name: array for name, array in arrays.items() if array is not None})
    changes = {} if found.changes is None else {found.name: found.changes}
    return Encoded(len(found), schema.width, output, changes, tuple(row_faults(found, schema)))


def decode_file(schema: Schema, path: Path, output: Path, *, label: str = "label") -> Decoded:
    """Write a delivery as a table.

    Raises:
        DataError: As `delivered_table`, or the file cannot be written.
    """
    table = delivered_table(schema, path, label=label)
    return Decoded(int(table.num_rows), output, write_table(table, output))
