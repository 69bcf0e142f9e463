"""Parties' processes that are forked from one with all imports: half a second less for each.

Their sockets, files, signals, limits and exit codes are their own. They do not show how Python is started and
by whom: tests of that start Python. A forked ``hushbid run`` forks the fork server that it would have
started.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Final, Protocol

from hushbid.protocol.runtime.interrupts import LAUNCHED
from hushbid.running import fork_server

__all__ = ["ForkedProcess", "PartyProcess", "ran"]

_FORKS: Final = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.processes.one_blas_thread", "tests.processes.frozen"])
_NEW_NETWORK: Final = 0x40000000
"""CLONE_NEWNET, for setns(2)."""
_SHORTLY: Final = 0.005


class PartyProcess(Protocol):
    """The part of `subprocess.Popen` that tests use; `ForkedProcess` has it too."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, number: int, /) -> None: ...

    def kill(self) -> None: ...


class ForkedProcess:
    """``python -P -m MODULE ARGUMENTS``, forked.

    Args:
        directory: Its working directory.
        environment: Its whole environment.
        out, err: Existing files.
        network: The network namespace that it runs in, as a file; None: ours.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        directory: Path,
        environment: Mapping[str, str],
        out: Path,
        err: Path,
        network: Path | None = None,
    ) -> None:
        self._process = _FORKS.Process(
            target=_become, args=(module, tuple(arguments), directory, dict(environment), out, err, network)
        )
        self._process.start()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended.

        Raises:
            subprocess.TimeoutExpired: It has not, in so many seconds.
        """
        if not wait([self._process.sentinel], timeout):
            raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
        self._process.join()
        code = self._process.exitcode
        assert code is not None
        return code

    def send_signal(self, number: int, /) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def ran(
    module: str, arguments: Sequence[str], directory: Path, *, seconds: float
) -> subprocess.CompletedProcess[str]:
    """The result of `subprocess.run` for ``python -P -m MODULE ARGUMENTS``, forked, in this environment.

    Raises:
        subprocess.TimeoutExpired: It has not ended in so many seconds.
    """
    with tempfile.TemporaryDirectory() as place:
        out, err = Path(place, "out"), Path(place, "err")
        for stream in (out, err):
            stream.touch()
        process = ForkedProcess(
            module, arguments, directory=directory, environment=os.environ, out=out, err=err
        )
        try:
            code = process.wait(seconds)
        finally:
            process.kill()
        return subprocess.CompletedProcess([module, *arguments], code, out.read_text(), err.read_text())


def _become(
    module: str,
    arguments: tuple[str, ...],
    directory: Path,
    environment: dict[str, str],
    out: Path,
    err: Path,
    network: Path | None,
) -> None:
    """In the new process: take over what `subprocess.Popen` would have given it."""
    for stream, path in ((sys.stdout, out), (sys.stderr, err)):
        opened = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(opened, stream.fileno())
        os.close(opened)
    if network is not None:
        _enter(network)
    if module == "hushbid":
        vars(fork_server)["start"] = _ForkedServer
    _run(module, arguments, directory, environment)


def _run(module: str, arguments: Sequence[str], directory: Path, environment: Mapping[str, str]) -> None:
    # Shells start background jobs with SIGINT ignored, and who is forked inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _enter(network: Path) -> None:
    """Enter a network namespace; `os.setns` exists from Python 3.12 on."""
    with network.open("rb") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "setns", str(network))


class _ForkedServer:
    """The part of `subprocess.Popen` that `hushbid.running.fork_server` uses, forked by its caller."""

    def __init__(self, control: int) -> None:
        self._code: int | None = None
        self.pid = os.fork()
        if self.pid:
            return
        code = 1
        try:
            os.setpgid(0, 0)
            # As exec would: a pipe has an end only once nobody else holds it.
            kept = {0, sys.stdout.fileno(), sys.stderr.fileno(), control}
            for number in {int(name) for name in os.listdir("/dev/fd")} - kept:
                with contextlib.suppress(OSError):  # what the list was read from
                    os.close(number)
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            environment = fork_server.party_environment(os.environ) | {LAUNCHED: "1"}  # as `start` does
            _run("hushbid.running.forking", [str(control)], Path.cwd(), environment)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
            os._exit(code)

    def wait(self, timeout: float | None = None) -> int:
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while self._code is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self._code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired("a forked server", timeout or 0.0)
            else:
                time.sleep(_SHORTLY)
        return self._code

    def kill(self) -> None:
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
