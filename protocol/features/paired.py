"""The default map: cosine and sine of every projection, so that ‖φ‖ = 1."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from protocol.errors import ConfigError
from protocol.features.base import Bound
from protocol.features.fourier import FourierSpace
from protocol.grid import FEATURE_BITS, FEATURE_UNIT, Features

__all__ = ["PairedSpace"]


class PairedSpace(FourierSpace):
    """φ(x) = √(2/d)·[cos(Wx + b), sin(Wx + b)] with d/2 frequencies: all cosines, then all sines.

    ‖φ‖ = 1 before rounding, and the kernel estimate has a lower variance than the cosine map's. The
    phase changes no inner product; DPDS Theorem 9 (what hashes reveal) needs it.

    Each pair (cos, sin) lies on a circle of radius R = 2^15·√(2/d) grid units, and rounding moves it by
    √½ at most: R² - √2·R + ½ ≤ cos² + sin² ≤ R² + √2·R + ½. That is what `admits` checks and what both
    bounds follow from.
    """

    name: ClassVar[str] = "paired"

    def __init__(self, *, dimension: int, gamma: float, lower: Bound, upper: Bound, columns: int) -> None:
        super().__init__(dimension=dimension, gamma=gamma, lower=lower, upper=upper, columns=columns)
        # √(2/d)·cos and sin are computed with a relative error near 2^-52, far below the slack of 1/16.
        radius = 2.0**FEATURE_BITS * math.sqrt(2.0 / self.dimension)
        self._least = np.int32(math.ceil((radius - math.sqrt(0.5)) ** 2 - 1 / 16))
        self._width = np.uint32(_largest_square(dimension) - int(self._least))

    @classmethod
    def _frequencies(cls, dimension: int) -> int:
        if dimension % 2:
            raise ConfigError(
                f"The feature map's dimension {dimension} is odd; `paired` has two coordinates a frequency.",
                advice="Set an even dimension in the session file.",
            )
        return dimension // 2

    def _bounds(self) -> tuple[float, float]:
        largest = _largest_square(self.dimension)
        norm = math.sqrt(self.dimension // 2 * largest)
        return norm * FEATURE_UNIT, math.isqrt(largest) * FEATURE_UNIT

    def features(self, angles: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """√(2/d)·(cos(Wx + b), sin(Wx + b)), all cosines first."""
        half = self.dimension // 2
        features = np.empty((len(angles), self.dimension))
        np.cos(angles, out=features[:, :half])
        np.sin(angles, out=features[:, half:])
        features *= math.sqrt(2.0 / self.dimension)
        return features

    def admits(self, features: Features) -> npt.NDArray[np.bool_]:
        """Whether every pair lies on its circle, within what rounding can do; see `FeatureSpace.admits`."""
        self._check_features(features)
        squares = np.square(features, dtype=np.int32)
        half = self.dimension // 2
        # One comparison for both ends: what is below the least wraps to a huge unsigned number. The sum
        # of two squares of -2^15 wraps too, to a negative one.
        excess = squares[:, :half]
        excess += squares[:, half:]
        excess -= self._least
        admitted: npt.NDArray[np.bool_] = np.logical_and.reduce(excess.view(np.uint32) <= self._width, axis=1)
        return admitted


def _largest_square(dimension: int) -> int:
    """Largest cos² + sin² of a pair on the grid, in squared grid units."""
    radius = 2.0**FEATURE_BITS * math.sqrt(2.0 / dimension)
    return math.floor((radius + math.sqrt(0.5)) ** 2 + 1 / 16)
