"""Approximate scores with a proven error: which points can be the best under a weight.

A screen decides nothing. It gives every point a score and one bound E for all; points more than 2E below the
top cannot be the best, and `hushbid.protocol.space.scoring` compares the rest exactly.

Scoring reads every feature of every point in every round, so memory limits its speed. `FixedScreen` therefore
keeps one byte a coordinate; its products are exact integers on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numkong
import numpy as np
import numpy.typing as npt

from hushbid.protocol.space.grid import FEATURE_BITS, Features, Weights
from hushbid.protocol.space.mapped import let_go

__all__ = ["FixedScreen", "GrowingScreen", "Screened", "ValueScreen"]

_ALIGNMENT: Final = 64
"""Coordinates are padded to whole vectors of the widest SIMD registers."""
_LEVELS: Final = 127
_BLOCK_ROWS: Final = 2**16
_BLOCK_BYTES: Final = 2**26
"""Most rows packed at a time, and most bytes before packing."""
_READ_COORDINATES: Final = 2**20
"""Coordinates read at a time, at up to 16 bytes each while they are processed: a table that is memory-mapped
because it is large must not be copied whole, in wider numbers.
"""
_VALUED_ROWS: Final = 2**12
"""Rows whose y is worked out at a time."""
_FLOAT32_EPSILON: Final = 2.0**-24
_SMALLEST: Final = 256


class Screened(NamedTuple):
    """Approximate scores, in units of 2^-37, and the largest error of each."""

    scores: npt.NDArray[Any]
    scale: float
    """Factor that brings `scores` to those units."""
    error: float
    """After scaling."""


class FixedScreen:
    """Screens a table that does not change, at one byte a coordinate.

    That byte stays in memory, even if the table itself is memory-mapped: n rows of d coordinates take n·d'
    bytes, where d' is d rounded up to a multiple of 64. While it is built, at most two blocks of 64 MiB come
    on top.

    With φ = a·φ̂ + e and w = b·ŵ + f, where φ̂ and ŵ are whole numbers of at most 127, |e_i| ≤ a/2 and
    |f_i| ≤ b/2, the score is ab·φ̂ᵀŵ + (φ - e)ᵀf + eᵀw, so that E = (b/2)(√d‖φ‖ + d·a/2) + (a/2)·Σ|w_i|.

    Args:
        features: int16 of shape (n, d) with n ≥ 1, in units of 2^-15; may be memory-mapped.
        norm_bound: At least the largest ‖φ‖.
    """

    def __init__(self, features: Features, *, norm_bound: float) -> None:
        count, dimension = features.shape
        self._dimension = dimension
        self._depth = -(-dimension // _ALIGNMENT) * _ALIGNMENT
        largest = max(1, _largest(features))
        self._step = largest / _LEVELS
        self._spread = math.sqrt(dimension) * norm_bound * 2.0**FEATURE_BITS + dimension * self._step / 2
        rows = min(_BLOCK_ROWS, _BLOCK_BYTES // self._depth)
        self._blocks = [
            numkong.dots_pack(self._quantised(features[start : start + rows]), "int8")
            for start in range(0, count, rows)
        ]

    def screen(self, weights: Weights) -> Screened:
        """Approximate scores of all points, int32 of shape (n,)."""
        largest = max(1, int(np.abs(weights).max()))
        step = largest / _LEVELS
        query = np.zeros((1, self._depth), dtype=np.int8)
        query[0, : self._dimension] = np.rint(weights / step)
        parts = [np.asarray(numkong.dots_packed(query, block))[0] for block in self._blocks]
        scores = parts[0] if len(parts) == 1 else np.concatenate(parts)
        total = float(np.abs(weights, dtype=np.float64).sum())
        # The factor covers the rounding of this bound's own operations, and of the two quotients.
        error = 1.001 * (step / 2 * self._spread + self._step / 2 * total)
        return Screened(scores, self._step * step, error)

    def _quantised(self, features: Features) -> npt.NDArray[np.int8]:
        rows = np.zeros((len(features), self._depth), dtype=np.int8)
        for part in _parts(features):
            quotients = features[part] / self._step
            rows[part, : self._dimension] = np.rint(quotients, out=quotients)
        return rows


def _parts(features: Features) -> Iterator[slice]:
    """The rows in slices of few coordinates, of which a mapped file keeps none in memory."""
    count, dimension = features.shape
    rows = max(1, _READ_COORDINATES // dimension)
    for start in range(0, count, rows):
        yield slice(start, start + rows)
        let_go(features)


def _largest(features: Features) -> int:
    """The largest |φ_i|; int16 cannot hold the magnitude of its least number, Python's integers can."""
    return max(
        (max(int(features[part].max()), -int(features[part].min())) for part in _parts(features)), default=0
    )


