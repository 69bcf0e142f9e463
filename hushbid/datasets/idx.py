"""The IDX format that MNIST is published in."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import DataError

__all__ = ["read_idx"]

_UNSIGNED_BYTE: Final = 0x08


def read_idx(path: Path, *, axes: int) -> npt.NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes, gzipped if its name ends in ``.gz``.

    The head is two zero bytes, the type's code, the number of axes, then the length of each axis as a
    big-endian 32-bit integer.

    Raises:
        DataError: The file cannot be read, is not IDX of that type and number of axes, or has another length
            than its head says.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{path} cannot be read.", advice="Check the file, or get it again.") from None
    head = 4 + 4 * axes
    if len(content) < head or content[:4] != bytes((0, 0, _UNSIGNED_BYTE, axes)):
        raise DataError(
            f"{path.name} is not an IDX file of unsigned bytes with {axes} axes.",
            advice="Get the file again; if it is compressed, keep the ending .gz.",
        )
    shape = tuple(int(length) for length in np.frombuffer(content[4:head], dtype=">u4"))
    if len(content) - head != math.prod(shape):
        raise DataError(
            f"{path.name} holds {len(content) - head} bytes of data where its head says {math.prod(shape)}.",
            advice="Get the file again.",
        )
    return np.frombuffer(content, dtype=np.uint8, offset=head).reshape(shape)
