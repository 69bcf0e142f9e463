"""Discrete Gaussian noise on a total, calibrated to a target (ε, δ): what `gaussian` and its filter share."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from pydantic import Field, model_validator

from protocol.errors import ConfigError, LocalProtocolError
from protocol.privacy.accounting import Cost, DiscreteGaussianCost, epsilon_of, gaussian_sigma
from protocol.privacy.noise import Draw
from protocol.privacy.releases.base import (
    Guarantee,
    Neighbours,
    PrivateParameters,
    ReleaseMechanism,
    Setting,
    check_delta,
)
from protocol.space.grid import FEATURE_UNIT

__all__ = ["GaussianNoiseParameters", "GaussianNoiseRelease"]

SMALLEST_SIGMA: Final = 2.0**-20
"""A thirtieth of the grid's unit: below it noise is 0 but for one value in 10^100, and hides nothing."""


class GaussianNoiseParameters(PrivateParameters):
    """Keys of a mechanism with Gaussian noise: at least one of the two.

    Attributes:
        epsilon: ε of all releases together, at the session's δ: σ follows from it. With `sigma`, a budget.
        sigma: σ of the noise on each coordinate of a total, in units of φ.
    """

    epsilon: float | None = Field(default=None, gt=0)
    sigma: float | None = Field(default=None, ge=SMALLEST_SIGMA)

    @model_validator(mode="after")
    def _has_noise(self) -> GaussianNoiseParameters:
        if self.epsilon is None and self.sigma is None:
            raise ValueError("either `epsilon`, the ε of all releases together, or `sigma` has to be given")
        return self


P = TypeVar("P", bound=GaussianNoiseParameters)


class GaussianNoiseRelease(ReleaseMechanism[P], Generic[P]):
    """A mechanism that adds Z of width coordinates, discrete Gaussian on the grid of 2^-15, to each total.

    Guarantee: totals are vectors on that grid, and one record changes each of them by at most `sensitivity`
    in L2, whichever the neighbours: by the lemma of DESIGN §1 one point of a summary stands in the place of
    another, and a record of D_v is another. p adaptive releases of it have
    the (ε, δ) of `protocol.privacy.accounting.discrete_gaussian_epsilon`.

    A release of public points alone (`Setting.starts_public`) has no noise and costs nothing.

    Args:
        parameters: Of the mechanism.
        setting: What it is to release.
        sensitivity: Largest L2 distance of two points' statistics, in units of φ.
        width: Coordinates of a statistic.

    Raises:
        ConfigError: The σ that is given costs more than the ε that is given.
    """

    def __init__(self, parameters: P, setting: Setting, *, sensitivity: float, width: int) -> None:
        super().__init__(parameters, setting)
        self.sensitivity = sensitivity
        self.width = width
        self.sigma = self._calibrated()
        """σ of each coordinate's noise, in units of φ; 0 where no release is charged."""

    @property
    def error(self) -> float | None:
        """σ, where the statistic is φ."""
        return self.sigma

    def draws(self, index: int) -> tuple[Draw, ...]:
        """One discrete Gaussian a coordinate, σ in grid units; none for public points alone."""
        self.check_index(index)
        if index == 0 and self.setting.starts_public:
            return ()
        return (Draw("discrete-gaussian", self.sigma / FEATURE_UNIT, self.width),)

    def guarantee(self, *, neighbours: Neighbours, delta: float) -> Guarantee:
        """By `protocol.privacy.accounting.discrete_gaussian_epsilon`."""
        Neighbours(neighbours)
        check_delta(delta)
        charged = self.setting.charged
        epsilon = epsilon_of([self._cost(self.sigma, charged)], delta) if charged else 0.0
        return Guarantee(epsilon=epsilon, delta=delta, claimed_epsilon=None, claimed_delta=None)

    def cost(self, index: int, *, neighbours: Neighbours) -> tuple[Cost, ...]:
        """That of one discrete Gaussian release."""
        Neighbours(neighbours)
        self.check_index(index)
        return () if index == 0 and self.setting.starts_public else (self._cost(self.sigma, 1),)

    def _cost(self, sigma: float, count: int) -> DiscreteGaussianCost:
        return DiscreteGaussianCost(
            sensitivity=self.sensitivity / FEATURE_UNIT,
            sigma=sigma / FEATURE_UNIT,
            width=self.width,
            count=count,
        )

    def _calibrated(self) -> float:
        given, charged, delta = self.parameters, self.setting.charged, self.setting.delta
        if charged == 0:
            return 0.0
        if given.sigma is not None:
            if given.epsilon is None:
                return given.sigma
            spent = epsilon_of([self._cost(given.sigma, charged)], delta)
            if spent > given.epsilon:
                raise ConfigError(
                    f"Release mechanism {self.name!r}: with sigma = {given.sigma:g}, {charged} releases cost "
                    f"ε = {spent:.4g} at δ = {delta:g}, over the budget of {given.epsilon:g}.",
                    advice="Leave sigma out, so that it follows from epsilon; or ask for fewer rounds.",
                )
            return given.sigma
        if given.epsilon is None:
            raise LocalProtocolError("Gaussian noise has neither an ε nor a σ, past validation.")
        in_grid = gaussian_sigma(
            given.epsilon,
            delta,
            sensitivity=self.sensitivity / FEATURE_UNIT,
            releases=charged,
            values=charged * self.width,
        )
        return in_grid * FEATURE_UNIT
