"""The secrets and data of each party of a session in containers, and the search for them elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np
from zmq.utils import z85

from hushbid.protocol.runtime.keys import read_secret
from tests.processes.byte_search import those_in

__all__ = ["Needles", "contents", "encoded", "found_in", "found_in_stream", "rows_of", "secrets_of"]

Needles: TypeAlias = Mapping[str, Iterable[bytes]]
"""What is searched for, by kind."""

_CHUNK_BYTES = 1 << 24
_RECORD_TYPES = ("u1", "<f4", "<f8")
"""How the digits' whole numbers can lie in a file or a message."""


def secrets_of(party: Path) -> list[bytes]:
    """A party's secret key, as text and as bytes."""
    text = read_secret(party / "key" / "secret.key").secret.encode()
    return [text, z85.decode(text)]


def rows_of(files: Iterable[Path]) -> list[tuple[int, ...]]:
    """All records of some .npz files."""
    found: list[tuple[int, ...]] = []
    for file in files:
        with np.load(file) as arrays:
            found += map(tuple, arrays["features"].tolist())
    return found


def encoded(rows: Iterable[tuple[int, ...]]) -> list[bytes]:
    """Records in all byte encodings that a file can have."""
    return [np.array(row, dtype).tobytes() for row in rows for dtype in _RECORD_TYPES]


def contents(place: Path) -> bytes:
    """All bytes of the files below a directory."""
    return b"\0".join(path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file())


def found_in(held: bytes, needles: Needles) -> dict[str, int]:
    """How many of each kind are in someone's files; kinds without any are left out."""
    wanted = {kind: list(each) for kind, each in needles.items()}
    there = those_in(held, set(itertools.chain(*wanted.values())))
    counts = {kind: sum(needle in there for needle in each) for kind, each in wanted.items()}
    return {kind: count for kind, count in counts.items() if count}


def found_in_stream(stream: IO[bytes], needles: Needles) -> set[str]:
    """The kinds that occur in a stream too long for memory."""
    overlap = max(len(needle) for each in needles.values() for needle in each) - 1
    found: set[str] = set()
    end = b""
    while chunk := stream.read(_CHUNK_BYTES):
        window = end + chunk
        found |= found_in(window, needles).keys()
        end = window[-overlap:]
    return found
