"""Run a party, and start it again where that can help: what a container of docker-compose.yml does.

    python restarting.py COMMAND...

A party that crashed goes on from its transcript. One that ended with 0 is done, with 1 or 3 its session is
over, and with 4 it was refused for its command line, its files or a hopeless rehearsal, and would be again;
an engine's own policy knows no exit codes, and would start it five times in vain. What was told to stop is
not started again.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from types import FrameType

STARTS = 6
"""At most, the first included."""
FINAL = frozenset({0, 1, 3, 4})
"""Exit codes after which another start would change nothing (docs/commands.md, "Exit codes")."""
STOPPING = (signal.SIGTERM, signal.SIGINT)
PAUSE = 0.1
"""Seconds before the second start; twice as many before each of the next."""


class Party:
    """A command that is started again.

    Args:
        command: The program and its arguments.
    """

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._child: subprocess.Popen[bytes] | None = None
        self._signals: list[int] = []
        """Those that came."""

    def stop(self, number: int, _frame: FrameType | None) -> None:
        """Pass a signal on, and start nothing after it."""
        self._signals.append(number)
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)

    def run(self) -> int:
        """Run it to its last end.

        Returns:
            The exit code of the last start, 128 + n if signal n ended it.
        """
        code = 0
        for start in range(STARTS):
            if start:
                time.sleep(PAUSE * 2 ** (start - 1))  # noqa: TID251 - the first process of a container
            if self._signals:
                break
            self._child = subprocess.Popen(self._command)
            if self._signals:  # they came before there was a child to pass them on to
                self._child.terminate()
            ended = self._child.wait()
            code = 128 - ended if ended < 0 else ended
            if self._signals or code in FINAL:
                break
        return code


def main() -> None:
    """Run the command that the arguments are."""
    party = Party(sys.argv[1:])
    for number in STOPPING:
        signal.signal(number, party.stop)
    sys.exit(party.run())


if __name__ == "__main__":
    main()
