"""`hushbid audit` finds every planted fault; `audits.py` states the error rates."""

from __future__ import annotations

import pytest

from hushbid.evidence.audit.faults import FAULTS
from hushbid.evidence.audit.suites import SUITES
from tests.statistics.audits import (
    PARTS,
    REPEATED,
    TWINS,
    alarm_as_often_as_they_may_or_must,
    caught_or_passed,
    highest_bound,
    once,
    run,
    trials_of,
)


@pytest.mark.parametrize("name", once(FAULTS))
def test_a_fault_is_caught(name: str) -> None:
    caught_or_passed(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FAULTS if name not in PARTS])
def test_twenty_audits_alarm_as_often_as_they_must(name: str) -> None:
    alarm_as_often_as_they_may_or_must(name)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "part"), [(name, part) for name in PARTS for part in range(PARTS[name])])
def test_a_part_of_twenty_audits_of_a_control_misses_nothing(name: str, part: int) -> None:
    assert SUITES[name].expected == "reject"
    result = run(name, trials=trials_of(REPEATED, name), repeats=20 // PARTS[name], seed=1 + part)
    assert highest_bound(result) > result.stated.epsilon, "with so few runs nothing can alarm"
    assert result.alarms == result.repeats == 20 // PARTS[name]
    assert result.as_expected


@pytest.mark.slow
@pytest.mark.parametrize("name", TWINS)
def test_without_what_is_broken_the_same_attack_finds_nothing(name: str) -> None:
    """Even with as many runs as the control needs."""
    trials = trials_of(REPEATED, name)
    assert run(name, trials=trials).rejected
    assert not run(TWINS[name], trials=trials).rejected
