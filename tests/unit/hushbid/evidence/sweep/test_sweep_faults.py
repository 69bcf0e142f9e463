"""`hushbid sweep faults`: its counts, its duration, and the report of a seed that broke an invariant."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hushbid.cli.app import main
from hushbid.evidence.sweep.plan import plan_of
from tests.simulation.test_faults import charged_twice


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """`swept("--seed", "3")` runs the verb; returns exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["hushbid", "sweep", "faults", *arguments])
        with pytest.raises(SystemExit) as ending:
            main()
        captured = capfd.readouterr()
        return ending.value.code, captured.out, captured.err

    return run


def test_a_sweep_counts_sessions_and_what_happened_in_them(swept: Any) -> None:
    code, out, err = swept("--seed", "50", "--sessions", "4", "--jobs", "1", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["ok"]
    assert (told["seed"], told["sessions"], told["again"], told["failures"]) == (50, 4, 1, [])
    assert sum(told["rules"].values()) == 4
    assert sum(told["ends"].values()) == sum(len(plan_of(seed).rows) + 2 for seed in range(50, 54))
    assert err == "sweeping faults: 4 sessions\n"


def test_processes_share_the_sessions_and_come_to_the_same(swept: Any) -> None:
    alone, together = (
        json.loads(swept("--seed", "200", "--sessions", "3", "--jobs", jobs, "--json")[1]) for jobs in "12"
    )
    assert together | {"seconds": 0} == alone | {"seconds": 0}


def test_it_runs_as_long_as_it_is_asked_to(swept: Any) -> None:
    told = json.loads(swept("--minutes", "0.004", "--rule", "ask-all", "--jobs", "1", "--json")[1])
    assert told["sessions"] > 0
    assert told["seconds"] >= 0.24
    assert told["rules"] == {"ask-all": told["sessions"]}


def test_people_are_told_what_happened(swept: Any) -> None:
    code, out, _ = swept("--seed", "70", "--sessions", "3", "--jobs", "1")
    assert code == 0
    assert "frame overtaken by another peer's" in out
    assert out.splitlines()[-1].startswith("3 sessions in ")
    assert out.splitlines()[-1].endswith(" s, 0 failed")


def test_a_seed_that_breaks_something_is_told_with_its_faults_and_what_runs_it_again(
    swept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    charged_twice(monkeypatch)
    plans = (plan_of(seed, ["sealed"]) for seed in range(100))
    seed = next(plan.seed for plan in plans if plan.release == "gaussian" and plan.rounds <= 4)
    arguments = ("--seed", str(seed), "--sessions", "1", "--rule", "sealed")
    code, out, _ = swept(*arguments)
    assert code == 1
    assert f"hushbid sweep faults {' '.join(arguments)}" in out
    assert "charges-are-as-planned: curator charged release 1 twice" in out
    for line in plan_of(seed, ["sealed"]).words():
        assert f"    {line}" in out
    told = json.loads(swept(*arguments, "--json")[1])
    assert not told["ok"]
    (failure,) = told["failures"]
    assert failure["plan"] == plan_of(seed, ["sealed"]).words()
    assert len(failure["smallest"]) == 1, "it needs no fault at all"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--rule", "auction"), "no rule named 'auction'"),
        (("--share", "3/3"), "not a share"),
    ],
)
def test_what_cannot_be_swept_is_refused(swept: Any, arguments: tuple[str, ...], what: str) -> None:
    code, _, err = swept(*arguments)
    assert code == 4
    assert what in err


def test_transcripts_do_not_go_where_there_is_something(swept: Any, tmp_path: Path) -> None:
    code, _, err = swept("--sessions", "1", "--transcripts", str(tmp_path))
    assert code == 4
    assert "cannot make the directory" in err