class _Block(NamedTuple):
    """Rows of a `ValueScreen` that are packed together."""

    packed: Any
    step: float
    """a."""
    spread: float
    """√width·‖y‖ + width·a/2, for the longest y."""


class GrowingScreen:
    """Screens a table that grows, in float32.

    Features are exact in float32; γ_{d+2}·Σ|w_i||φ_i| ≤ γ_{d+2}·‖w‖·‖φ‖ bounds the rounding of w, and of d
    products and their sum in any order.

    Args:
        norm_bound: At least the largest ‖φ‖.
    """

    def __init__(self, dimension: int, *, norm_bound: float) -> None:
        steps = (dimension + 2) * _FLOAT32_EPSILON
        self._error_per_norm = 1.01 * steps / (1.0 - steps) * norm_bound * 2.0**FEATURE_BITS
        self._rows = np.zeros((_SMALLEST, dimension), dtype=np.float32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def extend(self, features: Features) -> None:
        """Add points, int16 of shape (n, d)."""
        first, self._count = self._count, self._count + len(features)
        while self._count > len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[first : self._count] = features

    def screen(self, weights: Weights) -> Screened:
        """Approximate scores of all points, float32 of shape (n,)."""
        values = weights.astype(np.float32)
        scores = self._rows[: self._count] @ values
        # Twice, since float32 also rounds the threshold that scores are compared with, and the norm.
        error = 2 * self._error_per_norm * math.sqrt(float(values @ values))
        return Screened(scores, 1.0, error)


class ValueScreen:
    """Screens whole numbers y that follow from φ, at one byte a coordinate, by weights that are whole, too.

    With y = a·ŷ + e and w = b·ŵ + c·v̂ + f, where ŷ, ŵ and v̂ are whole numbers of at most 127, c = b/254,
    |e_i| ≤ a/2 and |f_i| ≤ c/2, the score is a·(b·ŷᵀŵ + c·ŷᵀv̂) + eᵀw + (y - e)ᵀf. So a score is off by
    E = (a/2)·Σ|w_i| + (c/2)·(√width·‖y‖ + width·a/2) at most. Each block of rows has its own a, ‖y‖ and E.

    Args:
        values: y of φ: of int16 of shape (n, d), whole numbers of shape (n, width).
        features: int16 of shape (n, d).
    """

    def __init__(self, values: Callable[[Features], npt.NDArray[Any]], features: Features) -> None:
        self._width = values(features[:0]).shape[1]
        self._depth = -(-self._width // _ALIGNMENT) * _ALIGNMENT
        self._blocks: list[_Block] = []
        for start in range(0, len(features), _VALUED_ROWS):
            self._blocks.append(self._block(values(features[start : start + _VALUED_ROWS])))

    def _block(self, rows: npt.NDArray[Any]) -> _Block:
        held = rows.astype(np.float64)
        step = max(1.0, float(held.max()), -float(held.min())) / _LEVELS
        longest = math.sqrt(float(np.einsum("ij,ij->i", held, held).max()))
        packed = np.zeros((len(held), self._depth), dtype=np.int8)
        held /= step
        packed[:, : self._width] = np.rint(held, out=held)
        spread = math.sqrt(self._width) * longest + self._width * step / 2
        return _Block(numkong.dots_pack(packed, "int8"), step, spread)

    def bounds(
        self, weights: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Scores yᵀw of all rows from below and from above, each of shape (n,).

        Args:
            weights: Whole numbers below 2^53, shape (width,).
        """
        coarse = max(1.0, float(np.abs(weights).max())) / _LEVELS
        fine = coarse / (2 * _LEVELS)
        query = np.zeros((2, self._depth), dtype=np.int8)
        query[0, : self._width] = first = np.rint(weights / coarse)
        query[1, : self._width] = np.rint((weights - coarse * first) / fine)
        total = float(np.abs(weights).sum())
        lower, upper = [], []
        for block in self._blocks:
            one, other = np.asarray(numkong.dots_packed(query, block.packed)).astype(np.float64)
            scores = block.step * (coarse * one + fine * other)
            # The factor covers the rounding of these operations, as in `FixedScreen.screen`.
            error = 1.001 * (block.step / 2 * total + fine / 2 * block.spread)
            lower.append(scores - error)
            upper.append(scores + error)
        return np.concatenate(lower), np.concatenate(upper)
