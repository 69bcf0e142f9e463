"""``python -m tests.processes.other_system ROLE OPTION...``: a party on a system without what POSIX has.

Before any module of hushbid is imported, what Windows lacks is removed, and what it does differently is
imitated: files are text unless they are opened for bytes, an open file cannot be removed or replaced,
directories cannot be opened, and a lock is on bytes.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

_TEMPORARY, _BINARY = 1 << 30, 1 << 29
_MODULES = ("fcntl", "resource", "pwd", "grp", "termios")
_NAMES = (
    "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "fchmod", "fchown", "posix_fallocate", "geteuid",
    "getuid", "getegid", "getgid", "fork", "killpg", "setsid", "sched_getaffinity", "mkfifo",
)  # fmt: skip
_PRELOADED = (
    "concurrent.futures", "dp_accounting", "http.server", "nacl.public", "nacl.signing", "numkong", "numpy",
    "opendp.measurements", "pyarrow.csv", "pyarrow.parquet", "pydantic", "rich.console", "scipy.stats",
    "subprocess", "tempfile", "threadpoolctl", "typer", "zmq.auth",
)  # fmt: skip
"""Others' packages know the system that they were installed on."""


def _open_files() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{name}"))
    return found


def _closed(*paths: Any) -> None:
    for path in paths:
        if os.path.realpath(path) in _open_files():
            raise PermissionError(13, "The file is used by another process", str(path))


def become_another() -> None:
    """Take away, for the rest of this process, what Windows lacks."""
    for name in _PRELOADED:
        importlib.import_module(name)
    fcntl: Any = importlib.import_module("fcntl")
    assert "protocol" not in sys.modules
    own_open, unlink, replace, rename = os.open, os.unlink, os.replace, os.rename
    here = os.path.realpath(".")

    def open_(path: Any, flags: int, mode: int = 0o777, **_: Any) -> int:
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", str(path))
        if os.path.realpath(path).startswith(here) and not flags & _BINARY:
            raise AssertionError(f"{path} was opened for text")
        descriptor = own_open(path, flags & ~(_BINARY | _TEMPORARY), mode)
        if flags & _TEMPORARY:
            unlink(path)
        return descriptor

    def unlink_(path: Any, **_: Any) -> None:
        _closed(path)
        unlink(path)

    def replace_(old: Any, new: Any, **_: Any) -> None:
        _closed(old, new)
        replace(old, new)

    def rename_(old: Any, new: Any, **_: Any) -> None:
        if os.path.lexists(new):
            raise FileExistsError(17, "File exists", str(new))
        _closed(old)
        rename(old, new)

    def locking(descriptor: int, how: int, size: int) -> None:
        assert (how, size) == (2, 1)
        assert os.lseek(descriptor, 0, os.SEEK_CUR) > os.fstat(descriptor).st_size, "others are to read it"
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None

    def kill(*_: Any) -> NoReturn:
        raise AssertionError("it would end the process there")

    msvcrt: Any = ModuleType("msvcrt")
    msvcrt.locking, msvcrt.LK_NBLCK = locking, 2
    sys.modules |= {"msvcrt": msvcrt} | dict.fromkeys(_MODULES)
    for name in _NAMES:
        delattr(os, name)
    there: Any = os
    there.O_BINARY, there.O_TEMPORARY = _BINARY, _TEMPORARY
    there.open, there.unlink, there.replace, there.rename, there.kill = (
        open_,
        unlink_,
        replace_,
        rename_,
        kill,
    )
    there.remove = unlink_
    platform.system = lambda: "Windows"


if __name__ == "__main__":
    become_another()
    role = sys.argv.pop(1)
    assert Path("party.toml").exists()
    runpy.run_module(role, run_name="__main__", alter_sys=True)
