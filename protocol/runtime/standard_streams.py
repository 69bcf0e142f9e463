"""Standard output and error that outlive their readers; this module imports little."""

from __future__ import annotations

import io
import sys

__all__ = ["is_unread", "outlive_readers"]


class _Output(io.TextIOWrapper):
    """A standard stream that drops what nobody can read.

    Errors are caught here and not by a raw stream's `write`: an interrupt that came while that returned would
    look like a failed write, and what was written would be written again.

    Args:
        stream: The standard stream that this one replaces.
        dropped: The errors of a write that drop it; others are raised.
    """

    def __init__(self, stream: io.TextIOWrapper, dropped: type[OSError]) -> None:
        raw = io.FileIO(stream.fileno(), "w", closefd=False)
        buffered = isinstance(stream.buffer, io.BufferedWriter)
        super().__init__(
            io.BufferedWriter(raw) if buffered else raw,  # as `python -u` has it
            encoding=stream.encoding,
            errors=stream.errors,
            newline="\n",
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        self.unread = False
        self._dropped = dropped

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except self._dropped:
            self.unread = True
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except self._dropped:
            self.unread = True


def outlive_readers() -> None:
    """Let no write fail because a stream's reader has gone, as `head` goes once it has read enough.

    Work that was begun, and perhaps charged, is then done, and the exit code says what came of it. Remarks on
    stderr are dropped whatever keeps them from being written. A stdout that is full is an error.
    """
    for name, dropped in (("stdout", BrokenPipeError), ("stderr", OSError)):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, _Output):
            new = _Output(stream, dropped)
            setattr(sys, name, new)
            setattr(sys, f"__{name}__", new)


def is_unread() -> bool:
    """Whether stdout's reader was found gone: what goes on printing need not go on."""
    return isinstance(sys.stdout, _Output) and sys.stdout.unread
