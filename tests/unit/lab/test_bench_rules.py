"""`hushbid bench rules` reports its progress and estimates the remaining time."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.lab.bench import rules

SECONDS = {"ask_all": 1.0, "sealed": 2.0, "private": 6.0}
"""What a session of each setting takes here."""


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions that take time only by the clock."""
    now = [0.0]

    def run_parties(prepared: str, progress: Any, _say: object) -> Any:
        now[0] += SECONDS[prepared]
        for number in (0, 1, 4):
            progress(SimpleNamespace(round=number))
        return SimpleNamespace(curator=SimpleNamespace(rounds=1, wall_seconds=SECONDS[prepared]))

    monkeypatch.setattr(rules, "write_cluster", lambda place, **_: place / "plain.toml")
    monkeypatch.setattr(rules, "with_setting", lambda _plain, setting: Path(setting))
    monkeypatch.setattr(rules, "open_cluster", lambda file: file)
    monkeypatch.setattr(rules, "prepare", lambda file, _place: file.name)
    monkeypatch.setattr(rules, "run_parties", run_parties)
    monkeypatch.setattr(rules, "time", SimpleNamespace(monotonic=lambda: now[0]))


def test_every_session_is_counted_and_the_time_left_is_said(sessions: None) -> None:
    ended = CliRunner().invoke(app, ["bench", "rules", "--rounds", "4", "--repeats", "2", "--json"])
    assert ended.exit_code == 0, ended.stderr
    assert json.loads(ended.stdout)["private_ratio"] == pytest.approx(1 / 6)
    assert ended.stderr.splitlines() == [
        "measuring: session 1 of 6, ask_all",
        "measuring all sessions: 24 rounds",
        "measuring: session 2 of 6, sealed; about 5 s left",
        "measuring: session 3 of 6, private; about 6 s left",
        "measuring: session 4 of 6, ask_all; about 9 s left",
        "measuring: session 5 of 6, sealed; about 8 s left",
        "measuring: session 6 of 6, private; about 6 s left",
    ]


def test_rounds_are_counted_over_all_sessions(sessions: None) -> None:
    counted: list[tuple[int, int]] = []
    rules.bench_rules(
        owners=1, points=1, columns=1, rounds=4, repeats=1, say=lambda _: None,
        progress=lambda done, total: counted.append((done, total)),
    )  # fmt: skip
    assert counted == [(1, 12), (4, 12), (5, 12), (8, 12), (9, 12), (12, 12)]
