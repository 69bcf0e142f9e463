"""What of a point enters a total that is released: whole numbers, the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from protocol import limits
from protocol.errors import LocalProtocolError
from protocol.grid import FEATURE_BITS, Features, Totals

__all__ = ["Statistic"]

ONE: Final = 2**FEATURE_BITS
"""Largest ‖y‖ of a statistic that is clipped, in grid units: 1."""


@dataclass(frozen=True, eq=False)
class Statistic:
    """φ(x) itself, or y(x) = (φ(x) - centre)/max(‖φ(x) - centre‖, radius): clipped, to a length of 1.

    *‖y‖ ≤ 1 for every int16 vector, forged ones included, whatever the centre.* Write z = φ(x) - centre in
    whole grid units, and N for the larger of the radius and ‖z‖ rounded up. Coordinate i of y is z_i·2^15/N
    cut off towards zero, so |y_i| ≤ |z_i|·2^15/N, and ‖y‖ ≤ 2^15·‖z‖/N ≤ 2^15 grid units. Hence one point
    in the place of another changes a total by at most 2, in L2. The bound rests on N² ≥ ‖z‖², which is
    ensured in whole numbers: |z_i| ≤ 2^16 and d ≤ 2^12 keep ‖z‖² ≤ 2^44.

    Attributes:
        width: Coordinates d of y.
        centre: int64 of shape (d,), |coordinate| ≤ 2^15, in units of 2^-15; None: y is φ.
        radius: In units of 2^-15, positive; a larger one leaves more points unclipped, and y shorter.

    Raises:
        LocalProtocolError: A centre or radius outside of that.
    """

    width: int
    centre: Totals | None = None
    radius: int = ONE

    def __post_init__(self) -> None:
        centre = self.centre
        if not (1 <= self.width <= limits.MAX_DIMENSION and 1 <= self.radius <= 2 * ONE):
            raise LocalProtocolError(f"No statistic has {self.width} coordinates and radius {self.radius}.")
        if centre is not None and (
            centre.shape != (self.width,)
            or centre.dtype != np.int64
            or max(int(centre.max()), -int(centre.min())) > ONE
        ):
            raise LocalProtocolError("A statistic's centre is no mean of features.")

    @classmethod
    def identity(cls, dimension: int) -> Self:
        """Φ itself, in units of 2^-15."""
        return cls(dimension)

    def of(self, features: Features) -> Totals:
        """The statistic of each point.

        Args:
            features: int16 of shape (n, d).

        Returns:
            int64 of shape (n, d), in units of 2^-15.

        Raises:
            LocalProtocolError: Another shape or dtype.
        """
        if features.ndim != 2 or features.shape[1] != self.width or features.dtype != np.int16:
            raise LocalProtocolError(
                f"The features are {features.dtype} {features.shape}, not int16 (n, {self.width})."
            )
        moved = features.astype(np.int64)
        if self.centre is None:
            return moved
        moved -= self.centre
        lengths = np.maximum(_rounded_up(np.einsum("ij,ij->i", moved, moved)), self.radius)
        quotients: Totals = np.abs(moved) * ONE // lengths[:, None]
        np.negative(quotients, out=quotients, where=moved < 0)
        return quotients


def _rounded_up(squares: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Square roots of whole numbers below 2^52, rounded up."""
    roots = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    roots += roots * roots < squares
    return roots
