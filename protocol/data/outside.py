"""What a party does with its own rows that do not fit what is public: refuse them, clip them, or drop them.

It is the party's private choice. Only the party may see what was changed: it tells something of the rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.data.column import MEASURED
from hushbid.protocol.data.dataset import Changes, DataColumns, Dataset, row_chunks
from hushbid.protocol.data.names import feature_column
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import DataError

if TYPE_CHECKING:
    from hushbid.protocol.data.table_faults import ColumnFault
    from hushbid.protocol.space.labels import LabelCode

__all__ = ["IDENTIFIERS", "LABELS", "beyond", "fitted", "kept_rows", "none_of", "over_room", "settled"]

LABELS: Final = "labels"
IDENTIFIERS: Final = "identifiers"
"""What changes are told by where the column has no name of its own, as in .npz."""

Flags = npt.NDArray[np.bool_]


def none_of(unfit: Mapping[str, Flags], rows: int) -> Flags:
    """The rows that are unfit in no column, shape (rows,)."""
    fits = np.ones(rows, dtype=np.bool_)
    for flags in unfit.values():
        fits &= ~flags
    return fits


def settled(
    encoded: npt.NDArray[np.float64], faults: Sequence[ColumnFault], schema: Schema, *, drop: bool
) -> tuple[dict[str, Flags], list[ColumnFault], dict[str, int]]:
    """What becomes of the faults of a table: numbers are clipped in place, or rows dropped.

    Args:
        encoded: Shape (rows, `schema.width`).
        drop: Whether rows are dropped; otherwise numbers beyond their bounds are clipped.

    Returns:
        The rows to drop, by column; the faults that stay; and how many values were clipped, by column.
    """
    unfit: dict[str, Flags] = {}
    stay: list[ColumnFault] = []
    clipped: Counter[str] = Counter()
    first = {column.name: place for column, place in zip(schema.columns, schema.places, strict=True)}
    kinds = {column.name: column for column in schema.columns}
    for fault in faults:
        if fault.rows is None:
            stay.append(fault)
        elif drop:
            unfit[fault.column] = unfit.get(fault.column, False) | fault.rows
        elif fault.beyond:
            place = first[fault.column]
            encoded[fault.rows, place] = np.clip(encoded[fault.rows, place], *kinds[fault.column].extremes)
            clipped[fault.column] += int(fault.rows.sum())
        else:
            stay.append(fault)
    return unfit, stay, dict(clipped)


def over_room(rows: Flags, columns: DataColumns) -> Flags:
    """Those of the rows that are the last of more than a commitment has room for."""
    most = None if columns.allowed is None else columns.allowed.rows
    return np.zeros_like(rows) if most is None else rows & (np.cumsum(rows) > most)


def kept_rows(
    dataset: Dataset, unfit: Mapping[str, Flags], clipped: Mapping[str, int], *, over: Flags | None = None
) -> Dataset:
    """The rows of a dataset that are kept, with what was changed.

    Args:
        unfit: The rows to drop, by column.
        clipped: How many values were clipped, by column.
        over: The rows to drop beside them, since a commitment has no room for them.

    Raises:
        DataError: No row is kept.
    """
    keep = none_of(unfit, len(dataset))
    if over is not None:
        keep &= ~over
    if not keep.any():
        raise DataError(
            f"{dataset.name}: no row fits the session's public columns, so that all would be dropped.",
            advice='Look at them with `outside = "refuse"`: the file may be another one, or the session\'s '
            "columns say too little (who begins it says more: `hushbid init … --categories`, `--bounds`).",
        )
    held = dataset if dataset.changes is None else replace(dataset, changes=None)
    if not keep.all():
        # Made anew, so that what is left is to the byte what it is where it is given alone.
        held = Dataset.from_arrays(
            held.name,
            _rows(held.features, keep),
            _left(held.labels, keep),
            _left(held.identifiers, keep),
            feature_names=held.feature_names,
            left_out=held.left_out,
            labelled=None if held.labelled is None else held.labelled[keep],
            notes=held.notes,
        )
    before = dataset.changed
    by = Counter(before.dropped_by)
    by.update({name: int(flags.sum()) for name, flags in unfit.items()})
    all_clipped = Counter(before.clipped)
    all_clipped.update(clipped)
    dropped, more = int((~keep).sum()), 0 if over is None else int(over.sum())
    clipped, dropped = dict(all_clipped), before.dropped + dropped
    return replace(held, changes=Changes(clipped, dropped, dict(by), before.over + more, before.filled))


def _rows(features: npt.NDArray[Any], keep: Flags) -> npt.NDArray[Any]:
    """The rows that are kept; where these are the first, what is mapped stays mapped."""
    count = int(keep.sum())
    return features[:count] if keep[:count].all() else np.ascontiguousarray(features[keep])


def _left(values: npt.NDArray[Any] | None, keep: Flags) -> npt.NDArray[Any] | None:
    """The values that are kept; texts are no wider than the longest of them."""
    if values is None or values.dtype.kind != "U":
        return None if values is None else values[keep]
    return np.array(values[keep].tolist())


def fitted(dataset: Dataset, columns: DataColumns) -> Dataset:
    """A dataset whose rows fit the session's bounds and labels, as far as its party's choice goes.

    What cannot be clipped is left to the checks, which refuse it.

    Raises:
        DataError: No row is left.
    """
    if columns.outside == "refuse" or not _has_the_columns(dataset, columns):
        return dataset
    if columns.outside == "drop":
        unfit = beyond(dataset, columns)
        over = over_room(none_of(unfit, len(dataset)), columns)
        return kept_rows(dataset, unfit, {}, over=over) if unfit or over.any() else dataset
    features, clipped = _clipped_features(dataset, columns)
    changed, labels = _clipped_labels(replace(dataset, features=features), columns)
    if labels:
        clipped[columns.label or LABELS] += labels
    return kept_rows(changed, {}, clipped) if clipped else dataset


def _has_the_columns(dataset: Dataset, columns: DataColumns) -> bool:
    """Whether a dataset can be compared with what the session allows."""
    allowed = columns.allowed
    return allowed is not None and np.size(allowed.lower) in (1, dataset.features.shape[1])


def beyond(dataset: Dataset, columns: DataColumns) -> dict[str, Flags]:
    """The rows that do not fit the session's bounds, its labels or its boxes, by column; {} if all do.

    Args:
        columns: What is allowed; if that is not known, nothing is compared.
    """
    if not _has_the_columns(dataset, columns):
        return {}
    assert columns.allowed is not None, "it has the session's columns"
    unfit: dict[str, Flags] = {}

    def add(name: str, flags: Flags, start: int = 0) -> None:
        if flags.any():
            held = unfit.setdefault(name, np.zeros(len(dataset), dtype=np.bool_))
            held[start : start + len(flags)] |= flags

    low, high = _bounds(dataset, columns)
    for start, stop in row_chunks(dataset.features):
        chunk = dataset.features[start:stop]
        bad = (chunk < low) | (chunk > high) | ~np.isfinite(chunk)
        for place in np.flatnonzero(bad.any(axis=0)):
            add(_name(dataset, columns, int(place)), bad[:, place], start)
        if columns.schema is not None:
            held = columns.schema.holds(chunk)
            for place in np.flatnonzero(~held.all(axis=0)):
                add(columns.schema.columns[place].name, ~held[:, place], start)
    add(columns.label or LABELS, ~_labels_fit(dataset, columns))
    labels, identifiers = dataset.attribute_lengths
    long = 1 + labels + identifiers > columns.allowed.room(dataset.features.dtype)
    add(columns.label or LABELS, long & (labels >= identifiers))
    add(columns.identifier or IDENTIFIERS, long & (labels < identifiers))
    return unfit


def _clipped_features(dataset: Dataset, columns: DataColumns) -> tuple[npt.NDArray[Any], Counter[str]]:
    """Features within their bounds, and how many were not, by column."""
    features: npt.NDArray[Any] = dataset.features
    clipped: Counter[str] = Counter()
    low, high = _bounds(dataset, columns)
    for start, stop in row_chunks(dataset.features):
        chunk = features[start:stop]
        outside = (chunk < low) | (chunk > high)
        if outside.any():
            if not features.flags.writeable:
                features = np.array(features)
            features[start:stop] = np.clip(chunk, low, high)
            for place in np.flatnonzero(outside.any(axis=0)):
                clipped[_name(dataset, columns, int(place))] += int(outside[:, place].sum())
    if features is not dataset.features:
        features.setflags(write=False)
    return features, clipped


def _bounds(dataset: Dataset, columns: DataColumns) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The bounds that features are compared with, in their type, as `check_dataset` does."""
    assert columns.allowed is not None, "asked only then"
    width, kind = dataset.features.shape[1], dataset.features.dtype
    lower, upper = np.asarray(columns.allowed.lower), np.asarray(columns.allowed.upper)
    if columns.schema is not None:  # a weight widens the session's bounds beyond the column's
        measured = [column.kind in MEASURED for column in columns.schema.columns for _ in range(column.width)]
        pairs = [column.extremes for column in columns.schema.columns for _ in range(column.width)]
        lower = np.where(measured, [pair[0] for pair in pairs], -np.inf)
        upper = np.where(measured, [pair[1] for pair in pairs], np.inf)
    if kind.kind != "f":
        lower = np.array([_whole(each, kind, math.ceil) for each in np.ravel(lower).tolist()], dtype=kind)
        upper = np.array([_whole(each, kind, math.floor) for each in np.ravel(upper).tolist()], dtype=kind)
    return (
        np.broadcast_to(np.asarray(lower, dtype=kind), (width,)),
        np.broadcast_to(np.asarray(upper, dtype=kind), (width,)),
    )


