"""What a program does, and ends with, where a reader of its output has gone or stderr takes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

TRANSCRIPT = Path(__file__).parents[3] / "golden/transcripts/tender/curator.transcript"
GONE = [("stdout",), ("stderr",), ("stdout", "stderr")]

VERB = """
import sys
from pathlib import Path
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.runtime.command import run_verb, say, tell
from hushbid.protocol.runtime.interrupts import run_main

def work():
    for number in range(2_000):
        say(f"remark {number}")
        tell(f"line {number}")
    Path(sys.argv[1]).touch()
    return {"well": False}

run_main(lambda: run_verb(
    work, as_json=False, show=lambda _: tell("over"), ends=lambda result: ExitCode(3 - result["well"])
))
"""

INTERRUPTED = """
import fcntl
import os
import signal
import sys
from hushbid.protocol.runtime.standard_streams import outlive_readers

def interrupt(number, frame):
    raise KeyboardInterrupt

reading, writing = os.pipe()
os.dup2(writing, 1)
outlive_readers()
signal.signal(signal.SIGIO, interrupt)
fcntl.fcntl(reading, fcntl.F_SETOWN, os.getpid())
fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
try:
    sys.stdout.write("a line\\n")
    sys.stdout.flush()
    raise SystemExit("the signal did not come")
except KeyboardInterrupt:
    signal.signal(signal.SIGIO, signal.SIG_IGN)
print("over", flush=True)
assert os.read(reading, 100) == b"a line\\nover\\n"
"""
"""It has a signal come with what it writes, before the write has returned."""


def ended(words: Sequence[object], gone: Sequence[str], unbuffered: str = "") -> int:
    """The exit code of Python with these arguments; these of its streams have lost their reader."""
    reading, writing = os.pipe()
    os.close(reading)
    lost: dict[str, Any] = {
        name: writing if name in gone else subprocess.DEVNULL for name in ("stdout", "stderr")
    }
    program = [sys.executable, *map(str, words)]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    try:
        return subprocess.run(program, timeout=240, check=False, env=environment, **lost).returncode
    finally:
        os.close(writing)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("gone", GONE)
def test_work_goes_on_to_its_end_and_its_exit_code(
    gone: Sequence[str], unbuffered: str, tmp_path: Path
) -> None:
    assert ended(["-c", VERB, tmp_path / "done"], gone, unbuffered) == 3
    assert (tmp_path / "done").exists()


def test_a_stderr_that_is_full_ends_no_work_and_a_stdout_does(tmp_path: Path) -> None:
    for stream, code, done in (("stderr", 3, True), ("stdout", 1, False)):
        with Path("/dev/full").open("w") as full:
            lost: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: full}
            words = [sys.executable, "-c", VERB, str(tmp_path / stream)]
            assert subprocess.run(words, timeout=240, check=False, **lost).returncode == code
        assert (tmp_path / stream).exists() == done


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_line_that_is_interrupted_while_it_is_written_is_written_once(unbuffered: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("gone", GONE)
@pytest.mark.parametrize(
    ("words", "code"), [(["-h"], 0), (["--version"], 0), (["nonsense"], 4), (["nonsense", "--json"], 4)]
)
def test_what_no_verb_prints_is_no_exception(words: Sequence[str], code: int, gone: Sequence[str]) -> None:
    assert ended(["-m", "hushbid", *words], gone) == code


def test_a_watch_that_nobody_reads_ends(tmp_path: Path) -> None:
    assert ended(["-m", "hushbid", "status", "--watch", tmp_path / "none", "--json"], ["stdout"]) == 0


@pytest.mark.parametrize("private", [(), ("--private", "--json")])
def test_a_transcript_that_nobody_reads_is_not_read_on(private: Sequence[str], tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.transcript"
    held = bytearray(TRANSCRIPT.read_bytes())
    held[-1] ^= 1
    damaged.write_bytes(held)
    words = ["-m", "hushbid", "transcript", "show", damaged, *private]
    assert ended(words, ["stdout"]) == 0
    assert ended(words, ["stderr"]) == 1, "it was read to its damaged end"
