"""Numbers derived from a seed, identical to the last bit on every machine and in every language.

SHAKE-256, an extendable-output function, expands a seed: without a secret seed its numbers look random, and
none of them reveals anything about the others. 64-bit integer arithmetic, in which shifts round down, turns
its words into numbers (docs/wire.md, "Feature map"). No mathematical library is involved, as their last bits
differ between machines.
"""

from __future__ import annotations

import hashlib
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "ANGLE_BITS",
    "COSINE_BITS",
    "NORMAL_BITS",
    "Expansion",
    "WholeNumbers",
    "Words",
    "cauchys",
    "cosines",
    "normals",
    "uniforms",
]

Words: TypeAlias = npt.NDArray[np.uint64]
"""Uniform 64-bit words, of any shape."""
WholeNumbers: TypeAlias = npt.NDArray[np.int64]

ANGLE_BITS: Final = 16
"""Features depend on an angle in units of 2^-16 of a turn."""
COSINE_BITS: Final = 30
"""`cosines` are in units of 2^-30."""
NORMAL_BITS: Final = 28
"""`normals` are in units of 2^-28."""

_SINE: Final = (1686629713, 693598668, 85569306, 5026995, 172272, 3864, 61)
"""(π/2)^j/j!, j = 1, 3, …, 13, in units of 2^-30: the Taylor series of sin(πy/2)."""
_QUARTER: Final = 2**COSINE_BITS
_LOG_BITS: Final = 26
_TWICE_LN2: Final = 1488522236
"""2·ln 2 in units of 2^-30."""
_CHUNK: Final = 2**14
"""Words processed at a time, so that they stay in the processor's cache."""


class Expansion:
    """SHAKE-256 of a domain and a seed, read in rows of 64-bit words.

    Row r is SHAKE-256(domain, a zero byte, the seed, r as eight little-endian bytes), to the requested
    length. A seed enters as its kind, a zero byte, and its bytes: ``number`` with its decimal digits and
    another zero byte, or ``secret`` with the bytes themselves. So no two seeds share a row.

    Args:
        domain: The purpose of the numbers, without zero bytes.
        seed: Not negative, or bytes.
    """

    def __init__(self, domain: bytes, seed: int | bytes) -> None:
        kind = b"number\0" + str(seed).encode() + b"\0" if isinstance(seed, int) else b"secret\0" + seed
        self._state = hashlib.shake_256(domain + b"\0" + kind)

    def words(self, row: int, count: int) -> Words:
        """The first words of a row, each of eight bytes, little-endian: uint64 of shape (count,).

        Args:
            row: From 0 to 2^64 - 1.
        """
        return np.frombuffer(self._row(row, count), dtype="<u8").astype(np.uint64)

    def rows(self, count: int, length: int) -> Words:
        """The first words of rows 0, 1, …: uint64 of shape (count, length)."""
        rows = np.empty((count, length), dtype=np.uint64)
        few = max(1, _CHUNK // max(1, length))  # of short rows, as many at once as a chunk has words
        for start in range(0, count, few):
            part = rows[start : start + few]
            drawn = b"".join(self._row(row, length) for row in range(start, start + len(part)))
            part[:] = np.frombuffer(drawn, dtype="<u8").reshape(part.shape)
        return rows

    def _row(self, row: int, count: int) -> bytes:
        state = self._state.copy()
        state.update(row.to_bytes(8, "little"))
        return state.digest(8 * count)


def uniforms(words: Words) -> npt.NDArray[np.float64]:
    """Uniform on [0, 1): the upper 53 bits of each word, times 2^-53."""
    return np.asarray((words >> np.uint64(11)) * 2.0**-53)


def normals(words: Words) -> WholeNumbers:
    """Standard normal numbers, one for each word, by the method of Box and Muller.

    The upper half a of a word gives the radius √(-2·ln((a + 1)/2^32)), and the lower half the angle, whose
    cosine is taken. In every number, the relative error of the cosine and of the radius is below 2^-26, or
    that of the radius's square is below 2^-24. The largest magnitude is 6.67; a normal variable exceeds it
    with probability 2.6e-11.

    Returns:
        int64 of the words' shape, in units of 2^-28.
    """
    flat = words.ravel()
    made = np.empty(len(flat), dtype=np.int64)
    for start in range(0, len(flat), _CHUNK):
        chunk = flat[start : start + _CHUNK]
        squares = _minus_log2((chunk >> np.uint64(32)) + np.uint64(1)) * _TWICE_LN2
        waves = cosines((chunk & np.uint64(2**32 - 1)).astype(np.int64))
        made[start : start + _CHUNK] = (_square_roots(squares) * waves + _QUARTER // 2) >> COSINE_BITS
    return made.reshape(words.shape)


def cauchys(words: Words) -> npt.NDArray[np.float64]:
    """Standard Cauchy numbers, float64 of shape (..., n): the ratio of two normal ones.

    Args:
        words: Shape (..., 2n): the first half of the last axis over the second.
    """
    over, under = np.split(normals(words), 2, axis=-1)
    # IEEE 754 rounds a division of two integers alike everywhere. A zero stands for half a unit.
    return np.asarray(over / np.where(under == 0, 0.5, under))


def cosines(turns: WholeNumbers) -> WholeNumbers:
    """cos(2π·t/2^32), within 4 units: int64 of the same shape, in units of 2^-30.

    Args:
        turns: t, from 0 to 2^32 - 1, in units of 2^-32 of a turn.
    """
    quadrants, rest = turns >> COSINE_BITS, turns & (_QUARTER - 1)
    falling = (quadrants & 1) == 0  # cos(y) = sin(¼ - y) in the first quadrant, and so on by symmetry
    waves = _sines(np.where(falling, _QUARTER - rest, rest))
    return np.asarray(np.where((quadrants == 1) | (quadrants == 2), -waves, waves))


def _sines(quarters: WholeNumbers) -> WholeNumbers:
    """sin(π/2·y/2^30) in units of 2^-30, for y from 0 to 2^30."""
    squares = (quarters * quarters) >> COSINE_BITS
    total = np.full_like(quarters, _SINE[-1])
    for coefficient in reversed(_SINE[:-1]):
        total = coefficient - ((total * squares) >> COSINE_BITS)
    return (total * quarters) >> COSINE_BITS


def _minus_log2(values: Words) -> WholeNumbers:
    """-log2(v/2^32) in units of 2^-26, for v from 1 to 2^32: bit by bit, by squaring."""
    # frexp is exact: values have 33 bits at most.
    exponents = (np.frexp(values.astype(np.float64))[1] - 1).astype(np.uint64)
    mantissas = (values << np.uint64(31)) >> exponents  # in [2^31, 2^32): v/2^exponent in units of 2^-31
    logs = exponents.copy()
    for _ in range(_LOG_BITS):
        mantissas = (mantissas * mantissas) >> np.uint64(31)
        bits = mantissas >> np.uint64(32)
        mantissas >>= bits
        logs = (logs << np.uint64(1)) | bits
    return np.asarray(32 * 2**_LOG_BITS - logs.astype(np.int64))


def _square_roots(values: WholeNumbers) -> WholeNumbers:
    """⌊√v⌋ of whole numbers below 2^62."""
    roots = np.sqrt(values.astype(np.float64)).astype(np.int64)
    # The float root is off by at most one.
    roots -= roots * roots > values
    roots += (roots + 1) * (roots + 1) <= values
    return roots
