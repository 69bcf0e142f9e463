"""Sealing a session's candidates at MNIST's size: 1,000 points of 784 uint8 columns.

`libsodium alone` is the floor: its own sealed box of as many bytes, which draws its ephemeral key itself.
"""

from __future__ import annotations

import nacl.public
import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.crypto.sealing import (
    SEAL_BYTES,
    candidate_statement,
    default_content_size,
    open_sealed,
    pack_content,
    seal,
    sign,
    unpack_content,
    verify_signature,
)

CANDIDATES, COLUMNS, DIMENSION = 1_000, 784, 140
SIZE = default_content_size(COLUMNS)
GENERATOR = np.random.default_rng(1)
POINTS = GENERATOR.integers(0, 256, (CANDIDATES, COLUMNS), dtype=np.uint8)
FEATURES = GENERATOR.integers(-3916, 3916, (CANDIDATES, DIMENSION), dtype=np.int16)
EPHEMERAL = [GENERATOR.bytes(32) for _ in range(CANDIDATES)]
ATTRIBUTES = b"\x92\x03\xcd\x03\xe8"
CONSUMER, OWNER = Identity(GENERATOR.bytes(32)), Identity(GENERATOR.bytes(32))


def sealed() -> list[bytes]:
    recipient = CONSUMER.public.sealing
    return [
        seal(pack_content(point, ATTRIBUTES, SIZE), recipient, ephemeral)
        for point, ephemeral in zip(POINTS, EPHEMERAL, strict=True)
    ]


def statements(boxes: list[bytes]) -> list[bytes]:
    return [
        candidate_statement(bytes(16), "owner", number, number, box, features)
        for number, (box, features) in enumerate(zip(boxes, FEATURES, strict=True))
    ]


@pytest.mark.benchmark(group="seal 1,000 candidates")
def test_pack_and_seal(benchmark: BenchmarkFixture) -> None:
    boxes = benchmark(sealed)
    assert {len(box) for box in boxes} == {SIZE + SEAL_BYTES}


@pytest.mark.benchmark(group="seal 1,000 candidates")
def test_libsodium_alone(benchmark: BenchmarkFixture) -> None:
    box = nacl.public.SealedBox(CONSUMER.public.sealing)
    contents = [bytes(SIZE)] * CANDIDATES

    def seal_all() -> list[bytes]:
        return [box.encrypt(content) for content in contents]

    assert {len(box) for box in benchmark(seal_all)} == {SIZE + SEAL_BYTES}


@pytest.mark.benchmark(group="open 1,000 candidates")
def test_open_and_unpack(benchmark: BenchmarkFixture) -> None:
    boxes = sealed()

    def open_all() -> int:
        return sum(len(unpack_content(open_sealed(box, CONSUMER.sealing))[0]) for box in boxes)

    assert benchmark(open_all) == CANDIDATES * COLUMNS


@pytest.mark.benchmark(group="sign 1,000 candidates")
def test_state_and_sign(benchmark: BenchmarkFixture) -> None:
    boxes = sealed()

    def sign_all() -> list[bytes]:
        return [sign(statement, OWNER.signing) for statement in statements(boxes)]

    assert {len(signature) for signature in benchmark(sign_all)} == {64}


@pytest.mark.benchmark(group="sign 1,000 candidates")
def test_verify(benchmark: BenchmarkFixture) -> None:
    stated = statements(sealed())
    signed = [(statement, sign(statement, OWNER.signing)) for statement in stated]

    def verify_all() -> int:
        return sum(verify_signature(*pair, OWNER.public.verify) for pair in signed)

    assert benchmark(verify_all) == CANDIDATES
