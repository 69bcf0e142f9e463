"""φ of points, from a seed: docs/wire.md, "Feature map", in Python's whole numbers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


def cosine(turns: int) -> int:
    """The cosine of `turns`/2^32 turns, in units of 2^-30."""
    quadrant, y = turns >> 30, turns & (2**30 - 1)
    if quadrant in (0, 2):
        y = 2**30 - y
    square = (y * y) >> 30
    u = 61
    for coefficient in (3864, 172272, 5026995, 85569306, 693598668, 1686629713):
        u = coefficient - ((u * square) >> 30)
    result = (u * y) >> 30
    return -result if quadrant in (1, 2) else result


def normal(word: int) -> int:
    """The normal number of a 64-bit word, in units of 2^-28."""
    x = (word >> 32) + 1
    e = x.bit_length() - 1
    n = (x << 31) >> e
    for _ in range(26):
        n = (n * n) >> 31
        bit = n >> 32
        n >>= bit
        e = 2 * e + bit
    r = math.isqrt((32 * 2**26 - e) * 1488522236)
    return (r * cosine(word & (2**32 - 1)) + 2**29) >> 30


class FeatureMap:
    """The map of a seed, a number or 32 bytes that were sealed, and of the whole table ``[features]``."""

    def __init__(self, features: Mapping[str, Any], seed: int | bytes) -> None:
        name, dimension, columns = features["map"], features["dimension"], features["columns"]
        if name not in ("paired", "cosine"):
            raise ValueError(f"the documents specify no map {name!r} for other implementations")
        if isinstance(seed, bytes) and len(seed) != 32:
            raise ValueError(f"a sealed seed has 32 bytes, not {len(seed)}")
        frequencies = dimension // 2 if name == "paired" else dimension
        mantissa, q = math.frexp(math.sqrt(features["gamma"] / (2.0 * math.pi * math.pi)))
        width = round(mantissa * 2**31)
        fine = 17 - q
        self.point_bits = min(32 - (columns - 1).bit_length(), 52 - fine)
        self.turn_bits = fine + self.point_bits
        if self.point_bits < max(8, q + 8):
            raise ValueError("gamma makes no map for so many columns")
        kind = b"secret\0" + seed if isinstance(seed, bytes) else b"number\0%d\0" % seed
        start = b"hushbid feature map 2 " + name.encode() + b"\0" + kind
        rows = [
            hashlib.shake_256(start + f.to_bytes(8, "little")).digest(8 * (columns + 1))
            for f in range(frequencies)
        ]
        words = [np.frombuffer(row, "<u8").tolist() for row in rows]
        self.w = np.array([[(normal(v) * width + 2**41) >> 42 for v in row[:-1]] for row in words], np.int64)
        self.b = np.array([row[-1] >> (64 - self.turn_bits) for row in words], np.int64)
        shape = (frequencies, columns, self.point_bits, self.turn_bits)
        self.digest = hashlib.sha256(
            name.encode()
            + b"\0"
            + b"".join(value.to_bytes(8, "little") for value in shape)
            + self.w.astype("<i4").tobytes()
            + self.b.astype("<u8").tobytes()
        ).digest()
        self._radius = math.isqrt(2**63 // dimension)
        self._paired = name == "paired"
        self._lower, self._upper = (np.asarray(features[bound], np.float64) for bound in ("lower", "upper"))

    def hash(self, points: npt.NDArray[Any]) -> npt.NDArray[np.int16]:
        """φ of points of shape (n, columns): int16 of shape (n, dimension)."""
        scale = 2.0**self.point_bits / (self._upper - self._lower)
        whole = np.rint((points.astype(np.float64) - self._lower) * scale)
        whole = np.clip(whole, 0, 2**self.point_bits).astype(np.int64)
        angles = ((whole @ self.w.T + self.b) >> (self.turn_bits - 16)) & 0xFFFF
        if self._paired:
            angles = np.hstack([angles, (angles - 2**14) & 0xFFFF])
        coordinates: npt.NDArray[np.int16] = np.vectorize(self.coordinate, otypes=[np.int16])(angles)
        return coordinates

    def coordinate(self, angle: int) -> int:
        """The coordinate of φ of an angle."""
        return (cosine(int(angle) << 16) * self._radius + 2**45) >> 46
