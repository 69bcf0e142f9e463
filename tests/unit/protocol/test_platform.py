"""One module knows the differences between operating systems; the rest asks it."""

from __future__ import annotations

import ast
import fcntl
import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from hushbid.protocol import platform
from hushbid.protocol.runtime.files.private_files import read_private
from hushbid.text_files import one_at_a_time
from tests.conftest import ROOT

MODULES = {"fcntl", "grp", "msvcrt", "pwd", "resource", "termios"}
ATTRIBUTES = {
    "fchmod", "fork", "geteuid", "getpgid", "getuid", "kill", "killpg", "mkfifo", "posix_fallocate",
    "sched_getaffinity", "setsid", "umask", "O_BINARY", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW",
    "O_NONBLOCK", "O_TEMPORARY", "SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2",
}  # fmt: skip
"""Of `os` and `signal`; `open` besides, as what it opens is text on Windows."""
NAMED = re.compile(rf"\b(?:os|signal|{'|'.join(MODULES)})\b")
"""What a source that asks has in it; few have, and parsing all takes a second."""


def asked_of_the_system(source: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)) if NAMED.search(source) else ():
        match node:
            case ast.Import(names=names):
                found |= {name.name for name in names} & MODULES
            case ast.ImportFrom(module=str(module)):
                found |= {module} & MODULES
                found |= {name.name for name in node.names if module in ("os", "signal")} & ATTRIBUTES
            case ast.Attribute(value=ast.Name(id="os" | "signal" as owner), attr=name):
                found |= {name} & (ATTRIBUTES | ({"open"} if owner == "os" else set()))
    return found


def test_only_one_module_asks_which_system_this_is() -> None:
    modules = [
        path
        for package in ("consumer", "curator", "hushbid", "owner", "protocol")
        for path in (ROOT / package).rglob("*.py")
    ]
    asking = {
        str(path.relative_to(ROOT)): found
        for path in modules
        if (found := asked_of_the_system(path.read_text(encoding="utf-8")))
    }
    assert asking.pop("protocol/platform.py") >= {"fchmod", "geteuid", "kill", "O_DIRECTORY", "open"}
    assert asking == {}


@pytest.mark.parametrize(
    "source",
    [
        "import fcntl",
        "from resource import getrlimit",
        "from os import fork",
        "os.open(p, f)",
        "signal.SIGHUP",
    ],
)
def test_that_test_sees(source: str) -> None:
    assert asked_of_the_system(source)


def test_without_modes_none_refuses_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"kept")
    path.chmod(0o644)
    assert platform.others_may_use(path.stat())
    monkeypatch.delattr(os, "geteuid")
    assert read_private(path, 10) == b"kept"
    assert platform.is_running(2**22 + 1), "what cannot be asked is not denied"


@pytest.mark.parametrize("call", [True, False], ids=["reserved", "written"])
def test_an_unnamed_file_has_its_room(call: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not call:
        monkeypatch.delattr(os, "posix_fallocate")
    size = 2**20 + 5
    descriptor = platform.unnamed_file(tmp_path / "features", size)
    status = os.fstat(descriptor)
    os.close(descriptor)
    assert (status.st_size, stat.S_IMODE(status.st_mode)) == (size, 0o600)
    assert status.st_blocks * 512 >= size
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("directories", [True, False], ids=["directory", "file in it"])
def test_two_change_a_file_one_after_the_other(
    directories: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not directories:
        monkeypatch.delattr(os, "O_DIRECTORY")
        monkeypatch.setitem(sys.modules, "fcntl", None)
        monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_NBLCK=2, locking=locking))
    inside = threading.Event()

    def second() -> None:
        with one_at_a_time(tmp_path / "roster.toml"):
            inside.set()

    other = threading.Thread(target=second)
    with one_at_a_time(tmp_path / "roster.toml"):
        other.start()
        assert not inside.wait(0.2)
    assert inside.wait(10)
    other.join()


