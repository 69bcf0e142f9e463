"""Encoding and decoding what every round sends, at MNIST's size: 784 columns, d = 140.

`msgpack alone` is the floor: what any codec on this library pays for the same bytes.
"""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hushbid.protocol.crypto.sealing import SEAL_BYTES, SIGNATURE_BYTES, default_content_size
from hushbid.protocol.wire.codec import Direction, decode_message, encode_message
from hushbid.protocol.wire.messages import Array, Bid, Broadcast, Candidate, Message, SealedCandidate, fixed

COLUMNS, DIMENSION = 784, 140


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


def bid(dtype: str) -> Message:
    generator = np.random.default_rng(1)
    candidate = Candidate(
        point=read_only(generator.integers(0, 256, COLUMNS).astype(dtype)),
        features=read_only(generator.integers(-3916, 3916, DIMENSION).astype(np.int16)),
        attributes=b"\x82\xa5label\x03\xa2id\x2a",
    )
    return Bid(round=500, exhausted=False, score=fixed(10**10), handle=fixed(500), candidate=candidate)


def sealed_bid() -> Message:
    generator = np.random.default_rng(1)
    candidate = SealedCandidate(
        features=read_only(generator.integers(-3916, 3916, DIMENSION).astype(np.int16)),
        box=generator.bytes(default_content_size(COLUMNS) + SEAL_BYTES),
        signature=generator.bytes(SIGNATURE_BYTES),
    )
    return Bid(round=500, exhausted=False, score=fixed(10**10), handle=fixed(500), candidate=candidate)


def broadcast() -> Message:
    weights = np.random.default_rng(1).integers(-(2**22), 2**22, DIMENSION).astype(np.int32)
    return Broadcast(round=500, weights=read_only(weights), noise="none")


MESSAGES: dict[str, tuple[Direction, Message]] = {
    "bid, float64": (Direction.OWNER_TO_CURATOR, bid("float64")),
    "bid, uint8": (Direction.OWNER_TO_CURATOR, bid("uint8")),
    "bid, sealed": (Direction.OWNER_TO_CURATOR, sealed_bid()),
    "broadcast": (Direction.CURATOR_TO_OWNER, broadcast()),
}


@pytest.fixture(params=MESSAGES)
def case(request: pytest.FixtureRequest) -> tuple[Direction, Message]:
    return MESSAGES[request.param]


@pytest.mark.benchmark(group="encode")
def test_encode(benchmark: BenchmarkFixture, case: tuple[Direction, Message]) -> None:
    assert len(benchmark(encode_message, case[1])) > DIMENSION


@pytest.mark.benchmark(group="decode")
def test_decode(benchmark: BenchmarkFixture, case: tuple[Direction, Message]) -> None:
    direction, message = case
    assert benchmark(decode_message, direction, encode_message(message)).kind == message.kind


@pytest.mark.benchmark(group="decode")
def test_decode_msgpack_alone(benchmark: BenchmarkFixture, case: tuple[Direction, Message]) -> None:
    body = encode_message(case[1])

    def unpack() -> Any:
        return msgpack.unpackb(body, use_list=False)

    assert benchmark(unpack)["kind"] == case[1].kind
