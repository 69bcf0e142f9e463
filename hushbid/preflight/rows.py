"""What a party may want to look at in its own rows, though a session takes them: no count is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from hushbid.preflight.subject import Subject, Warned
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset
from hushbid.protocol.data.rows import rows_as

__all__ = ["rows"]

_FEW = 20
"""With fewer rows, equal ones say nothing."""
_MOST = 0.9
"""Share of the rows that are looked at for bounds: those from 5 % to 95 %."""
_NARROW = 0.01
"""Share of the bounds' span within which so many rows are not told apart."""


def rows(subject: Subject) -> str | Warned:
    """Whether rows repeat, columns say nothing, bounds are far too wide, or labels are missing."""
    dataset, *_ = subject.datasets.values()
    found = [*_found(subject.session.file, dataset)]
    if found:
        return Warned(
            "; ".join(found), "Look at the file, and at the session's columns: it may be as it should be."
        )
    if dataset.labels is None:
        return "rows have no label, and the session requires none"
    return "rows do not repeat, and every column tells some apart"


def _found(file: SessionFile, dataset: Dataset) -> Iterator[str]:
    if len(dataset) >= _FEW and min(Counter(rows_as(dataset.features, np.float64)).values()) > 1:
        yield "every row is there at least twice"
    if dataset.identifiers is not None and len(np.unique(dataset.identifiers)) < len(dataset):
        yield "an identifier stands in several rows"
    for name, values, span in _columns(file, dataset):
        if (values == values[0]).all():
            yield f"column {name!r} has one value alone, or gaps alone"
        elif values.shape[1] == 1 and span is not None and len(dataset) >= _FEW:
            low, high = np.quantile(values[:, 0], [(1 - _MOST) / 2, (1 + _MOST) / 2])
            if low < high < low + _NARROW * span:
                yield (
                    f"most values of column {name!r} lie within a hundredth of its bounds, where they hardly "
                    "count: bounds that few rows reach are better drawn in"
                )
    if dataset.unlabelled and dataset.labels is not None:
        yield "some rows have no label"


def _columns(
    file: SessionFile, dataset: Dataset
) -> Iterator[tuple[str, npt.NDArray[np.float64], float | None]]:
    """Columns with a name: their numbers, shape (rows, width), and the span of their bounds, if any."""
    features = dataset.features
    if file.rows is not None:
        for column, first in zip(file.rows.columns, file.rows.places, strict=True):
            if column.kind != "image":
                lower, upper = column.extremes
                span = upper - lower if column.lower is not None else None
                yield column.name, np.asarray(features[:, first : first + column.width], np.float64), span
    elif dataset.feature_names is not None:
        width = features.shape[1]
        spans = np.broadcast_to(np.subtract(file.features.upper, file.features.lower), (width,))
        for place, name in enumerate(dataset.feature_names):
            yield name, np.asarray(features[:, place : place + 1], np.float64), float(spans[place])
