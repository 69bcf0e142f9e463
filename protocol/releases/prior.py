"""What the public seed set tells of the private points: where they lie, and how far from there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from protocol import limits
from protocol.errors import LocalProtocolError
from protocol.grid import FEATURE_BITS, Totals

__all__ = ["Prior"]

ONE: Final = 2**FEATURE_BITS
"""‖φ‖ = 1 in grid units: exact for `paired`, the mean over phases for `cosine`."""

SMALLEST_SPREAD: Final = ONE // 4
"""Where a seed set of one point, or of equal points, tells nothing of how far others lie apart."""

RADIUS_SHARE: Final = 0.9
"""Of the spread, what the clip radius is. Norms of φ - centre hardly differ, as ‖φ‖ is 1: between 0.8 and 1.0
it makes no difference to the selection."""


@dataclass(frozen=True, eq=False)
class Prior:
    """Public statistics of φ over the seed set D_init (DESIGN §2, `filtered-gaussian`).

    They follow from Σφ and the number of points by whole numbers and one square root, which IEEE 754 rounds
    correctly: every machine has the same.

    Attributes:
        size: Points of the seed set.
        centre: Mean of φ, rounded: int64 of shape (d,), in units of 2^-15.
        spread: Root mean square of ‖φ(x) - centre‖ for a point like these, in units of 2^-15, positive.
    """

    size: int
    centre: Totals
    spread: int

    @classmethod
    def of_total(cls, total: npt.NDArray[np.int64], size: int) -> Self:
        """The prior of `size` points whose features sum to `total`.

        1 - ‖mean‖² is the mean of ‖φ - mean‖² over these points; times (n + 1)/(n - 1) it is unbiased for
        another point of the same kind.

        Args:
            total: Σφ, int64 of shape (d,), in units of 2^-15.
            size: n, at least 1.

        Raises:
            LocalProtocolError: No points, or a total that is not a sum of n features.
        """
        if total.ndim != 1 or total.dtype != np.int64 or size < 1:
            raise LocalProtocolError(f"A prior of {size} points was asked for a total {total.shape}.")
        centre = (2 * total + size) // (2 * size)  # rounded, halves up
        if len(total) > limits.MAX_DIMENSION or max(int(centre.max()), -int(centre.min())) > ONE:
            raise LocalProtocolError("A seed set's mean lies outside of what features can have.")
        square = int(centre @ centre)
        unbiased = max(ONE * ONE - square, 0) * (size + 1) // max(size - 1, 1)
        # Two features are at most 2 apart.
        spread = min(max(math.isqrt(unbiased), SMALLEST_SPREAD), 2 * ONE)
        centre.flags.writeable = False
        return cls(size, centre, spread)

    @property
    def radius(self) -> int:
        """Clip radius about the centre (`protocol.releases.statistic`), in units of 2^-15."""
        return math.floor(RADIUS_SHARE * self.spread)
