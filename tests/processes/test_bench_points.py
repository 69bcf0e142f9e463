"""`hushbid bench points`: a tiny session, with and without a network's delay."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import psutil
import pytest

from hushbid.cli.app import main
from hushbid.cluster.file import open_cluster
from hushbid.lab.bench import points
from hushbid.lab.bench.random_cluster import write_cluster
from hushbid.lab.bench.spent import RoundCost
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.session import SessionFile
from hushbid.running.directory import prepare, redirect

TINY = ("--owners=1", "--points=20", "--columns=4", "--bought=6", "--batch=2", "--repeats=1")
ROUNDS = 3
BARE = RoundCost(rounds=1000, seconds=1.0, processor_seconds=0.5)


@pytest.mark.parametrize("delay", [pytest.param(0.0, marks=pytest.mark.slow), 0.05])
def test_a_delayed_session_takes_a_round_trip_a_round_at_least(
    delay: float, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    monkeypatch.setattr(points, "bare_rounds", lambda *_, **__: BARE)
    monkeypatch.setattr(sys, "argv", ["hushbid", "bench", "points", *TINY, "--delay", str(delay), "--json"])
    with pytest.raises(SystemExit) as ending:
        main()
    out, err = capfd.readouterr()
    assert ending.value.code == 0, err
    result = json.loads(out)
    assert (result["delay"], result["rounds"], result["bought"]) == (delay, ROUNDS, 2 * ROUNDS)
    assert result["session_seconds"] >= 2 * delay * ROUNDS
    assert result["whole_seconds"] > result["session_seconds"]
    assert result["points_per_second"] == pytest.approx(2 * ROUNDS / result["session_seconds"])
    assert result["blind_ratio"] == result["blind_points_per_second"] / result["points_per_second"]
    assert result["against"] is None
    assert result["bare_processor_seconds_per_round"] == 0.0005
    for setting in ("", "blind_", "sealed_"):
        each = result[f"{setting}processor_seconds_per_point"]
        assert 0 < each < 1 or (each == 0 and not delay)  # three rounds may pass between two readings
    spent = result["processor_seconds_per_point"]
    assert result["processor_ratio"] == (pytest.approx(0.0005 / spent) if spent else None)
    if delay:
        assert result["ratio"] is None
        assert "each way" in err
    else:
        assert result["ratio"] == pytest.approx(result["points_per_second"] / 1000.0)
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before


@pytest.mark.slow
def test_another_checkout_takes_turns_and_has_the_same_figures(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    monkeypatch.setattr(points, "bare_rounds", lambda *_, **__: BARE)
    monkeypatch.setattr(
        sys, "argv", ["hushbid", "bench", "points", *TINY, "--against", sys.executable, "--json"]
    )
    with pytest.raises(SystemExit) as ending:
        main()
    out, err = capfd.readouterr()
    assert ending.value.code == 0, err
    result = json.loads(out)
    turns = [line.rpartition(", ")[2] for line in err.splitlines() if "session (" in line]
    assert turns == ["3 rounds of 2", "the other checkout"] * len(points.SETTINGS)
    for name, figure in result["against"].items():
        if "processor" not in name:  # none is seen of a session between two readings
            assert figure > 0, name
        assert name in result or name in (
            "blind_session_seconds",
            "sealed_session_seconds",
            "sealed_whole_seconds",
        )
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before


@pytest.mark.parametrize(
    ("python", "more", "said"),
    [
        ("no-such-python", [], "could not run a session"),
        ("/bin/false", [], "could not run a session"),
        ("/bin/true", [], "could not run a session"),
        (sys.executable, ["--delay", "0.1"], "have no delay"),
    ],
    ids=["no file", "no Python", "a program that says nothing", "a delay"],
)
def test_another_checkout_that_cannot_be_measured_is_refused(
    python: str,
    more: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(points, "bare_rounds", lambda *_, **__: BARE)
    monkeypatch.setattr(
        sys, "argv", ["hushbid", "bench", "points", *TINY, "--against", python, *more, "--json"]
    )
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 4
    assert said in json.loads(capfd.readouterr().out)["error"]["what"]


def test_a_redirected_run_is_the_same_session_and_the_curator_listens_where_it_did(tmp_path: Path) -> None:
    file = write_cluster(tmp_path, owners=2, points=5, columns=4, rounds=1)
    prepared = prepare(open_cluster(file), tmp_path / "runs")
    redirect(prepared, "tcp://127.0.0.1:9")
    for party in prepared.parties:
        path = party.directory / "session.toml"
        own = load_toml(SessionFile, path)
        elsewhere = prepared.session.network.address if party.role == "curator" else "tcp://127.0.0.1:9"
        assert own.network.address == elsewhere
        assert own.digest() == prepared.session.digest()
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_delay_is_no_more_than_time_outs_leave_room_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for delay in ("-0.1", "1.5", "nan"):
        monkeypatch.setattr(sys, "argv", ["hushbid", "bench", "points", "--delay", delay, "--json"])
        with pytest.raises(SystemExit) as ending:
            main()
        assert ending.value.code == 4
        assert "--delay" in json.loads(capfd.readouterr().out)["error"]["what"]


OTHER = {
    f"{setting}{figure}": value
    for setting in ("", "blind_", "sealed_")
    for figure, value in (("points_per_second", 41.0), ("processor_seconds_per_point", 0.002468))
}


@pytest.mark.parametrize(
    ("delay", "ratio", "against", "shown"),
    [
        (0.0, 0.4321, None, ["0.43"]),
        (0.05, None, None, ["–"]),
        (
            0.0,
            0.4321,
            OTHER,
            ["0.43", "2.468", "other, points", "0.50 of the other checkout's processor time"],
        ),
    ],
    ids=["plain", "delay", "against"],
)
def test_the_table_has_a_ratio_unless_there_is_a_delay(
    delay: float,
    ratio: float | None,
    against: dict[str, float] | None,
    shown: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    result = {
        "owners": 5,
        "rounds": 50,
        "batch": 20,
        "bare_rounds_per_second": 700.0,
        "bare_processor_seconds_per_round": 0.000567,
        "blind_ratio": 0.89,
        **{f"{setting}points_per_second": 99.0 for setting in ("", "blind_", "sealed_")},
        **{f"{setting}processor_seconds_per_point": 0.001234 for setting in ("", "blind_", "sealed_")},
        "against": against,
    }
    times = {"session_seconds": 6.789, "whole_seconds": 12.341}
    monkeypatch.setattr(points, "bench_points", lambda **_: result | times | {"delay": delay, "ratio": ratio})
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "argv", ["hushbid", "bench", "points", "--delay", str(delay)])
    with pytest.raises(SystemExit) as ending:
        main()
    out, _ = capfd.readouterr()
    assert ending.value.code == 0
    for text in (*shown, "6.79 s", "12.34 s", "0.89 of that", "0.567", "1.234"):
        assert text in out
    assert ("0.05 s each way" in out) == bool(delay)