def locking(descriptor: int, _how: int, _size: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(13, "Permission denied") from None


@pytest.mark.parametrize(
    ("soft", "hard", "needed", "allowed", "then"),
    [
        (8, 64, 32, 32, 32),
        (8, 64, 8, 8, None),
        (8, 64, 71, 64, None),
        (8, 64, None, 64, 64),
        (8, -1, 71, 71, 71),
        (8, -1, None, None, -1),
        (-1, -1, 71, None, None),
    ],
)
def test_limits_of_open_files(
    soft: int,
    hard: int,
    needed: int | None,
    allowed: int | None,
    then: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`then` is the new soft limit; None: it stays."""
    became: list[tuple[int, int]] = []
    fake = SimpleNamespace(
        RLIMIT_NOFILE=7,
        RLIM_INFINITY=-1,
        getrlimit=lambda _which: (soft, hard),
        setrlimit=lambda _which, limits: became.append(limits),
    )
    monkeypatch.setitem(sys.modules, "resource", fake)
    assert platform.allow_open_files(needed) == allowed
    assert became == ([] if then is None else [(then, hard)])
    monkeypatch.setitem(sys.modules, "resource", None)
    assert platform.allow_open_files(needed) is None


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="a limit of open files, and a list of them")
def test_files_that_are_kept_back_are_there_for_our_own_alone(tmp_path: Path) -> None:
    code = (
        "import os, resource, sys\n"
        "from pathlib import Path\n"
        "from hushbid.protocol import platform\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (20, 64))\n"
        "assert platform.keep_files_back(16) == 48\n"
        "while True:\n"  # as a library does that accepts connections
        "    try:\n"
        "        os.dup(2)\n"
        "    except OSError:\n"
        "        break\n"
        "platform.sync_directory(Path('.'))\n"
        "own = [platform.open_file(f'own-{number}', os.O_CREAT | os.O_WRONLY) for number in range(16)]\n"
        "platform_says = None\n"
        "try:\n"
        "    os.dup(2)\n"
        "except OSError as error:\n"
        "    platform_says = error.strerror\n"
        "try:\n"
        "    platform.open_file('own-more', os.O_CREAT | os.O_WRONLY)\n"
        "except OSError:\n"
        "    print(len(own), platform_says, resource.getrlimit(resource.RLIMIT_NOFILE))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert said.stdout == "16 Too many open files (48, 64)\n", said.stderr


def test_the_most_memory_of_this_process_grows_with_what_it_holds_and_stays() -> None:
    before = platform.peak_memory()
    held = bytearray(before + 2**25)  # more than there ever was, whatever was given back meanwhile
    held[::4096] = b"1" * len(held[::4096])
    most = platform.peak_memory()
    assert most > before + 2**24
    del held
    assert platform.peak_memory() > most - 2**22, "the kernel counts some pages late"


def test_the_null_device_has_nothing_to_read_and_takes_anything() -> None:
    descriptor = platform.open_nowhere()
    try:
        assert os.read(descriptor, 10) == b""
        assert os.write(descriptor, b"anything") == 8
    finally:
        os.close(descriptor)


def test_no_core_dump_has_memory_of_a_party_or_of_what_it_starts() -> None:
    code = (
        "import subprocess, sys\n"
        "from hushbid.protocol.runtime.party import settle_process\n"
        "settle_process()\n"
        "look = 'import resource; print(resource.getrlimit(resource.RLIMIT_CORE)[0], "
        'int(open("/proc/self/coredump_filter").read(), 16))\'\n'
        "exec(look)\n"
        "subprocess.run([sys.executable, '-c', look])\n"
    )
    ended = subprocess.run([sys.executable, "-uc", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["0", "0", "0", "0"]


def test_where_core_dumps_cannot_be_forbidden_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object) -> None:
        raise ValueError("not allowed")

    fake = SimpleNamespace(RLIMIT_CORE=4, getrlimit=lambda _which: (8, 8), setrlimit=refuse)
    monkeypatch.setattr(Path, "write_text", lambda *_given, **_named: (_ for _ in ()).throw(OSError()))
    monkeypatch.setitem(sys.modules, "resource", fake)
    assert platform.forbid_core_dumps() is False
    monkeypatch.setitem(sys.modules, "resource", None)
    assert platform.forbid_core_dumps() is False


def locked_bytes() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmLck:"))


def test_a_secret_is_locked_in_memory_where_the_system_permits_it() -> None:
    before = locked_bytes()
    secret = os.urandom(2**14)
    if not platform.lock_in_memory(secret):
        pytest.skip("this system locks no memory")
    assert locked_bytes() - before >= 12, "kB: whole pages of 16 kB"


def test_where_memory_cannot_be_locked_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert platform.lock_in_memory(b"") is False
    refuses = SimpleNamespace(
        CDLL=lambda _name: SimpleNamespace(mlock=lambda *_given: -1),
        cast=lambda *_given: 0,
        c_char_p=lambda _given: 0,
        c_void_p=None,
        c_size_t=int,
    )
    for ctypes in (refuses, SimpleNamespace(CDLL=lambda _name: SimpleNamespace()), None):
        monkeypatch.setitem(sys.modules, "ctypes", ctypes)
        assert platform.lock_in_memory(b"secret") is False


def groups(tmp_path: Path, own: str, **files: str) -> float | None:
    """The quota of a process in these control groups; `__` in a file's name stands for a slash."""
    for name, content in files.items():
        path = tmp_path / "cgroup" / name.replace("__", "/").replace("-", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "own").write_text(own)
    return platform._processor_quota(tmp_path / "cgroup", tmp_path / "own")


def test_a_quota_of_processor_time_counts_like_processors(tmp_path: Path) -> None:
    assert groups(tmp_path / "a", "0::/\n", **{"cpu-max": "max 100000\n"}) is None
    assert groups(tmp_path / "b", "0::/\n", **{"cpu-max": "150000 100000\n"}) == 1.5
    unit = {
        "cpu-max": "max 100000\n",
        "system__cpu-max": "200000 100000\n",
        "system__unit__cpu-max": "max 100000\n",
    }
    assert groups(tmp_path / "c", "0::/system/unit\n", **unit) == 2.0
    former = {"cpu__cpu-cfs_quota_us": "50000\n", "cpu__cpu-cfs_period_us": "100000\n"}
    assert groups(tmp_path / "d", "3:cpu,cpuacct:/\n2:pids:/elsewhere\n", **former) == 0.5
    none = {"cpu__cpu-cfs_quota_us": "-1\n", "cpu__cpu-cfs_period_us": "100000\n"}
    assert groups(tmp_path / "e", "3:cpu,cpuacct:/\n", **none) is None
    assert groups(tmp_path / "f", "") is None


@pytest.mark.parametrize(("quota", "found"), [(None, 3), (0.5, 1), (1.5, 2), (2.0, 2), (64.0, 3)])
def test_the_fewer_of_processors_and_quota_count(
    quota: float | None, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: range(3), raising=False)
    monkeypatch.setattr(platform, "_processor_quota", lambda *_: quota)
    assert platform.cores() == found


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "process", "taken"),
    [
        (0o440, 0, 20, (1000, 20, ()), True),
        (0o640, 0, 30, (1000, 20, (30,)), True),
        (0o440, 0, 20, (0, 20, ()), False),
        (0o440, 5, 20, (1000, 20, ()), False),
        (0o440, 0, 40, (1000, 20, (30,)), False),
        (0o444, 0, 20, (1000, 20, ()), False),
        (0o460, 0, 20, (1000, 20, ()), False),
    ],
)
def test_a_file_of_root_that_our_group_alone_may_read_is_mounted_for_us(
    mode: int,
    uid: int,
    gid: int,
    process: tuple[int, int, tuple[int, ...]],
    taken: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in zip(("geteuid", "getegid", "getgroups"), process, strict=True):
        monkeypatch.setattr(os, name, lambda value=value: value)
    status = os.stat_result((stat.S_IFREG | mode, 0, 0, 1, uid, gid, 0, 0, 0, 0))
    assert platform.is_mounted_for_us(status) is taken
