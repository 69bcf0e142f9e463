"""RACE sketches: counts in the cells of hash functions, with discrete Laplace noise on each count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
from pydantic import Field

from hushbid.protocol.errors import ConfigError, LocalProtocolError
from hushbid.protocol.privacy.accounting import Cost, count_epsilon, shifted_count_cost
from hushbid.protocol.privacy.noise import Draw
from hushbid.protocol.privacy.releases.noisy_total import (
    FilteredStream,
    NoisyTotalParameters,
    NoisyTotalRelease,
)
from hushbid.protocol.privacy.releases.prior import Prior
from hushbid.protocol.privacy.releases.random_walk import STEP_VARIANCE, RandomWalk
from hushbid.protocol.space.features.lsh import row_unit
from hushbid.protocol.space.grid import FEATURE_UNIT, Totals

__all__ = ["RaceParameters", "RaceRelease"]

SMALLEST_SCALE: Final = 2.0**-5
"""Scale below which all but one noise value in 10^13 are 0 and hide nothing."""


class RaceParameters(NoisyTotalParameters):
    """The table of `race` in a session file, with `epsilon`, `scale` or both.

    Attributes:
        scale: Scale of the noise on a count, P(x) ∝ exp(-|x|/scale); the paper's Laplace(R/ε) has R/ε.
    """

    noise_key: ClassVar[str] = "scale"

    scale: float | None = Field(default=None, ge=SMALLEST_SCALE)


class RaceStream(FilteredStream):
    """Releases of counts, each row of which is shifted to its known sum."""

    def _observed(
        self, total: Totals, points: int, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        unit = row_unit(self.mechanism.rows)
        counts, rest = np.divmod(total, unit)
        if rest.any():
            raise LocalProtocolError("A total to be released as counts is no sum of the map's features.")
        # In units of φ, 1/√R per count, like the filter's variances.
        seen = (
            self._of_sum(points, counts + noise[0]) * (unit * FEATURE_UNIT) if noise else total * FEATURE_UNIT
        )
        return np.asarray(seen - self._expected(points), dtype=np.float64)

    def _embedded(self, moved: npt.NDArray[np.float64], points: int) -> npt.NDArray[np.float64]:
        return self._expected(points) + moved

    def _expected(self, points: int) -> npt.NDArray[np.float64]:
        """Σφ of that many points like the seed set's, in units of φ."""
        return np.asarray(self.prior.centre * FEATURE_UNIT * points, dtype=np.float64)

    def _of_sum(self, points: int, counts: Totals) -> npt.NDArray[np.float64]:
        """Counts shifted row by row to the sum of that many points."""
        rows = counts.reshape(self.mechanism.rows, -1)
        excess = rows.sum(axis=1, keepdims=True) - points
        return np.asarray((rows - excess / rows.shape[1]).ravel(), dtype=np.float64)


class RaceRelease(NoisyTotalRelease):
    """Counts of the points in each cell of each row (`LshSpace`), each with discrete Laplace noise.

    Owners score a point by the broadcast weight at its cells: a kernel sum read from the sketches of target
    and summary, as in RACE §3.

    Sensitivity: substituting one point changes at most 2 counts of each row by one, 2R in all. Neighbours
    under either relation differ by that: by the lemma of DESIGN §1 one point of a summary, or one record of
    D_v, is substituted. (If owners run out of points, one more record is one more point: R counts.) Each of
    these counts is its own release, which its noise makes exactly randomised response (`shifted_count_cost`),
    so p releases are 2R·p of them. The accountant composes them, which for many is far less than the sum of
    their ε, the paper's way. With the printed noise Laplace(R/ε), a release is ε-DP for one record added or
    removed, and 2ε-DP for one substituted.

    Post-processing, which costs nothing:

    - The number n of points in a mean is public, and each row counts each point once: the counts of a row are
      shifted by one number so that their sum is n.
    - Filter (`RandomWalk`), as in `filtered-gaussian`: n·c is subtracted from the counts, where c is the seed
      set's mean, and the rest is modelled as a random walk. A total that is released once is not filtered.
    - The public points' counts are added without noise.

    Negative counts stay negative: making them nonnegative row by row made the choice worse.

    Status: private. Source: RACE Algorithm 1 and Theorem 3 (Coleman and Shrivastava 2020), with sound noise.

    Raises:
        ConfigError: The map is not `lsh`, or the given scale costs more than the given ε.
    """

    name = "race"
    Parameters = RaceParameters
    Stream = RaceStream
    small_features: ClassVar[Mapping[str, Any]] = {"map": "lsh"}

    def __post_init__(self) -> None:
        if self.rows == 0:
            raise ConfigError(
                "Release mechanism 'race' counts points in cells, and the feature map has none.",
                advice='Set map = "lsh" in [features].',
            )
        super().__post_init__()

    @property
    def rows(self) -> int:
        """R."""
        return self.setting.rows

    @property
    def noise_directions(self) -> int:
        """Number of cells minus one per row, as a row's sum is known."""
        return self.dimension - self.rows

    @property
    def scale(self) -> float:
        """Scale of the noise on a count; 0 if no release is charged."""
        return self.noise

    @property
    def variance(self) -> float:
        """Variance of the noise on a count; 0 if no release is charged."""
        return self._draw().variance if self.scale else 0.0

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on a coordinate, in which a count is 1/√R."""
        return row_unit(self.rows) * FEATURE_UNIT * math.sqrt(self.variance)

    def walk(self, prior: Prior) -> RandomWalk:
        """The walk of counts minus those of as many points of the seed set, in units of φ."""
        spread = prior.spread * FEATURE_UNIT
        return RandomWalk(
            noise=self.variance * (row_unit(self.rows) * FEATURE_UNIT) ** 2,
            step=STEP_VARIANCE * self.setting.batch * spread**2 / self.dimension,
            from_zero=self.setting.starts_public,
        )

    def _draw(self) -> Draw:
        return Draw("discrete-laplace", self.scale, self.dimension)

    def _cost(self, noise: float, releases: int) -> Cost:
        return shifted_count_cost(1.0 / noise, 2 * self.rows * releases)

    def _calibrated(self, epsilon: float, releases: int) -> float:
        return 1.0 / count_epsilon(epsilon, self.setting.delta, 2 * self.rows * releases)
