"""An audit's report, its dependence on the seed alone, and the end of `hushbid audit`."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from hushbid.cli import audit as audit_verbs
from hushbid.evidence.audit.attack import Stated
from hushbid.evidence.audit.faults import FAULTS
from hushbid.evidence.audit.run import FEWEST_TRIALS, AuditResult, audit, choose
from hushbid.evidence.audit.suites import SUITES
from hushbid.protocol.errors import ConfigError, ExitCode
from hushbid.protocol.privacy.releases import Neighbours
from tests.docs.pages import Page

PAGE = Page("docs/audit.md")
AGAINST_NOTHING = ("null", "blind-curator", "blind-sizes", "tender", "tender-exhausted")
NOTHING_SHOWN = {
    *AGAINST_NOTHING,
    *(name for name, fault in FAULTS.items() if fault.sound in AGAINST_NOTHING),
}
"""Suites that state an ε of 0: what they look for must not be there at all."""


def result(*, alarms: int, repeats: int, expected: Any, confidence: float = 0.95) -> AuditResult:
    return AuditResult(
        suite="gaussian",
        stated=Stated(1.0, 1e-5, "substitute-one"),
        epsilon_lower=0.5,
        confidence=confidence,
        trials=100,
        expected=expected,
        alarms=alarms,
        repeats=repeats,
    )


@pytest.mark.parametrize(
    ("alarms", "repeats", "sound", "caught"),
    [
        (0, 1, True, False),
        (1, 1, False, True),
        (4, 20, True, False),
        (5, 20, False, False),
        (18, 20, False, False),
        (19, 20, False, True),
        (20, 20, False, True),
    ],
)
def test_a_sound_suite_may_alarm_by_chance_and_a_control_has_to(
    alarms: int, repeats: int, sound: bool, caught: bool
) -> None:
    assert result(alarms=alarms, repeats=repeats, expected="pass").as_expected is sound
    assert result(alarms=alarms, repeats=repeats, expected="reject").as_expected is caught


def test_every_suite_is_found_by_its_name_and_states_what_it_attacks() -> None:
    assert choose(()) == tuple(SUITES.values())
    assert [suite.name for suite in choose(["null", "gaussian"])] == ["null", "gaussian"]
    for name, suite in SUITES.items():
        stated = suite.attack().stated
        assert suite.name == name
        assert stated.neighbours in set(Neighbours)
        assert 0.0 <= stated.delta < 1.0
        assert stated.epsilon > 0.0 or name in NOTHING_SHOWN


def test_the_page_on_auditing_has_a_bound_that_rejects_each_planted_fault() -> None:
    for name, _, _, bound in PAGE.rows("Planted faults"):
        stated, lower = (float(figure) for figure in bound.split(" < "))
        assert stated == pytest.approx(SUITES[name.strip("`")].attack().stated.epsilon, abs=0.005)
        assert lower > stated


def test_planted_faults_are_chosen_together_and_not_by_name() -> None:
    assert [suite.name for suite in choose((), faults=True)] == list(FAULTS)
    with pytest.raises(ConfigError, match="planted faults"):
        choose(["gaussian"], faults=True)


def test_there_are_at_least_twelve_planted_faults() -> None:
    assert len(FAULTS) >= 12


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_replaces_one_part_of_a_suite_that_passes_without_it(name: str) -> None:
    suite, fault = SUITES[name], FAULTS[name]
    assert (suite.expected, suite.sound, SUITES[fault.sound].expected) == ("reject", fault.sound, "pass")
    sound = SUITES[fault.sound].attack()
    broken = fault.plant(sound)
    changed = {
        known.name
        for known in fields(sound)  # type: ignore[arg-type]
        if getattr(sound, known.name) is not getattr(broken, known.name)
    }
    # An attack on a session that is another keeps the points of the map that it had. In a blind session the
    # consumer weighs, and what the curator must not see is what the others send.
    parts: tuple[set[str], ...] = (
        {"curator"},
        {"session"},
        {"session", "data"},
        {"session", "data", "curator"},
        {"labels"},  # what they are filled in with
        {"release"},  # how two releases are made
    )
    blind = ({"consumer"}, {"consumer", "owner"}, {"curator"}, {"curator", "owner"})
    assert changed in (blind if name.startswith("blind-") else parts)


def test_an_unknown_suite_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match="nonesuch") as refused:
        choose(["gaussian", "nonesuch"])
    assert "gaussian-session" in refused.value.advice


@pytest.mark.parametrize(
    "wrong",
    [
        {"trials": FEWEST_TRIALS - 1},
        {"confidence": 0.0},
        {"confidence": 1.0},
        {"confidence": float("nan")},
        {"jobs": 0},
        {"repeats": 0},
        {"seed": -1},
    ],
)
def test_an_audit_that_says_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        list(audit(choose(["null"]), **wrong))


def test_the_seed_decides_the_result_and_the_number_of_processes_does_not() -> None:
    suites = choose(["gaussian", "race-printed"])
    alone, together, other = (
        list(audit(suites, trials=300, repeats=2, seed=seed, jobs=jobs))
        for seed, jobs in ((1, 1), (1, 2), (2, 1))
    )
    assert alone == together
    assert alone != other


def test_progress_counts_the_runs_of_all_repeats() -> None:
    told: list[tuple[str, int, int]] = []
    list(audit(choose(["null"]), trials=600, repeats=2, progress=lambda *now: told.append(now)))
    assert [done for _, done, _ in told] == [500, 600, 1100, 1200, 1700, 1800, 2300, 2400]
    assert {(name, total) for name, _, total in told} == {("null", 2400)}


# -- the verb -----------------------------------------------------------------------------------------


def ended(capsys: pytest.CaptureFixture[str], *suites: str, **options: Any) -> tuple[int, str, str]:
    """Run the verb; returns exit code, stdout and stderr."""
    given = {
        "trials": 200,
        "confidence": 0.95,
        "jobs": 1,
        "seed": 1,
        "repeat": 1,
        "faults": False,
        "as_json": True,
    }
    with pytest.raises(SystemExit) as end:
        audit_verbs.audit_command(suites=list(suites), **{**given, **options})
    captured = capsys.readouterr()
    return int(end.value.code or 0), captured.out, captured.err


def test_the_json_says_what_was_attacked_and_what_came_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ended(capsys, "gaussian", "session-winner-only", repeat=2, trials=30)
    shown = json.loads(out)
    assert code == ExitCode.DONE
    assert shown["as_expected"] is True
    assert "cannot show" in shown["note"]
    assert [suite["suite"] for suite in shown["suites"]] == ["gaussian", "session-winner-only"]
    assert list(shown["suites"][0]) == PAGE.first_names("JSON")
    sound, control = shown["suites"]
    assert (sound["expected"], sound["rejected"], sound["alarms"]) == ("pass", False, 0)
    assert (control["expected"], control["rejected"], control["alarms"]) == ("reject", True, 2)
    assert control["epsilon_lower"] > control["stated_epsilon"]
    assert "auditing gaussian: 120 runs" in err


def test_a_planted_fault_names_the_suite_that_it_is_a_fault_of(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = ended(capsys, "gaussian-halved", "gaussian")
    assert [suite["fault_of"] for suite in json.loads(out)["suites"]] == ["gaussian", None]


def test_a_control_that_was_not_caught_fails_the_audit(capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty runs are too few to catch half the noise."""
    code, out, _ = ended(capsys, "gaussian-halved", trials=20)
    assert code == ExitCode.FAILED
    assert json.loads(out)["suites"][0]["rejected"] is False


def test_people_are_told_what_was_attacked_and_that_it_is_no_proof(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = ended(capsys, "gaussian", as_json=False)
    assert code == ExitCode.DONE
    assert SUITES["gaussian"].about in out
    assert "substitute-one" in out
    assert "0.95 confidence" in out
    assert "cannot show that one does" in out


def test_a_wrong_name_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ended(capsys, "nonesuch")
    assert code == ExitCode.USAGE
    assert json.loads(out)["error"]["kind"] == "ConfigError"
    assert "nonesuch" in err
