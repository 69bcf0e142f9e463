"""The findings of `hushbid audit` on its own suites: none where there is a guarantee, and published slips.

Planted faults are in `test_audit_faults.py`; `audits.py` states the error rates.
"""

from __future__ import annotations

import pytest

from hushbid.evidence.audit.faults import FAULTS
from hushbid.evidence.audit.suites import SUITES
from tests.statistics.audits import (
    QUICK,
    REPEATED,
    alarm_as_often_as_they_may_or_must,
    caught_or_passed,
    once,
    run,
)

OWN = [name for name in SUITES if name not in FAULTS]


@pytest.mark.parametrize("name", once(OWN))
def test_a_control_is_caught_and_what_is_sound_passes(name: str) -> None:
    caught_or_passed(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_twenty_audits_alarm_as_often_as_they_may_or_must(name: str) -> None:
    alarm_as_often_as_they_may_or_must(name)


def test_every_suite_without_a_planted_fault_has_its_number_of_runs() -> None:
    assert set(QUICK) == set(REPEATED)
    assert set(SUITES) - set(FAULTS) <= set(QUICK) <= set(SUITES)


def test_a_broadcast_is_attacked_close_to_its_limit() -> None:
    """A weak attack shows little: at 20,000 runs, most of the Gaussian's ε is found."""
    result = run("gaussian", trials=20_000)
    assert 0.65 * result.stated.epsilon < result.epsilon_lower <= result.stated.epsilon
