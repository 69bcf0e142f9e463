"""What a container does when its party ends; this needs no engine."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hushbid.protocol.errors import ExitCode, Restart
from tests.conftest import ROOT

SCRIPT = ROOT / "containers" / "restarting.py"
STARTS = 6
"""With the first."""


def started(place: Path, program: str) -> subprocess.Popen[str]:
    """A party that adds a line to a file at each start, and then follows the program."""
    noted = f"open({str(place / 'starts')!r}, 'a').write('once\\n')"
    command = [sys.executable, str(SCRIPT), sys.executable, "-c", f"{noted}\n{program}"]
    return subprocess.Popen(command, text=True)


def starts(place: Path) -> int:
    file = place / "starts"
    return len(file.read_text().splitlines()) if file.exists() else 0


@pytest.mark.parametrize("code", ExitCode)
def test_it_is_started_again_only_where_that_may_help(tmp_path: Path, code: ExitCode) -> None:
    assert started(tmp_path, f"raise SystemExit({code:d})").wait(60) == code
    assert starts(tmp_path) == (STARTS if code.restart is Restart.AGAIN else 1)


def test_a_party_that_crashed_once_ends_as_its_second_start_does(tmp_path: Path) -> None:
    program = f"raise SystemExit(0 if len(open({str(tmp_path / 'starts')!r}).readlines()) > 1 else 5)"
    assert started(tmp_path, program).wait(60) == 0
    assert starts(tmp_path) == 2


def test_one_that_a_signal_ended_crashed(tmp_path: Path) -> None:
    assert started(tmp_path, "import os; os.kill(os.getpid(), 9)").wait(60) == 128 + 9
    assert starts(tmp_path) == STARTS


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_party_and_nothing_is_started_after_it(tmp_path: Path, number: int) -> None:
    program = (
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(1))\n"
        f"open({str(tmp_path / 'ready')!r}, 'w').close()\n"
        "time.sleep(60)"
    )
    party = started(tmp_path, program)
    deadline = time.monotonic() + 60
    while not (tmp_path / "ready").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    party.send_signal(number)
    assert party.wait(60) == 1
    assert starts(tmp_path) == 1
