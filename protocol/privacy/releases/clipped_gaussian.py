"""Points clipped about the seed set's mean, with discrete Gaussian noise and a filter over the rounds."""

from __future__ import annotations

import math
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from protocol.privacy.releases.base import Setting
from protocol.privacy.releases.gaussian_noise import GaussianNoiseParameters, GaussianNoiseRelease
from protocol.privacy.releases.prior import Prior
from protocol.privacy.releases.random_walk import STEP_VARIANCE, RandomWalkFilter
from protocol.privacy.releases.statistic import Statistic
from protocol.space.grid import FEATURE_UNIT, Totals

__all__ = ["ClippedGaussianRelease"]

SENSITIVITY: Final = 2.0
"""Of a total of clipped statistics, none of which is longer than 1 (`Statistic`)."""

P = TypeVar("P", bound=GaussianNoiseParameters)


class ClippedGaussianRelease(GaussianNoiseRelease[P], Generic[P]):
    """Σy + Z, with y of length 1 at most (`Statistic`): sensitivity 2, whatever the points.

    The noisy total goes through a `RandomWalkFilter`, unless it is released once. Then Σφ is estimated by
    n·c + ρ·Σy for n points, c and ρ being the seed set's centre and spread, and the public points are added
    without noise.

    Args:
        parameters: Of the mechanism.
        setting: What it is to release.
        width: Coordinates of y.
    """

    def __init__(self, parameters: P, setting: Setting, *, width: int) -> None:
        super().__init__(parameters, setting, sensitivity=SENSITIVITY, width=width)
        self._filter = RandomWalkFilter(
            noise=self.sigma**2,
            step=STEP_VARIANCE * setting.batch / width,
            start=np.zeros(width) if setting.starts_public else None,
        )

    @property
    def error(self) -> float | None:
        """ρσ, stretched as coordinates are."""
        return self.prior().spread * FEATURE_UNIT * self._stretch * self.sigma

    def statistic(self) -> Statistic:
        """φ clipped about the seed set's mean, in the mechanism's basis.

        Raises:
            LocalProtocolError: The prior is not known yet.
        """
        prior = self.prior()
        return Statistic(self.dimension, prior.centre, prior.radius, self._basis(prior))

    def _basis(self, prior: Prior) -> npt.NDArray[np.int16] | None:
        """The basis that y is in, as `Statistic` has it; None: that of φ."""
        return None

    @property
    def _stretch(self) -> float:
        """Root mean square of a coordinate of φ where those of y have 1."""
        return 1.0

    def _in_features(self, moved: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Coordinates of y as coordinates of φ, shape (d,)."""
        return moved

    def embedding(self, total: Totals, points: int) -> npt.NDArray[np.float64]:
        """Their mean as clipped, c + ρ·Σy/n: no farther out than a release has them."""
        return self._embedded(np.asarray(total * FEATURE_UNIT, dtype=np.float64), points) / points

    def _embedded(self, moved: npt.NDArray[np.float64], points: int) -> npt.NDArray[np.float64]:
        """Σφ of so many private points, estimated from Σy: n·c + ρ·Σy, in units of φ."""
        prior = self.prior()
        # y has length 1 at the clip radius and beyond; there a point lies about ρ from the centre.
        embedded = prior.centre * points + prior.spread * self._in_features(moved)
        return np.asarray(embedded * FEATURE_UNIT, dtype=np.float64)

    def _release(
        self, index: int, total: Totals, count: float, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        prior = self.prior()
        observed = np.asarray((total + noise[0] if noise else total) * FEATURE_UNIT, dtype=np.float64)
        moved = self._filter.after(observed) if noise else observed  # without noise: public points alone
        if noise:
            self.deviation = prior.spread * FEATURE_UNIT * self._stretch * math.sqrt(self._filter.variance)
        embedded = self._embedded(moved, self.private_count(count))
        embedded += self.public_sum() * FEATURE_UNIT
        return np.asarray(embedded / count, dtype=np.float64)
