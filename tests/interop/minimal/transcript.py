"""Read a transcript: docs/transcript-format.md."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import numpy as np

from tests.interop.minimal.formats import DTYPES


class Wrong(Exception):
    """A fault in a file, and its place."""


class Item(NamedTuple):
    """An event or an effect."""

    kind: str
    public: Mapping[str, Any]
    private: Mapping[str, Any]
    """Without what was taken out."""


class Record(NamedTuple):
    """A step of a party."""

    number: int
    items: tuple[Item, ...]
    """The event, then the effects."""
    before: bytes
    """The chain's head before it."""


@dataclass(frozen=True)
class Transcript:
    """A file whose chain and commitments hold."""

    path: Path
    header: Mapping[str, Any]
    records: tuple[Record, ...]
    head: bytes

    @property
    def party(self) -> str:
        return str(self.header["party"])

    @classmethod
    def read(cls, path: Path) -> Transcript:
        data = path.read_bytes()
        if data[:8] != b"hushlog\n" or data[8:10] != b"\1\0":
            raise Wrong(f"{path}: this is no transcript of version 1")
        (length,) = struct.unpack_from("<I", data, 12)
        end = 16 + length
        head = hashlib.sha256(data[:end]).digest()
        if data[end : end + 32] != head:
            raise Wrong(f"{path}: the header's digest does not hold")
        records: list[Record] = []
        at, header = end + 32, value_of(data[16:end])
        while at < len(data):
            public, private, check = struct.unpack_from("<III", data, at)
            if zlib.crc32(data[at : at + 8]) != check:
                raise Wrong(f"{path}: record {len(records)}: its lengths do not hold")
            at += 12
            content, hidden = data[at : at + public], data[at + public : at + public + private]
            at += public + private
            before, head = head, hashlib.sha256(head + content).digest()
            if data[at : at + 32] != head:
                raise Wrong(f"{path}: record {len(records)}: the chain does not hold")
            at += 32
            number, _, event, effects = value_of(content)
            if number != len(records):
                raise Wrong(f"{path}: record {len(records)} has the number {number}")
            try:
                records.append(Record(number, tuple(_opened([event, *effects], hidden)), before))
            except ValueError as error:
                raise Wrong(f"{path}: record {number}: {error}") from None
        return cls(path, header, tuple(records), head)


def _opened(items: list[Any], hidden: bytes) -> Iterator[Item]:
    at = 0
    for kind, public, commitments in items:
        private = {}
        for name in sorted(commitments):
            (length,) = struct.unpack_from("<I", hidden, at)
            entry = hidden[at + 4 : at + 4 + length]
            at += 4 + length
            if entry:
                if hashlib.sha256(entry).digest() != commitments[name]:
                    raise ValueError(f"the commitment of {kind}.{name} does not hold")
                private[name] = value_of(entry[32:])
        yield Item(kind, public, private)


def value_of(data: bytes) -> Any:
    """A value of a transcript."""
    return msgpack.unpackb(data, ext_hook=_array)


def _array(code: int, data: bytes) -> Any:
    kind, axes = data[0], data[1]
    shape = struct.unpack_from(f"<{axes}I", data, 2)
    if code != 1:
        raise ValueError("no array of numbers")
    return np.frombuffer(data, DTYPES[kind], offset=2 + 4 * axes).reshape(shape)
