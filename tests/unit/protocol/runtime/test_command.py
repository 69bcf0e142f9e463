"""The end of a verb: stdout, stderr, and the exit code."""

from __future__ import annotations

import array
import errno
import fcntl
import json
import logging
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from hushbid.protocol.errors import ConfigError, ExitCode, HushbidError, Stopped
from hushbid.protocol.runtime.command import option, run_verb, takes, verb
from hushbid.protocol.runtime.ending import set_quiet
from hushbid.protocol.runtime.interrupts import SignalEnd
from hushbid.protocol.runtime.telemetry.logs import LogFormat, set_up_logging

Captured = pytest.CaptureFixture[str]
_FULL = 65_536
"""Bytes that a pipe takes."""
HOSTILE = "too \x1b[2J\x9b31m late\r\x07\u202e; \nhushbid: all is well"


def ended(body: Callable[[], Mapping[str, Any]], **options: Any) -> int:
    with pytest.raises(SystemExit) as ending:
        run_verb(body, as_json=True, **options)
    assert isinstance(ending.value.code, int)
    return int(ending.value.code)


def test_a_figure_that_is_not_finite_is_null(capsys: Captured) -> None:
    result = {"a": float("nan"), "b": [1.5, float("inf")], "c": {"d": (-float("inf"), 2)}, "e": None}
    assert ended(lambda: result) == 0
    assert json.loads(capsys.readouterr().out) == {
        "a": None,
        "b": [1.5, None],
        "c": {"d": [None, 2]},
        "e": None,
    }


def test_a_result_can_stand_for_another_exit_code_and_is_printed_all_the_same(capsys: Captured) -> None:
    assert ended(lambda: {"ok": False}, ends=lambda result: ExitCode(not result["ok"])) == 1
    assert json.loads(capsys.readouterr().out) == {"ok": False}


def test_an_error_goes_before_the_exit_code_of_a_result(capsys: Captured) -> None:
    def refused() -> Mapping[str, Any]:
        raise ConfigError("No such key.", advice="Make one.")

    assert ended(refused, ends=lambda _: ExitCode.DONE) == ExitCode.USAGE
    assert json.loads(capsys.readouterr().out)["error"]["what"] == "No such key."


@pytest.mark.parametrize("as_json", [True, False])
def test_a_result_that_stdout_cannot_take_is_no_bug(
    as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        with pytest.raises(SystemExit) as ending:
            run_verb(lambda: {"ok": True}, as_json=as_json, show=lambda _: sys.stdout.write("ok\n"))
    assert ending.value.code == ExitCode.FAILED
    assert "cannot be written to stdout: No space left" in capsys.readouterr().err


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENAMETOOLONG, errno.ELOOP, errno.EISDIR])
def test_a_path_out_of_reach_is_no_bug(number: int, capsys: Captured) -> None:
    def unreachable() -> Mapping[str, Any]:
        raise OSError(number, os.strerror(number), "priv/in")

    assert ended(unreachable) == ExitCode.USAGE
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["kind"], error["what"]) == ("ConfigError", f"priv/in: {os.strerror(number)}.")


def test_an_error_of_something_else_writes_nothing_on_stdout(tmp_path: Path) -> None:
    def broken() -> Mapping[str, Any]:
        raise OSError(errno.EPIPE + 1000, "a library's")

    out = tmp_path / "out"
    with out.open("w") as stream, pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stdout", stream)
        assert ended(broken) == ExitCode.BUG
    assert json.loads(out.read_text())["error"]["kind"] == "bug"
    assert not out.read_text().startswith("\n")


def test_an_error_that_stdout_cannot_take_keeps_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def refused() -> Mapping[str, Any]:
        raise ConfigError("No such key.", advice="Make one.")

    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        assert ended(refused) == ExitCode.USAGE
    assert "No such key." in capsys.readouterr().err


@dataclass(frozen=True)
class Counted:
    most: int = option(int, default=3)
    least: int = option(int, default=1)


class TestVerb:
    def run(self, command: Callable[..., None], *words: str) -> Result:
        app = typer.Typer()
        app.command()(command)
        return CliRunner().invoke(app, words)

    def test_it_has_the_functions_options_and_json_besides(self) -> None:
        @verb(show=lambda found: typer.echo(f"found {found['name']}"))
        def find(name: str = "nobody") -> dict[str, Any]:
            """Find somebody."""
            return {"name": name}

        assert self.run(find, "--name", "north").stdout == "found north\n"
        assert json.loads(self.run(find, "--json").stdout) == {"name": "nobody"}
        assert "Find somebody." in self.run(find, "--help").stdout

    def test_it_tells_a_function_that_asks_whether_stdout_is_for_programs(self) -> None:
        @verb()
        def find(as_json: bool = False) -> dict[str, Any]:
            return {"told": as_json}

        assert json.loads(self.run(find, "--as-json").stdout) == {"told": True}

    def test_a_dataclass_brings_its_options_without_those_that_it_does_not_take(self) -> None:
        @takes(Counted, without=("least",))
        @verb()
        def count(options: Counted) -> dict[str, Any]:
            return {"most": options.most, "least": options.least}

        assert json.loads(self.run(count, "--most", "5", "--json").stdout) == {"most": 5, "least": 1}
        assert self.run(count, "--least", "0").exit_code == 2, "Typer's code of an unknown option"


