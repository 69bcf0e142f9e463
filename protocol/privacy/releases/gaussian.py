"""Σφ with discrete Gaussian noise."""

from __future__ import annotations

from typing import ClassVar, Final

from pydantic import Field

from hushbid.protocol import ranges
from hushbid.protocol.privacy.accounting import Cost, DiscreteGaussianCost, gaussian_sigma
from hushbid.protocol.privacy.noise import Draw
from hushbid.protocol.privacy.releases.noisy_total import NoisyTotalParameters, NoisyTotalRelease
from hushbid.protocol.space.grid import FEATURE_UNIT

__all__ = ["SMALLEST_SIGMA", "GaussianParameters", "GaussianRelease"]

SMALLEST_SIGMA: Final = 2.0**-20
"""A thirtieth of the grid's unit: below it all but one noise value in 10^100 are 0 and hide nothing."""


class GaussianParameters(NoisyTotalParameters):
    """The table of `gaussian` in a session file, with `epsilon`, `sigma` or both.

    Attributes:
        sigma: σ of the noise on each coordinate of a total, in units of φ.
        epsilon_curator: ε of a finer release that only the curator gets (`Nested`); of `[target]` under
            `tender`.
    """

    noise_key: ClassVar[str] = "sigma"

    sigma: float | None = Field(default=None, ge=SMALLEST_SIGMA)
    epsilon_curator: ranges.Epsilon | None = None


class GaussianRelease(NoisyTotalRelease):
    """(Σφ + Z)/q, with Z discrete Gaussian of standard deviation σ on the grid of 2^-15.

    Guarantee: totals are vectors on that grid, and one record changes each of them by at most `sensitivity`
    in L2 under either relation: by the lemma of DESIGN §1 one point of a summary, or one record of D_v, is
    substituted. p adaptive releases have the (ε, δ) of
    `hushbid.protocol.privacy.accounting.discrete_gaussian_epsilon`.

    Sensitivity: Δ = 2·max‖φ‖ in L2, since one point replaces another. Status: private. Source: DESIGN §2.
    """

    name = "gaussian"
    Parameters: ClassVar[type[NoisyTotalParameters]] = GaussianParameters

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.noise  # raises if no noise meets the ε

    @property
    def sensitivity(self) -> float:
        """Largest L2 distance of two points' statistics, in units of φ."""
        return 2.0 * self.setting.norm_bound

    @property
    def sigma(self) -> float:
        """σ of each coordinate's noise, in units of φ; 0 if no release is charged."""
        return self.noise

    def _draw(self) -> Draw:
        return Draw("discrete-gaussian", self.noise / FEATURE_UNIT, self.width)

    def _cost(self, noise: float, releases: int) -> Cost:
        return DiscreteGaussianCost(
            sensitivity=self.sensitivity / FEATURE_UNIT,
            sigma=noise / FEATURE_UNIT,
            width=self.width,
            count=releases,
        )

    def _calibrated(self, epsilon: float, releases: int) -> float:
        in_grid = gaussian_sigma(
            epsilon,
            self.setting.delta,
            sensitivity=self.sensitivity / FEATURE_UNIT,
            releases=releases,
            values=releases * self.width,
        )
        return in_grid * FEATURE_UNIT
