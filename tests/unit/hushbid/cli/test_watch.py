"""The live view of a session, and the bar of `run`: on a made-up clock and a recording terminal."""

from __future__ import annotations

import io
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.cli.progress import left, session_bar, session_progress, waiting
from hushbid.cli.watch import Look, WatchedParty, Watcher, shown, view
from hushbid.protocol.machine.progress import COMPARING, Progress
from hushbid.protocol.runtime.telemetry.status_file import Status, process_start, status_path

NOW = 1_000_000.0
HERON = Status(
    party="heron", role="owner", session="birds", phase="waiting", busy=None, round=12, rounds=50,
    connected=True, owners_connected=None, owners=None, paused=False, beat=NOW - 0.4, pid=os.getpid(),
    process_start=process_start(os.getpid()), started=NOW - 60, ready=True, finished=False, exit_code=None,
    counters={}, points_planned=200, seconds_left=62.0,
)  # fmt: skip
CURATOR = replace(
    HERON,
    party="curator",
    role="curator",
    phase="rounds",
    connected=None,
    owners_connected=2,
    owners=3,
    missing=["magpie"],
    points=44,
    points_per_second=2.5,
    counters={"absences": 1, "faults": 3, "refusals": {"version": 2, "malformed": 0}},
    spent={"protects": "them", "neighbours": "add-remove-one", "epsilon": 1.25, "delta": 1e-5},
)


def write(directory: Path, status: Status) -> Path:
    """A status in a run's directory."""
    state = directory / "parties" / status.party / "state"
    state.mkdir(parents=True, exist_ok=True)
    status.write(status_path(state, status.party))
    return status_path(state, status.party)


def drawn(look: Look, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, record=True)
    console.print(view(look, width))
    return console.export_text()


# -- the bar ------------------------------------------------------------------------------------------


def bar(progress: Progress, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, record=True)
    console.print(session_bar(progress))
    return console.export_text()


def filled(text: str) -> float:
    return text.count("━") / 20  # without colours rich draws what is done alone


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_after_the_rounds_the_bar_is_that_of_comparing(share: float) -> None:
    of = replace(CURATOR.progress, phase=COMPARING, busy="comparing with the greedy choice", busy_share=share)
    shown = bar(of)
    assert filled(shown) == share
    assert shown.startswith("comparing with the greedy choice")
    assert "round" not in shown


@pytest.mark.parametrize(
    ("number", "phase", "share"),
    [
        (0, "enrolling", 0.0),
        (1, "rounds", 0.0),
        (26, "rounds", 0.5),
        (50, "rounds", 0.98),
        (50, "delivering", 1),
    ],
)
def test_the_bar_is_full_when_the_last_round_is_decided_however_many_points_a_round_buys(
    number: int, phase: str, share: float
) -> None:
    progress = replace(CURATOR, round=number, rounds=50, points_planned=200, phase=phase).progress
    assert filled(bar(progress)) == pytest.approx(share, abs=0.05)


def test_the_bar_says_points_rate_time_left_and_who_is_missing() -> None:
    text = bar(CURATOR.progress)
    for part in ("round 12 of 50", "44 of 200 points", "2.5 points/s", "1:02 left", "\nmissing: magpie"):
        assert part in text
    assert "paused, missing: magpie" in bar(replace(CURATOR, paused=True).progress)


def test_missing_owners_that_may_not_be_named_are_counted() -> None:
    assert waiting(replace(CURATOR, missing=[]).progress) == "1 of 3 owners"
    assert waiting(replace(CURATOR, owners=9).progress) == "magpie, 6 more"
    assert waiting(replace(CURATOR, owners_connected=3, missing=[]).progress) == ""


def test_points_are_said_as_far_as_they_are_known() -> None:
    former = replace(CURATOR, points_planned=None)
    assert "44 points, 2.5" in bar(former.progress)
    assert "points" not in bar(replace(HERON, points_planned=None).progress)
    for width in (80, 160):
        assert "None" not in drawn(Look((WatchedParty(former, NOW), WatchedParty(HERON, NOW)), ()), width)


def test_there_is_no_bar_without_a_terminal() -> None:
    with session_progress(Console(file=io.StringIO())) as follow:
        assert follow is None
    file = io.StringIO()
    with session_progress(Console(file=file, force_terminal=True, width=80)) as follow:
        assert follow is not None
        follow(CURATOR.progress)
    assert "44 of 200 points" in file.getvalue()


def test_time_left_is_in_hours_where_it_is_long() -> None:
    assert (left(59.6), left(3_725.0), left(None)) == ("1:00 left", "1:02:05 left", "")


# -- looks --------------------------------------------------------------------------------------------


