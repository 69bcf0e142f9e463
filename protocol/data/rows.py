"""Rows by their content alone: recognised whatever file, format, type or order they come in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from protocol.data.dataset import row_chunks

__all__ = ["rounded_rows", "rows_digest"]


def rounded_rows(features: npt.NDArray[Any]) -> Iterator[bytes]:
    """Each row's values rounded to float32, as bytes: equal for the same row in whatever type it was saved.

    Files hold a value as text, float32 or float64, and it is not the same to more than float32 tells apart.
    Both zeros are one.
    """
    for start, stop in row_chunks(features):
        with np.errstate(over="ignore"):
            chunk = np.asarray(features[start:stop]).astype("<f4") + np.float32(0.0)
        yield from (row.tobytes() for row in chunk)


def rows_digest(features: npt.NDArray[Any], key: bytes) -> bytes:
    """A keyed digest of rows that does not depend on their order, nor on the type that they were saved in.

    The rows' own digests (`rounded_rows`, keyed BLAKE2b) are added up modulo 2^256, so that a row that is
    there twice counts twice. It is to recognise one's own data: who is free to choose rows could find others
    with the same sum.

    Args:
        features: Shape (n, c).
        key: Up to 64 bytes. Without it the digest tells nothing of the rows.

    Returns:
        32 bytes.
    """
    total = sum(
        int.from_bytes(hashlib.blake2b(row, key=key, digest_size=32).digest(), "big")
        for row in rounded_rows(features)
    )
    shape = f"{features.shape[0]} {features.shape[1]} ".encode()
    return hashlib.blake2b(shape + (total % 2**256).to_bytes(32, "big"), key=key, digest_size=32).digest()
