"""The fork server: ``python -m hushbid.running.forking SOCKET`` imports what parties need, and forks them.

It has one thread, and opens and draws nothing. Random generators that imports may create are safe after a
fork: Python's and OpenSSL's are reseeded, `secrets`, libsodium and NumPy's `default_rng` ask the system, and
NumPy's global one, which nothing here draws from, is reseeded by `_become`.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, NoReturn

from hushbid.protocol import platform
from hushbid.protocol.runtime.interrupts import run_main

__all__ = ["main"]

_IMPORTED: Final = (
    "hushbid.curator.cli",
    "hushbid.curator.process",
    "hushbid.owner.cli",
    "hushbid.owner.process",
    "hushbid.consumer.cli",
    "hushbid.consumer.process",
    "hushbid.protocol.config.loading",
    "hushbid.protocol.runtime.files.signed_files",
    # Most sessions import these where they need them.
    "asyncio",
    "email.parser",
    "numpy.random",
    "opendp.domains",
    "opendp.measurements",
    "opendp.metrics",
    "scipy.special",
)
"""Modules that parties import before or during their session."""
_NOT_FOR_ARRAYS: Final = "pandas"
"""scikit-learn imports it if it is installed, to accept its tables; that takes longer than all our
imports.
"""
_LEAVE_SECONDS: Final = 10.0
"""Seconds that parties get to stop in good order when their launcher is gone."""
_LOOK_SECONDS: Final = 0.02
_LONGEST: Final = 65_536
"""Most bytes of a request."""
_DESCRIPTORS: Final = 4
"""Most descriptors of a request: three streams, and one for progress."""
_DIES_WITH_PARENT: Final = 1
"""PR_SET_PDEATHSIG, for prctl(2)."""
_NAMED: Final = 15
"""PR_SET_NAME."""


@dataclass(frozen=True)
class _Task:
    """What a forked process should become: ``python -P -m MODULE ARGUMENTS``.

    Attributes:
        descriptors: Its stdin, stdout and stderr, and one more that its arguments name.
    """

    module: str
    arguments: Sequence[str]
    directory: str
    descriptors: Sequence[int]


def main() -> NoReturn:
    """Serve until the launcher is gone; in a forked process, become the requested program."""
    with socket.socket(fileno=int(sys.argv[1])) as control:
        control.set_inheritable(False)
        gc.disable()  # imported objects stay
        for module in _IMPORTED:
            import_module(module)
        task = _Server(control).run()
    if task is not None:
        _become(task)
    sys.exit()


class _Server:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._running: set[int] = set()
        """Processes that have not ended."""
        self._ended: list[int] = []
        """Ended processes. They are reaped last, so that their ids are not reused meanwhile."""

    def run(self) -> _Task | None:
        """Serve until the launcher is gone; returns in each forked process, with what it should become."""
        woken, waker = os.pipe()
        for descriptor in (woken, waker):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        task: _Task | None = None
        try:
            while task is None:
                control = self._control.fileno()
                ready = select.select([control, woken], [], [])[0]
                if woken in ready:
                    os.read(woken, _LONGEST)
                    self._tell_ended()
                if control in ready:
                    said, descriptors = self._hear()
                    if not said:
                        break
                    asked = json.loads(said)
                    if "load" in asked:
                        _load(asked["load"])
                    else:
                        task = self._fork(asked, descriptors)
        finally:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(woken)
            os.close(waker)
        if task is None:
            self._end_all()
        return task

    def _hear(self) -> tuple[bytes, Sequence[int]]:
        """The launcher's next request; empty when the launcher is gone, even if it left answers unread."""
        try:
            said, descriptors, _, _ = socket.recv_fds(self._control, _LONGEST, _DESCRIPTORS)
        except ConnectionResetError:
            return b"", ()
        return said, descriptors

    def _fork(self, asked: dict[str, Any], descriptors: Sequence[int]) -> _Task | None:
        ours = os.getpid()
        gc.freeze()  # a forked process's collector would write to all objects, and so copy their memory
        try:
            pid = platform.fork()
        except OSError as error:
            pid = -1
            self._say({"errno": error.errno})
        if pid == 0:
            _die_with(ours)
            return _Task(asked["module"], asked["arguments"], asked["directory"], descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        if pid > 0:
            self._running.add(pid)
            self._say({"forked": pid})
        return None

    def _tell_ended(self) -> None:
        for pid in sorted(self._running):
            found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                self._running.remove(pid)
                self._ended.append(pid)
                code = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
                self._say({"ended": pid, "code": code})

    def _say(self, what: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # then nobody asks any more
            self._control.send(json.dumps(what).encode())

    def _end_all(self) -> None:
        """End what still runs after its grace period: a party stops when its launcher is gone."""
        deadline = time.monotonic() + _LEAVE_SECONDS
        while self._running and time.monotonic() < deadline:
            self._tell_ended()
            time.sleep(_LOOK_SECONDS)
        for pid in self._running:
            platform.send_signal(pid, platform.KILL)
        for pid in (*self._running, *self._ended):
            os.waitpid(pid, 0)


def _load(modules: Sequence[str]) -> None:
    """Import what only some sessions need. A failed import shows up later, in whoever needs the module."""
    absent = _NOT_FOR_ARRAYS not in {*sys.modules, *modules}
    if absent:
        without: dict[str, Any] = sys.modules
        without[_NOT_FOR_ARRAYS] = None  # as if it were not installed
    try:
        for module in modules:
            with contextlib.suppress(Exception):
                import_module(module)
    finally:
        if absent:
            del sys.modules[_NOT_FOR_ARRAYS]


def _die_with(parent: int) -> None:
    """Have the system end this process with its parent, however that ends."""
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, int(platform.KILL))
    if os.getppid() != parent:
        os._exit(1)


def _become(task: _Task) -> None:
    """Go on as ``python -P -m MODULE ARGUMENTS`` would; the fork server's own descriptors are closed."""
    os.setpgid(0, 0)
    os.chdir(task.directory)
    arguments = list(task.arguments)
    for stream, descriptor in enumerate(task.descriptors[:3]):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        _open_anew(name, number)
    for descriptor in task.descriptors[3:]:
        arguments += ["--progress-fd", str(descriptor)]
    ctypes.CDLL(None).prctl(_NAMED, task.module.encode())
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(None)
    gc.enable()
    sys.argv[1:] = arguments
    runpy.run_module(task.module, run_name="__main__", alter_sys=True)


def _open_anew(name: str, descriptor: int) -> None:
    """Give a stream of Python its present descriptor: the old one may have been seekable; a pipe is not."""
    before: Any = getattr(sys, name)  # None if the launcher has it closed
    stream = open(  # noqa: SIM115 - it is open as long as the process is
        descriptor,
        "w" if descriptor else "r",
        buffering=1 if name == "stderr" else -1,
        encoding=getattr(before, "encoding", "utf-8"),
        errors=getattr(before, "errors", "backslashreplace"),
        closefd=False,
    )
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)


if __name__ == "__main__":
    run_main(main)
