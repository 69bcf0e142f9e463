"""A run's launcher and its curator's progress, with scripted processes."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hushbid.cluster.parties import Party
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.machine.progress import Progress
from hushbid.running import launcher
from hushbid.running.launcher import PartyFailed, run_parties
from tests.conftest import ROOT
from tests.support.session_files import load

OWNERS = ("heron", "magpie")

ENROLLING = Progress(
    party="curator", phase="enrolling", round=0, rounds=5, points=0, points_planned=20,
    points_per_second=None, seconds_left=None, owners_connected=1, owners=2, missing=("heron",),
)  # fmt: skip
ROUND = Progress(
    party="curator", phase="rounds", round=1, rounds=5, points=0, points_planned=20,
    points_per_second=None, seconds_left=None, owners_connected=1, owners=2, missing=("heron",),
)  # fmt: skip


@dataclass
class Played:
    """A party's process, which fails at once, or ends well after the curator's progress."""

    party: Any
    failed: bool
    looks: int = 0
    signal: None = None
    exit_code: ExitCode = ExitCode.USAGE
    identifier: int = 1
    stopped: bool = field(default=False)

    @property
    def running(self) -> bool:
        self.looks += 1
        return not (self.failed or self.stopped) and self.looks < 40

    def result(self) -> dict[str, Any] | None:
        if self.failed:
            return {"error": {"what": "bad.", "advice": ""}}
        recorded = ROOT / "tests" / "golden" / "results" / f"{self.party.role}.json"
        found: dict[str, Any] = json.loads(recorded.read_text(encoding="utf-8"))
        return found

    def log_tail(self, _lines: int) -> list[str]:
        return []

    def stop(self) -> None:
        self.stopped = True

    def kill(self) -> None:
        self.stopped = True

    def wait(self, _seconds: float) -> bool:
        return True


def run(
    monkeypatch: pytest.MonkeyPatch, *lines: Progress, failing: Collection[str] = ("heron",)
) -> tuple[Any, list[Progress]]:
    """Run parties whose curator prints these lines; returns the end, and the reported progress."""

    def start(party: Party, *, server: Any, launcher: int, progress: int | None) -> Played:
        assert os.fstat(launcher), "it is open"
        if progress is not None:
            os.write(progress, b"".join(line.as_line() for line in lines))
        return Played(party, party.name in failing)

    monkeypatch.setattr(launcher, "PartyProcess", start)
    monkeypatch.setattr(launcher, "_GRACE_SECONDS", 0.0)
    parties = [
        SimpleNamespace(name=name, role=role, directory=Path(name))
        for name, role in (
            ("curator", "curator"),
            ("consumer", "consumer"),
            *((each, "owner") for each in OWNERS),
        )
    ]
    told: list[Progress] = []
    session = load({"roster.owners": dict.fromkeys(OWNERS, "")})
    prepared: Any = SimpleNamespace(parties=parties, session=session)
    played: Any = object()  # forks nobody, as the processes are played
    try:
        return run_parties(prepared, told.append, server=played), told
    except PartyFailed as error:
        return error, told


def test_an_owner_that_fails_while_the_curator_enrols_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, told = run(monkeypatch, ENROLLING, ENROLLING)
    assert isinstance(ended, PartyFailed)
    assert ended.party == "heron"
    assert told == [ENROLLING], "the last of the lines that came together"


def test_an_owner_that_fails_in_the_rounds_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, told = run(monkeypatch, ENROLLING, ROUND)
    assert ended.failed == {"heron": "bad."}
    assert (ended.curator.role, ended.consumer.role, set(ended.owners)) == ("curator", "consumer", {"magpie"})
    assert told == [ROUND]


def test_owners_that_fail_in_the_rounds_do_if_too_few_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The curator would pause for an owner to come back, and none does."""
    ended, told = run(monkeypatch, ENROLLING, ROUND, failing=OWNERS)
    assert isinstance(ended, PartyFailed)
    assert (ended.party, ended.exit_code) == ("heron", ExitCode.USAGE)
    assert ended.what == (
        "heron: bad. The session needs 1 of 2 owners, and none are left. "
        "Ended: heron (code 4), magpie (code 4: bad)."
    )
    assert ended.advice.startswith("See heron. All parties, started again by hand")
    assert told == [ROUND]


def test_owners_that_fail_once_all_is_bought_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, _ = run(monkeypatch, ROUND, replace(ROUND, phase="delivering", round=5), failing=OWNERS)
    assert ended.failed == dict.fromkeys(OWNERS, "bad.")
