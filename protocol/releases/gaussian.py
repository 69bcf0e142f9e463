"""Σφ with discrete Gaussian noise."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from protocol.accounting import compose_rho, epsilon_of_rho, gaussian_rho
from protocol.grid import FEATURE_UNIT, Totals
from protocol.noise import Draw
from protocol.releases.base import (
    Guarantee,
    MechanismParameters,
    Neighbours,
    ReleaseMechanism,
    check_delta,
)

__all__ = ["GaussianParameters", "GaussianRelease"]


class GaussianParameters(MechanismParameters):
    """The table of `gaussian` in a session file.

    Attributes:
        sigma: σ of the noise on each coordinate of Σφ, in units of φ.
    """

    sigma: float = Field(gt=0)


class GaussianRelease(ReleaseMechanism[GaussianParameters]):
    """(Σφ + Z)/q, with Z discrete Gaussian of standard deviation σ on the grid of 2^-15.

    Σφ is a vector on that grid, so the multivariate discrete Gaussian's zCDP guarantee holds as it
    stands: ρ = Δ²/(2σ²) a release (Canonne, Kamath, Steinke 2020), summed over releases.

    Sensitivity: Δ = 2·max‖φ‖ in L2, since one point replaces another, whichever the neighbours
    (`Neighbours`). Status: private. Source: DESIGN §2.
    """

    name: ClassVar[str] = "gaussian"
    private: ClassVar[bool] = True
    Parameters: ClassVar[type[MechanismParameters]] = GaussianParameters

    def draws(self, index: int) -> tuple[Draw, ...]:
        """One discrete Gaussian a coordinate, σ in grid units."""
        self.check_index(index)
        return (Draw("discrete-gaussian", self.parameters.sigma / FEATURE_UNIT, self.dimension),)

    def guarantee(self, *, neighbours: Neighbours, delta: float) -> Guarantee:
        """By zCDP and its tight conversion."""
        Neighbours(neighbours)
        check_delta(delta)
        one = gaussian_rho(2.0 * self.norm_bound, self.parameters.sigma)
        epsilon = epsilon_of_rho(compose_rho((one, self.releases)), delta)
        return Guarantee(epsilon=epsilon, delta=delta, claimed_epsilon=None, claimed_delta=None)

    def _release(
        self, index: int, total: Totals, count: int, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        return np.asarray((total + noise[0]) * (FEATURE_UNIT / count), dtype=np.float64)
