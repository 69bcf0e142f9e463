"""The paper's own map: one cosine for each frequency."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from protocol.features.base import Bound
from protocol.features.fourier import FourierSpace
from protocol.grid import FEATURE_BITS, FEATURE_UNIT, Features

__all__ = ["CosineSpace"]


class CosineSpace(FourierSpace):
    """φ(x) = √(2/d)·cos(Wx + b) with d frequencies (DPDS Algorithm 1).

    ‖φ‖ varies from point to point and is only bounded by √2, so a sensitivity stated with this map is √2
    times that of `paired`.

    Rounding is monotone: a coordinate on the grid is at most √(2/d) rounded to the grid, which is what
    `admits` checks and what both bounds follow from.
    """

    name: ClassVar[str] = "cosine"

    def __init__(self, *, dimension: int, gamma: float, lower: Bound, upper: Bound, columns: int) -> None:
        super().__init__(dimension=dimension, gamma=gamma, lower=lower, upper=upper, columns=columns)
        self._largest = np.int16(_largest(dimension))

    @classmethod
    def _frequencies(cls, dimension: int) -> int:
        return dimension

    def _bounds(self) -> tuple[float, float]:
        largest = _largest(self.dimension)
        return math.sqrt(self.dimension) * largest * FEATURE_UNIT, largest * FEATURE_UNIT

    def features(self, angles: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """√(2/d)·cos(Wx + b)."""
        features = np.cos(angles)
        features *= math.sqrt(2.0 / self.dimension)
        return features

    def admits(self, features: Features) -> npt.NDArray[np.bool_]:
        """Whether every coordinate is at most √(2/d) on the grid; see `FeatureSpace.admits`."""
        self._check_features(features)
        within = (features <= self._largest) & (features >= -self._largest)
        admitted: npt.NDArray[np.bool_] = np.logical_and.reduce(within, axis=1)
        return admitted


def _largest(dimension: int) -> int:
    """Largest |coordinate| on the grid, in grid units."""
    return round(2.0**FEATURE_BITS * math.sqrt(2.0 / dimension))
