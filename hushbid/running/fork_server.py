"""A fork server, from the launcher's side: one process imports what parties need and forks each of them.

A party's Python takes 0.4 s for imports before its first line runs. The fork server
(`hushbid.running.forking`) imports once, while the launcher reads the cluster. It has a party's environment,
but no party's data, no key, no file of the run: a party forked from it holds only its own things.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from hushbid.protocol import platform
from hushbid.protocol.errors import HushbidError
from hushbid.protocol.runtime.interrupts import LAUNCHED

__all__ = ["ForkServer", "Forked", "party_environment"]

_MODULE: Final = "hushbid.running.forking"
_LONGEST: Final = 65_536
"""Most bytes of an answer."""
_CLOSING_SECONDS: Final = 5.0

_INHERITED: Final = frozenset(
    {"PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"}
    | {"XDG_STATE_HOME"}
    | {"PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}
)
_INHERITED_PREFIXES: Final = ("LC_", "OPENBLAS_", "OMP_", "MKL_", "BLIS_", "VECLIB_", "NPY_")
_ONE_THREAD: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""Settings of BLAS: parties share the machine, and each has little to compute. And of pyarrow, which starts a
thread when it is imported: what forks must have one.
"""


def party_environment(own: Mapping[str, str]) -> dict[str, str]:
    """The part of the operator's own environment that a party's process gets.

    It contains what Python, the C library and BLAS need, and the location of the list of known ledgers. The
    operator's HUSHBID_ variables, for example, name things that no party may know.
    """
    kept = {
        name: value
        for name, value in own.items()
        if name in _INHERITED or name.startswith(_INHERITED_PREFIXES)
    }
    # The same hushbid as here, installed or not.
    places = own.get("PYTHONPATH", "").split(os.pathsep)
    path = [Path(__file__).parents[2], *(Path(place) for place in places if place)]
    return _ONE_THREAD | kept | {"PYTHONPATH": os.pathsep.join(str(place.resolve()) for place in path)}


class ForkServer:
    """A process that forks others; a context manager. It ends with us, and the forked processes end with it.

    Raises:
        ConfigError: The system is not Linux.
        HushbidError: It cannot be started.
    """

    def __init__(self) -> None:
        platform.check_linux("A run, whose curator is a process of this machine,")
        self._forked: dict[int, Forked] = {}
        """The processes not yet known to have ended, by process id."""
        self._used = False
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self._process = start(theirs.fileno())
        except OSError as error:
            self._ours.close()
            raise HushbidError(
                f"The process that parties are forked from cannot be started: {error.strerror}.",
                advice="Check this machine's limits on processes and open files.",
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def fork(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        directory: Path,
        streams: tuple[int, int, int],
        progress: int | None = None,
    ) -> Forked:
        """A new process that runs ``python -P -m MODULE ARGUMENTS`` in a process group of its own.

        Args:
            directory: Its working directory.
            streams: Its stdin, stdout and stderr.
            progress: A further descriptor for it, whose number is appended as ``--progress-fd``.

        Raises:
            OSError: The system cannot fork.
            HushbidError: The fork server has ended.
        """
        self._used = True
        asked = {"module": module, "arguments": list(arguments), "directory": str(directory)}
        descriptors = [*streams, *([] if progress is None else [progress])]
        try:
            socket.send_fds(self._ours, [json.dumps(asked).encode()], descriptors)
        except (BrokenPipeError, ConnectionResetError):
            raise self._ended_by_itself() from None
        while True:
            answer = self._answer()
            if "forked" in answer:
                forked = self._forked[answer["forked"]] = Forked(self, answer["forked"])
                return forked
            if "errno" in answer:
                raise OSError(answer["errno"], os.strerror(answer["errno"]))
            if not answer:
                raise self._ended_by_itself()

    def load(self, modules: Sequence[str]) -> None:
        """Start importing modules that processes forked from now on will need, and return at once."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the next fork reports it
            self._ours.send(json.dumps({"load": list(modules)}).encode())

    def close(self) -> None:
        """End the server, and every process forked from it that still runs."""
        if not self._used:
            self._process.kill()  # it may still be importing, and has nobody to look after
        for forked in tuple(self._forked.values()):
            forked.send_signal(platform.KILL)
        self._ours.close()
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_CLOSING_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()

    def look(self, seconds: float) -> None:
        """Wait until a process has ended, at most so many seconds, and note those that have."""
        deadline = time.monotonic() + seconds
        while self._forked:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._ours], [], [], left)[0]:
                return
            if "ended" in self._answer():
                deadline = time.monotonic()

    def _answer(self) -> dict[str, Any]:
        """The server's next message, once it comes; empty when it and all its processes have ended."""
        try:
            said = self._ours.recv(_LONGEST)
        except ConnectionResetError:
            said = b""
        if not said:
            for forked in self._forked.values():
                forked.code = -platform.KILL  # each asked the system for it
            self._forked.clear()
            return {}
        answer: dict[str, Any] = json.loads(said)
        if answer.get("ended") in self._forked:  # otherwise an interrupt hid that it was forked
            self._forked.pop(answer["ended"]).code = answer["code"]
        return answer

    def _ended_by_itself(self) -> HushbidError:
        return HushbidError(
            "The process that parties are forked from has ended.",
            advice="If nobody ended it, check whether the machine ran out of memory.",
        )


class Forked:
    """A process that a fork server made.

    Attributes:
        code: Its exit code, a negative number for a signal; None: it is not known to have ended.
    """

    def __init__(self, server: ForkServer, pid: int) -> None:
        self._server, self.pid = server, pid
        self.code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, a negative number for a signal; None while it runs."""
        if self.code is None:
            self._server.look(0.0)
        return self.code

    def wait(self, seconds: float) -> bool:
        """Wait at most so many seconds until it has ended; returns whether it has."""
        deadline = time.monotonic() + seconds
        while self.poll() is None:
            left = deadline - time.monotonic()
            if left <= 0.0:
                return False
            self._server.look(left)
        return True

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it runs. Its id is not reused before the fork server has ended."""
        if self.poll() is None:
            platform.send_signal(self.pid, number)


def start(control: int) -> subprocess.Popen[bytes]:
    """A fork server that talks over this socket."""
    return subprocess.Popen(
        # -P: a party's working directory holds data, and must not be imported from.
        [sys.executable, "-P", "-m", _MODULE, str(control)],
        # One thread, whatever was requested: a fork copies no more, and parties use no more for BLAS.
        env=party_environment(os.environ) | _ONE_THREAD | {LAUNCHED: "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(control,),
        # Outside the terminal's process group: Ctrl-C is for us, and we end the parties in good order.
        process_group=0,
    )
