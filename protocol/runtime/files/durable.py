"""The one way in which a whole file is written: durably, and never half of it under its name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from hushbid.protocol import platform
from hushbid.protocol.errors import ConfigError

__all__ = ["in_place_of", "is_there", "new_file", "write_new"]


@contextmanager
def new_file(path: Path, mode: int = platform.PRIVATE) -> Iterator[BinaryIO]:
    """Write a file that must not exist yet, not even as a dangling link.

    It has its mode from the first moment on, within the umask: nobody can open it before.

    Args:
        path: Where; nothing is left there if writing fails.

    Raises:
        FileExistsError: It exists, and is unchanged.
        OSError: It cannot be written.
    """
    descriptor = platform.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    stream = os.fdopen(descriptor, "wb")
    try:
        yield stream
        stream.flush()
        os.fsync(descriptor)
        stream.close()
    except BaseException:
        with suppress(OSError):  # it tries once more to write what did not go
            stream.close()
        path.unlink(missing_ok=True)
        raise


@contextmanager
def in_place_of(path: Path, mode: int = platform.PRIVATE) -> Iterator[BinaryIO]:
    """Write a file, replacing an earlier one: readers find the old or the new one, even after a power cut.

    Args:
        path: Where; an existing file is unchanged if writing fails.
        mode: The new file's, whatever the umask.

    Raises:
        OSError: It cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.partial")
    unfinished.unlink(missing_ok=True)  # of a process that was killed; a link is no way elsewhere
    with new_file(unfinished, mode) as stream:
        platform.set_mode(stream.fileno(), mode)
        yield stream
    try:
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def write_new(path: Path, content: bytes, mode: int = platform.PRIVATE) -> None:
    """Write a whole file that must not exist yet (`new_file`), with an error for people.

    Raises:
        ConfigError: It exists, or cannot be written; then nothing of it is left.
    """
    try:
        with new_file(path, mode) as stream:
            stream.write(content)
    except FileExistsError:
        raise is_there(path) from None
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be written: {error.strerror}.",
            advice="Name a file in a directory that exists, that this user can write to, and that has room.",
        ) from None


def is_there(path: Path) -> ConfigError:
    """The refusal to write over a file."""
    return ConfigError(
        f"{path} is there already, and was left as it is.",
        advice="Name another file, or move the old one away.",
    )
