"""The delivered points as a table with the session's columns, like the consumer's own tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import DataError

__all__ = ["delivered_table", "free_name", "owner_column", "table_of_delivery"]

_EACH: Final = (
    "owners",
    "rounds",
    "weights",
    "training_weights",
    "labels",
    "labelled",
    "identifiers",
    "identified",
)
"""Arrays with one entry per point."""


def delivered_table(schema: Schema, path: Path, *, label: str = "label") -> Any:
    """The rows of a delivery (`table_of_delivery`).

    Args:
        path: The consumer's ``delivered.npz``.
        label: Name of the label column.

    Raises:
        DataError: The file cannot be read, or has another schema.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            delivered = dict(file)
        features, _, _ = (delivered[name] for name in ("features", "owners", "rounds"))
        if "labels" in delivered and "labelled" not in delivered:
            raise KeyError("labelled")
        if "identifiers" in delivered and "identified" not in delivered:
            raise KeyError("identified")
        if any(len(delivered[name]) != len(features) for name in _EACH if name in delivered):
            raise ValueError("arrays of different lengths")
        delivered["features"] = features.astype(np.float64)
    except OSError as error:
        reason = error.strerror or "it is damaged"
        raise DataError(f"{path} cannot be read: {reason}.", advice="Correct the path.") from None
    except (ValueError, KeyError, EOFError, TypeError, BadZipFile):
        raise DataError(f"{path} is not a delivery.", advice="Give the consumer's delivered.npz.") from None
    return table_of_delivery(schema, delivered, label=label)


def table_of_delivery(schema: Schema, delivered: Mapping[str, npt.NDArray[Any]], *, label: str) -> Any:
    """The rows of a delivery: the schema's columns, label, identifier, owner, round and both weights.

    Names that are taken already, by the schema or the label, get a trailing underscore. Weights are included
    if they exist.

    Args:
        delivered: Arrays as a ``delivered.npz`` has them (`hushbid.consumer.store.PurchaseFile`).
        label: Name of the label column.

    Raises:
        DataError: They have another schema.
    """
    table = schema.decode(delivered["features"])
    beside = (  # a label may have the name of another of them
        (label, _known(delivered, "labels", "labelled")),
        ("identifier", _known(delivered, "identifiers", "identified")),
        ("owner", pa.array(delivered["owners"].tolist())),
        ("round", pa.array(delivered["rounds"])),
        ("weight", _present(delivered, "weights")),
        ("training_weight", _present(delivered, "training_weights")),
    )
    for name, values in beside:
        if values is None:
            continue
        table = table.append_column(free_name(name, table.column_names), values)
    return table


def free_name(name: str, taken: Collection[str]) -> str:
    """A column's name, with an underscore behind it for each time that it is taken."""
    while name in taken:
        name += "_"
    return name


def owner_column(table: Any, features: int) -> str:
    """The name that the column of sellers has in a table of bought points.

    Args:
        features: How many columns of features it has, which come first.
    """
    # A label may have the name, too: it comes before the sellers.
    beside = reversed(table.column_names[features:])
    return next(str(name) for name in beside if name.rstrip("_") == "owner")


def _present(delivered: Mapping[str, npt.NDArray[Any]], name: str) -> Any:
    return pa.array(delivered[name]) if name in delivered else None


def _known(delivered: Mapping[str, npt.NDArray[Any]], name: str, which: str) -> Any:
    """An attribute of the delivered points, null where a point has none; None if no point has one."""
    if name not in delivered:
        return None
    values = delivered[name]
    # pyarrow does not take numpy's text.
    return pa.array(values.tolist() if values.dtype.kind == "U" else values, mask=~delivered[which])
