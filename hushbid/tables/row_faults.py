"""Oddities in a table's rows that a session accepts but somebody should look at; no count is stated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from hushbid.protocol.data import Dataset
from hushbid.protocol.data.rows import rows_as
from hushbid.protocol.data.schema import Schema

__all__ = ["row_faults"]

_FEW = 20
"""With fewer rows, equal ones are no sign of anything."""
_MOST = 0.9
"""Share of the rows examined for bounds: those from 5 % to 95 %."""
_NARROW = 0.01
"""Share of the bounds' span within which so many rows are hardly distinguished."""

Bound = float | Sequence[float]


def row_faults(
    dataset: Dataset, schema: Schema | None, bounds: tuple[Bound, Bound] | None = None
) -> Iterator[str]:
    """Duplicated rows, repeated identifiers, constant columns, and bounds that are far too wide.

    Args:
        schema: The columns that the rows were encoded by, with their bounds; None: there are none.
        bounds: Without a schema, the lower and upper bounds of features, if they are known.
    """
    if len(dataset) >= _FEW and min(Counter(rows_as(dataset.features, np.float64)).values()) > 1:
        yield "every row is there at least twice"
    if dataset.identifiers is not None and len(np.unique(dataset.identifiers)) < len(dataset):
        yield "an identifier stands in several rows"
    for name, values, span in _columns(dataset, schema, bounds):
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
    dataset: Dataset, schema: Schema | None, bounds: tuple[Bound, Bound] | None
) -> Iterator[tuple[str, npt.NDArray[np.float64], float | None]]:
    """Named columns: their numbers, shape (rows, width), and the span of their bounds, if any."""
    features = dataset.features
    if schema is not None:
        for column, first in zip(schema.columns, schema.places, strict=True):
            if column.kind != "image":
                lower, upper = column.extremes
                span = upper - lower if column.lower is not None else None
                yield column.name, np.asarray(features[:, first : first + column.width], np.float64), span
    elif dataset.feature_names is not None:
        width = features.shape[1]
        spans = [None] * width if bounds is None else np.broadcast_to(np.subtract(*bounds[::-1]), (width,))
        for place, name in enumerate(dataset.feature_names):
            span = spans[place]
            values = np.asarray(features[:, place : place + 1], np.float64)
            yield name, values, None if span is None else float(span)
