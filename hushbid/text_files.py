"""Writing the small text files of the command line: a new one, or a replacement.

Whoever reads a file, changes it and replaces it does so within `one_at_a_time`.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hushbid.protocol import platform
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.files.durable import in_place_of, is_there, write_new

__all__ = ["PUBLIC", "check_new_file", "one_at_a_time", "replace_file", "write_new_file"]

PUBLIC: Final = 0o644
"""Mode of a new file that anybody may read."""


def write_new_file(path: Path, text: str) -> None:
    """Write a public text file that must not be there yet; raises as `write_new`."""
    write_new(path, text.encode(), PUBLIC)


def check_new_file(path: Path) -> None:
    """Find out beforehand whether `write_new_file` can write a file.

    Raises:
        ConfigError: It is there, or its directory is not, or cannot be written to.
    """
    if os.path.lexists(path):
        raise is_there(path)
    directory = path.absolute().parent
    if not (directory.is_dir() and os.access(directory, os.W_OK | os.X_OK)):
        raise ConfigError(
            f"{path}: there is no directory {directory} that this user can write to.",
            advice="Make it, or name another file.",
        )


@contextlib.contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Wait until no other process changes a file, and keep others waiting until this one has.

    The lock is on its directory, since `replace_file` replaces the file itself.

    Args:
        path: The file; a link stands for what it leads to.

    Raises:
        ConfigError: The directory cannot be locked.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(platform.locked_directory(path.resolve().parent))
        except OSError as error:
            raise ConfigError(
                f"{path}: cannot keep others from changing it at the same time: {error.strerror}.",
                advice="Keep it in a directory that this user can read, on a file system with locks.",
            ) from None
        yield


def replace_file(path: Path, text: str) -> None:
    """Replace a file's text, keeping its mode: a reader finds the old or the new one.

    Raises:
        ConfigError: It cannot be written; the file is then as it was.
    """
    path = path.resolve()  # what a link leads to is replaced, and not the link
    try:
        with in_place_of(path, stat.S_IMODE(path.stat().st_mode)) as stream:
            stream.write(text.encode())
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be written: {error.strerror}. It is as it was.",
            advice="Check the mode of the file and of its directory, and the room on its disk.",
        ) from None
