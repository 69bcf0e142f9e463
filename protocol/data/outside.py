"""What a party does with its own rows that do not fit what is public: refuse them, clip them, or drop them.

It is the party's private choice. What was changed is for its own eyes: it tells something of the rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hushbid.protocol import limits
from hushbid.protocol.data.attributes import packed_length
from hushbid.protocol.data.column import MEASURED
from hushbid.protocol.data.dataset import Changes, DataColumns, Dataset, row_chunks
from hushbid.protocol.data.names import feature_column
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import DataError

if TYPE_CHECKING:
    from hushbid.protocol.data.table_faults import Fault
    from hushbid.protocol.space.labels import LabelCode

__all__ = ["fitted", "kept_rows", "room_for", "settled", "unsendable"]

Flags = npt.NDArray[np.bool_]


def settled(
    encoded: npt.NDArray[np.float64], faults: Sequence[Fault], schema: Schema, *, drop: bool
) -> tuple[Flags, list[Fault], Changes]:
    """What becomes of the faults of a table: numbers are clipped in place, or rows dropped.

    Args:
        encoded: Shape (rows, `schema.width`).
        drop: Whether rows are dropped; otherwise numbers beyond their bounds are clipped.

    Returns:
        The rows to keep, the faults that stay, and what was changed.
    """
    keep = np.ones(len(encoded), dtype=np.bool_)
    stay: list[Fault] = []
    clipped: Counter[str] = Counter()
    first = {column.name: place for column, place in zip(schema.columns, schema.places, strict=True)}
    kinds = {column.name: column for column in schema.columns}
    for fault in faults:
        if fault.rows is None:
            stay.append(fault)
        elif drop:
            keep &= ~fault.rows
        elif fault.beyond:
            place = first[fault.column]
            encoded[fault.rows, place] = np.clip(encoded[fault.rows, place], *kinds[fault.column].extremes)
            clipped[fault.column] += int(fault.rows.sum())
        else:
            stay.append(fault)
    return keep, stay, Changes(dict(clipped), int((~keep).sum()))


def kept_rows(dataset: Dataset, keep: Flags, changes: Changes) -> Dataset:
    """The rows of a dataset that are kept, with what was changed.

    Raises:
        DataError: None is.
    """
    if not keep.any():
        raise DataError(
            f"{dataset.name}: no row fits the session's public columns, so that all would be dropped.",
            advice='Look at them with `outside = "refuse"`: the file may be another one.',
        )
    held = dataset if dataset.changes is None else replace(dataset, changes=None)
    if not keep.all():
        # Made anew, so that what is left is to the byte what it is where it is given alone.
        held = Dataset.from_arrays(
            held.name,
            np.ascontiguousarray(held.features[keep]),
            _left(held.labels, keep),
            _left(held.identifiers, keep),
            feature_names=held.feature_names,
            left_out=held.left_out,
            labelled=None if held.labelled is None else held.labelled[keep],
            notes=held.notes,
        )
    before = dataset.changes or Changes({}, 0)
    clipped = Counter(before.clipped)
    clipped.update(changes.clipped)
    return replace(held, changes=Changes(dict(clipped), before.dropped + changes.dropped))


def unsendable(values: npt.NDArray[Any] | None, rows: int) -> Flags:
    """Which labels or identifiers are gaps or cannot travel with a point: of rows that are then dropped."""
    if values is None or values.shape != (rows,):
        return np.zeros(rows, dtype=np.bool_)
    if values.dtype.kind == "f":
        gaps: Flags = ~np.isfinite(values)
        return gaps
    if values.dtype.kind != "U":
        return np.zeros(rows, dtype=np.bool_)
    try:
        texts = values.tolist()
    except ValueError:  # numbers that are no characters: the whole array is refused
        return np.zeros(rows, dtype=np.bool_)
    return np.array([not text.strip() or _takes_too_much(text) for text in texts], dtype=np.bool_)


def _takes_too_much(text: str) -> bool:
    """Whether a text takes more bytes than may travel, or has no encoding."""
    try:
        return len(text.encode()) > limits.MAX_ATTRIBUTES
    except UnicodeEncodeError:
        return True


def room_for(dataset: Dataset, *, most: int, rows: int | None) -> Dataset:
    """The rows whose label and identifier fit into so many bytes, and no more than so many of them.

    Args:
        most: Bytes of both, packed.
        rows: The first rows are kept; None: all.

    Raises:
        DataError: None fits.
    """
    if dataset.longest_attributes > most:
        lengths = [1 + packed_length(label) + packed_length(name) for label, name in dataset.attached()]
        keep = np.array(lengths) <= most
        dataset = kept_rows(dataset, keep, Changes({}, int((~keep).sum())))
    if rows is None or len(dataset) <= rows:
        return dataset
    over = len(dataset) - rows
    before = dataset.changes or Changes({}, 0)
    held = Dataset.from_arrays(
        dataset.name,
        dataset.features[:rows],  # what is mapped stays mapped
        None if dataset.labels is None else dataset.labels[:rows],
        None if dataset.identifiers is None else dataset.identifiers[:rows],
        feature_names=dataset.feature_names,
        left_out=dataset.left_out,
        labelled=None if dataset.labelled is None else dataset.labelled[:rows],
        notes=dataset.notes,
    )
    return replace(held, changes=Changes(before.clipped, before.dropped + over))


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
    allowed = columns.allowed
    if allowed is None or columns.outside == "refuse":
        return dataset
    if np.size(allowed.lower) not in (1, dataset.features.shape[1]):
        return dataset  # of other columns than the session's
    drop = columns.outside == "drop"
    low, high = _bounds(dataset, columns)
    keep = np.ones(len(dataset), dtype=np.bool_)
    features: npt.NDArray[Any] = dataset.features
    clipped: Counter[str] = Counter()
    for start, stop in row_chunks(dataset.features):
        chunk = features[start:stop]
        outside = (chunk < low) | (chunk > high)
        if drop:
            keep[start:stop] = ~(outside | ~np.isfinite(chunk)).any(axis=1)
            if columns.schema is not None:
                keep[start:stop] &= columns.schema.holds(chunk).all(axis=1)
        elif outside.any():
            if not features.flags.writeable:
                features = np.array(features)
            features[start:stop] = np.clip(chunk, low, high)
            for place in np.flatnonzero(outside.any(axis=0)):
                clipped[_name(dataset, columns, int(place))] += int(outside[:, place].sum())
    changed = replace(dataset, features=features)
    if features is not dataset.features:
        features.setflags(write=False)
    changed, labels = _labels(changed, columns, drop=drop)
    if drop:
        keep &= labels
    elif (count := int((~labels).sum())) > 0:
        clipped[columns.label or "labels"] += count
    if keep.all() and not clipped:
        return dataset
    return kept_rows(changed, keep, Changes(dict(clipped), int((~keep).sum())))


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


def _labels(dataset: Dataset, columns: DataColumns, *, drop: bool) -> tuple[Dataset, Flags]:
    """The dataset with amounts clipped into their range, and which rows had a label that fits."""
    fits = np.ones(len(dataset), dtype=np.bool_)
    known = dataset.known
    code = columns.allowed.labels if columns.allowed is not None else None
    if known is None:
        return dataset, fits
    if not columns.label_gaps and dataset.labelled is not None:
        fits &= dataset.labelled  # an owner's row without a label
    if code is None:
        return dataset, fits if drop else np.ones_like(fits)
    labels = dataset.labels
    assert labels is not None, "some are known"
    held = np.ones_like(fits) if dataset.labelled is None else dataset.labelled
    if code.classes:
        classes = {*code.classes}
        fits &= np.array(
            [not has or value in classes for value, has in zip(labels.tolist(), held, strict=True)]
        )
    elif labels.dtype.kind != "U":
        fits &= ~held | ((labels >= code.lower) & (labels <= code.upper))
    if drop:
        return dataset, fits
    if code.classes or labels.dtype.kind == "U" or fits.all():
        return dataset, np.ones_like(fits)
    # Whole numbers stay whole, so that a label does not show that another one was clipped.
    low, high = (code.lower, code.upper) if labels.dtype.kind == "f" else _range(labels, code)
    clipped = np.where(held, np.clip(labels, low, high), labels).astype(labels.dtype)
    clipped.setflags(write=False)
    return replace(dataset, labels=clipped), fits
