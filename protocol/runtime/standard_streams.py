"""Standard output and error that outlive their readers; this module imports little."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["is_unread", "outlive_readers"]


class _Output(io.FileIO):
    """A standard stream that drops what nobody can read.

    Args:
        dropped: The errors of a write that drop it; others are raised.
    """

    def __init__(self, descriptor: int, dropped: type[OSError]) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.unread = False
        self._dropped = dropped

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except self._dropped:
            self.unread = True
            return memoryview(data).nbytes


def outlive_readers() -> None:
    """Let no write fail because a stream's reader has gone, as `head` goes once it has read enough.

    Work that was begun, and perhaps charged, is then done, and the exit code says what came of it. Remarks on
    stderr are dropped whatever keeps them from being written. A stdout that is full is an error.
    """
    for name, dropped in (("stdout", BrokenPipeError), ("stderr", OSError)):
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper) or isinstance(_raw(stream), _Output):
            continue
        raw = _Output(stream.fileno(), dropped)
        buffered = isinstance(stream.buffer, io.BufferedWriter)
        new = io.TextIOWrapper(
            io.BufferedWriter(raw) if buffered else raw,  # as `python -u` has it
            encoding=stream.encoding,
            errors=stream.errors,
            newline="\n",
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def is_unread() -> bool:
    """Whether stdout's reader was found gone: what goes on printing need not go on."""
    raw = _raw(sys.stdout)
    return isinstance(raw, _Output) and raw.unread


def _raw(stream: object) -> object:
    buffer = getattr(stream, "buffer", None)
    return getattr(buffer, "raw", buffer)
