"""Writing a transcript: the one module of the protocol that touches a disk for it.

A driver appends one record per step and commits once per drain of its inbox, *before* any effect leaves.
`append` only encodes; `commit` is one write and, with durability "fsync", one fsync.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Protocol, Self, TypeAlias

from hushbid.protocol import platform
from hushbid.protocol.errors import ConfigError, LocalProtocolError, TranscriptDamaged, TranscriptUnwritable
from hushbid.protocol.shortage import remedy
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import DIGEST_BYTES, Header, encode_header, encode_record
from hushbid.protocol.wire.values import Item

__all__ = ["Durability", "Journal", "JournalLike", "MemoryJournal", "NullJournal", "held_by_another"]

Durability: TypeAlias = Literal["fsync", "flush"]
"""What a commit waits for: "fsync" the disk; "flush" only the operating system, so that records survive a
crash of the process, though not of the machine. "flush" is for simulated noise only.
"""

_ADVICE_NOT_OLDER: Final = (
    "Put back this very file, if there is a copy of it, and never an older one: what was released since "
    "would be released again with another value. Without it the session is over for this party."
)


class JournalLike(Protocol):
    """The interface of a journal for its driver."""

    head: bytes
    """Digest of the chain, appended records included: 32 bytes."""
    count: int
    """Records appended so far."""

    def append(self, now: float, event: Item, effects: Sequence[Item]) -> None:
        """Take in one step: the machine's input at `now`, and its answer."""

    def commit(self) -> None:
        """Make every appended record durable; only then may its effects leave."""

    def close(self) -> None:
        """Commit and end. Closing twice is allowed."""


class _Chain:
    """Encodes records in turn and holds them until they are committed."""

    def __init__(self, head: bytes, salts: Callable[[int], bytes]) -> None:
        self.head = head
        self.count = 0
        self._salts = salts
        self._pending: list[bytes] = []

    def append(self, now: float, event: Item, effects: Sequence[Item]) -> None:
        """Encode one record and hold it until the next commit.

        Raises:
            LocalProtocolError: Part of it cannot be recorded; the journal is unchanged.
        """
        encoded, head = encode_record(self.count, now, event, effects, previous=self.head, salts=self._salts)
        self._pending.append(encoded)
        self.head = head
        self.count += 1


