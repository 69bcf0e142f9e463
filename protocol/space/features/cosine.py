"""The paper's own map: one cosine per frequency."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from hushbid.protocol.space.features.base import Bound
from hushbid.protocol.space.features.fourier import Angles, FourierSpace, waves
from hushbid.protocol.space.grid import FEATURE_UNIT, Features

__all__ = ["CosineSpace"]


class CosineSpace(FourierSpace):
    """φ(x) = √(2/d)·cos(Wx + b) with d frequencies (DPDS Algorithm 1).

    ‖φ‖ varies from point to point and is only bounded by √2, so a sensitivity stated with this map is √2
    times that of `paired`.

    Each coordinate is one of 2^16 table entries (`fourier.waves`). `admits` checks the largest one, and both
    bounds follow from it.
    """

    name: ClassVar[str] = "cosine"

    def __init__(self, *, dimension: int, gamma: float, lower: Bound, upper: Bound, columns: int) -> None:
        super().__init__(dimension=dimension, gamma=gamma, lower=lower, upper=upper, columns=columns)
        self._largest = waves(dimension)[0].max()

    @classmethod
    def _frequencies(cls, dimension: int) -> int:
        return dimension

    def _bounds(self) -> tuple[float, float]:
        largest = int(waves(self.dimension)[0].max())
        return math.sqrt(self.dimension) * largest * FEATURE_UNIT, largest * FEATURE_UNIT

    def features(self, angles: Angles) -> Features:
        """√(2/d)·cos(Wx + b); see `FourierSpace.features`."""
        return waves(self.dimension)[0][angles]

    def admits(self, features: Features) -> npt.NDArray[np.bool_]:
        """Whether no coordinate exceeds the table's largest; see `FeatureSpace.admits`."""
        self._check_features(features)
        within = (features <= self._largest) & (features >= -self._largest)
        admitted: npt.NDArray[np.bool_] = np.logical_and.reduce(within, axis=1)
        return admitted
