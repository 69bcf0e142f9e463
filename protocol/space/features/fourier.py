"""Random Fourier features: the common part of the maps made of cosines."""

from __future__ import annotations

import copy
import functools
import hashlib
import math
from abc import abstractmethod
from typing import Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.space.expansion import (
    ANGLE_BITS,
    COSINE_BITS,
    Expansion,
    WholeNumbers,
    cosines,
    normals,
)
from hushbid.protocol.space.features.base import (
    Bound,
    Codes,
    FeatureMap,
    FeatureSpace,
    RealArray,
    check_seed,
    refuse_row,
)
from hushbid.protocol.space.grid import FEATURE_BITS, Features
from hushbid.protocol.space.labels import LabelCode, LabelTurns

__all__ = ["Angles", "FourierMap", "FourierSpace"]

Angles: TypeAlias = npt.NDArray[np.integer]
"""In units of 2^-16 of a turn, from 0 to 2^16 - 1."""

_COLUMN_BITS: Final = 32
"""Total number of bits of a point's coordinate and of the number of columns."""
_TURN_BITS: Final = 52
"""Most bits of a turn: coordinates of W are below 2^20, so Wx is a sum below 2^52, and Wx + b below 2^53."""
_WIDTH_BITS: Final = 31
_FREQUENCY_SHIFT: Final = 42
_FREQUENCY_BITS: Final = 17
"""A normal number, in units of 2^-28, times a width of 31 bits, shifted by 42: 2^17 times the width's power
of two is 1."""
_LEAST_BITS: Final = 8
"""Fewest bits of a coordinate, and fewest bits by which it is finer than the kernel's width."""
_DOMAIN: Final = b"hushbid feature map 2 "


class FourierSpace(FeatureSpace):
    """The space of a map that projects a point by frequencies W and takes cosines (DPDS Algorithm 1).

    All of a map is integer arithmetic, so φ depends on the point and the seed alone, and not on neighbouring
    points: neither the order of summation nor a library's last bit matters (docs/wire.md, "Feature map").

    Attributes:
        frequencies: Number of rows of W.
        point_bits: A scaled coordinate is a whole number of 2^-point_bits.
        frequency_bits: A coordinate of W is a whole number of 2^-frequency_bits of a turn.
        turn_bits: Their sum: Wx + b is a whole number of 2^-turn_bits of a turn.
        width: Scale of the distribution of W: 2^31 times the mantissa of √(2γ)/2π.

    Raises:
        ConfigError: As `FeatureSpace`; no number of frequencies gives the dimension; or the kernel is too
            narrow or too wide for the grid of the points.
    """

    def __init__(self, *, dimension: int, gamma: float, lower: Bound, upper: Bound, columns: int) -> None:
        super().__init__(dimension=dimension, gamma=gamma, lower=lower, upper=upper, columns=columns)
        self.frequencies = self._frequencies(dimension)
        # IEEE 754 rounds division and square root alike everywhere; frexp is exact.
        mantissa, exponent = math.frexp(math.sqrt(gamma / (2.0 * math.pi * math.pi)))
        self.width = round(mantissa * 2.0**_WIDTH_BITS)
        self.frequency_bits = _FREQUENCY_BITS - exponent
        # As fine as the columns leave room for, and no finer than a turn can be divided into.
        self.point_bits = min(_COLUMN_BITS - (columns - 1).bit_length(), _TURN_BITS - self.frequency_bits)
        self.turn_bits = self.frequency_bits + self.point_bits
        if self.point_bits < max(_LEAST_BITS, exponent + _LEAST_BITS):
            kind = "narrow" if exponent > 0 else "wide"
            raise ConfigError(
                f"The feature map's gamma {gamma} makes too {kind} a kernel for points of {columns} columns.",
                advice="Correct features.gamma in the session file: it is for columns scaled to [0, 1].",
            )

        with np.errstate(over="ignore"):
            too_close = ~np.isfinite(2.0**self.point_bits / self.range)
        if too_close.any():
            column = int(np.argmax(too_close))
            raise ConfigError(
                f"The bounds of feature column {column} are too close for the grid of points.",
                advice="Correct `lower` or `upper` in the session file, or give the column in a larger unit.",
            )

    @classmethod
    @abstractmethod
    def _frequencies(cls, dimension: int) -> int:
        """Number of frequencies for `dimension` coordinates; raises ConfigError if there is none."""

    @abstractmethod
    def features(self, angles: Angles) -> Features:
        """φ from Wx + b, modulo a turn: int16 of shape (n, d), in units of 2^-15.

        Args:
            angles: Shape (n, frequencies).
        """

    def random_features(self, count: int, generator: np.random.Generator) -> Features:
        return self.features(generator.integers(0, 2**ANGLE_BITS, (count, self.frequencies)))

    def with_labels(self, labels: LabelCode) -> Self:
        space = copy.copy(self)
        space.labels = labels
        return space

    def map(self, seed: int | bytes) -> FourierMap:
        return FourierMap(self, seed)


