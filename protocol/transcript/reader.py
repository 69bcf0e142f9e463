"""Reading a transcript: every digest and commitment checked, in memory bounded by the file's size.

A file can be wrong in three ways. It is *no transcript* that this version reads (`DataError`). It is
*damaged*: something that was written is missing (`TranscriptDamaged`, with the record's number). It is
*torn*: the process or the machine stopped while writing the last record. That is no error; the records before
it stand.

A chain does not reveal whole records cut off its end: for that, keep its head elsewhere.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from hushbid.protocol import platform
from hushbid.protocol.closing import Closing
from hushbid.protocol.errors import DataError, TranscriptDamaged
from hushbid.protocol.transcript.record import (
    DIGEST_BYTES,
    FORMAT,
    FRAME_BYTES,
    MAGIC,
    PREAMBLE_BYTES,
    Header,
    MalformedRecord,
    Preamble,
    Record,
    RecordLengths,
    decode_frame,
    decode_header,
    decode_preamble,
    decode_record,
    header_digest,
)

__all__ = ["Mark", "TranscriptReader"]

HEADER_RECORD: Final = -1
_CHUNK: Final = 2**16
_ADVICE_DAMAGED: Final = (
    "Put back this very file, if there is a copy of it, and never an older one: a party would release anew "
    "what it has released since. Records before this one are as they were written."
)
_ADVICE_OTHER: Final = "Name a file that a hushbid party has recorded."


class Mark(NamedTuple):
    """How far a transcript was read: from here a later reader goes on.

    Args:
        head: The chain's digest up to here.
        records: Records before it.
        offset: Bytes before it, the header and whole records alone.
    """

    header: Header
    head: bytes
    records: int
    offset: int


class TranscriptReader(Iterator[Record], Closing):
    """Yields a transcript's records one by one, in constant memory.

    Records appended after the reader was made are not read.

    Args:
        image: The transcript's bytes, if already at hand; otherwise they are read from the file.
        after: The `mark` of an earlier reader of this file: what is before it is not read again.

    Raises:
        DataError: The file cannot be read, is empty, or is no transcript of a known version.
        TranscriptDamaged: Its header does not hold; while iterating, a record.
    """

    def __init__(self, path: Path, image: bytes | None = None, *, after: Mark | None = None) -> None:
        self.path = path
        self.count = 0
        """Records read so far."""
        self.torn_bytes = 0
        """At the end: bytes that are no whole record."""
        self._file, self._left = _opened(path) if image is None else (BytesIO(image), len(image))
        self._size = self._left
        try:
            if after is None:
                self.header, self.head = self._read_header()
                self._whole = self._size - self._left
            else:
                self.header, self.head, self.count, self._whole = after
                if self._left < self._whole:
                    raise self._damaged("the file became shorter since it was read")
                self._file.seek(self._whole)
                self._left -= self._whole
        except BaseException:
            self._file.close()
            raise

    @property
    def mark(self) -> Mark:
        """How far it has read: behind the last whole record."""
        return Mark(self.header, self.head, self.count, self._whole)

    def close(self) -> None:
        """Close the file. Reading to the end, or to an error, closes it too."""
        self._file.close()

    def __next__(self) -> Record:
        if self._file.closed:
            raise StopIteration
        try:
            record = self._read_record()
        except BaseException:
            self.close()
            raise
        if record is None:
            self.close()
            raise StopIteration
        self.head = record.digest
        self.count += 1
        self._whole = self._size - self._left
        return record

    def _take(self, size: int) -> bytes:
        """Exactly `size` bytes; the caller has checked that they are left."""
        try:
            data = self._file.read(size)
        except OSError as error:
            raise DataError(
                f"{self.path}: cannot read the transcript: {error.strerror}.",
                advice="The disk fails: copy what can be copied.",
            ) from error
        if len(data) != size:
            raise self._damaged("the file became shorter while it was read")
        self._left -= size
        return data

    def _damaged(self, reason: str, *, record: int | None = None) -> TranscriptDamaged:
        number = self.count if record is None else record
        name = "the header" if number == HEADER_RECORD else f"record {number}"
        return TranscriptDamaged(
            f"{self.path}: {name} is damaged: {reason}.", record=number, advice=_ADVICE_DAMAGED
        )

    def _read_header(self) -> tuple[Header, bytes]:
        if self._left == 0:
            raise DataError(f"{self.path}: the file is empty.", advice=_ADVICE_OTHER)
        lead = self._take(min(self._left, PREAMBLE_BYTES))
        if len(lead) < PREAMBLE_BYTES:
            raise self._unknown_start(lead, "it ends within its first bytes")
        preamble = decode_preamble(lead)
        if preamble.header_bytes + DIGEST_BYTES > self._left:
            raise self._unknown_start(lead, "it ends within the header")
        body = self._take(preamble.header_bytes)
        digest = self._take(DIGEST_BYTES)
        # The digest is checked first: a version or a magic with one flipped bit is damage.
        if header_digest(preamble, body) != digest:
            raise self._unknown_start(lead, "the digest does not hold")
        if preamble.magic != MAGIC:
            raise self._damaged("the first bytes are not a transcript's", record=HEADER_RECORD)
        self._require_version(preamble)
        try:
            return decode_header(body), digest
        except MalformedRecord as error:
            raise self._damaged(str(error), record=HEADER_RECORD) from None

    def _unknown_start(self, lead: bytes, reason: str) -> DataError | TranscriptDamaged:
        if lead.startswith(MAGIC):
            return self._damaged(reason, record=HEADER_RECORD)
        return DataError(f"{self.path}: not a transcript of hushbid.", advice=_ADVICE_OTHER)

    def _require_version(self, preamble: Preamble) -> None:
        major, minor = preamble.major, preamble.minor
        if major > FORMAT[0]:
            raise DataError(
                f"{self.path}: transcript format {major}.{minor}; this hushbid reads up to {FORMAT[0]}.x.",
                advice="Read it with the newer hushbid that wrote it, or a later one.",
            )
        if major < FORMAT[0]:
            raise DataError(f"{self.path}: transcript format {major}.{minor}, which never was.")

    def _read_record(self) -> Record | None:
        """The next record; None at the end, after counting torn bytes."""
        start_left = self._left
        if start_left < FRAME_BYTES:
            self.torn_bytes = start_left
            return None
        lead = self._take(FRAME_BYTES)
        frame: RecordLengths | None = None
        try:
            frame = decode_frame(lead)
            if frame.remaining > self._left:
                # The lengths' checksum holds, so they are what was written: the rest never was.
                self.torn_bytes = start_left
                return None
            return decode_record(frame, self._take(frame.remaining), number=self.count, previous=self.head)
        except MalformedRecord as error:
            length = FRAME_BYTES if frame is None else FRAME_BYTES + frame.remaining
            if self._ends_in_zeros(start_left, beyond=start_left - length):
                self.torn_bytes = start_left
                return None
            raise self._damaged(str(error)) from None

    def _ends_in_zeros(self, left: int, *, beyond: int) -> bool:
        """Whether the file ends in zeros that reach into the record just read.

        A machine that stops may leave a file's new length on the disk without its new bytes. A record ends in
        a digest, so damage to single bytes looks different.

        Args:
            left: Bytes of the file from that record's start on.
            beyond: Bytes of the file after that record (after its frame, if its length is unknown).
        """
        wanted = min(max(DIGEST_BYTES, beyond + 1), left)
        end = self._file.tell() + self._left
        while wanted > 0:
            size = min(wanted, _CHUNK)
            self._file.seek(end - size)
            if self._file.read(size).strip(b"\0"):
                return False
            end -= size
            wanted -= size
        return True


def _opened(path: Path) -> tuple[BinaryIO, int]:
    """The file, and its length."""
    try:
        # Asked before opening: to open a pipe is to wait for somebody at its other end.
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise DataError(f"{path}: not a regular file.", advice=_ADVICE_OTHER)
        return open(path, "rb", opener=platform.open_file), status.st_size
    except OSError as error:
        raise DataError(
            f"{path}: cannot read the transcript: {error.strerror}.",
            advice="Check the path, and that this user may read it: transcripts are their owner's only.",
        ) from error
