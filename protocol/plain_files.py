"""Reading a file that should be a plain one. It imports little: a health check starts a process each time."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from protocol import platform

__all__ = ["read_plain"]


def read_plain(path: Path, longest: int) -> tuple[bytes, os.stat_result]:
    """The content of a plain file, and its status; a pipe or a device in its place is not waited for.

    Args:
        path: The file.
        longest: Most bytes that it should have: one more is read, by which the caller sees that there are.

    Raises:
        OSError: It cannot be read, or is no plain file.
    """
    # NO_WAIT: a named pipe must not hang us; it has no effect on a plain file.
    with open(
        path, "rb", opener=lambda name, flags: platform.open_file(name, flags | platform.NO_WAIT)
    ) as file:
        # The open file is asked, not the path: between two looks at a path it can change.
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a plain file")
        return file.read(longest + 1), status
