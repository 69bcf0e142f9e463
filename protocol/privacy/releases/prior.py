"""Public facts about private points, taken from the seed set: their centre and their distance from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from hushbid.protocol import limits
from hushbid.protocol.errors import DataError, LocalProtocolError
from hushbid.protocol.privacy.releases.statistic import BASIS_BITS
from hushbid.protocol.space.grid import FEATURE_BITS, Features, Totals

__all__ = ["Prior", "check_directions"]

ONE: Final = 2**FEATURE_BITS
"""‖φ‖ = 1 in grid units: exact for `paired`, the mean over phases for `cosine`."""
LARGEST_TOTAL: Final = 2**53
"""Up to this, a coordinate of Σφ is exact in float64, and no sum of points wraps around int64."""

SMALLEST_SPREAD: Final = ONE // 4
"""Spread to assume if the seed set has one point, or equal points, and shows no distances."""

SMALLEST_SHARE: Final = 2.0**-20
"""Least share of all squared lengths, for a seed set whose points hardly differ."""

LARGEST_SCALE: Final = 7.0
"""Largest scale of a basis, so that its coordinates fit int16."""

RADIUS_SHARE: Final = 0.9
"""Clip radius as a share of the spread. Norms of φ - centre hardly differ, as ‖φ‖ is 1: any value between 0.8
and 1.0 gives the same selection.
"""


@dataclass(frozen=True, eq=False)
class Prior:
    """Public statistics of φ over the seed set D_init (DESIGN §2, `filtered-gaussian`).

    They follow from Σφ and the number of points by integer arithmetic and one square root, which IEEE 754
    rounds correctly: every machine gets the same values.

    Attributes:
        size: Points of the seed set.
        centre: Mean of φ, rounded: int64 of shape (d,), in units of 2^-15.
        spread: Root mean square of ‖φ(x) - centre‖ for a point like these, in units of 2^-15, positive.
        basis: Leading directions of φ about the centre, in the form of `Statistic`: int16 of shape (F, d), in
            units of 2^-12. None: nobody needs them. They do not follow from Σφ.
    """

    size: int
    centre: Totals
    spread: int
    basis: npt.NDArray[np.int16] | None = None

    @classmethod
    def of_total(
        cls, total: npt.NDArray[np.int64], size: int, basis: npt.NDArray[np.int16] | None = None
    ) -> Self:
        """The prior of `size` points whose features sum to `total`.

        1 - ‖mean‖² is the mean of ‖φ - mean‖² over these points; times (n + 1)/(n - 1) it is unbiased for
        another point of the same kind.

        Args:
            total: Σφ, int64 of shape (d,), in units of 2^-15.
            size: n, at least 1.
            basis: The basis, for a party that has the points (`of_features`).

        Raises:
            LocalProtocolError: No points, or a total that is not a sum of n features.
        """
        if total.ndim != 1 or total.dtype != np.int64 or size < 1:
            raise LocalProtocolError(f"A prior of {size} points was asked for a total {total.shape}.")
        # Maximum and minimum apart, as -2^63 has no absolute value in int64; a larger one wraps around.
        if max(int(total.max(initial=0)), -int(total.min(initial=0))) > min(2 * size * ONE, LARGEST_TOTAL):
            raise LocalProtocolError("A seed set's total is larger than that of its points can be.")
        centre = (2 * total + size) // (2 * size)  # rounded half up
        if len(total) > limits.MAX_DIMENSION or max(int(centre.max()), -int(centre.min())) > ONE:
            raise LocalProtocolError("A seed set's mean lies outside of what features can have.")
        square = int(centre @ centre)
        unbiased = max(ONE * ONE - square, 0) * (size + 1) // max(size - 1, 1)
        # Two features are at most 2 apart.
        spread = min(max(math.isqrt(unbiased), SMALLEST_SPREAD), 2 * ONE)
        centre.flags.writeable = False
        return cls(size, centre, spread, basis)

    @classmethod
    def of_features(cls, features: Features, directions: int) -> Self:
        """The prior computed from the points themselves.

        The directions are right singular vectors of φ - mean, by descending singular value; each has the sign
        that makes its largest coordinate positive. One common factor scales them all so that the projection
        of such a point has root mean square `spread`.

        Args:
            features: φ of the seed set, int16 of shape (n, d), in units of 2^-15.
            directions: F, from 0 (no basis) to d.

        Raises:
            DataError: There are too few points for so many directions.
        """
        plain = cls.of_total(features.sum(axis=0, dtype=np.int64), len(features))
        if directions == 0:
            return plain
        check_directions(len(features), directions)
        moved = features - features.mean(axis=0)
        lengths, axes = np.linalg.svd(moved, full_matrices=False)[1:]
        axes = axes[:directions]
        axes *= np.sign(axes[np.arange(directions), np.abs(axes).argmax(axis=1)])[:, None]
        share = float(np.sum(lengths[:directions] ** 2) / max(np.sum(lengths**2), 1.0))
        scale = min(1.0 / math.sqrt(max(share, SMALLEST_SHARE)), LARGEST_SCALE)
        basis = np.rint(axes * (scale * 2.0**BASIS_BITS)).astype(np.int16)
        basis.flags.writeable = False
        return replace(plain, basis=basis)

    @property
    def radius(self) -> int:
        """Clip radius about the centre (`hushbid.protocol.privacy.releases.statistic`), in units of 2^-15."""
        return math.floor(RADIUS_SHARE * self.spread)


def check_directions(size: int, directions: int) -> None:
    """Raise DataError if `size` points cannot have `directions` directions about their mean."""
    if size <= directions:
        raise DataError(
            f"The seed set has {size} points; {directions} directions need {directions + 1}.",
            advice="Give more public points, or set a smaller `directions` in the session file.",
        )
