"""Processes from a fork server: independent in every way, and ended for certain."""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from hushbid.consumer.learners import modules_of
from hushbid.protocol import platform
from hushbid.protocol.errors import ConfigError, DataError, HushbidError, Offence, RemoteProtocolError
from hushbid.running.fork_server import Forked, ForkServer, party_environment
from hushbid.running.launcher import OF_TABLES
from hushbid.running.training import ForkedTraining
from tests.conftest import ROOT
from tests.support import forked_probe

PROBE = "tests.support.forked_probe"
PATIENCE = 120.0


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPERATOR_TOKEN", "kept-from-parties")
        patch.setenv("HUSHBID_KEY", "/operator/key")
        patch.setenv("TZ", "Europe/Zurich")
        patch.setenv("OPENBLAS_NUM_THREADS", "4")
        with ForkServer() as made:
            yield made


@dataclass
class Probe:
    """A forked process of `forked_probe`, and its output."""

    process: Forked
    out: Path

    def said(self) -> Any:
        assert self.process.wait(PATIENCE)
        assert self.process.code == 0
        return json.loads(self.out.read_text(encoding="utf-8"))

    def until_here(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.out.read_text(encoding="utf-8") != "here":
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)


def fork(server: ForkServer, place: Path, *arguments: str, progress: int | None = None) -> Probe:
    place.mkdir(exist_ok=True)
    out = place / f"out-{len(list(place.iterdir()))}"
    with open(os.devnull, "rb") as nothing, out.open("xb") as file:
        streams = (nothing.fileno(), file.fileno(), file.fileno())
        made = server.fork(PROBE, arguments, directory=place, streams=streams, progress=progress)
    return Probe(made, out)


def gone(process: int) -> bool:
    """Whether a process has ended within a while."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if not psutil.pid_exists(process) or psutil.Process(process).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.01)
    return False


def test_each_draws_from_the_system_and_nothing_that_another_draws(
    server: ForkServer, tmp_path: Path
) -> None:
    first, second = (fork(server, tmp_path, "drawn").said() for _ in range(2))
    # The control is a function of memory that both have from the fork. What was seeded before is like it.
    assert {what for what in first if first[what] == second[what]} == {"control"}


def test_each_gets_what_was_meant_for_it_and_nothing_else(server: ForkServer, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)
    seen = fork(server, tmp_path / "own", "shown", "--json", progress=writing).said()
    os.close(writing)
    assert os.read(reading, 1) == b"", "nobody else has the pipe's other end"
    os.close(reading)

    number = int(seen["arguments"][-1])
    assert seen["arguments"] == ["shown", "--json", "--progress-fd", str(number)]
    opened = {int(each): what for each, what in seen["descriptors"].items()}
    assert set(opened) == {0, 1, 2, number}
    assert (opened[0], opened[1], opened[2]) == (os.devnull, *2 * (str(tmp_path / "own/out-0"),))
    assert seen["directory"] == str(tmp_path / "own")
    assert "" not in seen["path"]
    assert seen["directory"] not in seen["path"], "data lie there, and no modules"
    assert seen["main"] == PROBE
    assert (seen["group"], seen["tasks"], seen["collecting"]) == (True, 1, True)
    assert (seen["child_signal"], seen["interrupt"]) == (True, True)

    given = set(party_environment(os.environ))
    assert not {"OPERATOR_TOKEN", "HUSHBID_KEY"} & set(seen["environment"])
    assert seen["environment"]["TZ"] == "Europe/Zurich"
    named = {entry.partition("=")[0] for entry in seen["system_environment"] if entry}
    assert named <= {*given, "HUSHBID_LAUNCHED"}


def test_what_reads_tables_is_imported_once_and_starts_no_thread(tmp_path: Path) -> None:
    with ForkServer() as server:
        server.load(OF_TABLES)
        seen = fork(server, tmp_path, "shown").said()
        process = psutil.Process(fork(server, tmp_path, "wait").process.pid)
        assert process.parent().num_threads() == 1
    assert {*OF_TABLES, "pyarrow"} <= set(seen["modules"])
    assert seen["tasks"] == 1


@pytest.mark.parametrize("code", [0, 1, 4, 130])
def test_exit_codes_are_told(server: ForkServer, tmp_path: Path, code: int) -> None:
    probe = fork(server, tmp_path, str(code))
    assert probe.process.wait(PATIENCE)
    assert probe.process.code == code


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, -15), (signal.SIGINT, 130)]
)
def test_signals_are_told_apart(
    server: ForkServer, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    probe = fork(server, tmp_path, "wait")
    probe.until_here()
    assert not probe.process.wait(0.0)
    probe.process.send_signal(number)
    assert probe.process.wait(PATIENCE)
    assert probe.process.code == code
    probe.process.send_signal(number)  # of one that has ended it is nobody's


def test_a_lock_is_the_process_s_that_took_it_and_goes_with_it(server: ForkServer, tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    holder = fork(server, tmp_path / "one", "lock", str(path))
    holder.until_here()
    other = fork(server, tmp_path / "two", "wait")
    other.until_here()
    with path.open("r+b") as file:
        with pytest.raises(BlockingIOError):
            platform.lock(file.fileno())
        holder.process.send_signal(signal.SIGKILL)
        assert holder.process.wait(PATIENCE)
        platform.lock(file.fileno())  # although the other one still runs
    other.process.send_signal(signal.SIGKILL)
    assert other.process.wait(PATIENCE)


def test_whatever_still_runs_ends_when_it_is_closed(tmp_path: Path) -> None:
    with ForkServer() as server:
        probe = fork(server, tmp_path, "wait")
        probe.until_here()
    assert gone(probe.process.pid)


def test_whatever_still_runs_ends_with_a_fork_server_that_is_killed(tmp_path: Path) -> None:
    with ForkServer() as server:
        probe = fork(server, tmp_path, "wait")
        probe.until_here()
        os.kill(psutil.Process(probe.process.pid).ppid(), signal.SIGKILL)
        assert probe.process.wait(PATIENCE)
        assert probe.process.code == -signal.SIGKILL
        assert gone(probe.process.pid)
        with pytest.raises(HushbidError, match="has ended"):
            fork(server, tmp_path, "wait")


@pytest.mark.parametrize("unread", [False, True])
def test_whatever_still_runs_ends_with_a_launcher_that_is_killed(tmp_path: Path, unread: bool) -> None:
    """Even with one that has not heard yet that another process has ended."""
    code = f"""
