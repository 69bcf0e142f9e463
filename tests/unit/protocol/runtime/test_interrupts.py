"""Ctrl-C before a verb has begun, and standard streams that are closed."""

from __future__ import annotations

import json
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
