"""Projections that are exact: the same on every machine, in any order of summation, in any chunk of rows."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import ConfigError, LocalProtocolError

__all__ = ["MAX_REACH", "ExactProjection"]

DIRECTION_BITS: Final = 20
"""Bits of a direction's coordinates below the power of two that bounds them."""
POINT_BITS: Final = 20
"""Most bits of a point's coordinates behind the point, or below the power of two that bounds them where that
is less than 1; fewer where points reach far."""
SMALLEST_REACH: Final = 2.0**-900
"""Points that reach less far are as precise as those that reach as far as this."""
MANTISSA_BITS: Final = 53
MAX_REACH: Final = 2.0**20
"""Largest |coordinate| of a point: beyond it fewer than a few bits would be left in many dimensions."""


class ExactProjection:
    """The inner products of points with fixed directions, without a rounding error in the sum.

    A direction is rounded to `DIRECTION_BITS` bits below the power of two that bounds its coordinates, and a
    point to a grid. Every product and every partial sum is then a whole multiple of one unit, and below 2^53
    of them: float64 holds it exactly. Rounding moves a direction by less than 2^-20 of its longest
    coordinate, and up to a thousand columns a point by as little of what it can reach, or of 1 if that is
    more: collision probabilities do not notice. With more columns points are rounded more coarsely (`step`).

    Args:
        directions: float64 of shape (m, columns), finite.
        reach: Largest |coordinate| of any point that will be projected, positive.

    Raises:
        ConfigError: Points that reach beyond `MAX_REACH`.
        LocalProtocolError: Directions of another shape, or not finite.
    """

    def __init__(self, directions: npt.NDArray[np.float64], *, reach: float) -> None:
        if directions.ndim != 2 or 0 in directions.shape or not np.isfinite(directions).all():
            raise LocalProtocolError(f"Points were to be projected on directions {directions.shape}.")
        if not 0.0 < reach <= MAX_REACH:
            raise ConfigError(
                f"Points reach up to {reach:g} bandwidths from 0; at most {MAX_REACH:g} are hashed exactly.",
                advice="Use a larger bandwidth, or narrower public bounds.",
            )
        self.columns = directions.shape[1]
        longest = np.abs(directions).max(axis=1, keepdims=True)
        # ⌈log2⌉, exactly: logarithms of a mathematical library differ between machines.
        mantissas, exponents = np.frexp(np.where(longest > 0.0, longest, 1.0))
        exponents -= mantissas == 0.5
        self._scales = np.ldexp(1.0, exponents[:, 0])
        unit = np.rint(np.ldexp(directions, DIRECTION_BITS - exponents))
        self._directions = np.ascontiguousarray((unit * 2.0**-DIRECTION_BITS).T)
        mantissa, exponent = math.frexp(max(reach, SMALLEST_REACH))
        exponent -= mantissa == 0.5
        spent = DIRECTION_BITS + (self.columns - 1).bit_length() + exponent + 1
        self._grid: float = 2.0 ** min(POINT_BITS - min(exponent, 0), MANTISSA_BITS - 1 - spent)
        self.reach = reach

    @property
    def directions(self) -> npt.NDArray[np.float64]:
        """The directions as they are used, shape (m, columns)."""
        return np.asarray(self._directions.T * self._scales[:, None])

    @property
    def step(self) -> float:
        """What coordinates of points are rounded to multiples of."""
        return 1.0 / self._grid

    def of(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Each point's inner product with each direction: float64 of shape (n, m).

        Args:
            points: float64 of shape (n, columns), |coordinate| ≤ `reach`.

        Raises:
            LocalProtocolError: Another shape, or a point that reaches farther or is not finite.
        """
        if points.ndim != 2 or points.shape[1] != self.columns:
            raise LocalProtocolError(f"Points {points.shape} were projected in {self.columns} dimensions.")
        if len(points) and not max(points.max(), -points.min()) <= self.reach:
            raise LocalProtocolError("A point lies farther out than was said when directions were made.")
        projected = (np.rint(points * self._grid) / self._grid) @ self._directions
        projected *= self._scales
        return np.asarray(projected)
