"""Differences between operating systems: modes of files, locks, durable names, limits, processes.

The rest of hushbid is written as if there were one system, and asks here. What a system has is looked for by
what Python offers, not by the system's name. Windows has no modes and no directories that can be opened:
each function says what it does there. The curator follows the connections of strangers by means of Linux
(`protocol.runtime.network.connection_limits`), so that it is refused elsewhere (`check_linux`).
"""

from __future__ import annotations

import importlib
import os
import platform
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from protocol.errors import ConfigError

__all__ = [
    "ENDING",
    "NO_LINK",
    "NO_WAIT",
    "PRIVATE",
    "allow_open_files",
    "check_linux",
    "cores",
    "has_modes",
    "is_running",
    "lock",
    "locked_directory",
    "open_file",
    "open_nowhere",
    "others_may_use",
    "peak_memory",
    "set_mode",
    "sync_directory",
    "unnamed_file",
    "user",
]

PRIVATE: Final = 0o600
"""The mode of a file that its owner alone may read and write."""
NO_LINK: Final[int] = getattr(os, "O_NOFOLLOW", 0)
"""A flag of `open_file`: refuse a link instead of the file, where the system can."""
NO_WAIT: Final[int] = getattr(os, "O_NONBLOCK", 0)
"""A flag of `open_file`: do not wait for the other end of a named pipe; Windows has none among its files."""
ENDING: Final = tuple(
    signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if name in signal.Signals.__members__
)
"""Signals by which a process is told to end, besides Ctrl-C; a terminal that closes sends SIGHUP."""

_LOCKED_BYTE: Final = 2**31 - 2
"""Windows locks bytes of a file, which nobody else can read then: this byte is beyond all others."""
_LOCK_SECONDS: Final = 0.02
"""Between two tries to get it."""
_ZEROS: Final = bytes(2**20)


def open_file(path: Path | str, flags: int, mode: int = PRIVATE) -> int:
    """`os.open`, for bytes as they are: on Windows line feeds would be changed otherwise.

    Raises:
        OSError: As `os.open`.
    """
    return os.open(path, flags | getattr(os, "O_BINARY", 0), mode)


def open_nowhere() -> int:
    """A descriptor, the lowest that is free, of the null device: it has nothing to read, and takes anything.

    Raises:
        OSError: There is no descriptor left.
    """
    return os.open(os.devnull, os.O_RDWR)


def has_modes() -> bool:
    """Whether the mode of a file says who may use it.

    Windows has access lists instead, and a file has those of its directory: one that Python makes with mode
    0700 is the user's alone there (Python 3.11.10 and later), as are those below the user's own.
    """
    return hasattr(os, "geteuid")


def others_may_use(status: os.stat_result) -> bool:
    """Whether a file's mode lets others than its owner read or change it; never so without modes."""
    return has_modes() and bool(status.st_mode & 0o077)


def set_mode(descriptor: int, mode: int) -> None:
    """Give an open file its mode, whatever the umask has taken away; nothing without modes.

    Raises:
        OSError: It cannot be given.
    """
    if has_modes():
        os.fchmod(descriptor, mode)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable; Windows keeps them in a journal of its own, and has no call.

    Raises:
        OSError: The disk fails.
    """
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(descriptor: int, *, wait: bool = False) -> None:
    """Hold an open file until it is closed, or the process ends. Readers are not blocked.

    Args:
        descriptor: The file, open for writing.
        wait: Whether to wait for another process that holds it.

    Raises:
        BlockingIOError: Another process holds it.
        OSError: It cannot be locked.
    """
    try:
        fcntl = importlib.import_module("fcntl")
    except ImportError:
        _lock_byte(descriptor, wait=wait)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock_byte(descriptor: int, *, wait: bool) -> None:
    msvcrt: Any = importlib.import_module("msvcrt")
    while True:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            if not wait:
                raise BlockingIOError(error.errno, error.strerror) from None
            time.sleep(_LOCK_SECONDS)
        else:
            os.lseek(descriptor, 0, os.SEEK_SET)
            return


@contextmanager
def locked_directory(directory: Path) -> Iterator[None]:
    """Hold a directory; where none can be opened, a file in it, which stays.

    Raises:
        OSError: It cannot be opened or locked.
    """
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    else:
        descriptor = open_file(directory / ".hushbid.lock", os.O_RDWR | os.O_CREAT)
    try:
        lock(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


def unnamed_file(path: Path, size: int) -> int:
    """A descriptor of a new private file with room for so many bytes, which is gone once it is closed.

    Args:
        path: A name that it has for a moment; on Windows until it is closed.
        size: Bytes, which the disk has from now on: one that fills up later would kill who maps the file.

    Raises:
        OSError: It cannot be made, or there is no room.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    if temporary := getattr(os, "O_TEMPORARY", 0):
        descriptor = open_file(path, flags | temporary)
    else:
        path.unlink(missing_ok=True)  # of a process that was killed between the next two lines
        descriptor = open_file(path, flags)
        path.unlink(missing_ok=True)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        else:
            left = size
            while left > 0:
                left -= os.write(descriptor, _ZEROS[:left])
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def cores() -> int:
    """How many processors this process may use, or, where that is not known, the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def allow_open_files(needed: int | None = None) -> int | None:
    """Raise this process's own limit of open files, which is often 1,024, as far as the system lets it.

    Args:
        needed: How many are enough; None: as many as may be. Where the system does not allow as many, the
            limit stays as it is.

    Returns:
        How many it may open, or could; None: there is no limit, or none that can be known.
    """
    try:
        resource = importlib.import_module("resource")
    except ImportError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = hard if needed is None else needed
    if soft == unlimited or (needed is not None and soft >= needed):
        return None if soft == unlimited else int(soft)
    if wanted != unlimited and hard not in (wanted, unlimited) and hard < wanted:
        return int(hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return None if wanted == unlimited else int(wanted)


def user() -> str:
    """This process's user, as messages name it: by a number, which also one without a name has."""
    return f"user {os.geteuid()}" if has_modes() else "this user"


def is_running(process: int) -> bool:
    """Whether there is a process of this number; on Windows, which has no such question, there is."""
    if not has_modes():
        return True  # `os.kill` would not ask there, but end it
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):  # no process has a number of so many digits
        return False
    except PermissionError:
        pass
    return True


def peak_memory() -> int:
    """Most bytes of memory that this process has had resident at a time: Linux's ``VmHWM``.

    `resource.getrusage` would count what the process had before it became this program.

    Raises:
        ConfigError: This is another system.
    """
    check_linux("The measurement of memory")
    with open("/proc/self/status", encoding="ascii") as status:
        kibibytes = next(line.split()[1] for line in status if line.startswith("VmHWM:"))
    return 1024 * int(kibibytes)


def check_linux(what: str) -> None:
    """Refuse, elsewhere than on Linux, what needs it.

    Args:
        what: The subject of the sentence, as in "The curator".

    Raises:
        ConfigError: This is another system.
    """
    if (here := platform.system()) != "Linux":
        raise ConfigError(
            f"{what} needs Linux, and this is {here or 'a system without a name'}.",
            advice="Run it on Linux, or in the container image. Owners and the consumer run here.",
        )
