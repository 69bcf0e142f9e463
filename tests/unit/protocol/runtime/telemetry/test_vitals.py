"""A party's status file: written from start to end, seldom, whole, and at no cost to the session."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.cli.health_check import trouble
from hushbid.protocol.errors import HushbidError, TimedOut
from hushbid.protocol.machine.machine import Computation
from hushbid.protocol.runtime.driver import Numerics
from hushbid.protocol.runtime.telemetry.status_file import Status, find_statuses, process_start, status_path
from hushbid.protocol.runtime.telemetry.vitals import (
    STATUS_SECONDS,
    AnnouncedNumerics,
    RoundTimes,
    Seen,
    Vitals,
)
from tests.simulation.harness import names, session_file

SESSION = session_file(owners=names(3), points=7, rule="ask-all")


def vitals_in(state: Path) -> Vitals:
    return Vitals(state, party="curator", role="curator", session=SESSION)


def status_in(state: Path) -> Status:
    (status,) = find_statuses(state)
    return status


def test_a_party_is_loading_then_ready_then_finished(tmp_path: Path) -> None:
    state = tmp_path / "made" / "state"
    with vitals_in(state) as vitals:
        loading = status_in(state)
        vitals.begin(lambda: Seen("rounds", 4, owners_connected=2, counters={"frames_received": 9}))
        running = status_in(state)
    ended = status_in(state)
    assert (loading.phase, loading.busy, loading.ready, loading.finished) == (
        "loading",
        "loading",
        False,
        False,
    )
    assert (loading.party, loading.role, loading.session) == ("curator", "curator", SESSION.session.name)
    assert (loading.rounds, loading.owners, loading.pid) == (7, 3, os.getpid())
    assert (running.phase, running.busy, running.ready, running.finished) == ("rounds", None, True, False)
    assert (running.round, running.owners_connected) == (4, 2)
    assert running.counters["frames_received"] == 9
    assert (ended.ready, ended.finished, ended.exit_code) == (False, True, 0)
    assert stat.S_IMODE(status_path(state, "curator").stat().st_mode) == 0o600
    assert [path.name for path in state.iterdir()] == ["curator.status"], "no scratch file is left"


@pytest.mark.parametrize(
    ("error", "code"),
    [(TimedOut("late"), 3), (HushbidError("failed"), 1), (KeyError("bug"), 5), (KeyboardInterrupt(), 130)],
)
def test_the_exit_code_is_that_of_the_error(tmp_path: Path, error: BaseException, code: int) -> None:
    with pytest.raises(type(error)), vitals_in(tmp_path):
        raise error
    assert status_in(tmp_path).exit_code == code


def test_it_is_written_twice_a_second_and_when_the_phase_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Status] = []
    monkeypatch.setattr(Status, "write", lambda status, _path: written.append(status))
    seen = Seen("rounds", 1)
    with vitals_in(tmp_path) as vitals:
        vitals.begin(lambda: seen)
        vitals.turn(0.0, "rounds")
        written.clear()
        for turn in range(3000):
            vitals.turn(turn / 1000, "rounds")
        assert len(written) == 3.0 / STATUS_SECONDS - 1
        written.clear()
        seen = replace(seen, phase="delivering")
        vitals.turn(3.0, "delivering")
        assert [status.phase for status in written] == ["delivering"]


def test_a_long_computation_tells_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Status] = []
    monkeypatch.setattr(Status, "write", lambda status, _path: written.append(status))
    with vitals_in(tmp_path) as vitals:
        vitals.begin(lambda: Seen("mapping", 0))
        with vitals.computing("open-map"):
            written.clear()
            for done in range(1, 1001):
                vitals.computed(done, 1000)
        shares = [(status.busy, status.busy_share) for status in written]
        assert shares[-2:] == [("open-map", 1.0), (None, None)]
        assert len(shares) < 100, "not at every part"
        assert written[-2].progress.busy_share == 1.0


def test_a_second_party_with_the_same_directory_leaves_the_status_of_the_first(tmp_path: Path) -> None:
    with vitals_in(tmp_path) as first:
        with pytest.raises(HushbidError), vitals_in(tmp_path) as second, second.computing("hash"):
            raise HushbidError("the transcript is held by another process")
        assert not status_in(tmp_path).finished
        first.begin(lambda: Seen("rounds", 1))
    assert status_in(tmp_path).exit_code == 0


def test_who_goes_on_after_a_party_that_was_killed_has_its_status(tmp_path: Path) -> None:
    killed = vitals_in(tmp_path)
    killed.__enter__()
    with vitals_in(tmp_path) as second:
        second.begin(lambda: Seen("rounds", 7))
        assert status_in(tmp_path).round == 7, "its transcript is its own by then"
    # Of a process that is gone: another one has its number, and was started at another time.
    gone = replace(killed.status, process_start=1)
    gone.write(status_path(tmp_path, "curator"))
    with vitals_in(tmp_path):
        assert status_in(tmp_path).process_start != 1


def test_a_full_disk_costs_the_session_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "curator.status").mkdir()  # nothing can be renamed to it
    with vitals_in(tmp_path) as vitals:
        vitals.begin(lambda: Seen("rounds", 1))
        vitals.turn(0.0, "rounds")
        vitals.turn(1.0, "rounds")
        assert vitals.unwritten == 4
        assert vitals.status.counters["status_failures"] == 3, "those before the picture"
    assert [record.event for record in caplog.records] == ["status.unwritable"]  # type: ignore[attr-defined]
    assert [path.name for path in tmp_path.iterdir()] == ["curator.status"]


class _Long(Computation):
    KIND: ClassVar[str] = "hash"
    LONG: ClassVar[bool] = True


class _Short(Computation):
    KIND: ClassVar[str] = "add"


def test_a_long_computation_is_announced_and_a_short_one_is_not(tmp_path: Path) -> None:
    during: list[str | None] = []

    class Looking:
        def perform(self, _effect: Computation) -> None:
            during.append(status_in(tmp_path).busy)

        def restore(self, _effect: Computation, _outcome: Any) -> None: ...

    with vitals_in(tmp_path) as vitals:
        vitals.begin(lambda: Seen("mapping", 0))
        numerics = AnnouncedNumerics(cast(Numerics, Looking()), vitals)
        numerics.perform(_Long())
        numerics.perform(_Short())
        assert during == ["hash", None]
        assert status_in(tmp_path).busy is None


def test_round_times_are_counted_up_to_each_bound() -> None:
    times = RoundTimes()
    for seconds in (0.001, 0.002, 0.3, 1000.0):
        times.add(seconds)
    buckets, total = times.cumulative()
    counts = dict(buckets)
    assert (counts["0.002"], counts["0.2"], counts["0.5"], counts["60"], counts["+Inf"]) == (2, 2, 3, 3, 4)
    assert total == pytest.approx(1000.303)


# -- health -------------------------------------------------------------------------------------------

NOW = 1_000_000.0
WELL = Status(
    party="alpha", role="owner", session="birds", phase="waiting", busy=None, round=3, rounds=7,
    connected=True, owners_connected=None, owners=None, paused=False, beat=NOW - 1, pid=os.getpid(),
    process_start=process_start(os.getpid()), started=NOW - 60, ready=True, finished=False, exit_code=None,
    counters={},
)  # fmt: skip


def gone() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize(
    ("changes", "alive", "ready"),
    [
        ({}, None, None),
        ({"beat": NOW - 11}, "last turned its loop 11.0 s ago, and 10 s are allowed", ...),
        ({"beat": NOW + 11}, "last turned its loop -11.0 s ago, and 10 s are allowed", ...),
        (
            {"busy": "loading", "ready": False, "phase": "loading", "beat": NOW - 99},
            None,
            "is not ready (loading)",
        ),
        ({"busy": "open-map", "beat": NOW - 99}, None, None),
        ({"finished": True, "exit_code": 0, "ready": False, "beat": NOW - 99, "pid": 2**40}, None, None),
        ({"finished": True, "exit_code": 3}, "has ended with exit code 3", ...),
        ({"finished": True}, "has ended with exit code None", ...),
    ],
)
def test_who_is_alive_and_who_is_ready(changes: dict[str, Any], alive: str | None, ready: Any) -> None:
    status = replace(WELL, **changes)
    assert trouble(status, NOW, max_age=10, ready=False) == alive
    assert trouble(status, NOW, max_age=10, ready=True) == (alive if ready is ... else ready)


def test_who_was_busy_and_is_gone_is_not_alive() -> None:
    status = replace(WELL, busy="loading", pid=gone())
    assert trouble(status, NOW, max_age=10, ready=False) == "was busy (loading), and its process is gone"


def test_another_process_with_its_number_is_not_taken_for_it() -> None:
    mine = process_start(os.getpid())
    assert mine is not None
    status = replace(WELL, busy="loading", beat=NOW - 99, process_start=mine - 1)
    assert trouble(status, NOW, max_age=10, ready=False) == "was busy (loading), and its process is gone"
    elsewhere = replace(status, process_start=None)
    assert trouble(elsewhere, NOW, max_age=10, ready=False) is None, "where the system does not say"


@pytest.mark.parametrize(
    "changes",
    [
        {"beat": "now"},
        {"beat": True},
        {"beat": float("nan")},
        {"beat": 10**400},
        {"pid": 0},
        {"pid": 1.5},
        {"role": "owl"},
        {"role": []},
        {"phase": None},
        {"connected": 1},
        {"counters": []},
        {"missing": "beta"},
        {"missing": [1]},
        {"spent": []},
        {"spent": {"epsilon": 1.0}},
        {"spent": {"epsilon": "1", "delta": 1e-5}},
        {"counters": {"refusals": {"magic": "1"}}},
    ],
    ids=str,
)
def test_a_status_with_a_value_of_another_type_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = status_path(tmp_path, "alpha")
    WELL.write(path)
    assert Status.read(path) == WELL
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(HushbidError, match="not a status file of this version"):
        Status.read(path)


def test_a_status_of_a_former_version_is_read_without_what_was_added_since(tmp_path: Path) -> None:
    path = status_path(tmp_path, "alpha")
    added: dict[str, Any] = {
        "points": 4,
        "points_planned": 7,
        "points_per_second": 2.0,
        "seconds_left": 1.0,
        "missing": ["beta"],
        "spent": {"epsilon": 1.0, "delta": 1e-5, "protects": "them"},
    }
    now = replace(WELL, **added)
    now.write(path)
    assert Status.read(path) == now
    former = {name: value for name, value in json.loads(path.read_text()).items() if name not in added}
    path.write_text(json.dumps(former))
    assert Status.read(path) == WELL


@pytest.mark.parametrize(("rule", "told"), [("ask-all", True), ("winner-only", False)])
def test_points_and_names_are_told_where_no_round_goes_by_an_ask(
    tmp_path: Path, rule: str, told: bool
) -> None:
    session = session_file(owners=names(3), points=7, rule=rule)
    with Vitals(tmp_path, party="curator", role="curator", session=session) as vitals:
        vitals.spent = lambda: {"epsilon": 0.5, "delta": 1e-5}
        seen = Seen("enrolling", 0, missing=("magpie",))
        vitals.begin(lambda: seen)
        assert status_in(tmp_path).missing == ["magpie"], "nobody was asked yet"
        seen = replace(seen, phase="rounds", round=4, points=3, points_per_second=1.5, seconds_left=2.0)
        vitals.turn(0.0, "rounds")
        found = status_in(tmp_path)
    assert (found.points, found.points_per_second) == ((3, 1.5) if told else (None, None))
    assert found.missing == (["magpie"] if told else [])
    assert (found.round, found.points_planned, found.seconds_left) == (4, 7, 2.0)
    assert found.spent == {"epsilon": 0.5, "delta": 1e-5}


def test_text_that_looks_like_markup_is_shown_as_it_is(tmp_path: Path) -> None:
    replace(WELL, phase="[/x]", busy="[bold]").write(status_path(tmp_path, "alpha"))
    shown = hushbid("status", str(tmp_path))
    assert shown.returncode == 0, shown.stderr
    assert "[/x] ([bold])" in shown.stdout


@pytest.mark.parametrize("text", ["", "{", "[]", '{"party": "alpha"}', "[" * 100_000])
def test_what_is_no_status_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "alpha.status").write_text(text)
    with pytest.raises(HushbidError, match="not a status file of this version"):
        find_statuses(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes among its files")
def test_a_pipe_in_the_place_of_a_status_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alpha.status")
    with pytest.raises(HushbidError, match="cannot be read: not a plain file"):
        find_statuses(tmp_path)


def test_a_process_number_beyond_all_is_no_process() -> None:
    status = replace(WELL, busy="loading", pid=2**40, process_start=None)
    assert trouble(status, NOW, max_age=10, ready=False) == "was busy (loading), and its process is gone"


def test_a_directory_without_a_status_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".alpha.status.new").write_text("{}")
    with pytest.raises(HushbidError, match="no party has started with this state directory") as refused:
        find_statuses(tmp_path)
    assert "OWNER-SESSION beside its invitation" in refused.value.advice


def hushbid(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hushbid", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_verb_s_exit_code_is_what_a_health_check_needs(tmp_path: Path) -> None:
    with vitals_in(tmp_path) as vitals:
        alive = hushbid("health", "--state", str(tmp_path), "--json")
        not_ready = hushbid("health", "--ready", HUSHBID_STATE=str(tmp_path))
        vitals.begin(lambda: Seen("enrolling", 0))
        ready = hushbid("health", "--ready", HUSHBID_STATE=str(tmp_path))
    over = hushbid("status", str(tmp_path), "--json")
    well = hushbid("status", "--check", "--ready", str(tmp_path))
    assert (alive.returncode, not_ready.returncode, ready.returncode) == (0, 1, 0), ready.stderr
    assert json.loads(alive.stdout)["parties"][0]["phase"] == "loading"
    assert "curator is not ready (loading)" in not_ready.stderr
    assert "enrolling" in ready.stdout
    (party,) = json.loads(over.stdout)["parties"]
    assert (party["finished"], party["exit_code"], party["trouble"]) == (True, 0, None)
    assert (well.returncode, well.stdout) == (0, "curator has ended well.\n")


@pytest.mark.parametrize("verb", ["health", "status"])
def test_status_and_health_name_directories_in_the_same_ways(tmp_path: Path, verb: str) -> None:
    states = [tmp_path / "parties" / name / "state" for name in ("alpha", "beta")]
    for state in states:
        state.mkdir(parents=True)
        name = state.parent.name
        replace(WELL, party=name, beat=time.time()).write(status_path(state, name))
    elsewhere = tmp_path / "elsewhere"
    alpha, beta = map(str, states)

    def parties(*arguments: str, **environment: str) -> list[str]:
        ended = CliRunner().invoke(app, [verb, *arguments, "--json"], env=environment)
        assert ended.exit_code == 0, ended.stderr
        return [party["party"] for party in json.loads(ended.stdout)["parties"]]

    assert parties(str(tmp_path)) == ["alpha", "beta"], "the directory of a run"
    assert parties(alpha, beta) == ["alpha", "beta"]
    assert parties(alpha, "--state", beta) == ["alpha", "beta"]
    assert parties("--state", str(states[1].parent)) == ["beta"], "a party's own directory"
    assert parties(alpha, HUSHBID_STATE=str(elsewhere)) == ["alpha"], (
        "a variable counts where nothing is named"
    )
    assert parties(HUSHBID_STATE=beta) == ["beta"]
    nothing = CliRunner().invoke(app, [verb])
    assert (nothing.exit_code, "HUSHBID_STATE" in nothing.stderr) == (4, True)


def test_health_of_a_run_names_every_party_that_is_not_well(tmp_path: Path) -> None:
    for name in ("alpha", "beta", "gamma"):
        state = tmp_path / "parties" / name / "state"
        state.mkdir(parents=True)
        ended: dict[str, Any] = {"finished": True, "exit_code": 0 if name == "beta" else 3}
        replace(WELL, party=name, beat=time.time(), **ended).write(status_path(state, name))
    unwell = CliRunner().invoke(app, ["health", str(tmp_path)])
    assert unwell.exit_code == 1
    assert "alpha has ended with exit code 3." in unwell.stderr
    assert "gamma has ended with exit code 3." in unwell.stderr
    assert "beta" not in unwell.stderr


@pytest.mark.parametrize("options", [("--watch",), ("--watch", "--json")])
def test_watching_ends_when_all_parties_have_ended(tmp_path: Path, options: tuple[str, ...]) -> None:
    with vitals_in(tmp_path) as vitals:
        watching = subprocess.Popen(
            [sys.executable, "-m", "hushbid", "status", str(tmp_path), *options],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"COLUMNS": "150"},
        )
        assert watching.stdout is not None
        first = watching.stdout.readline() if "--json" in options else ""
        vitals.begin(lambda: Seen("enrolling", 0))
    rest, _ = watching.communicate(timeout=240)
    assert watching.returncode == 0
    if "--json" in options:
        looks = [json.loads(line)["parties"] for line in (first + rest).splitlines()]
        assert [look[0]["finished"] for look in looks] == [False] * (len(looks) - 1) + [True]
        assert len(looks) >= 2
    else:
        assert "ended" in rest


@pytest.mark.parametrize("words", [["health", "."], ["status", "--check", "."]])
def test_a_health_check_loads_nothing_that_is_slow(words: list[str]) -> None:
    """Five containers check every five seconds. Nothing of other verbs is loaded."""
    program = (
        "import atexit, sys; from hushbid.__main__ import main\n"
        "from hushbid.protocol.runtime.interrupts import end_at_once\n"
        f"end_at_once(); sys.argv = ['hushbid', *{words}]\n"
        "there = {'numpy', 'zmq', 'pyarrow', 'pydantic', 'typer', 'hushbid.protocol.config.session'}\n"
        "there |= {'hushbid.curator', 'hushbid.owner', 'hushbid.consumer'}\n"
        "verbs = lambda: {name for name in sys.modules if name.startswith('hushbid.cli.')}\n"
        "atexit.register(lambda: print(*there & set(sys.modules), *verbs())); main()"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "no party has started" in found.stderr
    assert set(found.stdout.split()) == {"hushbid.cli.health_check"}
