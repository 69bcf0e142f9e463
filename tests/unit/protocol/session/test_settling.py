"""The curator's settlement against brute force: each point's gain of J in the order of the rounds."""

from __future__ import annotations

import numpy as np
import pytest

from hushbid.protocol.session.settling import HandedOver, settle
from hushbid.protocol.wire.messages import Candidate

RNG = np.random.default_rng(8)
TARGET = RNG.normal(0, 0.2, 12)
FEATURES = RNG.integers(-(2**13), 2**13, (40, 12), dtype=np.int16)
SEED_TOTAL = RNG.integers(-(2**15), 2**15, 12)
SEED_SIZE = 5
OWNERS = ("heron", "magpie", "osprey", "wren")


def wins(owners: tuple[str, ...] = OWNERS) -> list[HandedOver]:
    """Forty points, whose owners alternate."""
    found = []
    for place, features in enumerate(FEATURES):
        candidate = Candidate(point=np.zeros(3), features=features, attributes=b"")
        owner = owners[place % 4]
        found.append(HandedOver(owner, place // 4 + 1, place + 1, 0, candidate, chosen_round=place // 4 + 1))
    return found


def j(points: int, seed_weight: float) -> float:
    """J = 2g̃ᵀg − ‖g‖² of the first so many points and the seed set, by its definition."""
    total = seed_weight * SEED_TOTAL + FEATURES[:points].sum(axis=0, dtype=np.int64)
    mean = total / 2**15 / (seed_weight * SEED_SIZE + points)
    return float(2.0 * TARGET @ mean - mean @ mean)


@pytest.mark.parametrize("seed_weight", [1.0, 0.1])
def test_values_are_gains_of_j_and_telescope(seed_weight: float) -> None:
    found = settle(wins(), (), OWNERS, TARGET, SEED_TOTAL, SEED_SIZE, seed_weight)
    for place, owner in enumerate(OWNERS):
        own = [j(number + 1, seed_weight) - j(number, seed_weight) for number in range(place, 40, 4)]
        assert found[owner] == pytest.approx(sum(own), abs=1e-12)
    assert sum(found.values()) == pytest.approx(j(40, seed_weight) - j(0, seed_weight), abs=1e-12)


def test_other_names_change_no_value() -> None:
    """The same points are bought unless two tie exactly, which the total order's last criterion decides."""
    renamed = ("wren", "osprey", "heron", "magpie")
    first = settle(wins(), (), OWNERS, TARGET, SEED_TOTAL, SEED_SIZE)
    second = settle(wins(renamed), (), OWNERS, TARGET, SEED_TOTAL, SEED_SIZE)
    assert {new: first[old] for old, new in zip(OWNERS, renamed, strict=True)} == dict(second)


def test_a_disputed_point_is_not_paid_and_stays_in_the_summary() -> None:
    whole = settle(wins(), (), OWNERS, TARGET, SEED_TOTAL, SEED_SIZE)
    less = settle(wins(), {(1, "magpie", 2)}, OWNERS, TARGET, SEED_TOTAL, SEED_SIZE)
    assert whole["magpie"] - less["magpie"] == pytest.approx(j(2, 1.0) - j(1, 1.0), abs=1e-12)
    assert {name: less[name] for name in OWNERS if name != "magpie"} == {
        name: whole[name] for name in OWNERS if name != "magpie"
    }