class FourierMap(FeatureMap):
    """Random Fourier features for the RBF kernel exp(-γ‖x - y‖²) (DPDS Algorithm 1; Rahimi and Recht 2008).

    A point is scaled to [0, 1] by the public bounds and rounded to the grid of 2^-point_bits, ties to even;
    values outside the bounds become the nearer bound. It is projected by frequencies W ~ N(0, 2γI) and
    shifted by phases b ~ U[0, 2π], all integers in fractions of a turn. The angle is cut to 16 bits, and the
    space has its features in a table. Rounding W changes the kernel by less than 2^-16 of its width, rounding
    points by less than 2^-8 of it, and cutting angles multiplies it by 1 - 10^-9.

    Row f of W and b_f come from row f of the seed's `Expansion`: a word per column, and one for b_f.

    Attributes:
        digest: SHA-256 of the map's name, a zero byte, the shape of W, `point_bits` and `turn_bits` as
            little-endian u64, W as little-endian i32, row after row, and b as little-endian u64; then, if
            labels have a part, the turns of each corner (`LabelTurns.corners`) as little-endian i64.
        frequencies: W in radians per unit of a scaled point, as it is used: float64 of shape (frequencies,
            columns).
        phases: b in radians, as it is used: float64 of shape (frequencies,).
    """

    space: FourierSpace

    def __init__(self, space: FourierSpace, seed: int | bytes) -> None:
        super().__init__(space)
        check_seed(seed)
        whole, self._phases = _drawn(space, seed)
        self._turns = None if space.labels is None else LabelTurns(space.labels, space.frequencies, seed)
        self.digest = _digest(space, whole, self._phases, self._turns)
        # BLAS is fastest on frequency-major storage for a few points.
        self._projection = whole.astype(np.float64).T
        self._units = 2.0**space.point_bits / space.range

    @property
    def whole_numbers(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """W (frequencies, columns) in units of 2^-frequency_bits of a turn; b in those of 2^-turn_bits."""
        return self._projection.T.astype(np.int64), self._phases.astype(np.int64)

    @functools.cached_property
    def frequencies(self) -> npt.NDArray[np.float64]:
        """W, in radians."""
        return np.asarray(self._projection.T * (2.0 * math.pi * 2.0**-self.space.frequency_bits))

    @functools.cached_property
    def phases(self) -> npt.NDArray[np.float64]:
        """b, in radians. Angles are cut, so on average they are half a unit smaller."""
        turns = self._phases * 2.0**-self.space.turn_bits - 0.5 * 2.0**-ANGLE_BITS
        return np.asarray(2.0 * math.pi * turns)

    def _hash(self, points: RealArray, codes: Codes, start: int) -> Features:
        # Integers below 2^53 throughout: float64 holds every partial sum exactly, in any order.
        projected = (self._on_grid(points, start) @ self._projection).astype(np.int64)
        projected += self._phases
        projected >>= self.space.turn_bits - ANGLE_BITS
        if codes is not None and self._turns is not None:
            projected += self._turns.of(codes)
        projected &= 2**ANGLE_BITS - 1
        return self.space.features(projected)

    def _on_grid(self, points: RealArray, start: int) -> npt.NDArray[np.float64]:
        """Scaled points as integers in units of 2^-point_bits, shape (n, columns)."""
        largest = 2.0**self.space.point_bits
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = np.subtract(points, self.space.lower, dtype=np.float64)
            scaled *= self._units
            # This also catches NaN.
            if scaled.size and not (scaled.min() >= 0.0 and scaled.max() <= largest):
                finite = np.isfinite(scaled).all(axis=1)
                if not finite.all():
                    refuse_row(start + int(np.argmin(finite)))
                np.clip(scaled, 0.0, largest, out=scaled)
        return np.rint(scaled, out=scaled)


@functools.lru_cache(maxsize=64)
def waves(dimension: int) -> tuple[Features, Features]:
    """√(2/d)·cos and √(2/d)·sin of every angle, rounded to the grid.

    Args:
        dimension: d, from 4 on.

    Returns:
        Two read-only arrays of int16, shape (2^16,), in units of 2^-15.
    """
    turns = np.arange(2**ANGLE_BITS, dtype=np.int64) << (32 - ANGLE_BITS)
    radius = math.isqrt(2**63 // dimension)  # √(2/d) in units of 2^-31
    shift = COSINE_BITS + 31 - FEATURE_BITS
    cosine = ((cosines(turns) * radius + (1 << (shift - 1))) >> shift).astype(np.int16)
    sine = np.roll(cosine, 2 ** (ANGLE_BITS - 2))
    cosine.flags.writeable = sine.flags.writeable = False
    return cosine, sine


def _drawn(space: FourierSpace, seed: int | bytes) -> tuple[WholeNumbers, WholeNumbers]:
    """W, in units of 2^-frequency_bits of a turn, and b, in units of 2^-turn_bits of one."""
    words = Expansion(_DOMAIN + space.name.encode(), seed).rows(space.frequencies, space.columns + 1)
    # |normal| < 2^31 and width ≤ 2^31.
    frequencies = normals(words[:, :-1]) * space.width
    frequencies += 1 << (_FREQUENCY_SHIFT - 1)
    frequencies >>= _FREQUENCY_SHIFT
    return frequencies, (words[:, -1] >> np.uint64(64 - space.turn_bits)).astype(np.int64)


def _digest(
    space: FourierSpace, frequencies: WholeNumbers, phases: WholeNumbers, turns: LabelTurns | None
) -> bytes:
    state = hashlib.sha256(space.name.encode() + b"\0")
    state.update(np.array([*frequencies.shape, space.point_bits, space.turn_bits], dtype="<u8").tobytes())
    state.update(frequencies.astype("<i4").tobytes())
    state.update(phases.astype("<u8").tobytes())
    if turns is not None:
        state.update(turns.corners.astype("<i8").tobytes())
    return state.digest()
