"""Transcripts to test with, and a redactor written from docs/transcript-format.md alone."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgpack
import numpy as np

from hushbid.protocol.transcript.journal import MemoryJournal
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import Header, Record
from hushbid.protocol.wire.values import Item, Value

HEADER = Header(
    role="owner",
    party="hospital-a",
    session="00112233445566778899aabbccddeeff",
    config_digest=bytes(range(32)),
    software="0.1.0",
    environment={"python": "cpython 3.11.7", "blas": ["openblas 0.3 Haswell"]},
    noise="simulated",
)


class Transcript(NamedTuple):
    """A whole transcript in memory.

    Args:
        header: Its description of itself.
        records: Its records, in order.
        head: The chain's digest after the last of them.
        torn_bytes: Bytes at the end that are no whole record.
    """

    header: Header
    records: tuple[Record, ...]
    head: bytes
    torn_bytes: int


def read_transcript(path: Path) -> Transcript:
    """Read a whole transcript into memory.

    Raises:
        DataError: No transcript, or of a newer version.
        TranscriptDamaged: Its header or a record does not hold.
    """
    with TranscriptReader(path) as reader:
        records = tuple(reader)
        return Transcript(reader.header, records, reader.head, reader.torn_bytes)


Step = tuple[float, Item, tuple[Item, ...]]

STEPS: list[Step] = [
    (
        0.5,
        Item("broadcast", {"round": 1, "weights": np.array([4194304, -7, 0], np.int32)}, {}),
        (Item("bid", {"round": 1}, {"score": -12345678901, "label": "benign"}),),
    ),
    (1.25, Item("ask", {"round": 1}, {"won": None, "frame": b"\x00\x01\xff"}), ()),
    (
        2.0,
        Item("tick", {}, {}),
        (
            Item("point", {"bytes": 3}, {"row": np.array([[0.5, -1.5]]), "label": "malign"}),
            Item("log", {"text": "φ", "parts": [1, [2.5, True], {"b": None, "a": b""}]}, {}),
        ),
    ),
]
"""Three steps that use every type of value, items with and without private fields."""


def fixed_salts(seed: bytes = b"salt") -> Callable[[int], bytes]:
    """A source of fixed salts: for files that are compared."""
    blocks = count()

    def draw(size: int) -> bytes:
        drawn = b"".join(
            hashlib.sha256(seed + struct.pack("<Q", next(blocks))).digest() for _ in range(-(-size // 32))
        )
        return drawn[:size]

    return draw


def transcript(steps: list[Step] | None = None) -> bytes:
    """The file that recording these steps, with fixed salts, would write."""
    journal = MemoryJournal(HEADER, salts=fixed_salts())
    for now, event, effects in STEPS if steps is None else steps:
        journal.append(now, event, effects)
    journal.commit()
    return journal.image


def header_end(image: bytes) -> int:
    """Offset of the first record."""
    (header_bytes,) = struct.unpack_from("<I", image, 12)
    return 16 + int(header_bytes) + 32


def record_spans(image: bytes) -> Iterator[tuple[int, int]]:
    """Offset of each record and of what follows it."""
    start = header_end(image)
    while start < len(image):
        public, private, _ = struct.unpack_from("<III", image, start)
        end = start + 12 + public + private + 32
        yield start, end
        start = end


def redact(image: bytes, keep: Callable[[int, str], bool]) -> bytes:
    """A copy without the private fields for which `keep(record number, field name)` is false."""
    pieces = [image[: header_end(image)]]
    for start, end in record_spans(image):
        public_bytes, private_bytes, _ = struct.unpack_from("<III", image, start)
        public = image[start + 12 : start + 12 + public_bytes]
        part = image[start + 12 + public_bytes : start + 12 + public_bytes + private_bytes]
        number, _, event, effects = msgpack.unpackb(public, ext_hook=lambda code, data: None)
        private = b""
        for _, _, commitments in [event, *effects]:
            for name in commitments:
                (length,) = struct.unpack_from("<I", part)
                entry, part = part[: 4 + length], part[4 + length :]
                private += entry if keep(number, name) else bytes(4)
        lengths = struct.pack("<II", len(public), len(private))
        pieces += [lengths, struct.pack("<I", zlib.crc32(lengths)), public, private, image[end - 32 : end]]
    return b"".join(pieces)


def same(left: Value, right: Value) -> bool:
    """Equality of values that holds NaN equal to itself, tuples to lists, and looks into arrays."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return (
            isinstance(left, np.ndarray)
            and isinstance(right, np.ndarray)
            and (left.dtype, left.shape, left.tobytes()) == (right.dtype, right.shape, right.tobytes())
        )
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return struct.pack("<d", left) == struct.pack("<d", right)
    return type(left) is type(right) and left == right
