"""Signed random projections: kernels of the angle, and the asymmetric pair for regression (RACE §4)."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import DataError
from hushbid.protocol.space.lsh.base import Cells, HashFamily, Points
from hushbid.protocol.space.lsh.projection import ExactProjection

__all__ = ["AsymmetricFamily", "SignedFamily", "squared_lengths"]


class SignedFamily(HashFamily):
    """The signs of p random projections: points at the angle θ collide with probability (1 - θ/π)^p.

    A row has 2^p cells (Charikar 2002; `power` is p).

    Args:
        width: With fewer than 2^p, codes are spread over so many cells.
    """

    name: ClassVar[str] = "srp"

    def _draw(self) -> None:
        self._projection = ExactProjection(self._normals(self._projected), reach=self._reach)
        self._join(np.full((self.rows, self.power), 2, dtype=np.int64))

    @property
    def directions(self) -> npt.NDArray[np.float64]:
        """Normals of the hyperplanes, shape (rows, power, projected columns): they are public."""
        return self._projection.directions.reshape(self.rows, self.power, self._projected)

    @property
    def _drawn(self) -> tuple[npt.NDArray[np.float64], ...]:
        return (self._projection.directions,)

    @property
    def _projected(self) -> int:
        return self.columns

    @property
    def _reach(self) -> float:
        return max(float(np.abs(self.lower).max()), float(np.abs(self.upper).max()))

    def hash(self, points: Points) -> Cells:
        """On which side of each hyperplane a point lies; a point on it counts as above."""
        self.check_points(points)
        return self._signs(points)

    def _signs(self, points: Points) -> Cells:
        codes = (self._projection.of(points) >= 0.0).astype(np.int64)
        return self._cell(codes.reshape(len(points), self.rows, self.power))

    def kernel(self, points: Points, queries: Points) -> npt.NDArray[np.float64]:
        """(1 - θ/π)^p; a point at 0 has an angle of π/2 with everything."""
        return _angular(points, queries) ** self.power


class AsymmetricFamily(SignedFamily):
    """The asymmetric pair: a data point and a query are extended differently, then hashed by `SignedFamily`.

    A data point z of the unit ball becomes (z, √(1 - ‖z‖²)), and a query q of any length (q, 0)/‖q‖. Their
    angle then has the cosine q·z/‖q‖, so that the collision probability (1 - arccos(q·z/‖q‖)/π)^p rises with
    the inner product whatever the point's length (Shrivastava and Li 2014). With q and -q together it is a
    surrogate of the squared residual (RACE §4): p = 2 gives ½ + 2·(arcsin(t)/π)² for both, t = q·z/‖q‖.

    Data points must lie in the unit ball, besides the bounds.
    """

    name: ClassVar[str] = "asymmetric-srp"

    @property
    def _projected(self) -> int:
        return self.columns + 1

    @property
    def _reach(self) -> float:
        return max(1.0, super()._reach)

    def hash(self, points: Points) -> Cells:
        """The cell of (z, √(1 - ‖z‖²)).

        Raises:
            DataError: As `HashFamily.hash`, or a point outside of the unit ball.
        """
        self.check_points(points)
        return self._signs(_extended(points))

    def hash_queries(self, queries: Points) -> Cells:
        """The cell of (q, 0)/‖q‖. Queries need not lie within the bounds.

        Raises:
            DataError: A query of length 0, of another shape or not finite.
        """
        return self._signs(np.column_stack([_normed(queries, self.columns), np.zeros(len(queries))]))

    def kernel(self, points: Points, queries: Points) -> npt.NDArray[np.float64]:
        """(1 - arccos(q·z/‖q‖)/π)^p."""
        extended = np.column_stack([_normed(queries, self.columns), np.zeros(len(queries))])
        return _angular(_extended(points), extended) ** self.power


def squared_lengths(points: Points) -> npt.NDArray[np.float64]:
    """‖x‖² of each point, which depends on nothing but its coordinates: shape (n,).

    They are added up one after the other (`np.cumsum`). The order in which `np.linalg.norm` and `np.einsum`
    add changes with the number of rows and with the layout, so that one more record would change the last bit
    of others' lengths, and then their cells.

    Args:
        points: Shape (n, columns), with at least one column.
    """
    return np.asarray(np.cumsum(np.square(points), axis=1)[:, -1])


def _extended(points: Points) -> Points:
    squares = squared_lengths(points)
    if np.any(squares > 1.0 + 1e-9):
        raise DataError(
            f"{np.count_nonzero(squares > 1.0 + 1e-9)} of {len(points)} points lie outside of the unit ball.",
            advice="Scale them by public bounds so that no point is longer than 1.",
        )
    return np.column_stack([points, np.sqrt(np.maximum(1.0 - squares, 0.0))])


def _normed(queries: Points, columns: int) -> Points:
    lengths = np.sqrt(squared_lengths(queries))
    if queries.ndim != 2 or queries.shape[1] != columns or not (np.isfinite(lengths) & (lengths > 0.0)).all():
        raise DataError(
            f"Queries {queries.shape} are not {columns} finite numbers each that are not all 0.",
            advice="Check what is asked for.",
        )
    return np.asarray(queries / lengths[:, None])


def _angular(points: Points, queries: Points) -> npt.NDArray[np.float64]:
    lengths = np.linalg.norm(points, axis=1)[:, None] * np.linalg.norm(queries, axis=1)
    cosines = np.divide(points @ queries.T, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    return np.asarray(1.0 - np.arccos(np.clip(cosines, -1.0, 1.0)) / math.pi)
