"""The black box with containers: sessions of the compose file, with an engine's faults drawn from a seed.

`make test` runs one seed, and the slow tests a dozen others. The tests of processes have the other kinds of
faults (`tests/blackbox`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.blackbox.contained import RULES, play_in_containers, settings_of
from tests.blackbox.plan import IN_CONTAINERS, Plan, plan_of
from tests.blackbox.play import summary
from tests.containers.compose import Deployment

pytestmark = pytest.mark.timeout(2400)

OWNERS = ("owner-1", "owner-2")
SHARE = 1
"""Of `make test`: strangers, a kill, a pause and a bound of memory."""
MANY = (*range(12), 21)
"""All kinds are among them; in the last an owner goes on from an older copy of its volume."""


def planned(seed: int) -> Plan:
    return plan_of(seed, rules=RULES, kinds=IN_CONTAINERS, owners=OWNERS)


def test_seeds_have_every_kind_that_an_engine_makes() -> None:
    plans = [planned(seed) for seed in MANY]
    assert {fault.kind for plan in plans for fault in plan.faults} == set(IN_CONTAINERS)
    assert {plan.rule for plan in plans} == set(RULES)


@pytest.mark.parametrize(
    "seed", [seed if seed == SHARE else pytest.param(seed, marks=pytest.mark.slow) for seed in MANY]
)
def test_a_session_in_containers_comes_to_its_end_whatever_happens_to_it(
    clone: Path, tmp_path: Path, seed: int
) -> None:
    plan = planned(seed)
    with Deployment(clone, owners=len(OWNERS), settings=settings_of(plan)) as deployment:
        found = play_in_containers(plan, deployment, tmp_path / "volumes")
    assert not found.violations, summary({seed: found})
