"""Random Fourier features: what the maps of cosines share."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from protocol.features.base import Bound, FeatureMap, FeatureSpace, RealArray, check_seed, refuse_row
from protocol.grid import Features, round_features

__all__ = ["FourierMap", "FourierSpace"]


class FourierSpace(FeatureSpace):
    """The space of a map that projects a point by frequencies W and takes cosines (DPDS Algorithm 1).

    Attributes:
        frequencies: Rows of W.

    Args:
        dimension, gamma, lower, upper, columns: As `FeatureSpace`.

    Raises:
        ConfigError: As `FeatureSpace`, or a dimension that no number of frequencies makes.
    """

    def __init__(self, *, dimension: int, gamma: float, lower: Bound, upper: Bound, columns: int) -> None:
        super().__init__(dimension=dimension, gamma=gamma, lower=lower, upper=upper, columns=columns)
        self.frequencies = self._frequencies(dimension)

    @classmethod
    @abstractmethod
    def _frequencies(cls, dimension: int) -> int:
        """How many frequencies make `dimension` coordinates; raises ConfigError if none do."""

    @abstractmethod
    def features(self, angles: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """φ before rounding, shape (n, d), from Wx + b of shape (n, frequencies)."""

    def random_features(self, count: int, generator: np.random.Generator) -> Features:
        """Features of random angles; see `FeatureSpace.random_features`."""
        return round_features(self.features(generator.uniform(0.0, 2.0 * math.pi, (count, self.frequencies))))

    def map(self, seed: int | bytes) -> FourierMap:
        """The map of that seed; see `FeatureSpace.map`."""
        return FourierMap(self, seed)


class FourierMap(FeatureMap):
    """Random Fourier features for the RBF kernel exp(-γ‖x - y‖²) (DPDS Algorithm 1; Rahimi and Recht 2008).

    Points are scaled to [0, 1] by public bounds, projected by frequencies W ~ N(0, 2γI) and shifted by
    phases b ~ U[0, 2π], all in float64, then mapped by the space and rounded to the grid of 2^-15.
    W is drawn first and b next, from PCG64 of the seed.

    Attributes:
        digest: SHA-256 of the map's name, the shapes of W and b, and their little-endian float64 bytes.

    Args:
        space: The space.
        seed: As `FeatureSpace.map`.

    Raises:
        ConfigError, LocalProtocolError: As `FeatureSpace.map`.
    """

    space: FourierSpace

    def __init__(self, space: FourierSpace, seed: int | bytes) -> None:
        super().__init__(space)
        generator = np.random.Generator(np.random.PCG64(_seed_sequence(seed)))
        shape = (space.frequencies, space.columns)
        frequencies = math.sqrt(2.0 * space.gamma) * generator.standard_normal(shape)
        self._phases = generator.uniform(0.0, 2.0 * math.pi, shape[0])
        self.digest = _digest(space.name, frequencies, self._phases)
        # The division of the scaling is done once, here, instead of once a point. Frequency-major
        # storage is what BLAS is fastest on for a few points.
        self._projection = (frequencies / space.range).T

    def _hash(self, points: RealArray, start: int) -> Features:
        with np.errstate(invalid="ignore", over="ignore"):
            angles = np.subtract(points, self.space.lower, dtype=np.float64) @ self._projection
            angles += self._phases
            total = angles.sum()
        if not math.isfinite(total):
            row = start + int(np.argmin(np.isfinite(angles).all(axis=1)))
            refuse_row(row)
        return round_features(self.space.features(angles))


def _seed_sequence(seed: int | bytes) -> np.random.SeedSequence:
    check_seed(seed)
    if isinstance(seed, int):
        return np.random.SeedSequence(seed)
    # Eight words of pool keep 256 bits, which is what the generator's state takes.
    return np.random.SeedSequence(int.from_bytes(seed, "little"), pool_size=8)


def _digest(name: str, *arrays: npt.NDArray[np.float64]) -> bytes:
    state = hashlib.sha256(name.encode() + b"\0")
    for array in arrays:
        state.update(np.array([array.ndim, *array.shape], dtype="<u8").tobytes())
        state.update(np.ascontiguousarray(array, dtype="<f8").data)
    return state.digest()
