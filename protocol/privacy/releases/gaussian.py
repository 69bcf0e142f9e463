"""Σφ with discrete Gaussian noise."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from protocol.privacy.releases.base import MechanismParameters, Setting
from protocol.privacy.releases.gaussian_noise import GaussianNoiseParameters, GaussianNoiseRelease
from protocol.space.grid import FEATURE_UNIT, Totals

__all__ = ["GaussianParameters", "GaussianRelease"]


class GaussianParameters(GaussianNoiseParameters):
    """The table of `gaussian` in a session file."""


class GaussianRelease(GaussianNoiseRelease[GaussianParameters]):
    """(Σφ + Z)/q, with Z discrete Gaussian of standard deviation σ on the grid of 2^-15.

    Sensitivity: Δ = 2·max‖φ‖ in L2, since one point replaces another, whichever the neighbours
    (`GaussianNoiseRelease`). Status: private. Source: DESIGN §2.
    """

    name: ClassVar[str] = "gaussian"
    private: ClassVar[bool] = True
    Parameters: ClassVar[type[MechanismParameters]] = GaussianParameters

    def __init__(self, parameters: GaussianParameters, setting: Setting) -> None:
        super().__init__(parameters, setting, sensitivity=2.0 * setting.norm_bound, width=setting.dimension)

    def _release(
        self, index: int, total: Totals, count: float, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        self.deviation = self.sigma if noise else 0.0
        noisy = self.with_offset(total + noise[0] if noise else total)
        return np.asarray(noisy * (FEATURE_UNIT / count), dtype=np.float64)