def test_what_is_not_there_yet_is_awaited_by_name(tmp_path: Path) -> None:
    watcher = Watcher([tmp_path / "run", tmp_path])
    assert watcher.look(NOW).awaited == (
        (str(tmp_path / "run"), "is not there yet"),
        (str(tmp_path), "no party has started with it yet"),
    )
    run = tmp_path / "run"
    watcher = Watcher([run])
    write(run, CURATOR)
    (run / "parties" / "heron").mkdir()
    look = watcher.look(NOW)
    assert [party.status.party for party in look.parties] == ["curator"]
    assert look.awaited == (("heron", "has not started yet"),)
    write(run, replace(CURATOR, finished=True, exit_code=0))
    assert not watcher.look(NOW).over, "heron has not ended before it has begun"
    write(run, replace(HERON, finished=True, exit_code=3))
    assert watcher.look(NOW).over


def test_a_party_s_own_directory_is_a_place_too(tmp_path: Path) -> None:
    path = write(tmp_path, HERON)
    for place in (path.parent, path.parent.parent):
        look = Watcher([place]).look(NOW)
        assert ([party.status for party in look.parties], look.awaited) == ([HERON], ())


def test_a_half_written_status_leaves_the_last_one_and_hides_nobody_else(tmp_path: Path) -> None:
    watcher = Watcher([tmp_path])
    path, _ = write(tmp_path, HERON), write(tmp_path, CURATOR)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert [place for place, _ in watcher.look(NOW).awaited] == ["heron"], "it was never read"
    path.write_bytes(whole)
    assert watcher.look(NOW).awaited == ()
    path.write_bytes(whole[: len(whole) // 2])
    look = watcher.look(NOW)
    assert [(party.status.party, bool(party.unreadable)) for party in look.parties] == [
        ("curator", False),
        ("heron", True),
    ]
    assert "not a status file of this version" in drawn(look, 300)


def test_a_party_that_has_ended_and_is_started_again_is_watched_on(tmp_path: Path) -> None:
    watcher = Watcher([tmp_path])
    write(tmp_path, replace(HERON, finished=True, exit_code=1))
    write(tmp_path, CURATOR)
    assert "ended with exit code 1" in drawn(watcher.look(NOW), 140)
    write(tmp_path, replace(HERON, phase="loading", busy="loading", ready=False))
    look = watcher.look(NOW)
    assert not look.over
    assert "ended" not in drawn(look, 140)


# -- the view -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 140])
def test_every_figure_is_there_in_a_narrow_terminal_and_in_a_wide_one(tmp_path: Path, width: int) -> None:
    write(tmp_path, CURATOR)
    write(tmp_path, HERON)
    text = drawn(Watcher([tmp_path]).look(NOW), width)
    assert max(map(len, text.splitlines())) <= width
    words = re.sub(r"\s+", " ", text)
    for part in ("curator", "heron", "rounds", "waiting", "12", "44", "2.5", "1:02", "magpie", "1.25", "0.4"):
        assert part in words
    for whole in ("1 absence", "3 faults", "2 refusals"):
        assert set(whole.split()) <= set(re.split(r"[\s,]+", text))


def test_a_loop_that_hangs_and_a_lost_connection_are_said(tmp_path: Path) -> None:
    write(tmp_path, replace(HERON, connected=False, beat=NOW - 30))
    text = re.sub(r"\s+", " ", drawn(Watcher([tmp_path]).look(NOW), 140))
    assert "not connected" in text
    assert "last turned its loop 30.0 s ago" in text


def test_a_consumer_that_weighs_has_a_round_and_spends_of_the_owners_records(tmp_path: Path) -> None:
    spent: dict[str, str | float] = {
        "protects": "the owners",
        "neighbours": "add-remove-one",
        "epsilon": 0.75,
        "delta": 1e-6,
    }
    weighing = replace(
        CURATOR, party="consumer", role="consumer", owners=None, owners_connected=None, round=12, missing=[]
    )
    write(tmp_path, replace(weighing, spent_of_owners=spent))
    text = " ".join(drawn(Watcher([tmp_path]).look(NOW), 200).split())
    assert "of the owners' records 0.75 at δ = 1e-06" in text
    assert "12 of" in text
    write(tmp_path, replace(weighing, round=0))
    assert "0 of" not in drawn(Watcher([tmp_path]).look(NOW), 200)


def test_a_status_cannot_steer_the_terminal(tmp_path: Path) -> None:
    write(tmp_path, replace(HERON, phase="\x1b[2J[red]"))
    text = drawn(Watcher([tmp_path]).look(NOW), 140)
    assert "\x1b" not in text
    assert "[red]" in text


def test_who_was_killed_is_not_waited_for_once_the_curator_has_ended(tmp_path: Path) -> None:
    killed = replace(HERON, party="magpie", process_start=1)  # of another process with its number, by now
    done = replace(CURATOR, phase="done", finished=True, exit_code=0, missing=[])
    for status in (killed, replace(HERON, finished=True, exit_code=0), CURATOR):
        write(tmp_path, status)
    watcher = Watcher([tmp_path])
    assert not watcher.look(NOW + 60).over  # it may be started again
    write(tmp_path, replace(done, exit_code=3))
    assert not watcher.look(NOW + 60).over  # so may the session
    write(tmp_path, done)
    assert not watcher.look(NOW + 9).over  # on another machine it may live
    look = watcher.look(NOW + 60)
    assert look.over
    assert look.as_json()["gone"] == ["magpie"]
    assert "The session is over. Gone without having ended: magpie." in drawn(look, 80)
    write(tmp_path, replace(killed, process_start=HERON.process_start))
    look = watcher.look(NOW + 60)
    assert (look.over, look.gone) == (False, ())  # it hangs, and may go on
    write(tmp_path, replace(killed, finished=True, exit_code=1))
    look = watcher.look(NOW + 60)
    assert (look.over, look.gone) == (True, ())


@pytest.mark.parametrize("verb", ["status", "health", "watch"])
def test_no_verb_hands_a_terminal_what_steers_it(tmp_path: Path, verb: str) -> None:
    steering = "\x1b[2J\u202e\ud800"
    status = replace(CURATOR, beat=time.time(), party=f"heron{steering}", phase=steering, missing=[steering])
    status.write(status_path(tmp_path, "heron"))
    arguments = [verb, str(tmp_path), *(["--once"] if verb == "watch" else [])]
    said = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
    assert said.exit_code == 0, said.stderr
    assert r"heron\x1b[2J\u202e\ud800" in said.stdout
    assert all(char.isprintable() or char == "\n" for char in said.stdout)


def test_without_a_terminal_another_table_comes_only_with_news(tmp_path: Path) -> None:
    file = io.StringIO()
    watcher = Watcher([tmp_path])
    with shown(Console(file=file, width=140)) as show:
        write(tmp_path, CURATOR)
        for number in range(12, 20):
            write(tmp_path, replace(CURATOR, round=number))
            show(watcher.look(NOW + number - 12))
        assert file.getvalue().count("curator") == 1
        write(tmp_path, replace(CURATOR, round=20, missing=[], owners_connected=3))
        show(watcher.look(NOW))
    assert file.getvalue().count("curator") == 2


# -- the verb -----------------------------------------------------------------------------------------


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A run that begins while it is watched; a look takes no time."""
    steps = iter([replace(CURATOR, beat=time.time()), replace(CURATOR, finished=True, exit_code=0)])
    monkeypatch.setattr("hushbid.cli.watch.time.sleep", lambda _: write(tmp_path / "run", next(steps)))
    yield tmp_path / "run"
    assert next(steps, None) is None, "all of it was watched"


def watch(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["watch", *arguments])


def test_watching_begins_before_the_run_and_ends_by_itself(course: Path) -> None:
    ended = watch(str(course))
    assert ended.exit_code == 0, ended.stderr
    assert [ended.stdout.count(part) for part in ("is not there yet", "rounds", "ended")] == [1, 1, 1]


def test_a_look_is_a_line_of_json_that_names_no_more_than_a_status(course: Path) -> None:
    ended = watch(str(course), "--json")
    assert ended.exit_code == 0, ended.stderr
    looks = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [[party["finished"] for party in look["parties"]] for look in looks] == [[], [False], [True]]
    assert looks[0]["awaited"] == [{"place": str(course), "why": "is not there yet"}]
    fields = {*asdict(CURATOR), "age", "trouble", "unreadable"}
    assert looks[1]["parties"][0].keys() == fields


def test_looking_once_takes_no_absence(tmp_path: Path) -> None:
    assert watch(str(tmp_path), "--once").exit_code == 1
    write(tmp_path, replace(CURATOR, beat=time.time()))
    once = watch(str(tmp_path), "--once")
    assert (once.exit_code, "magpie" in once.stdout) == (0, True)
    as_json = watch("--state", str(tmp_path), "--once", "--json")
    assert json.loads(as_json.stdout)["parties"][0]["missing"] == ["magpie"]
    assert watch().exit_code == 4


def test_status_is_a_look_a_watch_and_a_check(tmp_path: Path) -> None:
    write(tmp_path, replace(CURATOR, beat=time.time()))

    def status(*options: str) -> Any:
        return CliRunner().invoke(app, ["status", str(tmp_path), *options])

    looked, once = status("--json"), watch(str(tmp_path), "--once", "--json")
    assert json.loads(looked.stdout).keys() == json.loads(once.stdout).keys()
    assert "is alive" in status("--check").stdout
    assert status("--check", "--ready").exit_code == 0
    write(tmp_path, replace(CURATOR, finished=True, exit_code=3))
    assert status("--check").exit_code == 1
    assert (status().exit_code, status("--watch").exit_code) == (0, 0)
    for wrong, said in ((["--watch", "--check"], "Give one of them"), (["--ready"], "Give --check too")):
        ended = status(*wrong, "--json")
        assert ended.exit_code == 4
        assert said in json.loads(ended.stdout)["error"]["advice"]


def test_status_names_the_missing_too(tmp_path: Path) -> None:
    write(tmp_path, replace(CURATOR, beat=time.time()))
    assert (
        "missing: magpie" in CliRunner().invoke(app, ["status", str(tmp_path)], env={"COLUMNS": "90"}).stdout
    )
