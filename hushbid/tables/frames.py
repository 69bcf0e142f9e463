"""Returns tables in the library that they came in; `hushbid.protocol.data.frames` takes them in."""

from __future__ import annotations

import importlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hushbid.protocol.data.formats import WRITTEN, format_of
from hushbid.protocol.data.frames import ArrowTable, Frame, as_arrow, library_of
from hushbid.protocol.data.images import is_list
from hushbid.protocol.errors import DataError
from hushbid.tables.delivery import writing
from hushbid.tables.formulas import formula_cells

__all__ = ["ArrowTable", "Frame", "as_arrow", "columns_of_images", "like", "write_table"]


def like(frame: Frame, table: ArrowTable) -> Any:
    """A table as a DataFrame of the same library as another one; otherwise unchanged."""
    library = library_of(frame)
    if library == "pandas":
        given = table.to_pandas().copy()  # its Arrow memory is read-only
        for name, kind in _moments(frame).items():
            if name in given.columns and pa.types.is_date(table.schema.field(name).type):
                with suppress(ValueError):  # an owner's date, such as 9999-12-31, that nanoseconds cannot say
                    given[name] = given[name].astype(kind)
        for name, shape in _image_shapes(frame).items():
            if name in given.columns:
                given[name] = [value.reshape(shape) for value in given[name]]
        return given
    if library == "polars":
        return importlib.import_module("polars").from_arrow(table)
    return table


def _moments(frame: Any) -> dict[str, np.dtype[Any]]:
    """The types of a pandas DataFrame's columns of times without a zone, in which people also keep dates."""
    if not hasattr(frame, "columns") or not frame.columns.is_unique:
        return {}
    kinds = {str(name): kind for name, kind in frame.dtypes.items()}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, np.dtype) and kind.kind == "M"}


def _image_shapes(frame: Any) -> dict[str, tuple[int, ...]]:
    """The shape of images that a pandas DataFrame holds as arrays with several axes."""
    if not hasattr(frame, "columns") or not frame.columns.is_unique:
        return {}  # a Series, which has no images with several axes
    found = {}
    for name, kind in frame.dtypes.items():
        first = (
            next((value for value in frame[name] if value is not None), None) if kind.kind == "O" else None
        )
        if isinstance(first, np.ndarray) and first.ndim > 1:
            found[str(name)] = first.shape
    return found


def write_table(table: ArrowTable, path: Path) -> dict[str, int]:
    """Write a table by the ending of its name, ``.csv`` or ``.parquet``, readable by its owner only.

    It replaces an earlier file as a whole.

    Returns:
        For a ``.csv``, the cells that spreadsheets take for formulas (`formula_cells`).

    Raises:
        DataError: The ending is another one, the file cannot be written, or it is CSV and the table has
            images.
    """
    known = format_of(path)
    if known is None or known.write is None:
        raise DataError(f"{path} is neither {' nor '.join(WRITTEN)}.", advice="Name one of these.")
    if known.text and (images := columns_of_images(table)):
        raise DataError(
            f"{path} is CSV, which holds no images, and column {images[0]!r} has some.",
            advice="Name a .parquet file.",
        )
    with writing(path) as stream:
        known.write(table, stream)
    return formula_cells(table) if known.text else {}


def columns_of_images(table: ArrowTable) -> list[str]:
    """The names of columns that hold images, as lists of numbers."""
    return [field.name for field in table.schema if is_list(field.type)]
