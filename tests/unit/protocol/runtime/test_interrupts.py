"""Ctrl-C before a verb has begun, and closed standard streams."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

MAIN = """
import importlib.abc, runpy, sys

class Interrupted(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "typer":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("program", ["hushbid", "curator", "owner", "consumer"])
def test_an_interrupt_while_a_program_imports_ends_it_as_later_ones_do(program: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", MAIN, program, "--json"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (130, "Interrupted.\n")
    error = {"kind": "Interrupted", "what": "Interrupted.", "advice": "", "exit_code": 130}
    assert json.loads(ended.stdout) == {"error": error}


CLOSED = """
import os, sys
from hushbid.protocol.runtime.interrupts import run_main

def main():
    sys.stdout.write("said"), sys.stderr.write("said")
    sys.exit(os.open(os.devnull, os.O_RDONLY))

run_main(main)
"""


def test_no_file_takes_the_number_of_a_standard_stream_that_is_closed() -> None:
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", CLOSED]
    assert subprocess.run(closed, timeout=240, check=False).returncode == 3


SAYS = """
import sys
from hushbid.protocol.runtime.command import say, tell
from hushbid.protocol.runtime.interrupts import run_main

def main():
    tell("ε² ≤ é"), say("ε² ≤ é")
    sys.exit(0)

run_main(main)
"""


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("ascii", b"\\u03b5\\xb2 \\u2264 \\xe9\n"),
        ("latin-1", b"\\u03b5\xb2 \\u2264 \xe9\n"),
        ("cp1252", b"\\u03b5\xb2 \\u2264 \xe9\n"),
        ("utf-8", "ε² ≤ é\n".encode()),
    ],
)
def test_what_cannot_be_encoded_is_shown_as_an_escape(encoding: str, shown: bytes) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SAYS],
        capture_output=True,
        timeout=240,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, shown, shown)


WAITS = """
import os, signal, sys
from hushbid.protocol.runtime.interrupts import run_main

def main():
    os.kill(os.getpid(), signal.SIGTERM)
    sys.exit(0)

run_main(main, party=True)
"""


def test_a_party_that_is_stopped_before_it_takes_part_says_so() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WAITS, "--json"], capture_output=True, text=True, timeout=240, check=False
    )
    assert (ended.returncode, ended.stderr.startswith("Stopped by SIGTERM before")) == (1, True)
    error = json.loads(ended.stdout)["error"]
    assert (error["kind"], error["exit_code"]) == ("Stopped", 1)


SHORT = """
import errno, os, sys
from hushbid.protocol.runtime.interrupts import run_main

def main():
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

run_main(main)
"""


def test_a_shortage_before_a_verb_has_begun_is_json_where_that_is_asked_for() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SHORT, "--json"], capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode == 6
    error = json.loads(ended.stdout)["error"]
    assert (error["kind"], error["exit_code"]) == ("Shortage", 6)
    assert "ulimit -n" in error["advice"]
    assert error["what"] in ended.stderr


SIZES = ("COLUMNS", "LINES", "TERMINAL_WIDTH")


PLAN = ["plan", "--owners", "5", "--points", "100", "--validation", "300", "--epsilon", "1"]


@pytest.mark.parametrize("words", [["-h"], PLAN])
def test_a_terminal_of_no_size_gets_the_whole_output(words: list[str]) -> None:
    unset = {name: value for name, value in os.environ.items() if name not in SIZES}
    told, *sized = (
        subprocess.run(
            [sys.executable, "-m", "hushbid", *words],
            capture_output=True, text=True, timeout=240, check=False, env=unset | dict.fromkeys(names, "0"),
        )
        for names in ((), SIZES[:1], SIZES)
    )  # fmt: skip
    assert told.returncode == 0
    assert len(told.stdout) > 500
    for each in sized:
        assert (each.returncode, untimed(each.stdout), each.stderr) == (0, untimed(told.stdout), told.stderr)


def untimed(text: str) -> str:
    """Without figures that this machine's speed gives."""
    return re.sub(r"\d+\.\d\s+s\b", "", text)
