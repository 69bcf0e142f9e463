"""The black box: sessions of real processes, seen from outside, with faults drawn from a seed.

`make test` runs two seeds, the slow tests two hundred others, `python -m tests.blackbox FIRST COUNT` any.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.blackbox.plan import RULES, Kind, plan_of
from tests.blackbox.play import play, summary

pytestmark = pytest.mark.timeout(1200)

SHARE = (5, 6)
"""A tender and rounds, with kills, disk errors, a garbled line and strangers."""
MANY = range(1000, 1200)


def test_seeds_have_every_kind_rule_and_number_of_faults() -> None:
    plans = [plan_of(seed) for seed in MANY]
    assert {fault.kind for plan in plans for fault in plan.faults} == set(Kind)
    assert {plan.rule for plan in plans} == set(RULES)
    assert sum(plan.mild for plan in plans) > len(plans) / 2
    assert plan_of(1000) == plans[0]


@pytest.mark.processes
@pytest.mark.parametrize("seed", [*SHARE, *(pytest.param(seed, marks=pytest.mark.slow) for seed in MANY)])
def test_a_session_comes_to_its_end_whatever_happens_to_it(seed: int, tmp_path: Path) -> None:
    place = tmp_path / "session"
    place.mkdir()
    found = play(plan_of(seed), place)
    assert not found.violations, summary({seed: found})
