"""One party as an operating-system process: started with its own things only, and ended for certain."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hushbid.cluster.parties import PARTY_FILE, SESSION_FILE, Party
from hushbid.protocol import platform
from hushbid.protocol.errors import ExitCode, HushbidError
from hushbid.protocol.runtime.interrupts import LAUNCHED

__all__ = ["PartyFailed", "PartyProcess", "party_environment"]

_RESULT: Final = "result.json"
_LOG: Final = "log.txt"

_INHERITED: Final = frozenset(
    {"PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"}
    | {"XDG_STATE_HOME"}
    | {"PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}
)
_INHERITED_PREFIXES: Final = ("LC_", "OPENBLAS_", "OMP_", "MKL_", "BLIS_", "VECLIB_", "NPY_")
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Parties share the machine, and the work of one is small."""


class PartyFailed(HushbidError):
    """A party's process failed, and the run with it, with the exit code of the party."""

    def __init__(self, party: str, what: str, *, advice: str, exit_code: ExitCode) -> None:
        super().__init__(f"{party}: {what}", advice=advice)
        self.party = party
        self.exit_code = exit_code


def party_environment(own: Mapping[str, str]) -> dict[str, str]:
    """The part of the operator's own environment that a party's process gets.

    It is what Python, the C library and BLAS need, and where the list of known ledgers is. The operator's
    HUSHBID_ variables, for one, name things that no party may know.
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


class PartyProcess:
    """A party's process. Its result and its text for people go to files of its directory.

    Args:
        launcher: The reading end of a pipe that nobody writes to: the party stops when its other end is
            closed, as it is when this process ends, however it ends.
        progress: A descriptor that the process is to write its progress to.
    """

    def __init__(self, party: Party, *, launcher: int, progress: int | None = None) -> None:
        self.party = party
        self.stopped = False
        """Whether we told it to end."""
        # -P: its working directory holds data, and is no place to import from.
        arguments = [sys.executable, "-P", "-m", f"hushbid.{party.role}"]
        arguments += ["--session", SESSION_FILE, "--config", PARTY_FILE, "--json"]
        if progress is not None:
            arguments += ["--progress-fd", str(progress)]
        with _new_file(party.directory / _RESULT) as result, _new_file(party.directory / _LOG) as log:
            self._process = subprocess.Popen(
                arguments,
                cwd=party.directory,
                env=party_environment(os.environ) | {LAUNCHED: "1"},
                stdin=launcher,
                stdout=result,
                stderr=log,
                pass_fds=() if progress is None else (progress,),
                # Out of the terminal's process group: Ctrl-C is for us, who end the parties in good order.
                process_group=0,
            )

    @property
    def identifier(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def failed(self) -> bool:
        """Whether it has ended otherwise than well, and not because we said so."""
        return not self.stopped and self._process.poll() not in (None, ExitCode.DONE)

    @property
    def signal(self) -> signal.Signals | None:
        code = self._process.poll()
        return signal.Signals(-code) if code is not None and code < 0 else None

    @property
    def exit_code(self) -> ExitCode:
        """Its exit code; a signal, or a code that is not ours, counts as a failure."""
        code = self._process.poll()
        return ExitCode(code) if code in set(ExitCode) else ExitCode.FAILED

    def stop(self) -> None:
        if self.running:
            self.stopped = True
            self._process.terminate()

    def kill(self) -> None:
        if self.running:
            self.stopped = True
            self._process.kill()

    def wait(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def result(self) -> dict[str, Any] | None:
        """The JSON object that it printed; None if it printed none."""
        try:
            found = json.loads((self.party.directory / _RESULT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def log_tail(self, lines: int) -> list[str]:
        try:
            text = (self.party.directory / _LOG).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
        return text.splitlines()[-lines:]


def _new_file(path: Path) -> Any:
    return os.fdopen(platform.open_file(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY), "wb")
