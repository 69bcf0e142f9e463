"""The default map: cosine and sine of every projection, so that ‖φ‖ = 1."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.space.features.base import Bound
from hushbid.protocol.space.features.fourier import Angles, FourierSpace, waves
from hushbid.protocol.space.grid import FEATURE_UNIT, Features

__all__ = ["PairedSpace"]

_BLOCK_COORDINATES: Final = 2**20
"""Coordinates that are squared at a time: 4 MiB."""


class PairedSpace(FourierSpace):
    """φ(x) = √(2/d)·[cos(Wx + b), sin(Wx + b)] with d/2 frequencies: all cosines, then all sines.

    ‖φ‖ is 1 up to rounding, and the kernel estimate has a lower variance than the cosine map's. The phase
    changes no inner product; DPDS Theorem 9 (what hashes reveal) needs it.

    Each pair (cos, sin) is one of 2^16 table entries (`fourier.waves`), close to a circle of radius
    2^15·√(2/d) grid units. `admits` checks the table's least and largest cos² + sin², and both bounds follow
    from them.
    """

    name: ClassVar[str] = "paired"

    def __init__(self, *, dimension: int, gamma: float, lower: Bound, upper: Bound, columns: int) -> None:
        super().__init__(dimension=dimension, gamma=gamma, lower=lower, upper=upper, columns=columns)
        self._least, largest = _squares(dimension)
        self._width = np.uint32(largest - self._least)

    @classmethod
    def _frequencies(cls, dimension: int) -> int:
        if dimension % 2:
            raise ConfigError(
                f"The feature map's dimension {dimension} is odd; `paired` has two coordinates a frequency.",
                advice="Set an even dimension in the session file.",
            )
        return dimension // 2

    def _bounds(self) -> tuple[float, float]:
        largest = int(_squares(self.dimension)[1])
        norm = math.sqrt(self.dimension // 2 * largest)
        return norm * FEATURE_UNIT, math.isqrt(largest) * FEATURE_UNIT

    def features(self, angles: Angles) -> Features:
        """√(2/d)·(cos(Wx + b), sin(Wx + b)), all cosines first; see `FourierSpace.features`."""
        half = self.dimension // 2
        features = np.empty((len(angles), self.dimension), dtype=np.int16)
        for part, wave in zip((features[:, :half], features[:, half:]), waves(self.dimension), strict=True):
            np.take(wave, angles, out=part, mode="wrap")
        return features

    def admits(self, features: Features) -> npt.NDArray[np.bool_]:
        """Whether every pair is as near its circle as the table's pairs; see `FeatureSpace.admits`."""
        self._check_features(features)
        admitted: npt.NDArray[np.bool_] = np.empty(len(features), dtype=np.bool_)
        rows = max(1, _BLOCK_COORDINATES // self.dimension)
        for start in range(0, len(features), rows):
            admitted[start : start + rows] = self._admits(features[start : start + rows])
        return admitted

    def _admits(self, features: Features) -> npt.NDArray[np.bool_]:
        squares = np.square(features, dtype=np.int32)
        half = self.dimension // 2
        # One comparison covers both ends: a value below the least wraps to a huge unsigned number. The sum of
        # two squares of -2^15 also wraps, to a negative number.
        excess = squares[:, :half]
        excess += squares[:, half:]
        excess -= self._least
        admitted: npt.NDArray[np.bool_] = np.logical_and.reduce(excess.view(np.uint32) <= self._width, axis=1)
        return admitted


@lru_cache(maxsize=16)
def _squares(dimension: int) -> tuple[np.int32, np.int32]:
    """The least and the largest cos² + sin² of the table, in squared grid units: they fit, as d ≥ 4."""
    cosine, sine = (wave.astype(np.int32) for wave in waves(dimension))
    squares = np.asarray(cosine * cosine + sine * sine)
    return squares.min(), squares.max()
