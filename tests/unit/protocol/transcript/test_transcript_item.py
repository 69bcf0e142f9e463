"""Values have one encoding each, and what cannot be recorded is refused without being quoted."""

from __future__ import annotations

import enum
import struct
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given

from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.wire.arrays import pack_array
from hushbid.protocol.wire.values import Value, pack_value, unpack_value
from tests.support.transcript_values import VALUES
from tests.support.transcripts import same


class Colour(enum.StrEnum):
    RED = "red"


class Rank(enum.IntEnum):
    FIRST = 1


@given(VALUES)
def test_a_value_comes_back_and_encodes_to_the_same_bytes(value: Value) -> None:
    encoded = pack_value(value)
    back = unpack_value(encoded)
    assert same(back, value)
    assert pack_value(back) == encoded


def test_the_order_of_keys_does_not_matter() -> None:
    left: Value = {"b": 1, "a": {"y": [{"q": 1, "p": 2}], "x": 2}, "é": 0, "": None}
    right: Value = {"": None, "é": 0, "a": {"x": 2, "y": [{"p": 2, "q": 1}]}, "b": 1}
    assert pack_value(left) == pack_value(right)
    assert list(msgpack.unpackb(pack_value(left))) == ["", "a", "b", "é"]


def test_the_encoding_is_the_documented_one() -> None:
    array = np.array([1, 2], np.int16)
    payload = pack_array(array)
    assert pack_value({"b": b"\x01", "a": array}) == (
        b"\x82" + b"\xa1a" + bytes([0xC7, len(payload), 1]) + payload + b"\xa1b" + b"\xc4\x01\x01"
    )
    assert pack_value(1.5) == b"\xcb" + struct.pack(">d", 1.5)
    assert pack_value((1, "x")) == pack_value([1, "x"]) == b"\x92\x01\xa1x"


def test_subclasses_encode_as_what_they_stand_for() -> None:
    assert unpack_value(pack_value([Colour.RED, Rank.FIRST, np.float64(0.5)])) == ("red", 1, 0.5)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        2**64,
        -(2**63) - 1,
        {1: 2},
        {"a": {b"k": 2}},
        {1, 2},
        np.int64(5),
        np.zeros(2, np.uint16),
        np.array([np.nan]),
        "\ud800",
        1j,
    ],
    ids=[
        "object",
        "2^64",
        "-2^63-1",
        "int-key",
        "bytes-key",
        "set",
        "np.int64",
        "uint16",
        "nan-array",
        "surrogate",
        "complex",
    ],
)
def test_what_cannot_be_recorded_is_refused(value: Any) -> None:
    with pytest.raises(LocalProtocolError, match="cannot be encoded"):
        pack_value(value)
    with pytest.raises(LocalProtocolError):
        pack_value({"nested": [value]})
    assert unpack_value(pack_value("the next value")) == "the next value"


def test_the_refusal_does_not_quote_the_value() -> None:
    with pytest.raises(LocalProtocolError) as caught:
        pack_value({"label": {"malignant-melanoma", 771077}})  # type: ignore[dict-item]
    error: BaseException | None = caught.value
    while error is not None:
        assert "melanoma" not in str(error)
        assert "771077" not in str(error)
        error = error.__cause__ or error.__context__


NO_VALUES = {
    "empty": b"",
    "reserved": b"\xc1",
    "trailing": b"\x01\x01",
    "cut": b"\x92\x01",
    "claims-2^32": b"\xdd\xff\xff\xff\xff",
    "extension": b"\xc7\x02\x02ab",
    "array": b"\xc7\x02\x01\x07\x00",
    "int-key": b"\x81\x01\x02",
    "deep": b"\x91" * 5000 + b"\xc0",
    "utf-8": b"\xa1\xff",
}


@pytest.mark.parametrize("encoded", NO_VALUES.values(), ids=NO_VALUES)
def test_bytes_that_are_no_value_are_a_value_error(encoded: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        unpack_value(encoded)
