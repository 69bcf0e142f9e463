"""The sealed boxes of a session, on disk until the consumer has its purchases."""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path
from typing import Final

from hushbid.protocol import platform
from hushbid.protocol.errors import ConfigError, DataError, TranscriptUnwritable
from hushbid.protocol.shortage import remedy
from hushbid.protocol.transcript.journal import Durability
from hushbid.protocol.transcript.replay import filler_box

__all__ = ["BoxFile", "KeptBoxes", "read_boxes"]

_LENGTH: Final = struct.Struct("<I")


class BoxFile:
    """Boxes in order of arrival, each after its length in four bytes. Only its owner can read the file.

    A transcript has only the digests of boxes, so that unsold boxes can be destroyed (DESIGN §3) and the
    transcript remains.

    Args:
        path: The file. An existing one is continued; an incomplete last box, left by a crash, is cut off.
        durability: What a commit waits for, as in a transcript.

    Raises:
        ConfigError: The file cannot be created or continued.
    """

    def __init__(self, path: Path, durability: Durability) -> None:
        self.path = path
        self._sync = durability == "fsync"
        self._pending: list[bytes] = []
        self._size = 0
        self._removed = False
        self.destroyed = False
        try:
            self._descriptor = platform.open_file(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
            self._size = sum(_LENGTH.size + len(box) for box in read_boxes(path))
            os.ftruncate(self._descriptor, self._size)
            if self._sync:
                platform.sync_directory(path.parent)
        except OSError as error:
            raise ConfigError(
                f"{path}: cannot open the file of sealed boxes: {error.strerror}.",
                advice="Check that this user may read and write it.",
            ) from None

    def add(self, box: bytes) -> None:
        """Take in a box, which the next commit makes durable; ignored after `destroy`."""
        if not self.destroyed:
            self._pending += (_LENGTH.pack(len(box)), box)

    def commit(self) -> None:
        """Write the added boxes and, with durability "fsync", wait for the disk.

        Raises:
            TranscriptUnwritable: The disk is full or fails; the boxes are kept for another attempt.
        """
        if not self._pending:
            return
        data = b"".join(self._pending)
        try:
            platform.append(self._descriptor, data, sync=self._sync)
        except OSError as error:
            os.ftruncate(self._descriptor, self._size)
            raise TranscriptUnwritable(
                f"{self.path}: cannot write the sealed boxes: {error.strerror}.",
                advice=f"Nothing unrecorded was sent. {remedy(error, 'See to the disk')}, "
                "then start this party again.",
            ) from error
        self._size += len(data)
        self._pending.clear()

    def destroy(self) -> None:
        """Ignore further boxes, and have the next `sweep` remove the file."""
        self.destroyed = True
        self._pending.clear()

    def sweep(self) -> None:
        """Remove the file, if it is to be destroyed; only traces on the disk itself remain.

        That has to be on record before: until then, a restarted curator needs the boxes.
        """
        if self.destroyed and not self._removed:
            self.path.unlink(missing_ok=True)
            self._removed = True

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class KeptBoxes:
    """The boxes of a restarted curator, by their SHA-256.

    Args:
        length: Length of every box of the session, in bytes.
    """

    def __init__(self, path: Path, length: int) -> None:
        self._path = path
        self._length = length
        self._boxes = {hashlib.sha256(box).digest(): box for box in read_boxes(path)}
        self._missing = 0

    def __call__(self, digest: bytes) -> bytes:
        """The box of a digest; if it is gone, a filler (`hushbid.protocol.transcript.replay.filler_box`)."""
        box = self._boxes.get(digest)
        if box is None:
            self._missing += 1
            return filler_box(digest, self._length)
        return box

    def ensure_whole(self) -> None:
        """Raise `DataError` if a requested box was missing."""
        if self._missing:
            raise DataError(
                f"{self._path}: {self._missing} sealed boxes are not there, of which the transcript has the "
                "digests.",
                advice="Put the file back beside the transcript: without it the session cannot go on.",
            )


def read_boxes(path: Path) -> list[bytes]:
    """The boxes of a file, in order of arrival, without one that a crash cut off."""
    data = b""
    if path.exists():
        with open(path, "rb", opener=platform.open_file) as file:
            data = file.read()
    boxes = []
    start = 0
    while start + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, start)
        box = data[start + _LENGTH.size : start + _LENGTH.size + length]
        if len(box) < length:
            break
        boxes.append(box)
        start += _LENGTH.size + length
    return boxes
