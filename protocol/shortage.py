"""What the system ran short of: files, memory, threads, processes, room on a disk, or a disk that works.

A shortage is nobody's bug and says nothing of a file's content: once there is more, the same thing works. So
it has an error of its own, `Shortage`, which says what to raise.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Final, NamedTuple

from hushbid.protocol.errors import DataError, ExitCode, HushbidError, Shortage

__all__ = ["as_shortage", "remedy", "shortage_of"]


class _Kind(NamedTuple):
    what: str
    advice: str


_FILES: Final = _Kind(
    "no file left to open", "Raise the limit (`ulimit -n`, `LimitNOFILE`, `--ulimit nofile`)"
)
_MEMORY: Final = _Kind("too little memory", "Give the process more, or less to do")
_ROOM: Final = _Kind("no space left on a disk", "Make room on the disk")
_SIZE: Final = _Kind(
    "a file that may not grow as large as it has to",
    "Raise the limit of a file's size (`ulimit -f`, `LimitFSIZE`), or name a file system that takes larger "
    "files",
)
_DISK: Final = _Kind("no disk that works", "Check the disk")
_THREADS: Final = _Kind(
    "no thread or process left", "Raise the limit (`ulimit -u`, `TasksMax`, `--pids-limit`), or end others"
)
_OF_NUMBER: Final = {
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.ENOMEM: _MEMORY,
    errno.ENOSPC: _ROOM,
    errno.EFBIG: _SIZE,
    errno.EIO: _DISK,
    getattr(errno, "EDQUOT", errno.ENOSPC): _ROOM,
}
_OF_TEXT: Final = {
    "can't start new thread": _THREADS,
    "failed to map segment": _MEMORY,
    "cannot allocate memory": _MEMORY,
    "too many open files": _FILES,
}
"""Texts of errors that have no number: of threads, and of what loads shared libraries."""


def shortage_of(error: BaseException) -> Shortage | None:
    """The shortage behind an exception, in it or in what it was raised from or during; None without one."""
    kind = _kind_behind(error)
    if kind is None and isinstance(error, BlockingIOError):
        kind = _THREADS  # a fork that failed; what waits for a lock has an error of its own
    if kind is None:
        return None
    return Shortage(
        f"The system is short of something: {kind.what}.",
        advice=f"{kind.advice}, and start again: what was recorded is kept.",
    )


def as_shortage(error: HushbidError) -> HushbidError:
    """An error as a shortage, if one is behind it: its text says where. Any other as it is.

    Data that memory does not hold are the person's to change: their error stays.
    """
    kind = None if error.exit_code is ExitCode.SHORTAGE else _kind_behind(error)
    if kind is None or (kind is _MEMORY and isinstance(error, DataError)):
        return error
    return Shortage(error.what, advice=f"There was {kind.what}. {kind.advice}, and start again.")


def remedy(error: BaseException, otherwise: str) -> str:
    """What to do, in one clause, about the shortage behind an error; the other text if there is none."""
    kind = _kind_behind(error)
    return otherwise if kind is None else kind.advice


def _kind_behind(error: BaseException) -> _Kind | None:
    return next((kind for each in _chain(error) if (kind := _kind_of(each)) is not None), None)


def _kind_of(error: BaseException) -> _Kind | None:
    if isinstance(error, MemoryError):
        return _MEMORY
    number = getattr(error, "errno", None)
    if isinstance(number, int) and number in _OF_NUMBER:
        return _OF_NUMBER[number]
    said = str(error).lower()
    return next((kind for text, kind in _OF_TEXT.items() if text in said), None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
