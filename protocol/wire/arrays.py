"""Arrays as bytes, for frames and for transcripts.

Layout of the payload of msgpack extension type `ARRAY_EXT`, all numbers little-endian::

    u8   dtype code     1 uint8, 2 int16, 3 int32, 4 int64, 5 float32, 6 float64
    u8   ndim           at most `limits.MAX_ARRAY_DIMENSIONS`
    u32  dims[ndim]
    ...  the elements, C order, little-endian; exactly as many bytes as dtype and dims say

Floats are finite. One array has one encoding, so bytes can be compared and signed. Nothing here can
run code from the payload, and nothing is allocated by a length that the payload merely claims.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol import limits

__all__ = [
    "ARRAY_EXT",
    "Array",
    "ArrayError",
    "OversizedArray",
    "pack_array",
    "unpack_array",
    "unpack_extension",
]

Array: TypeAlias = npt.NDArray[Any]

ARRAY_EXT: Final = 1
"""The msgpack extension type of an array."""

_DTYPES: Final = {
    code: np.dtype(name) for code, name in enumerate(("<u1", "<i2", "<i4", "<i8", "<f4", "<f8"), 1)
}
_CODES: Final = {dtype: code for code, dtype in _DTYPES.items()}
_FIRST_FLOAT: Final = 5
_PREFIX: Final = tuple(struct.Struct(f"<BB{n}I") for n in range(limits.MAX_ARRAY_DIMENSIONS + 1))
_MAX_EXTENT: Final = 2**32 - 1


class ArrayError(ValueError):
    """An array, or the bytes that should be one, that the format does not allow."""


class OversizedArray(ArrayError):
    """More axes than `limits.MAX_ARRAY_DIMENSIONS`, or an axis too long for its field."""


def pack_array(array: Array) -> bytes:
    """The one encoding of an array, as described at the top of this module.

    Args:
        array: Of an allowed dtype in little-endian byte order, finite; in any memory layout.

    Raises:
        OversizedArray: Too many or too long axes.
        ArrayError: Another dtype, or a float that is not finite.
    """
    code = _CODES.get(array.dtype)
    if code is None:
        raise ArrayError(f"dtype {array.dtype.str!r} is not on the list of dtypes that may be encoded")
    shape = array.shape
    ndim = len(shape)
    if ndim > limits.MAX_ARRAY_DIMENSIONS:
        raise OversizedArray(f"an array of {ndim} axes; at most {limits.MAX_ARRAY_DIMENSIONS} are allowed")
    if ndim and max(shape) > _MAX_EXTENT:
        raise OversizedArray(f"an axis of {max(shape)} elements; at most {_MAX_EXTENT} are allowed")
    if code >= _FIRST_FLOAT:
        _require_finite(array)
    return _PREFIX[ndim].pack(code, ndim, *shape) + array.tobytes()


def unpack_array(payload: bytes) -> Array:
    """The array that a payload encodes, without a copy.

    Args:
        payload: As from `pack_array`. It must not change while the array lives.

    Returns:
        A read-only array in the payload's memory, which may be unaligned.

    Raises:
        OversizedArray: Too many axes.
        ArrayError: An unknown dtype, a length that contradicts dtype and shape, or a float that is not
            finite.
    """
    if len(payload) < 2:
        raise ArrayError(f"an array of {len(payload)} bytes has no room for its dtype and axes")
    code = payload[0]
    ndim = payload[1]
    dtype = _DTYPES.get(code)
    if dtype is None:
        raise ArrayError(f"unknown dtype code {code}")
    if ndim > limits.MAX_ARRAY_DIMENSIONS:
        raise OversizedArray(f"an array of {ndim} axes; at most {limits.MAX_ARRAY_DIMENSIONS} are allowed")
    prefix = _PREFIX[ndim]
    start = prefix.size
    if len(payload) < start:
        raise ArrayError(f"an array of {len(payload)} bytes has no room for the lengths of its {ndim} axes")
    shape = prefix.unpack_from(payload)[2:]
    # Python integers: a product of claimed lengths cannot overflow into a small number.
    expected = start + math.prod(shape) * dtype.itemsize
    if len(payload) != expected:
        raise ArrayError(f"an array of {len(payload)} bytes whose dtype and shape say {expected}")
    array = np.ndarray(shape, dtype, payload, start)
    if code >= _FIRST_FLOAT:
        _require_finite(array)
    return array


def unpack_extension(code: int, payload: bytes) -> Array:
    """The array of a msgpack extension.

    Raises:
        ValueError: It has another type than `ARRAY_EXT`, or as `unpack_array`.
    """
    if code != ARRAY_EXT:
        raise ValueError(f"unknown extension type {code}")
    return unpack_array(payload)


def _require_finite(array: Array) -> None:
    # A byte search over the mask is several times faster than reducing it with `all`.
    if b"\0" in np.isfinite(array).tobytes():
        raise ArrayError("an array with a value that is not finite")
