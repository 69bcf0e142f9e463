"""Removing the private fields of a transcript (docs/transcript-format.md, "Taking private fields out").

A record's digest covers its public part, which has a salted commitment to every private field. So a copy
without values and salts is another file with the same chain: it verifies, and ends in the same head.
Everything that was recorded as private is removed.
"""

from __future__ import annotations

import struct
from binascii import crc32
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import DIGEST_BYTES, Header, RecordLengths, decode_frame

__all__ = ["Redaction", "redact", "redact_record"]

_LENGTHS: Final = struct.Struct("<II")
_CHECK: Final = struct.Struct("<I")
_TAKEN_OUT: Final = struct.pack("<I", 0)
"""The entry of a private field without salt and value."""


class Redaction(NamedTuple):
    """What redaction copied and left out.

    Args:
        head: The chain's final digest, in the original and in the copy.
        private_fields: Number of private fields, none of whose values are in the copy.
        torn_bytes: Bytes at the original's end that are no whole record, and not copied.
    """

    header: Header
    records: int
    head: bytes
    private_fields: int
    torn_bytes: int


def redact(path: Path, write: Callable[[bytes], object]) -> Redaction:
    """Copy a transcript without its private fields, a record at a time.

    Every record is checked before it is copied. A redacted file is copied unchanged.

    Args:
        write: Takes the copy's bytes, piece by piece.

    Raises:
        DataError: No transcript, or of a newer version.
        TranscriptDamaged: A part of it does not hold; what was written is no copy.
    """
    fields = 0
    with _CopyingReader(path) as records:
        write(b"".join(records.taken()))
        for record in records:
            private = sum(len(item.commitments) for item in record.items)
            lead, rest = records.taken()
            write(redact_record(decode_frame(lead), rest, private_fields=private))
            fields += private
        return Redaction(records.header, records.count, records.head, fields, records.torn_bytes)


def redact_record(frame: RecordLengths, rest: bytes, *, private_fields: int) -> bytes:
    """A whole record without the salts and values of its private fields.

    Args:
        rest: The `frame.remaining` bytes after the frame.
        private_fields: Number of private fields of its event and effects.
    """
    private = _TAKEN_OUT * private_fields
    lengths = _LENGTHS.pack(frame.public_bytes, len(private))
    public = rest[: frame.public_bytes]
    return b"".join((lengths, _CHECK.pack(crc32(lengths)), public, private, rest[-DIGEST_BYTES:]))


class _CopyingReader(TranscriptReader):
    """Keeps the bytes of everything it reads: a newer minor version may have added to the header."""

    def __init__(self, path: Path) -> None:
        self._taken: list[bytes] = []
        super().__init__(path)

    def taken(self) -> list[bytes]:
        """The bytes read since the last call: the header's parts, or a record's lengths and its rest."""
        taken, self._taken = self._taken, []
        return taken

    def _take(self, size: int) -> bytes:
        self._taken.append(super()._take(size))
        return self._taken[-1]
