"""Clipped features with discrete Gaussian noise, filtered over the rounds: the default release."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hushbid.protocol.privacy.releases.aim import Aim
from hushbid.protocol.privacy.releases.gaussian import GaussianRelease
from hushbid.protocol.privacy.releases.noisy_total import FilteredStream
from hushbid.protocol.privacy.releases.prior import Prior
from hushbid.protocol.privacy.releases.random_walk import STEP_VARIANCE, RandomWalk
from hushbid.protocol.privacy.releases.statistic import ONE, Statistic
from hushbid.protocol.space.grid import FEATURE_UNIT, Totals

__all__ = ["ClippedStream", "FilteredGaussianRelease"]


class ClippedStream(FilteredStream):
    """Releases of points clipped about the seed set's mean (`FilteredGaussianRelease`)."""

    @property
    def unit(self) -> float:
        """ρ: y has length 1 at the clip radius and beyond, where a point lies about ρ from the centre."""
        return self.prior.spread * FEATURE_UNIT

    def embedding(self, total: Totals, points: int) -> npt.NDArray[np.float64]:
        """The mean of clipped points, c + ρ·Σy/n: no farther out than in a release."""
        return self._embedded(np.asarray(total * FEATURE_UNIT, dtype=np.float64), points) / points

    def _observed(
        self, total: Totals, points: int, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        return np.asarray((total + noise[0] if noise else total) * FEATURE_UNIT, dtype=np.float64)

    def _embedded(self, moved: npt.NDArray[np.float64], points: int) -> npt.NDArray[np.float64]:
        embedded = self.prior.centre * points + self.prior.spread * self._in_features(moved)
        return np.asarray(embedded * FEATURE_UNIT, dtype=np.float64)

    def _in_features(self, moved: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Coordinates of y as coordinates of φ, shape (d,)."""
        return moved


class FilteredGaussianRelease(GaussianRelease):
    """Σy + Z, with y = φ clipped about the public seed set's mean; then smoothed over the releases.

    Sensitivity: 2 in L2, whatever the points. A point enters a total only by y(x) = (φ(x) - c)/max(‖φ(x) -
    c‖, R), with the centre c and the radius R of the public seed set (`Prior`), and ‖y‖ ≤ 1 holds exactly
    (`Statistic`). By the lemma of DESIGN §1, adding or removing one record of an owner (`ADD_REMOVE_ONE`)
    substitutes one point of S in every round; replacing one record of D_v (`SUBSTITUTE_ONE`) substitutes one
    point once. Either way ‖Σy - Σy'‖ ≤ ‖y‖ + ‖y'‖ ≤ 2. c and R are the same for both, as they depend only on
    public points. So does the number of points in a mean: it follows from the round and is no count of S.

    In units of y, this noise equals that of `gaussian` in units of φ, where ‖φ‖ = 1. But a point lies only
    about ρ = `Prior.spread` from the centre, which is the unit of y. So in units of φ the noise is ρ times
    that of `gaussian`: 0.8 on images and 0.55 on the insurance data.

    Post-processing, which costs nothing as only the noisy totals are released:

    - Filter (`RandomWalk`). A total is modelled as a random walk with variance `STEP_VARIANCE`/d per
      coordinate and round, observed with variance σ². Each round has one gain for all coordinates, whatever
      was released. The total before the first charged release of a summary is known to be 0. A total that is
      released once is not filtered.
    - Embedding. n·c + ρ·Σy estimates Σφ for n points, and the public points are added without noise.

    No shrinkage: pulling a target towards the seed set's mean (Wiener filter) loses the peculiarities of D_v.
    Its noise does little harm, because the greedy choice can only follow it to mixtures of points that owners
    have.

    Status: private, the default. Source: DESIGN §2; Kalman (1960).
    """

    name = "filtered-gaussian"
    Stream = ClippedStream

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity of totals of statistics of length at most 1."""
        return 2.0

    def statistic(self, prior: Prior | None) -> Statistic:
        """φ clipped about the seed set's mean, in the mechanism's basis; the prior must be known."""
        known = self.known(prior)
        return Statistic(self.dimension, known.centre, known.radius, self._basis(known))

    def aim(self, embedding: npt.NDArray[np.float64], prior: Prior) -> Aim:
        """The mean of y that embeds to it, by the centre and ρ: points are clipped as for the release."""
        return Aim.of(self.statistic(prior), (embedding / FEATURE_UNIT - prior.centre) / prior.spread * ONE)

    def walk(self, prior: Prior) -> RandomWalk:
        """The random walk of totals of y, which start from 0 where the first release is public."""
        step = STEP_VARIANCE * self.setting.batch / self.width
        return RandomWalk(self.sigma**2, step, from_zero=self.setting.starts_public)

    def _basis(self, prior: Prior) -> npt.NDArray[np.int16] | None:
        """The basis of y, in the form of `Statistic`; None: that of φ."""
        return None
