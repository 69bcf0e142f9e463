"""Rows and their labels in one array, so that mixing or repeating rows keeps their labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hushbid.protocol.data import Dataset
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.labels import UNKNOWN, Labels, one_each

__all__ = ["coded", "dataset_of", "evenly_labelled", "every", "features_of", "with_every_label"]

Rows = npt.NDArray[np.float64]


def coded(session: Session, features: npt.NDArray[Any], labels: Labels | None) -> Rows:
    """Features and, if labels take part in the selection, one more column with the label codes.

    Args:
        features: Raw, shape (n, columns).
        labels: None where a row has none; None: no row has one.
    """
    rows = features.astype(np.float64)
    if session.space.labels is None:
        return rows
    codes = session.space.labels.codes(one_each(labels, len(rows)))
    return np.column_stack([rows, codes])


def with_every_label(session: Session, rows: Rows, generator: np.random.Generator) -> Rows:
    """Coded rows in which unlabelled ones take another row's label, or any label if no row has one."""
    code = session.space.labels
    if code is None:
        return rows
    rows, known = rows.copy(), rows[:, -1] != UNKNOWN
    count = int((~known).sum())
    rows[~known, -1] = (
        generator.choice(rows[known, -1], size=count) if known.any() else code.any_codes(count, generator)
    )
    return rows


def every(dataset: Dataset, step: int, first: int) -> Dataset:
    """Every `step`-th row of a dataset, starting with row `first`; all rows if `step` is 1."""
    if step == 1:
        return dataset
    labels, held = dataset.labels, dataset.labelled
    return Dataset.from_arrays(
        dataset.name,
        dataset.features[first::step],
        None if labels is None else labels[first::step],
        labelled=None if held is None else held[first::step],
    )


def evenly_labelled(session: Session, rows: Rows, order: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Reorder rows so that the first half has as many labelled rows as the second, or one fewer."""
    if session.space.labels is None or (known := rows[order, -1] != UNKNOWN).all():
        return order
    order = np.concatenate([order[known], order[~known]])
    return np.concatenate([order[1::2], order[::2]])


def features_of(session: Session, rows: Rows) -> Rows:
    """The features of coded rows, shape (n, columns)."""
    return rows[:, : session.space.columns]


def dataset_of(session: Session, name: str, rows: Rows) -> Dataset:
    """Coded rows as a party's dataset."""
    features, code = features_of(session, rows), session.space.labels
    if code is None:
        return Dataset.from_arrays(name, features)
    codes = rows[:, -1].astype(np.int64)
    return Dataset.from_arrays(name, features, code.labels(codes), labelled=codes != UNKNOWN)