import os, sys, time
from pathlib import Path
from hushbid.running.fork_server import ForkServer
server = ForkServer()
made = server.fork({PROBE!r}, ["wait"], directory=Path({str(tmp_path)!r}), streams=(0, 1, 2))
if {unread}:
    nowhere = os.open(os.devnull, os.O_RDWR)
    streams = (0, nowhere, nowhere)
    other = server.fork({PROBE!r}, ["shown"], directory=Path({str(tmp_path)!r}), streams=streams)
    while Path(f"/proc/{{other.pid}}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.02)
    time.sleep(0.2)
print(made.pid, flush=True)
time.sleep(1000)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as launcher:
        assert launcher.stdout is not None
        assert launcher.stderr is not None
        party = int(launcher.stdout.readline().removeprefix(b"here"))
        server = psutil.Process(party).ppid()
        launcher.kill()
        assert launcher.stderr.read() == b"", "until the last of them has ended"
    assert gone(party)
    assert gone(server)


# -- models -----------------------------------------------------------------------------------------------


def test_models_are_trained_where_scikit_learn_is_and_not_here(server: ForkServer) -> None:
    training = ForkedTraining(server, modules_of("logistic"))
    process, imported = training(forked_probe.process)
    assert process != os.getpid()
    assert imported
    assert training(forked_probe.process)[0] not in (process, os.getpid()), "each in a process of its own"


def test_errors_come_back_as_they_were_raised(server: ForkServer) -> None:
    training = ForkedTraining(server, ())
    with pytest.raises(DataError, match="No row is left") as raised:
        training(forked_probe.failing)
    assert raised.value.advice == "Keep some."
    with pytest.raises(ZeroDivisionError, match="a bug") as bug:
        training(forked_probe.broken)
    assert "forked_probe.py" in bug.value.__notes__[0], "where it was"
    with pytest.raises(HushbidError, match="without an answer"):
        training(forked_probe.killed)
    assert training(partial(divmod, 7, 2)) == (3, 1), "and the next is another process"


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("A key is wrong.", advice="Correct it."),
        HushbidError("It ended."),
        RemoteProtocolError(Offence.MALFORMED, "A field is missing.", advice="Update it."),
    ],
)
def test_errors_can_be_sent_to_other_processes(error: HushbidError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))


def test_a_failed_import_of_any_kind_leaves_the_server_to_others(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        (tmp_path / "broken_table.py").write_text("raise ValueError('another numpy')")
        patch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
        with ForkServer() as server:
            server.load(["broken_table"])
            assert fork(server, tmp_path / "probe", "shown").said()


def test_a_training_process_that_nobody_waits_for_ends_without_a_word(
    server: ForkServer, tmp_path: Path
) -> None:
    ours, theirs = socket.socketpair()
    said = tmp_path / "said"
    with theirs, open(os.devnull, "wb") as nowhere, said.open("wb") as stderr:
        streams = (theirs.fileno(), nowhere.fileno(), stderr.fileno())
        process = server.fork("hushbid.running.training_process", (), directory=Path("/"), streams=streams)
    ours.close()
    assert process.wait(PATIENCE)
    assert (process.code, said.read_bytes()) == (0, b"")
