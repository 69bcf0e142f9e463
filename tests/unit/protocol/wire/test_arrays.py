"""Arrays as bytes: one encoding each, and only an array or an `ArrayError` from any bytes."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol import limits
from hushbid.protocol.wire.arrays import Array, ArrayError, OversizedArray, pack_array, unpack_array

DTYPES = ["uint8", "int16", "int32", "int64", "float32", "float64"]


@st.composite
def arrays(draw: st.DrawFn) -> Array:
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=limits.MAX_ARRAY_DIMENSIONS)))
    size = int(np.prod(shape, dtype=int)) * dtype.itemsize
    array = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), dtype).reshape(shape)
    if dtype.kind == "f":
        array = np.where(np.isfinite(array), array, dtype.type(-0.0))
    return array


@given(arrays())
def test_an_array_comes_back_bit_for_bit_and_read_only(array: Array) -> None:
    back = unpack_array(pack_array(array))
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert not back.flags.writeable


def test_the_layout_is_the_documented_one() -> None:
    array = np.array([[1, -2, 3]], dtype=np.int16)
    assert pack_array(array) == bytes([2, 2]) + struct.pack("<II", 1, 3) + struct.pack("<hhh", 1, -2, 3)


def test_memory_layout_does_not_change_the_encoding() -> None:
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert pack_array(np.asfortranarray(array)) == pack_array(array)
    assert pack_array(np.repeat(array, 2, axis=1)[:, ::2]) == pack_array(array)


def test_unpacking_copies_nothing() -> None:
    payload = pack_array(np.arange(1000))
    assert np.shares_memory(unpack_array(payload), np.frombuffer(payload, np.uint8))


@pytest.mark.parametrize("dtype", [">i4", "uint16", "bool", "complex64", "object", "U3", "float16", "M8[s]"])
def test_another_dtype_is_refused(dtype: str) -> None:
    with pytest.raises(ArrayError, match="dtype"):
        pack_array(np.zeros(2, dtype))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_float_that_is_not_finite_is_refused_both_ways(bad: float, dtype: type) -> None:
    with pytest.raises(ArrayError, match="not finite"):
        pack_array(np.array([0.0, bad, 1.0], dtype))
    forged = (
        pack_array(np.zeros(3, dtype))[: -3 * np.dtype(dtype).itemsize]
        + np.array([0, 0, bad], dtype).tobytes()
    )
    with pytest.raises(ArrayError, match="not finite"):
        unpack_array(forged)


def test_the_largest_floats_are_finite() -> None:
    array = np.full(4, np.finfo(np.float64).max)
    assert (unpack_array(pack_array(array)) == array).all()


def test_too_many_axes_are_refused_both_ways() -> None:
    with pytest.raises(OversizedArray):
        pack_array(np.zeros((1, 1, 1), np.int16))
    with pytest.raises(OversizedArray):
        unpack_array(bytes([2, 3]) + struct.pack("<III", 1, 1, 1) + b"\0\0")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x02",
        b"\x00\x00",
        b"\x07\x00" + b"\0" * 8,
        b"\x02\x01\x01\0\0",
        b"\x02\x01" + struct.pack("<I", 2) + b"\0\0\0",
        b"\x02\x01" + struct.pack("<I", 2) + b"\0\0\0\0\0",
        b"\x04\x02" + struct.pack("<II", 2**32 - 1, 2**32 - 1) + b"\0" * 8,
        b"\x04\x02" + struct.pack("<II", 2**31, 2**30),
    ],
    ids=["empty", "no-axes", "dtype-0", "dtype-7", "axis-cut", "short", "long", "huge", "product-2^64"],
)
def test_bytes_that_are_no_array_are_refused(payload: bytes) -> None:
    with pytest.raises(ArrayError):
        unpack_array(payload)


@given(st.binary(max_size=64))
def test_any_bytes_are_the_encoding_of_their_array_or_refused(payload: bytes) -> None:
    try:
        array = unpack_array(payload)
    except ArrayError:
        return
    assert pack_array(array) == payload