class Journal(_Chain):
    """A transcript file that one process writes. Make one with `Journal.create` or `Journal.reopen`."""

    def __init__(
        self,
        path: Path,
        descriptor: int,
        *,
        size: int,
        head: bytes,
        durability: Durability,
        salts: Callable[[int], bytes],
    ) -> None:
        super().__init__(head, salts)
        self.path = path
        self._descriptor = descriptor
        self._size = size
        self._sync = durability == "fsync"
        self._closed = False
        self._dirty = False
        """Whether the file may hold bytes beyond `_size`, left by a failed write."""
        self.cut = 0
        """Bytes of an incomplete last record that `reopen` cut off."""

    @classmethod
    def create(
        cls, path: Path, header: Header, *, durability: Durability, salts: Callable[[int], bytes] = os.urandom
    ) -> Journal:
        """Begin a new transcript, readable and writable by its owner only.

        Args:
            path: A missing or empty file in an existing directory.
            durability: What a commit waits for. With "fsync", the file's header and its name in the directory
                are durable when this returns.
            salts: Returns the requested number of random bytes.

        Raises:
            ConfigError: The file exists, or cannot be created.
            TranscriptUnwritable: The disk has no room for the header; no file is left.
        """
        lead, head = encode_header(header)
        try:
            descriptor = platform.open_file(path, os.O_CREAT | platform.NO_LINK | os.O_APPEND | os.O_WRONLY)
        except OSError as error:
            raise ConfigError(
                f"{path}: cannot create the transcript: {error.strerror}.",
                advice="Name a directory that exists and that this user can write to.",
            ) from error
        journal = cls(path, descriptor, size=0, head=head, durability=durability, salts=salts)
        try:
            _lock(path, descriptor)
            _require_empty(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        try:
            platform.set_mode(descriptor, platform.PRIVATE)
            journal._write(lead)
            if journal._sync:
                platform.sync_directory(path.parent)
        except (OSError, TranscriptUnwritable) as error:
            os.close(descriptor)
            path.unlink()
            raise _unwritable(path, error) from error
        return journal

    @classmethod
    def reopen(
        cls, path: Path, *, durability: Durability, salts: Callable[[int], bytes] = os.urandom
    ) -> Journal:
        """Continue an existing transcript, without an incomplete last record that a crash left.

        Every digest and commitment is checked first.

        Raises:
            ConfigError: It cannot be written to, or another process records to it.
            DataError: It is no transcript, or has a newer version.
            TranscriptDamaged: A record before its end does not hold; the file is unchanged.
            TranscriptUnwritable: The disk fails.
        """
        try:
            descriptor = platform.open_file(path, os.O_APPEND | os.O_WRONLY)
        except OSError as error:
            raise ConfigError(
                f"{path}: cannot go on with the transcript: {error.strerror}.",
                advice="Check that this user may write to it.",
            ) from error
        try:
            _lock(path, descriptor)
            with TranscriptReader(path) as reader:
                for _ in reader:
                    pass
            size = os.fstat(descriptor).st_size - reader.torn_bytes
            journal = cls(path, descriptor, size=size, head=reader.head, durability=durability, salts=salts)
            journal.count = reader.count
            journal.cut = reader.torn_bytes
            if journal.cut:
                journal._cut()
                os.fsync(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise _unwritable(path, error) from error
        except TranscriptDamaged as error:
            os.close(descriptor)
            raise TranscriptDamaged(error.what, record=error.record, advice=_ADVICE_NOT_OLDER) from None
        except BaseException:
            os.close(descriptor)
            raise
        return journal

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; after an error, without the uncommitted records, no effect of which has left.

        They may rely on data that are not durable: a disk too full for sealed boxes may have room for their
        digests.
        """
        if kind is not None:
            self._pending.clear()
        self.close()

    def commit(self) -> None:
        """Write every appended record in one write and, with durability "fsync", wait for the disk.

        Raises:
            TranscriptUnwritable: The disk is full or fails. The file ends with the last committed record, the
                others are kept, and a later commit tries again.
        """
        if not self._pending:
            return
        if self._closed:
            raise LocalProtocolError(f"{self.path}: a record was appended after the transcript was closed.")
        self._write(self._pending[0] if len(self._pending) == 1 else b"".join(self._pending))
        self._pending.clear()

    def close(self) -> None:
        """Commit, wait for the disk whatever the durability, and close the file.

        Raises:
            TranscriptUnwritable: The records could not be written. The file stays open, and closing can be
                retried.
        """
        if self._closed:
            return
        self.commit()
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        self._closed = True
        os.close(self._descriptor)

    def _write(self, data: bytes) -> None:
        """Append `data` wholly, or leave the file unchanged."""
        try:
            if self._dirty:
                self._cut()
            # Set before the write and cleared after it, so that not even an interrupt between the two
            # leaves half a record in front of the next.
            self._dirty = True
            platform.append(self._descriptor, data, sync=self._sync)
        except OSError as error:
            # After a failed fsync too: the kernel may have dropped the pages and marked them clean, so
            # only writing them again, not another fsync, can make them durable. Should cutting fail as
            # well, a reader sees a torn tail and the next commit cuts.
            with suppress(OSError):
                self._cut()
            raise _unwritable(self.path, error) from error
        self._size += len(data)
        self._dirty = False

    def _cut(self) -> None:
        os.ftruncate(self._descriptor, self._size)
        self._dirty = False


def _lock(path: Path, descriptor: int) -> None:
    """Hold the file until it is closed, or this process ends: two writers would break its chain."""
    try:
        platform.lock(descriptor)
    except BlockingIOError:
        raise held_by_another(path) from None


def held_by_another(path: Path) -> ConfigError:
    """The refusal to run beside another process of the same party."""
    return ConfigError(
        f"{path}: another process records to this transcript.",
        advice="This party runs already. Stop it first, or name another state directory.",
    )


def _require_empty(path: Path, descriptor: int) -> None:
    """Refuse to begin a file with content; a crash in `Journal.create` leaves an empty one."""
    if os.fstat(descriptor).st_size:
        raise ConfigError(
            f"{path}: a transcript is there already, of a session that this party took part in.",
            advice="For a new session name another state directory.",
        )


class MemoryJournal(_Chain):
    """A transcript in memory: `image` equals, byte for byte, the file of a `Journal`."""

    def __init__(self, header: Header, *, salts: Callable[[int], bytes] = os.urandom) -> None:
        lead, head = encode_header(header)
        super().__init__(head, salts)
        self._image = bytearray(lead)

    @classmethod
    def reopen(cls, image: bytes, *, salts: Callable[[int], bytes] = os.urandom) -> MemoryJournal:
        """Continue a transcript, as `Journal.reopen` does with a file."""
        reader = TranscriptReader(Path("a transcript in memory"), image)
        for _ in reader:
            pass
        journal = cls(reader.header, salts=salts)
        journal.head, journal.count = reader.head, reader.count
        journal._image = bytearray(image[: len(image) - reader.torn_bytes])
        return journal

    @property
    def image(self) -> bytes:
        """The committed transcript: what would survive a crash now."""
        return bytes(self._image)

    def commit(self) -> None:
        for encoded in self._pending:
            self._image += encoded
        self._pending.clear()

    def close(self) -> None:
        self.commit()


class NullJournal:
    """Counts steps and keeps nothing: for simulations of thousands of owners."""

    def __init__(self) -> None:
        self.head = bytes(DIGEST_BYTES)
        self.count = 0

    def append(self, now: float, event: Item, effects: Sequence[Item]) -> None:  # noqa: ARG002
        self.count += 1

    def commit(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


def _unwritable(path: Path, error: Exception) -> TranscriptUnwritable:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    first = remedy(error, "See to the disk")
    return TranscriptUnwritable(
        f"{path}: cannot write the transcript: {reason}.",
        advice=f"Nothing unrecorded was sent. {first}, then start this party again.",
    )
