"""One party as an operating-system process: started with only its own things, and reliably ended."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any, Final

from hushbid.cluster.parties import PARTY_FILE, SESSION_FILE, Party
from hushbid.protocol import platform
from hushbid.protocol.errors import ExitCode, HushbidError
from hushbid.running.fork_server import ForkServer

__all__ = ["PartyFailed", "PartyProcess"]

_RESULT: Final = "result.json"
_LOG: Final = "log.txt"


class PartyFailed(HushbidError):
    """A party's process failed, and the run with it, with the exit code of the party."""

    def __init__(self, party: str, what: str, *, advice: str, exit_code: ExitCode) -> None:
        super().__init__(f"{party}: {what}", advice=advice)
        self.party = party
        self.exit_code = exit_code


class PartyProcess:
    """A party's process. Its result and its text for people go to files of its directory.

    Args:
        server: Forks the process.
        launcher: The reading end of a pipe that nobody writes to: the party stops when the other end is
            closed, which happens when this process ends, however it ends.
        progress: A descriptor for the process to write its progress to.
    """

    def __init__(
        self, party: Party, *, server: ForkServer, launcher: int, progress: int | None = None
    ) -> None:
        self.party = party
        self.stopped = False
        """Whether we told it to end."""
        with _new_file(party.directory / _RESULT) as result, _new_file(party.directory / _LOG) as log:
            self._process = server.fork(
                f"hushbid.{party.role}",
                ["--session", SESSION_FILE, "--config", PARTY_FILE, "--json"],
                directory=party.directory,
                streams=(launcher, result.fileno(), log.fileno()),
                progress=progress,
            )

    @property
    def identifier(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def failed(self) -> bool:
        """Whether it failed, other than by our ending it."""
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
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        if self.running:
            self.stopped = True
            self._process.send_signal(platform.KILL)

    def wait(self, seconds: float) -> bool:
        return self._process.wait(seconds)

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