def test_a_result_that_cannot_be_printed_is_a_bug_and_still_one_object(capsys: Captured) -> None:
    assert ended(lambda: {"a": object()}) == 5
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "bug"


def test_an_interrupted_verb_prints_one_object(capsys: Captured) -> None:
    def interrupted() -> Mapping[str, Any]:
        raise KeyboardInterrupt

    assert ended(interrupted) == 130
    error = json.loads(capsys.readouterr().out)["error"]
    assert error == {"kind": "Interrupted", "what": "Interrupted.", "advice": "", "exit_code": 130}


def test_an_interrupt_says_what_it_left(capsys: Captured) -> None:
    def interrupted() -> Mapping[str, Any]:
        interrupt = KeyboardInterrupt()
        interrupt.add_note("Nothing was charged to north.")
        raise interrupt

    assert ended(interrupted) == 130
    captured = capsys.readouterr()
    assert json.loads(captured.out)["error"]["what"] == "Interrupted.\nNothing was charged to north."
    assert captured.err == "Interrupted.\nNothing was charged to north.\n"


def test_an_interrupt_says_what_an_earlier_one_left(capsys: Captured) -> None:
    def interrupted() -> Mapping[str, Any]:
        try:
            interrupt = KeyboardInterrupt()
            interrupt.add_note("The run's directory is runs/x.")
            raise interrupt
        finally:
            raise KeyboardInterrupt

    assert ended(interrupted) == 130
    assert json.loads(capsys.readouterr().out)["error"]["what"].endswith("The run's directory is runs/x.")


PRINTS = """
from hushbid.protocol.runtime.ending import run_verb
from hushbid.protocol.runtime.interrupts import run_main

run_main(lambda: run_verb(lambda: {"text": "x" * 1_000_000}, as_json=True))
"""


def test_an_interrupt_while_a_result_is_printed_glues_no_object_to_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", PRINTS], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    waiting = array.array("i", [0])
    while waiting[0] < _FULL:  # nobody reads
        assert child.poll() is None
        fcntl.ioctl(child.stdout, termios.FIONREAD, waiting)
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=240)
    assert (child.returncode, err) == (130, b"Interrupted.\n")
    assert out.startswith(b'{"text": "xxx')
    assert b"Interrupted" not in out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SignalEnd(signal.SIGTERM), 143),
        (ConfigError("No such key.", advice="Make one."), 4),
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), 6),
        (OSError(errno.EACCES, os.strerror(errno.EACCES), "priv/in"), 4),
        (KeyError("bug"), 5),
    ],
)
def test_whatever_ends_a_verb_quiet_hides_not_what_it_left(
    error: BaseException, code: int, capsys: Captured
) -> None:
    def ending() -> Mapping[str, Any]:
        set_quiet(True)
        error.add_note("Charged to north: ε = 2.")
        raise error

    assert ended(ending) == code
    captured = capsys.readouterr()
    assert "\nCharged to north: ε = 2.\n" in f"\n{captured.err}"
    assert json.loads(captured.out)["error"]["exit_code"] == code


def test_an_error_cannot_steer_the_terminal_nor_pass_for_another_line(capsys: Captured) -> None:
    def refused() -> Mapping[str, Any]:
        raise HushbidError(HOSTILE, advice=HOSTILE)

    assert ended(refused) == 1
    said = capsys.readouterr()
    assert all(line.isprintable() for line in said.err.split("\n"))
    assert [line.startswith("hushbid: ") for line in said.err.splitlines()] == [True, False, False, False]
    assert r"too \x1b[2J\x9b31m late\r\x07\u202e" in said.err
    assert json.loads(said.out)["error"]["what"] == HOSTILE


def test_a_log_line_is_one_line(capsys: Captured) -> None:
    logging.getLogger().handlers = []
    set_up_logging("curator")
    logging.getLogger("hushbid").warning("a peer said: %s", HOSTILE)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.rstrip("\n").isprintable()
    assert " curator WARNING hushbid a peer said: too " in said


@pytest.mark.parametrize(
    ("error", "event", "severity"),
    [
        (ConfigError("No such key.", advice="Make one."), "party.failed", "error"),
        (KeyError("bug"), "party.failed", "error"),
        (Stopped("No such key.", advice="Make one."), "party.stopped", "warning"),
    ],
    ids=["error", "bug", "stop"],
)
def test_where_the_log_is_json_lines_an_error_is_one_too(
    capsys: Captured, error: Exception, event: str, severity: str
) -> None:
    def body() -> dict[str, object]:
        set_up_logging("curator", LogFormat.JSON)
        raise error

    logging.getLogger().handlers = []
    with pytest.raises(SystemExit):
        run_verb(body, as_json=False)
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["event"], line["level"]) == (event, severity)
    if isinstance(error, HushbidError):
        assert (line["reason"], line["advice"]) == ("No such key.", "Make one.")
    else:
        assert "KeyError: 'bug'" in line["error"]
