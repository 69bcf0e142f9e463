"""Clipped features with discrete Gaussian noise, filtered over the rounds: the default release."""

from __future__ import annotations

from typing import ClassVar

from protocol.privacy.releases.base import MechanismParameters, Setting
from protocol.privacy.releases.clipped_gaussian import ClippedGaussianRelease
from protocol.privacy.releases.gaussian_noise import GaussianNoiseParameters

__all__ = ["FilteredGaussianParameters", "FilteredGaussianRelease"]


class FilteredGaussianParameters(GaussianNoiseParameters):
    """The table of `filtered-gaussian` in a session file."""


class FilteredGaussianRelease(ClippedGaussianRelease[FilteredGaussianParameters]):
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

    - Filter (`RandomWalkFilter`). A total is taken for a random walk of `STEP_VARIANCE`/d a coordinate and
      round, observed with variance σ²: one gain a round for all coordinates, the same whatever was
      released. The total before the first charged release of a summary is known to be 0. A total that is
      released once is not filtered.
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
        super().__init__(parameters, setting, width=setting.dimension)
