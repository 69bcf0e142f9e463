"""Clipped features with discrete Gaussian noise, filtered over the rounds: the default release."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from protocol.errors import LocalProtocolError
from protocol.grid import FEATURE_UNIT, Totals
from protocol.releases.base import MechanismParameters, Setting
from protocol.releases.gaussian_noise import GaussianNoiseParameters, GaussianNoiseRelease
from protocol.releases.prior import Prior
from protocol.releases.statistic import Statistic

__all__ = ["FilteredGaussianParameters", "FilteredGaussianRelease"]

SENSITIVITY: Final = 2.0
"""Of a total of clipped statistics, none of which is longer than 1 (`Statistic`)."""

STEP_VARIANCE: Final = 500.0
"""Variance of a step of the random walk that the filter takes a total for, in all coordinates together.

One point moves a total by at most 1. But its steps do not cancel as a random walk's would, for the points
that are bought lie in the direction of what is wanted: over a window of n rounds they add up to n steps and
not to √n, and windows here are of about σ·√(d/500) rounds. Between 100 and 1000 the MMD² of a selection
changes by a tenth: larger values suit short sessions, smaller ones long ones.
"""


class FilteredGaussianParameters(GaussianNoiseParameters):
    """The table of `filtered-gaussian` in a session file."""


class FilteredGaussianRelease(GaussianNoiseRelease[FilteredGaussianParameters]):
    """Σy + Z, with y = φ clipped about the public seed set's mean; then smoothed over the releases.

    Sensitivity: 2 in L2, whatever the points. A point enters a total by y(x) = (φ(x) - c)/max(‖φ(x) - c‖, R)
    alone, with the centre c and the radius R of the public seed set (`Prior`), and ‖y‖ ≤ 1 holds exactly
    (`Statistic`). By the lemma of DESIGN §1 one record of an owner more or less (`ADD_REMOVE_ONE`) means one
    point of S in the place of another, in every round; one record of D_v that is another (`SUBSTITUTE_ONE`)
    means the same once. Either way ‖Σy - Σy'‖ ≤ ‖y‖ + ‖y'‖ ≤ 2. c and R are the same for both: they depend
    on public points alone. So does the number of points that a mean is over: it is the round's, and no count
    of S.

    In units of y this is what `gaussian` has in units of φ, where ‖φ‖ = 1. But a point lies only about
    ρ = `Prior.spread` from the centre, and y is measured in that unit: in units of φ the noise is ρ times
    that of `gaussian`, 0.8 on images and 0.55 on the insurance data.

    Post-processing, which costs nothing (the noisy totals alone are released):

    - Filter. A total is taken for a random walk of `STEP_VARIANCE`/d a coordinate and round, observed with
      variance σ²: one Kalman gain a round for all coordinates, the same whatever was released. The total
      before the first charged release of a summary is known to be 0. A total that is released once is not
      filtered.
    - Embedding. Σφ is estimated by n·c + ρ·Σy for n points, and the public points are added without noise.

    No shrinkage: a target that is pulled towards the seed set's mean (Wiener filter) loses what is peculiar
    to D_v, while its noise does little harm: the greedy choice can only follow it to mixtures of points that
    owners have.

    Status: private, the default. Source: DESIGN §2; Kalman (1960).
    """

    name: ClassVar[str] = "filtered-gaussian"
    private: ClassVar[bool] = True
    Parameters: ClassVar[type[MechanismParameters]] = FilteredGaussianParameters

    def __init__(self, parameters: FilteredGaussianParameters, setting: Setting) -> None:
        super().__init__(parameters, setting, sensitivity=SENSITIVITY, width=setting.dimension)
        self._estimate: npt.NDArray[np.float64] | None = None
        self._variance = 0.0
        if setting.starts_public:
            self._estimate = np.zeros(setting.dimension)

    def statistic(self) -> Statistic:
        """Φ clipped about the seed set's mean.

        Raises:
            LocalProtocolError: The prior is not known yet.
        """
        prior = self._prior()
        return Statistic(self.dimension, prior.centre, prior.radius)

    def _prior(self) -> Prior:
        if self.setting.prior is None:
            raise LocalProtocolError("A filtered release was asked for before the seed set was known.")
        return self.setting.prior

    def _release(
        self, index: int, total: Totals, count: int, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        prior = self._prior()
        observed = np.asarray((total + noise[0] if noise else total) * FEATURE_UNIT, dtype=np.float64)
        moved = self._filtered(observed) if noise else observed  # without noise: public points alone
        private = count - prior.size if self.setting.offset is not None else count
        # y has length 1 at the clip radius and beyond; there a point lies about ρ from the centre.
        embedded = (prior.centre * private + prior.spread * moved) * FEATURE_UNIT
        if self.setting.offset is not None:
            embedded += self.setting.offset * FEATURE_UNIT
        return np.asarray(embedded / count, dtype=np.float64)

    def _filtered(self, observed: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The estimate of Σy after one more noisy total."""
        if self._estimate is None:
            self._estimate, self._variance = observed, self.sigma**2
            return observed
        predicted = self._variance + STEP_VARIANCE / self.dimension
        gain = predicted / (predicted + self.sigma**2)
        self._variance = (1.0 - gain) * predicted
        self._estimate = self._estimate + gain * (observed - self._estimate)
        return self._estimate
