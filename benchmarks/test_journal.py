"""What recording costs beside what cannot be had for less: hashing, and writing, the same bytes.

The record is an owner's answer in a round of `ask-all` on MNIST: six scalars, a broadcast of 700 bytes and
a private frame of 6.5 kB.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hushbid.protocol.transcript.journal import Durability, Journal, MemoryJournal
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import Header
from hushbid.protocol.wire.arrays import Array, pack_array, unpack_array
from hushbid.protocol.wire.values import Item

HEADER = Header("owner", "a", "00" * 16, bytes(32), "0.1.0", {}, "simulated")
EVENT = Item(
    "broadcast",
    {
        "round": 17,
        "peer": "curator",
        "sequence": 40,
        "q": 166,
        "final": False,
        "gain": 0.5,
        "frame": os.urandom(700),
    },
    {"point": os.urandom(6500)},
)


def test_hashing_alone(benchmark: BenchmarkFixture) -> None:
    data = os.urandom(700), os.urandom(6500)
    benchmark(lambda: [hashlib.sha256(part).digest() for part in data])


def test_append(benchmark: BenchmarkFixture) -> None:
    def journal() -> tuple[tuple[MemoryJournal], dict[str, object]]:
        return (MemoryJournal(HEADER),), {}

    def append(journal: MemoryJournal) -> None:
        for _ in range(100):
            journal.append(1.5, EVENT, ())

    benchmark.extra_info["records"] = 100
    benchmark.pedantic(append, setup=journal, rounds=50)  # type: ignore[no-untyped-call]


def test_writing_alone(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    with (tmp_path / "plain").open("wb", buffering=0) as file:
        benchmark.pedantic(  # type: ignore[no-untyped-call]
            file.write, args=(os.urandom(7500),), rounds=2000
        )


@pytest.mark.parametrize("durability", ["flush", "fsync"])
def test_commit(benchmark: BenchmarkFixture, tmp_path: Path, durability: Durability) -> None:
    journal = Journal.create(tmp_path / "transcript", HEADER, durability=durability)
    benchmark.pedantic(  # type: ignore[no-untyped-call]
        journal.commit,
        setup=lambda: journal.append(1.5, EVENT, ()),
        rounds=2000 if durability == "flush" else 200,
    )
    journal.close()


def test_read(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    path = tmp_path / "transcript"
    journal = Journal.create(path, HEADER, durability="flush")
    for _ in range(1000):
        journal.append(1.5, EVENT, ())
    journal.close()
    benchmark.extra_info["records"] = 1000
    assert benchmark(lambda: sum(1 for _ in TranscriptReader(path))) == 1000


@pytest.mark.parametrize("dtype", ["int16", "float64"])
def test_pack_and_unpack_an_array(benchmark: BenchmarkFixture, dtype: str) -> None:
    array: Array = np.arange(140).astype(dtype)
    benchmark(lambda: unpack_array(pack_array(array)))
