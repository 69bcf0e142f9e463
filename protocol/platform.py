"""Differences between operating systems: file modes, locks, durable names, limits, processes.

The rest of hushbid is written as for a single system, and calls this module. Features are detected by what
Python offers, not by the system's name. Windows has no modes and no directories that can be opened; each
function says what it does there. The curator follows strangers' connections by means of Linux
(`hushbid.protocol.runtime.network.connection_limits`), so other systems are refused (`check_linux`).

Functions of files raise `OSError` if the system refuses what they ask of it.
"""

from __future__ import annotations

import errno
import importlib
import math
import os
import platform
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from hushbid.protocol.errors import ConfigError

__all__ = [
    "ENDING",
    "KILL",
    "LIBRARIES",
    "NO_LINK",
    "NO_WAIT",
    "PRIVATE",
    "allow_open_files",
    "append",
    "check_linux",
    "cores",
    "forbid_core_dumps",
    "fork",
    "has_modes",
    "is_mounted_for_us",
    "is_running",
    "keep_files_back",
    "lock",
    "lock_in_memory",
    "locked_directory",
    "open_file",
    "open_files",
    "open_nowhere",
    "others_may_use",
    "peak_memory",
    "send_signal",
    "set_mode",
    "stop_this_process",
    "sync_directory",
    "unnamed_file",
    "user",
]

LIBRARIES: Final = threading.RLock()
"""Held while loaded libraries are searched, and while a second thread loads some.

A search holds the linker's lock and waits for the interpreter; loading holds the interpreter and waits for
the linker's lock. Without this lock a process in which both happen may wait for ever.
"""

PRIVATE: Final = 0o600
"""File mode that lets only the owner read and write."""
NO_LINK: Final[int] = getattr(os, "O_NOFOLLOW", 0)
"""A flag of `open_file`: refuse to follow a link, if the system can."""
NO_WAIT: Final[int] = getattr(os, "O_NONBLOCK", 0)
"""A flag of `open_file`: do not wait for the other end of a named pipe; Windows has no such files."""
ENDING: Final = tuple(
    signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if name in signal.Signals.__members__
)
"""Signals that ask a process to end, besides Ctrl-C; a closing terminal sends SIGHUP."""
KILL: Final = signal.Signals.__members__.get("SIGKILL", signal.SIGTERM)
"""The signal that ends a process at once."""

_LOCKED_BYTE: Final = 2**31 - 2
"""Windows locks bytes of a file, which nobody else can then read: this one is beyond all real bytes."""
_LOCK_SECONDS: Final = 0.02
"""Seconds between two attempts to lock it."""
_ZEROS: Final = bytes(2**20)
_GROUPS: Final = Path("/sys/fs/cgroup")
_OWN_GROUP: Final = Path("/proc/self/cgroup")
_LIFTING: Final = threading.Lock()
"""Held while the limit of open files is lifted (`keep_files_back`)."""


def open_file(path: Path | str, flags: int, mode: int = PRIVATE) -> int:
    """`os.open` for raw bytes: Windows would otherwise translate line feeds.

    It has the descriptors that `keep_files_back` keeps from all else in this process.
    """
    flags |= getattr(os, "O_BINARY", 0)
    try:
        return os.open(path, flags, mode)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        with _limit_lifted():
            return os.open(path, flags, mode)


def append(descriptor: int, data: bytes, *, sync: bool) -> None:
    """Write all of `data` to an open file, in as many writes as it takes; with `sync`, wait for the disk."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
    if sync:
        os.fsync(descriptor)


def open_nowhere() -> int:
    """The null device as a descriptor, the lowest free one: it has nothing to read, and takes anything."""
    return os.open(os.devnull, os.O_RDWR)


def has_modes() -> bool:
    """Whether file modes control access to a file.

    Windows has access lists instead, and a file inherits those of its directory. A directory that Python
    makes with mode 0700 belongs to the user alone there (Python 3.11.10 and later), and so does anything
    below the user's own directory.
    """
    return hasattr(os, "geteuid")


def others_may_use(status: os.stat_result) -> bool:
    """Whether a file's mode lets anybody but its owner read or change it; always False without modes."""
    return has_modes() and bool(status.st_mode & 0o077)


