"""The integer vector that each point adds to a released total, the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from hushbid.protocol import limits
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.space.grid import FEATURE_BITS, Features, Totals

__all__ = ["BASIS_BITS", "Statistic"]

ONE: Final = 2**FEATURE_BITS
"""Largest ‖y‖ of a clipped statistic, in grid units: 1."""


BASIS_BITS: Final = 12
"""A basis is in units of 2^-12: with int16, its coordinates are below 8."""

LARGEST: Final = 2**20 - 1
"""Largest |coordinate| that counts in a basis, in grid units, 32. Honest ones are below 16, and squares of
4096 of them stay below 2^52.
"""


@dataclass(frozen=True, eq=False)
class Statistic:
    """φ(x) itself, or y(x) = z/max(‖z‖, radius) with z = B(φ(x) - centre), clipped to length 1.

    B is the identity or the basis of a subspace; z then has the subspace's dimension.

    *‖y‖ ≤ 1 for every int16 vector, forged ones included, whatever the centre and the basis.* z is in whole
    grid units, and N is the larger of the radius and ‖z‖ rounded up. Coordinate i of y is z_i·2^15/N cut off
    towards zero, so |y_i| ≤ |z_i|·2^15/N, and ‖y‖ ≤ 2^15·‖z‖/N ≤ 2^15 grid units. Hence substituting one
    point changes a total by at most 2 in L2. The bound rests on N² ≥ ‖z‖², which is ensured in whole numbers.
    Without a basis |z_i| ≤ 2^16 and d ≤ 2^12 keep ‖z‖² ≤ 2^44. With one, products add up to at most 2^43,
    which float64 holds exactly in any order; z is that, rounded down to grid units and cut off at `LARGEST`,
    which no honest basis comes near.

    Attributes:
        centre: int64 of shape (d,), |coordinate| ≤ 2^15, in units of 2^-15; None: y is φ.
        radius: In units of 2^-15, positive; a larger one clips fewer points and makes y shorter.
        basis: int16 of shape (width, d), in units of 2^-12; None: the identity. Only with a centre.

    Raises:
        LocalProtocolError: A centre, radius or basis outside these bounds.
    """

    dimension: int
    centre: Totals | None = None
    radius: int = ONE
    basis: npt.NDArray[np.int16] | None = None

    def __post_init__(self) -> None:
        centre, basis = self.centre, self.basis
        if not (1 <= self.dimension <= limits.MAX_DIMENSION and 1 <= self.radius <= 2 * ONE):
            raise LocalProtocolError(
                f"No statistic has {self.dimension} coordinates and radius {self.radius}."
            )
        if centre is not None and (
            centre.shape != (self.dimension,)
            or centre.dtype != np.int64
            or max(int(centre.max()), -int(centre.min())) > ONE
        ):
            raise LocalProtocolError("A statistic's centre is no mean of features.")
        if basis is not None and (
            centre is None
            or basis.dtype != np.int16
            or basis.ndim != 2
            or basis.shape[1] != self.dimension
            or not 1 <= basis.shape[0] <= limits.MAX_DIMENSION
        ):
            raise LocalProtocolError(f"A statistic's basis is {basis.dtype} {basis.shape}.")

    @classmethod
    def identity(cls, dimension: int) -> Self:
        """Φ itself, in units of 2^-15."""
        return cls(dimension)

    @property
    def width(self) -> int:
        """Coordinates of the statistic."""
        return self.dimension if self.basis is None else len(self.basis)

    def of(self, features: Features) -> Totals:
        """The statistic of each point: int64 of shape (n, width), in units of 2^-15.

        Args:
            features: int16 of shape (n, d).

        Raises:
            LocalProtocolError: Another shape or dtype.
        """
        if features.ndim != 2 or features.shape[1] != self.dimension or features.dtype != np.int16:
            raise LocalProtocolError(
                f"The features are {features.dtype} {features.shape}, not int16 (n, {self.dimension})."
            )
        moved = features.astype(np.int64)
        if self.centre is None:
            return moved
        moved -= self.centre
        if self.basis is not None:
            products = moved.astype(np.float64) @ self.basis.T.astype(np.float64)
            moved = np.clip(products.astype(np.int64) >> BASIS_BITS, -LARGEST, LARGEST)
        lengths = np.maximum(_rounded_up(np.einsum("ij,ij->i", moved, moved)), self.radius)
        quotients: Totals = np.abs(moved) * ONE // lengths[:, None]
        np.negative(quotients, out=quotients, where=moved < 0)
        return quotients


def _rounded_up(squares: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Square roots of whole numbers below 2^52, rounded up."""
    roots = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    roots += roots * roots < squares
    return roots
