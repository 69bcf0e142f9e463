"""The checks of a party's dataset against what the session says in public."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol.data.dataset import GAP_ADVICE, Dataset, row_chunks
from hushbid.protocol.data.names import feature_column
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import DataError
from hushbid.protocol.space.mapped import let_go

__all__ = ["check_dataset", "check_identifiers", "check_labels"]

Array: TypeAlias = npt.NDArray[Any]

_LABEL_KINDS: Final = {
    "integer": ("whole numbers", "iu"),
    "number": ("numbers", "iuf"),
    "text": ("text", "U"),
    "any": ("labels", "iufU"),
}
"""Kinds of labels that a session may declare: in words, and as kinds of arrays."""


def check_dataset(
    dataset: Dataset,
    *,
    columns: int,
    lower: float | npt.ArrayLike,
    upper: float | npt.ArrayLike,
    schema: Schema | None = None,
) -> None:
    """Check a dataset against the session's public description of a point.

    Args:
        columns: Feature columns of a point.
        lower: Smallest allowed value: one number, or one per column.
        upper: Largest allowed value, likewise.
        schema: The schema of the session's columns, if any; points have to be rows of it.

    Raises:
        DataError: The dataset is empty, has another number of columns, has a value that is missing (NaN),
            infinite or out of bounds, or a row that does not fit the schema. Names the file, the first such
            row and its column's place among the feature columns, both counted from 0, and never the value. A
            float32 column is compared with the bound rounded to float32, so that a bound saved as float32 is
            within it.
    """
    features, name = dataset.features, dataset.name
    if len(dataset) == 0:
        raise DataError(f"{name} holds no rows.", advice="Give a file with at least one row.")
    if features.shape[1] != columns:
        raise DataError(
            f"{name} has {dataset.columns_found} where the session has {columns}.",
            advice="Name the feature columns under `columns` in the party's file, or in its section of a "
            "cluster file; a party's own verb takes `--features` too. Or correct the session file.",
        )
    floating = features.dtype.kind == "f"
    dtype = features.dtype if floating else np.dtype(np.float64)
    low = np.broadcast_to(np.asarray(lower, dtype=dtype), (columns,))
    high = np.broadcast_to(np.asarray(upper, dtype=dtype), (columns,))
    for start, stop in row_chunks(features):
        chunk = features[start:stop]
        within = ((chunk >= low) & (chunk <= high)).all()  # NaN is not within
        if not (within and (not floating or np.isfinite(chunk).all())):
            raise _bad_value(dataset, start, chunk, low, high)
        if schema is not None and not (held := schema.holds(chunk)).all():
            row, place = (int(index) for index in np.argwhere(~held)[0])
            column = schema.columns[place]
            raise DataError(
                f"{name}: row {start + row} (counted from 0) has numbers of no {column.kind} where the "
                f"session has its column {column.name!r}.",
                advice="Give the table itself, or numbers that `hushbid schema encode` made of it.",
            )
        let_go(features)


def check_labels(dataset: Dataset, kind: str | None) -> None:
    """Check a dataset's labels against the session's public declaration.

    Args:
        dataset: Only the type of its labels is examined.
        kind: "integer", "number" (whole or not), "text", or "any" of these; None or "optional": nothing is
            required.

    Raises:
        DataError: There are no labels, some rows have none, or they are of another kind. Names the kinds,
            and never a label.
    """
    if kind in (None, "optional"):
        return
    declared, kinds = _LABEL_KINDS[kind]
    if dataset.labels is None or dataset.labelled is not None:
        which = "has no labels" if dataset.labels is None else "has rows without a label"
        raise DataError(
            f'{dataset.name} {which} where the session requires {declared} (session.labels = "{kind}").',
            advice="Name the label's column under `columns` in the party's file, or in its section of a "
            "cluster file; a party's own verb takes `--label` too. Or leave the declaration out, for all.",
        )
    if dataset.labels.dtype.kind not in kinds:
        own = next(name for name, of in _LABEL_KINDS.values() if dataset.labels.dtype.kind in of)
        raise DataError(
            f"{dataset.name}: its labels are {own} where the session declares {declared} "
            f'(session.labels = "{kind}").',
            advice="Save the labels as the session has them: the number 1 and the text 1 are two classes to "
            "whoever learns from points of several owners. Or agree on another declaration.",
        )


def check_identifiers(dataset: Dataset, kind: str | None) -> None:
    """Check a dataset's identifiers against the session's public declaration; as `check_labels`.

    Args:
        kind: "integer", "text", or "any" of these; None: nothing is declared.

    Raises:
        DataError: There are none, or they are of another kind.
    """
    if kind is None:
        return
    declared, kinds = ("identifiers", "iuU") if kind == "any" else _LABEL_KINDS[kind]
    if dataset.identifiers is None:
        raise DataError(
            f"{dataset.name} has no identifiers where the session requires them "
            f'(session.identifiers = "{kind}").',
            advice="Name the identifier's column under `columns` in the party's file, or in its section of a "
            "cluster file; a party's own verb takes `--identifier` too. Or leave the declaration out, for "
            "all.",
        )
    if dataset.identifiers.dtype.kind not in kinds:
        own = "text" if dataset.identifiers.dtype.kind == "U" else "whole numbers"
        raise DataError(
            f"{dataset.name}: its identifiers are {own} where the session declares {declared} "
            f'(session.identifiers = "{kind}").',
            advice="Save the identifiers as the session has them, or agree on another declaration.",
        )


def _bad_value(dataset: Dataset, start: int, chunk: Array, low: Array, high: Array) -> DataError:
    bad = ~((chunk >= low) & (chunk <= high) & np.isfinite(chunk))
    row, column = (int(index) for index in np.argwhere(bad)[0])
    place = feature_column(column, dataset.feature_names)
    where = f"{dataset.name}: row {start + row}, {place} (both counted from 0)"
    value = chunk[row, column]
    if np.isnan(value):
        return DataError(f"{where} is missing (NaN).", advice=GAP_ADVICE)
    if np.isinf(value):
        return DataError(f"{where} is infinite.", advice="Correct it or remove the row.")
    return DataError(
        f"{where} is out of the session's public bounds.",
        advice="Correct the row, clip the column, or agree on wider bounds in the session file. If the "
        "columns are in another order than the session's, name them in its order (`columns` in the party's "
        "file or in its section of a cluster file; a party's own verb takes `--features` too).",
    )
