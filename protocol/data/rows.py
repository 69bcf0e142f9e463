"""Rows by their content alone: recognised in any file, format, type or order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hushbid.protocol.data.dataset import row_chunks

__all__ = ["rows_as", "rows_digest", "shared_rows"]


def rows_as(features: npt.NDArray[Any], dtype: npt.DTypeLike) -> Iterator[bytes]:
    """Each row's values in a float type, little-endian, as bytes. Both zeros are one.

    Files hold a value as text, float32 or float64, and these agree only to float32's precision. So float32
    recognises a row of one file in another.

    Args:
        features: Shape (n, c), read chunk by chunk.
        dtype: float32 or float64.
    """
    kind = np.dtype(dtype).newbyteorder("<")
    for start, stop in row_chunks(features):
        with np.errstate(over="ignore"):
            chunk = np.asarray(features[start:stop]).astype(kind) + 0.0
        yield from (row.tobytes() for row in chunk)


def shared_rows(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> tuple[int, int]:
    """How many different rows two tables share, and how many the first has.

    Rows are compared as float64; as float32 if one of the tables is.
    """
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
    total = sum(
        int.from_bytes(hashlib.blake2b(row, key=key, digest_size=32).digest(), "big")
        for row in rows_as(features, np.float32)
    )
    shape = f"{features.shape[0]} {features.shape[1]} ".encode()
    return hashlib.blake2b(shape + (total % 2**256).to_bytes(32, "big"), key=key, digest_size=32).digest()
