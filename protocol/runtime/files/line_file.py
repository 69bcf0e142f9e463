"""A private file of one JSON object a line. Lines are only ever appended, each durably.

It belongs to one process at a time, and its first line names its format. An incomplete last line, left by a
crash, does not count: its writer was never told that it was there. It is cut off before the next line is
appended, and until then the file stays as it is.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Self

from hushbid.protocol import platform
from hushbid.protocol.closing import Closing
from hushbid.protocol.errors import ConfigError, DataError, HushbidError

__all__ = ["LOCK_SECONDS", "LineFile", "malformed", "newer", "parse_line", "whole_lines"]

LOCK_SECONDS: Final = 1.0
"""How long to wait while another process holds the file."""


class LineFile(Closing):
    """A file that this process holds. Make one with `LineFile.open`, and close it.

    Attributes:
        what: Its purpose, for messages: "the dataset's lifetime ledger".
        records: The objects of its lines when it was opened, in order.
        lines: Every line without its end, appended ones included.
        cut: Bytes of an incomplete last line, which do not count.
    """

    def __init__(self, path: Path, descriptor: int, what: str) -> None:
        self.path = path
        self.what = what
        self.records: list[Mapping[str, Any]] = []
        self.lines: list[bytes] = []
        self.cut = 0
        self._descriptor = descriptor
        self._size = 0
        self._ended = True
        """Whether the last line has its end."""
        self._closed = False

    @classmethod
    def open(cls, path: Path, *, what: str, format_name: str, patience: float = LOCK_SECONDS) -> Self:
        """Open or create a file, and hold it until it is closed. What is there is not changed.

        Args:
            path: The file; its directory exists.
            format_name: The ``format`` of the first line of such a file.
            patience: Seconds to wait while another process holds it.

        Raises:
            ConfigError: It cannot be opened, others may use it, or another process holds it.
            DataError: It is another file; or a line is no JSON object, and is named.
        """
        file = cls(path, _open_alone(path, what, patience), what)
        try:
            file._read(format_name)
        except BaseException:
            file.close()
            raise
        return file

    @classmethod
    def absent(cls, path: Path, *, what: str) -> Self:
        """A closed stand-in for a missing file; nothing is created."""
        file = cls(path, -1, what)
        file._closed = True
        return file

    def append(self, record: Mapping[str, object]) -> None:
        """Append one line wholly and durably, or leave the file unchanged.

        Raises:
            HushbidError: The disk is full or fails.
        """
        line = json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
        data = line + b"\n"
        self._mend()
        try:
            platform.append(self._descriptor, data, sync=True)
        except OSError as error:
            # After a failed fsync too: only writing again, not another fsync, could make it durable.
            with suppress(OSError):
                self._truncate()
            raise self._unwritable(error) from error
        self._size += len(data)
        self.lines.append(line)

    def begin(self, header: Mapping[str, object]) -> None:
        """Append the first line, and make the file itself survive a power cut."""
        self.append(header)
        platform.sync_directory(self.path.parent)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            os.close(self._descriptor)

    def _read(self, format_name: str) -> None:
        content = _read_all(self._descriptor)
        self.lines, rest = whole_lines(content)
        lead = json.dumps({"format": format_name}).removesuffix("}").encode()
        if not lead.startswith(content[: len(lead)]):
            raise DataError(
                f"{self.path}: not {self.what}: its first line does not say so.",
                advice="Restore it from a copy, or name another file. This one was left as it is.",
            )
        self.cut, self._size = len(rest), len(content) - len(rest)
        self._ended = bool(rest) or not content or content.endswith(b"\n")
        self.records = [
            parse_line(self.path, number, line) for number, line in enumerate(self.lines, start=1)
        ]

    def _mend(self) -> None:
        """Cut off an incomplete last line, or end a complete one."""
        try:
            if self.cut:
                self._truncate()
                self.cut = 0
            elif not self._ended:
                platform.append(self._descriptor, b"\n", sync=True)
                self._size += 1
                self._ended = True
        except OSError as error:
            raise self._unwritable(error) from error

    def _truncate(self) -> None:
        os.ftruncate(self._descriptor, self._size)
        os.fsync(self._descriptor)

    def _unwritable(self, error: OSError) -> HushbidError:
        return HushbidError(
            f"{self.path}: cannot write {self.what}: {error.strerror}.",
            advice="Nothing that it was to pay for has left. Make room on the disk, then start again.",
        )


def whole_lines(content: bytes) -> tuple[list[bytes], bytes]:
    """The lines of a file's content, and the rest: an incomplete last line.

    A last line that lacks only its line feed counts, as it may have been relied on.
    """
    end = content.rfind(b"\n") + 1
    rest = content[end:]
    if _is_record(rest):
        end, rest = len(content), b""
    return content[:end].splitlines(), rest


def parse_line(path: Path, number: int, line: bytes) -> Mapping[str, Any]:
    """The JSON object of a line, numbered from 1.

    Raises:
        DataError: It is none.
    """
    try:
        record = _parsed(line)
    except (ValueError, RecursionError):
        raise malformed(path, number, "it is not JSON") from None
    if not isinstance(record, dict):
        raise malformed(path, number, "it is not a JSON object")
    return record


@lru_cache(maxsize=2**14)
def _parsed(line: bytes) -> Any:
    """What a line says. A party opens the list of all ledgers of a machine five times in a session."""
    return json.loads(line)


def malformed(path: Path, number: int, why: str) -> DataError:
    """The error about a line with wrong content."""
    return DataError(
        f"{path}, line {number}: malformed: {why}.",
        advice="Put back this very file from a copy. With a line left out it would promise what is not so.",
    )


def newer(path: Path, version: object, known: int, what: str) -> DataError | None:
    """The error about a file that a newer release wrote; None if its version is no later number."""
    if not isinstance(version, int) or isinstance(version, bool) or version <= known:
        return None
    return DataError(
        f"{path}: {what} is of format {version}, which a newer release of hushbid writes; this one reads up "
        f"to {known}.",
        advice="Use that release, or a later one. Nothing is wrong with the file: keep it as it is.",
    )


def _open_alone(path: Path, what: str, patience: float) -> int:
    """A descriptor of the file, created if missing, and locked for this process."""
    try:
        descriptor = platform.open_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | platform.NO_WAIT)
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot open {what}: {error.strerror}.",
            advice="Name a file in a directory that exists and that this user can write to.",
        ) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path}: {what} is not a plain file.", advice="Name the file itself.")
        if platform.others_may_use(status):
            raise ConfigError(
                f"{path}: {what} can be used by others than its owner "
                f"(mode {stat.S_IMODE(status.st_mode):04o}).",
                advice=f"See that nothing in it was changed, then run `chmod 600 {path}`. In a pod, have "
                "`fsGroupChangePolicy: OnRootMismatch` keep `fsGroup` from widening it again.",
            )
        _lock(path, descriptor, what, patience)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _lock(path: Path, descriptor: int, what: str, patience: float) -> None:
    """Lock the file, waiting `patience` seconds at most: appending takes other processes only a moment."""
    give_up = time.monotonic() + patience
    while True:
        try:
            platform.lock(descriptor)
        except BlockingIOError:
            if time.monotonic() >= give_up:
                raise ConfigError(
                    f"{path}: another process holds {what}.",
                    advice="Wait until it has done, then start again.",
                ) from None
            time.sleep(LOCK_SECONDS / 50.0)
        else:
            return


def _read_all(descriptor: int) -> bytes:
    parts = []
    os.lseek(descriptor, 0, os.SEEK_SET)
    while part := os.read(descriptor, 2**20):
        parts.append(part)
    return b"".join(parts)


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
