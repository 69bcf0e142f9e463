"""Readings of classes. A point's scores have the same bits whichever points are scored with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import DataError
from hushbid.protocol.space.lsh import Points
from hushbid.protocol.space.lsh.projection import ExactProjection
from hushbid.race.sketch import Sketch

__all__ = ["REACH", "RowScores", "Whitening", "scaled"]

Reals = npt.NDArray[np.float64]

REACH: Final = 12.0
"""Maximum deviations of a point from the middle; points farther out are moved there."""
_LOG_UNIT: Final = 2.0**20
"""Logarithms of counts are rounded to multiples of one over it, so that their sums are exact."""


def scaled(points: Points, lower: Reals, upper: Reals) -> Points:
    """Points of shape (n, columns), scaled to [0, 1]; raise a DataError for points out of bounds."""
    outside = np.count_nonzero(~((points >= lower) & (points <= upper)).all(axis=1))
    if outside:
        raise DataError(
            f"{outside} of {len(points)} points lie outside of the public bounds, or are not finite.",
            advice="Clip them, or correct the bounds: they are public and must not follow from the data.",
        )
    return np.asarray((points - lower) / (upper - lower))


class Whitening:
    """Coordinates z = B·u - c, in which the pilot's classes vary alike in every direction.

    Args:
        lower, upper: Public bounds of the points, shape (columns,), which u scales to [0, 1].
        matrix: B, shape (columns, columns).
        offset: c, shape (columns,).

    Attributes:
        lower, upper: Bounds of z, shape (columns,).
    """

    def __init__(self, lower: Reals, upper: Reals, matrix: Reals, offset: Reals) -> None:
        self._box, self._offset = (lower, upper), offset
        self._projection = ExactProjection(matrix, reach=1.0)
        self.lower = np.maximum(np.minimum(matrix, 0.0).sum(axis=1) - offset, -REACH)
        self.upper = np.minimum(np.maximum(matrix, 0.0).sum(axis=1) - offset, REACH)

    def __call__(self, points: Points) -> Points:
        """The z of points of shape (n, columns), clipped to their bounds; raises as `scaled`."""
        projected = self._projection.of(scaled(points, *self._box)) - self._offset
        return np.asarray(np.clip(projected, self.lower, self.upper))


class RowScores:
    """The mean over rows of the log share of a point's cell in each class, times the number of columns.

    That is the logarithm of a product of densities of projections, to the power d/R: about d of R rows in d
    columns are independent.

    Args:
        sketches: Sketch of each class, with the same hash functions.
        sizes: Size of each class, positive.
    """

    def __init__(self, sketches: Sequence[Sketch], sizes: Sequence[float]) -> None:
        self._family, self._starts = sketches[0].family, sketches[0].starts[:-1]
        privacy = sketches[0].privacy
        deviation = 0.0 if privacy is None else math.sqrt(privacy.cell_variance)
        least = (deviation + 2.0) / sum(sizes)  # about the noise in a cell without points
        self._tables = [
            np.rint(np.log(np.maximum(sketch.counts, 0) / size + least) * _LOG_UNIT).astype(np.int64)
            for sketch, size in zip(sketches, sizes, strict=True)
        ]
        self._unit = self._family.columns / (_LOG_UNIT * self._family.rows)

    def __call__(self, points: Points) -> Reals:
        """Scores of points within the family's bounds, shape (n, classes)."""
        cells = self._family.hash(points) + self._starts
        return np.stack([table[cells].sum(axis=1) * self._unit for table in self._tables], axis=1)
