"""The feature map φ, which the paper calls h1: what all maps share."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocol import limits
from protocol.errors import ConfigError, DataError, LocalProtocolError
from protocol.grid import Features, round_features

__all__ = ["SEED_BYTES", "Bound", "FeatureMap", "FeatureSpace", "RealArray"]

RealArray: TypeAlias = npt.NDArray[np.floating[Any] | np.integer[Any] | np.bool_]
"""Raw points: any real dtype."""
Bound: TypeAlias = npt.NDArray[np.float64] | float
"""A public bound of the feature columns: one for each, shape (columns,), or one for all."""

SEED_BYTES: Final = 32
"""Length of a secret seed."""

CHUNK_VALUES: Final = 2**20
"""Raw values that are mapped at a time: bounds the memory of `FeatureMap.hash` to some 24 MiB."""


class FeatureSpace(ABC):
    """What is public about a feature map: how points are scaled, and what its features can be.

    A curator of a session whose map is secret (DESIGN §3, `sealed`) has the space and not the map.

    The bounds below hold for whatever `admits` lets through, forged or honest, since sensitivities are
    stated with them.

    Attributes:
        dimension: Coordinates d of φ.
        columns: Feature columns of a raw point.
        gamma: γ of the kernel, on scaled points.
        frequencies: Rows of W.
        norm_bound: Largest ‖φ‖, rounding included.
        coordinate_bound: Largest |φ_i|, rounding included.

    Args:
        dimension: Within `limits.MIN_DIMENSION` and `limits.MAX_DIMENSION`.
        gamma: Positive.
        lower, upper: Public bounds of the columns, upper above lower.
        columns: From 1 to `limits.MAX_COLUMNS`.

    Raises:
        ConfigError: A parameter that is not finite or outside of its range; names it.
    """

    name: ClassVar[str]

    def __init__(self, *, dimension: int, gamma: float, lower: Bound, upper: Bound, columns: int) -> None:
        _check(dimension, gamma, columns)
        self.dimension = dimension
        self.columns = columns
        self.gamma = gamma
        self.lower = _bound(lower, columns, "lower")
        with np.errstate(over="ignore"):
            self.range = _bound(upper, columns, "upper") - self.lower
        if not np.all(np.isfinite(self.range) & (self.range > 0)):
            column = int(np.argmin(np.isfinite(self.range) & (self.range > 0)))
            raise ConfigError(
                f"The bounds of feature column {column} enclose no interval: upper is not above lower.",
                advice="Correct `lower` or `upper` in the session file.",
            )
        self.frequencies = self._frequencies(dimension)
        self.norm_bound, self.coordinate_bound = self._bounds()

    @classmethod
    @abstractmethod
    def _frequencies(cls, dimension: int) -> int:
        """How many frequencies make `dimension` coordinates; raises ConfigError if none do."""

    @abstractmethod
    def _bounds(self) -> tuple[float, float]:
        """`norm_bound` and `coordinate_bound`."""

    @abstractmethod
    def features(self, angles: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """φ before rounding, shape (n, d), from Wx + b of shape (n, frequencies)."""

    @abstractmethod
    def admits(self, features: Features) -> npt.NDArray[np.bool_]:
        """Which rows some point can have as its φ, as far as norms tell (DESIGN §3, "Verification").

        Args:
            features: Shape (n, d).

        Returns:
            Shape (n,).

        Raises:
            LocalProtocolError: Another shape or dtype.
        """

    def map(self, seed: int | bytes) -> FeatureMap:
        """The map of that seed."""
        return FeatureMap(self, seed)

    def scale(self, points: RealArray) -> npt.NDArray[np.float64]:
        """(x - lower)/(upper - lower), column by column; values outside of the bounds are not clipped.

        Args:
            points: Shape (n, columns).

        Returns:
            float64 of the same shape.

        Raises:
            DataError: Another shape or a dtype that is not real.
        """
        self.check_points(points)
        return np.asarray((points - self.lower) / self.range, dtype=np.float64)

    def check_points(self, points: RealArray) -> None:
        """Raise `DataError` unless points are real numbers of shape (n, columns)."""
        if points.ndim != 2 or points.shape[1] != self.columns or points.dtype.kind not in "fiub":
            raise DataError(
                f"The points are {points.dtype} of shape {points.shape}; "
                f"the session has real numbers of shape (n, {self.columns}).",
                advice="Check the feature columns that the data file is read with.",
            )

    def _check_features(self, features: Features) -> None:
        if features.ndim != 2 or features.shape[1] != self.dimension or features.dtype != np.int16:
            raise LocalProtocolError(
                f"The features are {features.dtype} {features.shape}, not int16 (n, {self.dimension})."
            )


class FeatureMap:
    """Random Fourier features for the RBF kernel exp(-γ‖x - y‖²) (DPDS Algorithm 1; Rahimi and Recht 2008).

    Points are scaled to [0, 1] by public bounds, projected by frequencies W ~ N(0, 2γI) and shifted by
    phases b ~ U[0, 2π], all in float64, then mapped by the space and rounded to the grid of 2^-15.
    W is drawn first and b next, from PCG64 of the seed.

    Attributes:
        space: All that is public about the map.
        digest: SHA-256 of the map's name, the shapes of W and b, and their little-endian float64 bytes.

    Args:
        space: The space.
        seed: A number that is not negative, which all parties of a session know; or `SEED_BYTES` bytes,
            where the map is secret: all of their 256 bits enter the generator's state.

    Raises:
        ConfigError: A negative seed.
        LocalProtocolError: A seed of another number of bytes.
    """

    def __init__(self, space: FeatureSpace, seed: int | bytes) -> None:
        self.space = space
        generator = np.random.Generator(np.random.PCG64(_seed_sequence(seed)))
        shape = (space.frequencies, space.columns)
        frequencies = math.sqrt(2.0 * space.gamma) * generator.standard_normal(shape)
        self._phases = generator.uniform(0.0, 2.0 * math.pi, shape[0])
        self.digest = _digest(space.name, frequencies, self._phases)
        # The division of the scaling is done once, here, instead of once a point. Frequency-major
        # storage is what BLAS is fastest on for a few points.
        self._projection = (frequencies / space.range).T

    def hash(self, points: RealArray) -> Features:
        """φ of each point, on the grid. Works in chunks of rows: memory stays bounded.

        Args:
            points: Raw, unscaled, shape (n, columns).

        Returns:
            int16 of shape (n, d), in units of 2^-15.

        Raises:
            DataError: Another shape, a dtype that is not real, or a value that is not finite (or so
                large that its scaled value is not).
        """
        self.space.check_points(points)
        rows = max(1, CHUNK_VALUES // self.space.columns)
        if len(points) <= rows:
            return self._hash(points, 0)
        hashed = np.empty((len(points), self.space.dimension), dtype=np.int16)
        for start in range(0, len(points), rows):
            hashed[start : start + rows] = self._hash(points[start : start + rows], start)
        return hashed

    def _hash(self, points: RealArray, start: int) -> Features:
        with np.errstate(invalid="ignore", over="ignore"):
            angles = np.subtract(points, self.space.lower, dtype=np.float64) @ self._projection
            angles += self._phases
            total = angles.sum()
        if not math.isfinite(total):
            row = start + int(np.argmin(np.isfinite(angles).all(axis=1)))
            raise DataError(
                f"Row {row} of the points (counted from 0) has a feature that is not finite or is too large.",
                advice="Remove or repair the row.",
            )
        return round_features(self.space.features(angles))


def _seed_sequence(seed: int | bytes) -> np.random.SeedSequence:
    if isinstance(seed, int):
        if seed < 0:
            raise ConfigError("The feature map's seed is negative.", advice="Correct it in the session file.")
        return np.random.SeedSequence(seed)
    if len(seed) != SEED_BYTES:
        raise LocalProtocolError(f"A secret seed of {len(seed)} bytes was given.")
    # Eight words of pool keep 256 bits, which is what the generator's state takes.
    return np.random.SeedSequence(int.from_bytes(seed, "little"), pool_size=8)


def _check(dimension: int, gamma: float, columns: int) -> None:
    for holds, what in (
        (dimension >= limits.MIN_DIMENSION, f"dimension {dimension} is below {limits.MIN_DIMENSION}"),
        (dimension <= limits.MAX_DIMENSION, f"dimension {dimension} is above {limits.MAX_DIMENSION}"),
        (math.isfinite(gamma) and gamma > 0, f"gamma {gamma} is not a positive number"),
        (1 <= columns <= limits.MAX_COLUMNS, f"{columns} columns are not in 1..{limits.MAX_COLUMNS}"),
    ):
        if not holds:
            raise ConfigError(f"The feature map's {what}.", advice="Correct it in the session file.")


def _bound(bound: Bound, columns: int, name: str) -> npt.NDArray[np.float64]:
    values = np.asarray(bound, dtype=np.float64)
    if values.shape not in ((), (columns,)) or not np.isfinite(values).all():
        raise ConfigError(
            f"The feature map's `{name}` is not one finite number, nor one for each of {columns} columns.",
            advice="Correct it in the session file.",
        )
    return np.array(np.broadcast_to(values, (columns,)))


def _digest(name: str, *arrays: npt.NDArray[np.float64]) -> bytes:
    state = hashlib.sha256(name.encode() + b"\0")
    for array in arrays:
        state.update(np.array([array.ndim, *array.shape], dtype="<u8").tobytes())
        state.update(np.ascontiguousarray(array, dtype="<f8").data)
    return state.digest()
