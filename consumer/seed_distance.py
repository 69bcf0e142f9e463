"""The distance of the seed set from D_v: a function of D_v, and so for the consumer only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Final

from pydantic.dataclasses import dataclass as figures

from hushbid.protocol.figures import Figures
from hushbid.protocol.privacy.releases.prior import ONE as UNIT
from hushbid.protocol.privacy.releases.prior import RADIUS_SHARE, SMALLEST_SPREAD
from hushbid.protocol.space.mmd import MOST_COMPARED, Points, at_even_distances, kernel_means

__all__ = ["FAR_RADII", "SeedDistance", "seed_distance"]

FAR_RADII: Final = 0.5
"""Distance in clipping radii from which a seed set counts as far. The demonstrations have 0.31 to 0.46; seed
sets of one class where two are wanted (occupancy) have 0.50 to 0.76.
"""

_CLEARLY: Final = 5.0
"""Ratio of MMD² to its expectation by chance from which chance is excluded, in sets of a few points."""


@figures(frozen=True, slots=True)
class SeedDistance(Figures):
    """The distance of D_init from D_v.

    Attributes:
        mmd2: Biased MMD² between the two, by the exact kernel on scaled points.
        by_chance: Expected MMD² if both sets came from one distribution.
        radii: Square root of the part of `mmd2` above that, in clipping radii about the seed set's mean
            (`Prior`). It is about ``drift`` of `hushbid plan`.
    """

    TOLD: ClassVar[Mapping[str, str]] = {"far": "far"}

    mmd2: float
    by_chance: float
    radii: float

    @property
    def far(self) -> bool:
        """Whether a small `session.seed_weight` is needed, or a better seed set."""
        return self.radii > FAR_RADII and self.mmd2 > _CLEARLY * self.by_chance

    def sentence(self) -> str:
        return (
            f"MMD² of {self.mmd2:.3g} between the seed set and the validation set, where chance gives "
            f"{self.by_chance:.2g} to like sets of these sizes; {self.radii:.2f} clipping radii apart"
        )


def seed_distance(
    validation: Points, seed_set: Points, gamma: float, *, most: int = MOST_COMPARED
) -> SeedDistance:
    """Measure the distance of a seed set from D_v.

    Let k̄ be the mean kernel value of two different points. Then two sets of m and n points from one
    distribution have an expected biased MMD² of (1/m + 1/n)(1 - k̄). Each set's own k̄ is used for its own
    term. If a set is larger than `most`, only that many of its rows are compared, and m or n is `most`.

    Args:
        validation: D_v, scaled, shape (m, columns), within the public bounds.
        seed_set: D_init, likewise, shape (n, columns).

    Raises:
        DataError: A set is empty, or the numbers of columns differ.
    """
    validation, seed_set = (at_even_distances(each, most) for each in (validation, seed_set))
    m, n = len(validation), len(seed_set)
    cross = float(kernel_means(seed_set, validation, gamma).mean())
    within = float(kernel_means(validation, validation, gamma).mean())
    seeds = float(kernel_means(seed_set, seed_set, gamma).mean())
    found = max(0.0, within + seeds - 2.0 * cross)
    # A mean over all pairs includes k(x, x) = 1 in every m-th pair: (1 - k̄)/m is (1 - that mean)/(m - 1).
    by_chance = max(0.0, 1.0 - within) / max(m - 1, 1) + max(0.0, 1.0 - seeds) / max(n - 1, 1)
    spread = max(math.sqrt(max(0.0, 1.0 - seeds) * (n + 1) / max(n - 1, 1)), SMALLEST_SPREAD / UNIT)
    return SeedDistance(
        mmd2=found,
        by_chance=by_chance,
        radii=math.sqrt(max(0.0, found - by_chance)) / (RADIUS_SHARE * spread),
    )