def _range(labels: npt.NDArray[Any], code: LabelCode) -> tuple[int, int]:
    """The range of whole amounts."""
    return _whole(code.lower, labels.dtype, math.ceil), _whole(code.upper, labels.dtype, math.floor)


def _whole(bound: float, kind: np.dtype[Any], rounded: Callable[[float], int]) -> int:
    """A bound in a type of whole numbers, whose ends float64 does not hold."""
    limits = np.iinfo(kind)
    if not math.isfinite(bound):
        return limits.min if bound < 0 else limits.max
    return max(limits.min, min(limits.max, rounded(bound)))


def _name(dataset: Dataset, columns: DataColumns, place: int) -> str:
    if columns.schema is not None:
        names = [column.name for column in columns.schema.columns for _ in range(column.width)]
        return names[place]
    return dataset.feature_names[place] if dataset.feature_names else feature_column(place, None)


def _labels_fit(dataset: Dataset, columns: DataColumns) -> Flags:
    """Which rows have a label that the session allows, or need none."""
    fits = np.ones(len(dataset), dtype=np.bool_)
    if dataset.known is None:
        return fits
    if not columns.label_gaps and dataset.labelled is not None:
        fits &= dataset.labelled  # an owner's row without a label
    code = columns.allowed.labels if columns.allowed is not None else None
    labels = dataset.labels
    assert labels is not None, "some are known"
    held = np.ones_like(fits) if dataset.labelled is None else dataset.labelled
    if code is None:
        return fits
    if code.classes:
        classes = {*code.classes}
        known = zip(labels.tolist(), held, strict=True)
        fits &= np.array([not has or value in classes for value, has in known], dtype=np.bool_)
    elif labels.dtype.kind != "U":
        fits &= np.asarray(~held | ((labels >= code.lower) & (labels <= code.upper)))
    return fits


def _clipped_labels(dataset: Dataset, columns: DataColumns) -> tuple[Dataset, int]:
    """The dataset with amounts clipped into their range, and how many were not within it."""
    code = columns.allowed.labels if columns.allowed is not None else None
    labels = dataset.labels
    if code is None or code.classes or labels is None or labels.dtype.kind == "U":
        return dataset, 0
    held = np.ones(len(dataset), dtype=np.bool_) if dataset.labelled is None else dataset.labelled
    # Whole numbers stay whole, so that a label does not show that another one was clipped.
    low, high = (code.lower, code.upper) if labels.dtype.kind == "f" else _range(labels, code)
    clipped = np.where(held, np.clip(labels, low, high), labels).astype(labels.dtype)
    clipped.setflags(write=False)
    return replace(dataset, labels=clipped), int((clipped != labels).sum())
