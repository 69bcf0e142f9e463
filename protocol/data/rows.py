"""Rows by their content alone: recognised in any file, format, type or order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from struct import Struct
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.data.dataset import row_chunks

__all__ = ["rows_as", "rows_digest", "shared_rows"]

_DIGEST_BYTES: Final = 32
_WORD_BITS: Final = 32


def rows_as(features: npt.NDArray[Any], dtype: npt.DTypeLike) -> Iterator[bytes]:
    """Each row's values in a float type, little-endian, as bytes. Both zeros are one.

    Files hold a value as text, float32 or float64, and these agree only to float32's precision. So float32
    recognises a row of one file in another.

    Args:
        features: Shape (n, c), read chunk by chunk.
        dtype: float32 or float64.
    """
    for rows, split in _chunks_as(features, dtype):
        yield from (row for (row,) in split.iter_unpack(rows))


def _chunks_as(features: npt.NDArray[Any], dtype: npt.DTypeLike) -> Iterator[tuple[bytes, Struct]]:
    """Rows chunk by chunk as `rows_as` has them, joined, and what splits them."""
    kind = np.dtype(dtype).newbyteorder("<")
    split = Struct(f"{features.shape[1] * kind.itemsize}s")
    for start, stop in row_chunks(features):
        with np.errstate(over="ignore"):
            chunk = np.asarray(features[start:stop]).astype(kind) + 0.0
        yield chunk.tobytes(), split


def shared_rows(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> tuple[int, int]:
    """How many different rows two tables share, in float64 unless one is float32, and how many one has."""
    coarse = np.float32 in (one.dtype.type, other.dtype.type)
    kind = np.float32 if coarse else np.float64
    rows = set(rows_as(one, kind))
    return len(rows & set(rows_as(other, kind))), len(rows)


def rows_digest(features: npt.NDArray[Any], key: bytes) -> bytes:
    """A keyed digest of rows, 32 bytes, that depends neither on their order nor on their saved type.

    The rows' own digests (by float32, keyed BLAKE2b) are added modulo 2^256, so a repeated row counts
    repeatedly. It recognises one's own data; anyone free to choose rows could find others with the same sum.

    Args:
        features: Shape (n, c).
        key: Up to 64 bytes. Without it the digest reveals nothing about the rows.
    """
    # To copy a hash takes less than to begin another with a key.
    begun = hashlib.blake2b(key=key, digest_size=_DIGEST_BYTES).copy
    total = 0
    for rows, split in _chunks_as(features, np.float32):
        digests = []
        for (row,) in split.iter_unpack(rows):
            state = begun()
            state.update(row)
            digests.append(state.digest())
        total += _sum_of(b"".join(digests))
    state = begun()
    state.update(f"{features.shape[0]} {features.shape[1]} ".encode())
    state.update((total % 2 ** (8 * _DIGEST_BYTES)).to_bytes(_DIGEST_BYTES, "big"))
    return state.digest()


def _sum_of(digests: bytes) -> int:
    """The sum of digests that are given one after the other, each a big-endian number."""
    words = np.frombuffer(digests, dtype=">u4").reshape(-1, _DIGEST_BYTES // 4)
    # A chunk has far fewer than 2^32 rows, so no column's sum leaves 64 bits.
    columns = words.sum(axis=0, dtype=np.uint64).tolist()
    return sum(int(column) << _WORD_BITS * place for place, column in enumerate(reversed(columns)))
