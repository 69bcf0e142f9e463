"""Writing the small text files of the command line: a new one, or a replacement.

Whoever reads a file, changes it and replaces it does so within `one_at_a_time`.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hushbid.protocol import platform
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.files.durable import in_place_of, is_there, write_new
from hushbid.protocol.utf8_names import check_utf8

__all__ = [
    "PUBLIC",
    "check_directory_place",
    "check_file_place",
    "check_new_file",
    "check_page_session",
    "one_at_a_time",
    "page_there",
    "replace_file",
    "write_new_file",
    "write_page",
]

_HEAD_BYTES: Final = 1_000
"""Within which a page names its session."""
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
    check_file_place(path)


def check_file_place(path: Path) -> None:
    """Find out beforehand whether a file can be written, or written anew: before work is done for it.

    Raises:
        ConfigError: It is no regular file or cannot be reached, or its directory is not there, or takes no
            file.
    """
    _check_reached(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise ConfigError(f"{path} is not a regular file.", advice="Name another with --output.")
    directory = path.absolute().parent
    if not os.path.isdir(directory) or _takes_no_file(directory):
        raise ConfigError(
            f"{path}: there is no directory {directory} that this user can write to.",
            advice="Make it, or name another file.",
        )


def check_directory_place(path: Path) -> None:
    """Find out beforehand whether a directory is there, or can be made, and takes files.

    Raises:
        ConfigError: Neither.
    """
    _check_reached(path)
    place = path.absolute()
    nearest = next(each for each in (place, *place.parents) if os.path.lexists(each))
    if not os.path.isdir(nearest):
        raise ConfigError(f"{nearest} is no directory.", advice="Name another with --output.")
    if why := _takes_no_file(nearest):
        raise ConfigError(
            f"{path}: nothing can be written to {nearest}: {why}.", advice="Name another with --output."
        )


def _check_reached(path: Path) -> None:
    """Refuse a path that can be neither found nor made: its name is too long, or a folder is closed.

    And one that the files of a session cannot name.
    """
    check_utf8([os.path.realpath(path)])
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be reached: {error.strerror}.", advice="Name another with --output."
        ) from None


def _takes_no_file(directory: Path) -> str:
    """Why a directory takes no file; empty: it does. Permissions alone do not tell, as root has them all."""
    try:
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""


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


def page_there(path: Path, first: bytes, what: str) -> bytes:
    """The beginning of the page that is to be replaced, before work is done for it; empty: there is none.

    Args:
        first: The first line of such a page, and of no other.
        what: What it is called: ``report``, ``replay``.

    Raises:
        ConfigError: What is there is another file, such as a transcript, or no page can be written there.
    """
    check_file_place(path)  # no pipe is opened then, which would wait for a writer
    try:
        with path.open("rb") as file:
            old = file.read(_HEAD_BYTES)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise _page_unwritable(path, what, error) from None
    if not old.startswith(first):
        raise ConfigError(
            f"{path} exists already, and is not a {what}.", advice="Name another file with --output."
        )
    return old


def check_page_session(old: bytes, path: Path, marker: bytes, session: str, what: str) -> None:
    """Refuse to replace the page of another session. Older versions of a page named none.

    Args:
        old: As from `page_there`.
        marker: What stands before the session's name in such a page.

    Raises:
        ConfigError: It is of another session.
    """
    if marker in old and marker + session.encode() not in old:
        raise ConfigError(
            f"{path} is the {what} of another session, which is kept.",
            advice="Name another file with --output.",
        )


def write_page(path: Path, text: str, what: str) -> None:
    """Write a page that its owner alone can read, or replace it.

    Raises:
        ConfigError: It cannot be written.
    """
    try:
        with in_place_of(path) as stream:
            stream.write(text.encode())
    except OSError as error:
        raise _page_unwritable(path, what, error) from None


def _page_unwritable(path: Path, what: str, error: OSError) -> ConfigError:
    return ConfigError(
        f"{path}: cannot write the {what}: {error.strerror}.",
        advice="Name a file in a directory that exists and that this user can write to, with room for it.",
    )