def is_mounted_for_us(status: os.stat_result) -> bool:
    """Whether a file is root's, and this process may read it by its group alone, as secrets are mounted."""
    if not has_modes() or os.geteuid() == 0 or status.st_uid != 0:
        return False
    return status.st_mode & 0o037 == 0 and status.st_gid in {os.getegid(), *os.getgroups()}


def set_mode(descriptor: int, mode: int) -> None:
    """Set an open file's mode, regardless of the umask; does nothing without modes."""
    if has_modes():
        os.fchmod(descriptor, mode)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable; Windows journals them itself and has no call for it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = open_file(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(descriptor: int, *, wait: bool = False) -> None:
    """Lock an open file until it is closed, or the process ends. Readers are not blocked.

    Args:
        wait: Whether to wait for another process that has locked it.

    Raises:
        BlockingIOError: Another process has locked it.
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
    """Lock a directory; if directories cannot be opened, lock a file in it, which stays."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = open_file(directory, os.O_RDONLY | os.O_DIRECTORY)
    else:
        descriptor = open_file(directory / ".hushbid.lock", os.O_RDWR | os.O_CREAT)
    try:
        lock(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


def unnamed_file(path: Path, size: int) -> int:
    """A descriptor of a new private file of the given size, which disappears once it is closed.

    Args:
        path: Its name for a moment; on Windows, until it is closed.
        size: Bytes, allocated on the disk now: a disk that fills up later would kill a process that maps the
            file.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    if temporary := getattr(os, "O_TEMPORARY", 0):
        descriptor = open_file(path, flags | temporary)
    else:
        path.unlink(missing_ok=True)  # left by a process killed between the next two lines
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


def stop_this_process() -> None:
    """Tell this process to stop, as somebody else would: from any thread."""
    os.kill(os.getpid(), signal.SIGTERM)


def cores() -> int:
    """Processors that this process may use at a time, a part of one as one; if unknown, the machine's.

    A control group's quota of processor time, as containers and systemd set it, counts like its processors.
    """
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _processor_quota(_GROUPS, _OWN_GROUP)
    return found if quota is None else max(1, min(found, math.ceil(quota)))


def _processor_quota(groups: Path, own: Path) -> float | None:
    """The processors that the quotas of this process's control groups allow, the least of them; None: all.

    Args:
        groups: Where the file system of control groups is mounted.
        own: The file that names those of this process.
    """
    found = []
    with suppress(OSError):
        for line in own.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            root = groups / "cpu" if controllers else groups
            place = root / path.lstrip("/")
            found += [_quota_of(each) for each in (place, *place.parents) if each.is_relative_to(root)]
    return min((each for each in found if each is not None), default=None)


def _quota_of(group: Path) -> float | None:
    """The quota of one control group, version 2 or 1, in processors."""
    with suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = (group / "cpu.max").read_text(encoding="ascii").split()
        return None if quota == "max" else int(quota) / int(period)
    with suppress(OSError, ValueError, ZeroDivisionError):
        allowed = int((group / "cpu.cfs_quota_us").read_text(encoding="ascii"))
        return (
            allowed / int((group / "cpu.cfs_period_us").read_text(encoding="ascii")) if allowed > 0 else None
        )
    return None


def allow_open_files(needed: int | None = None) -> int | None:
    """Raise this process's limit of open files, often 1,024, as far as the system permits.

    Args:
        needed: A sufficient number; None: as many as possible. If the system does not permit that many, the
            limit stays unchanged.

    Returns:
        The number of files it may open, or could; None if there is no limit, or none that can be found out.
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


def keep_files_back(count: int) -> int | None:
    """Raise the limit of open files as far as the system permits, and keep so many of them for `open_file`.

    A library that accepts connections takes descriptors until the limit is reached. The limit is lower than
    it could be by `count`, and is lifted for the moment in which `open_file` needs one and finds none.

    Returns:
        The number of files that all else may open; None if there is no limit, or none that can be found out.
    """
    allowed = allow_open_files()
    if allowed is None:
        return None
    resource = importlib.import_module("resource")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    left = max(0, allowed - count)
    resource.setrlimit(resource.RLIMIT_NOFILE, (left, hard))
    return left


@contextmanager
def _limit_lifted() -> Iterator[None]:
    """Have the soft limit of open files at the hard one, for a moment."""
    try:
        resource = importlib.import_module("resource")
    except ImportError:
        yield  # and the caller meets its error once more
        return
    with _LIFTING:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def open_files() -> int:
    """Number of descriptors that this process has open; 0 where the system has no list of them."""
    try:
        return len(os.listdir("/proc/self/fd")) - 1  # without the list's own
    except OSError:
        return 0


def forbid_core_dumps() -> bool:
    """Let no core dump have memory of this process, or of those that it starts, as far as the system permits.

    The limit of a core file's size is 0. It does not bind a program that the system hands dumps to: on Linux
    no part of the memory is chosen for a dump either (core(5), "Controlling which mappings are written"). It
    stays dumpable (``PR_SET_DUMPABLE``): its user could otherwise not measure or debug it, and can read its
    key file anyway.

    Returns:
        Whether the limit is 0 now.
    """
    with suppress(OSError):
        Path("/proc/self/coredump_filter").write_text("0", encoding="ascii")
    try:
        resource = importlib.import_module("resource")
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    except (ImportError, AttributeError, OSError, ValueError):
        return False
    return True


def lock_in_memory(secret: bytes) -> bool:
    """Keep the pages with these bytes out of swap space until the process ends, if the system permits.

    Copies of the bytes are not covered.

    Returns:
        Whether it does.
    """
    if not secret:
        return False
    try:
        ctypes = importlib.import_module("ctypes")
        lock_pages = ctypes.CDLL(None).mlock
        buffer = ctypes.cast(ctypes.c_char_p(secret), ctypes.c_void_p)
        return bool(lock_pages(buffer, ctypes.c_size_t(len(secret))) == 0)
    except (ImportError, AttributeError, OSError, TypeError):  # Windows has no such library
        return False


def user() -> str:
    """This process's user for messages: a number, which works for a user without a name."""
    return f"user {os.geteuid()}" if has_modes() else "this user"


def send_signal(process: int, number: int) -> None:
    """Send another process a signal (POSIX).

    Raises:
        OSError: There is no such process, or it is another user's.
    """
    os.kill(process, number)


def fork() -> int:
    """As `os.fork` (POSIX): 0 in the new process, and its number in this one."""
    return os.fork()


def is_running(process: int) -> bool:
    """Whether a process with this number exists; always True on Windows, which cannot be asked."""
    if not has_modes():
        return True  # there, `os.kill` would end it instead
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):  # the number has too many digits for any process
        return False
    except PermissionError:
        pass
    return True


def peak_memory() -> int:
    """Peak resident memory of this process in bytes: Linux's ``VmHWM``.

    `resource.getrusage` would include the process's memory from before it became this program.

    Raises:
        ConfigError: The system is not Linux.
    """
    check_linux("The measurement of memory")
    with open("/proc/self/status", encoding="ascii") as status:
        kibibytes = next(line.split()[1] for line in status if line.startswith("VmHWM:"))
    return 1024 * int(kibibytes)


def check_linux(what: str) -> None:
    """Refuse a feature that needs Linux on other systems.

    Args:
        what: The subject of the sentence, as in "The curator".

    Raises:
        ConfigError: The system is not Linux.
    """
    if (here := platform.system()) != "Linux":
        raise ConfigError(
            f"{what} needs Linux, and this is {here or 'a system without a name'}.",
            advice="Run it on Linux, or in the container image. Owners and the consumer run here.",
        )
