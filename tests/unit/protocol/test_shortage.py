"""A shortage of the system is no bug, and has an exit code and a remedy of its own."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from hushbid.protocol.errors import ConfigError, DataError, ExitCode, HushbidError, TranscriptUnwritable
from hushbid.protocol.shortage import as_shortage, shortage_of


def of_the_system(number: int, path: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), path)


@pytest.mark.parametrize(
    ("error", "what", "remedy"),
    [
        (of_the_system(errno.EMFILE, "points.csv"), "no file left to open", "ulimit -n"),
        (of_the_system(errno.ENFILE), "no file left to open", "LimitNOFILE"),
        (of_the_system(errno.ENOMEM), "too little memory", "Give the process more"),
        (MemoryError(), "too little memory", "or less to do"),
        (of_the_system(errno.ENOSPC), "no space left on a disk", "Make room"),
        (of_the_system(errno.EFBIG), "may not grow", "ulimit -f"),
        (of_the_system(errno.EIO, "delivered.npz"), "no disk that works", "Check the disk"),
        (BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)), "no thread or process", "TasksMax"),
        (RuntimeError("can't start new thread"), "no thread or process", "ulimit -u"),
        (ImportError("_rs.so: failed to map segment from shared object"), "too little memory", "more"),
        (Exception("cannot load", OSError("lib.so: failed to map segment")), "too little memory", "more"),
    ],
)
def test_a_shortage_is_named_with_what_to_raise(error: Exception, what: str, remedy: str) -> None:
    found = shortage_of(error)
    assert found is not None
    assert what in found.what
    assert remedy in found.advice
    assert found.exit_code is ExitCode.SHORTAGE


@pytest.mark.parametrize(
    "error", [ValueError("no"), of_the_system(errno.EACCES), of_the_system(errno.ENOENT), KeyError("memory")]
)
def test_nothing_else_is_one(error: Exception) -> None:
    assert shortage_of(error) is None


def raised(error: HushbidError, behind: BaseException, *, hidden: bool) -> HushbidError:
    try:
        try:
            raise behind
        except type(behind) as cause:
            raise error from (None if hidden else cause)
    except HushbidError as caught:
        return caught


@pytest.mark.parametrize("hidden", [False, True])
def test_an_error_of_ours_with_a_shortage_behind_it_is_one_and_says_where(*, hidden: bool) -> None:
    error = ConfigError("a/session.toml cannot be read.", advice="Correct its permissions.")
    told = as_shortage(raised(error, of_the_system(errno.EMFILE), hidden=hidden))
    assert (told.exit_code, told.what) == (ExitCode.SHORTAGE, "a/session.toml cannot be read.")
    assert "Correct its permissions" not in told.advice
    assert "ulimit -n" in told.advice


def test_errors_that_have_no_shortage_behind_them_stay() -> None:
    error = raised(ConfigError("No."), of_the_system(errno.EACCES), hidden=False)
    assert as_shortage(error) is error


def test_data_that_memory_does_not_hold_stay_the_persons_to_change() -> None:
    error = raised(DataError("It does not fit in memory."), MemoryError(), hidden=True)
    assert as_shortage(error) is error


def test_a_transcript_that_cannot_be_written_stays_one_and_is_worth_another_start() -> None:
    error = raised(TranscriptUnwritable("No room."), of_the_system(errno.ENOSPC), hidden=False)
    assert as_shortage(error) is error
    assert error.exit_code is ExitCode.SHORTAGE


FEW = """
import os, resource, sys
from hushbid.protocol.runtime.interrupts import run_main
from hushbid.protocol.runtime.command import run_verb

def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))
    run_verb(lambda: {"files": [os.open(os.devnull, os.O_RDONLY) for _ in range(9)]}, as_json=True)

run_main(main)
"""
MEMORY = """
from hushbid.protocol.runtime.interrupts import run_main
from hushbid.protocol.runtime.command import run_verb
run_main(lambda: run_verb(lambda: {"bytes": len(bytes(2**62))}, as_json=True))
"""
EARLY = """
from hushbid.protocol.runtime.interrupts import run_main

def main():
    raise ImportError("core.so: failed to map segment from shared object")

run_main(main)
"""


@pytest.mark.parametrize("program", [FEW, MEMORY, EARLY], ids=["files", "memory", "while-it-imports"])
def test_a_process_that_is_short_of_something_ends_with_its_own_code(program: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode == ExitCode.SHORTAGE, ended.stderr
    assert "The system is short of something" in ended.stderr
    assert "bug" not in ended.stderr
    assert "Traceback" not in ended.stderr
