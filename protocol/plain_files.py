"""Reading a file that must be a regular one. Few imports: a health check starts a process each time."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from hushbid.protocol import platform

__all__ = ["read_plain"]


def read_plain(path: Path, longest: int) -> tuple[bytes, os.stat_result]:
    """The content and status of a regular file; it never waits for a pipe or a device in its place.

    Args:
        path: The file.
        longest: Most bytes expected: one more is read, so that the caller notices an excess.

    Raises:
        OSError: It cannot be read, or is not a regular file.
    """
    # NO_WAIT: a named pipe must not hang us; the flag has no effect on a regular file.
    with open(
        path, "rb", opener=lambda name, flags: platform.open_file(name, flags | platform.NO_WAIT)
    ) as file:
        # The status comes from the open file: a path can change between two looks.
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a plain file")
        return file.read(longest + 1), status
