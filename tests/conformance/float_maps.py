"""Maps whose φ depends on neighbouring points: controls that every check of a map must reject.

`BlasMap` has the arithmetic that `paired` had before its numbers became whole: float64 throughout, and a
product by BLAS, which uses other kernels for other numbers of rows. `TurningMap` needs no such BLAS: up to 17
rows it adds columns from first to last, beyond that from last to first.
"""

from __future__ import annotations

import hashlib
import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from hushbid.protocol.space.features import FeatureMap, PairedSpace
from hushbid.protocol.space.features.base import Codes, RealArray, check_seed
from hushbid.protocol.space.grid import FEATURE_BITS, FEATURE_UNIT, Features
from tests.support.exact_points import round_features

__all__ = ["BlasMap", "BlasSpace", "TurningSpace"]

Floats = npt.NDArray[np.float64]

TURNS: int = 17
"""Most rows that `TurningMap` adds forwards."""


class BlasSpace(PairedSpace):
    """The space of a `BlasMap`: features are those of any angle, rounded."""

    def __init__(self, **parameters: object) -> None:
        super().__init__(**parameters)  # type: ignore[arg-type]
        radius = 2.0**FEATURE_BITS * math.sqrt(2.0 / self.dimension)
        self._least = np.int32(math.ceil((radius - math.sqrt(0.5)) ** 2 - 1 / 16))
        self._width = np.uint32(self._largest_square() - int(self._least))

    def _largest_square(self) -> int:
        radius = 2.0**FEATURE_BITS * math.sqrt(2.0 / self.dimension)
        return math.floor((radius + math.sqrt(0.5)) ** 2 + 1 / 16)

    def _bounds(self) -> tuple[float, float]:
        largest = self._largest_square()
        return math.sqrt(self.dimension // 2 * largest) * FEATURE_UNIT, math.isqrt(largest) * FEATURE_UNIT

    def map(self, seed: int | bytes) -> BlasMap:  # type: ignore[override]
        """The map of that seed."""
        return BlasMap(self, seed)


class BlasMap(FeatureMap):
    """√(2/d)·(cos(Wx + b), sin(Wx + b)) in float64, rounded to the grid at the end.

    Attributes:
        frequencies: W in radians for each unit of a scaled point, shape (d/2, columns).
        phases: b in radians, shape (d/2,).
    """

    space: BlasSpace

    def __init__(self, space: BlasSpace, seed: int | bytes) -> None:
        super().__init__(space)
        check_seed(seed)
        number = seed if isinstance(seed, int) else int.from_bytes(seed, "little")
        generator = np.random.default_rng(number)
        shape = (space.dimension // 2, space.columns)
        self.frequencies = math.sqrt(2.0 * space.gamma) * generator.standard_normal(shape)
        self.phases = generator.uniform(0.0, 2.0 * math.pi, shape[0])
        self.digest = hashlib.sha256(self.frequencies.tobytes() + self.phases.tobytes()).digest()
        self._projection = (self.frequencies / space.range).T

    def _hash(self, points: RealArray, codes: Codes, start: int) -> Features:
        angles = self._product(np.subtract(points, self.space.lower, dtype=np.float64)) + self.phases
        waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
        return round_features(waves * math.sqrt(2.0 / self.space.dimension))

    def _product(self, moved: Floats) -> Floats:
        return np.asarray(moved @ self._projection)


class TurningSpace(BlasSpace):
    """The space of a `TurningMap`."""

    name: ClassVar[str] = "paired"

    def map(self, seed: int | bytes) -> TurningMap:  # type: ignore[override]
        """The map of that seed."""
        return TurningMap(self, seed)


class TurningMap(BlasMap):
    """The same with a product whose order of summation turns with the number of rows."""

    def _product(self, moved: Floats) -> Floats:
        order = slice(None) if len(moved) <= TURNS else slice(None, None, -1)
        total = np.zeros((len(moved), len(self.phases)))
        for values, row in zip(moved.T[order], self._projection[order], strict=True):
            total += np.multiply.outer(values, row)
        return total
