"""A target of two classes and a seed set of one: the purchase beside points drawn at random.

Owners of 1300, 900 and 300 points hold 10, 30 and 60 % of the class that the seed set lacks, which makes up
half of the target; p = m = 300. The measure is the biased MMD² of the exact kernel. A random choice is from
all owners' points together, and its MMD² the mean of twenty draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.consumer.matching import match
from hushbid.protocol.space.mmd import kernel_means, mmd2
from tests.support.two_classes import SIZE, TwoClasses, bought

DATASETS: Final = ("occupancy.npz", "skin.npz")
DRAWS: Final = 20
EXACT: Final = {
    "target": {"mechanism": "exact"},
    "summary": {"mechanism": "exact"},
    "session.batch": 1,
}
"""Greedy, which protects nobody; the seed set counts as little as it does by default."""
OVERSHOOTS: Final = {"session.seed_weight": 1.0, "session.jitter": 0.0}
"""Controls: the seed set counts as much as bought points, and scores have no jitter."""

Locate = Callable[[str], Path]
Points = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Shares:
    """MMD² over that of a random choice, which has no weights.

    Attributes:
        plain: Of the bought points against D_v.
        weighted: With matching weights, λ = 1.
        held_out: With these weights, against held-out points of the target's kind.
    """

    plain: float
    weighted: float
    held_out: float


def shares(path: Path, seed: int, changes: Mapping[str, Any] = MappingProxyType({})) -> Shares:
    session = bought(path, epsilon=1.0, seed=seed, changes=changes)
    space = session.session.space
    wanted, held_out = space.scale(session.validation.features), space.scale(session.test.features)
    points = space.scale(_bought(session))
    matching = match(points, wanted, space.gamma)
    across = kernel_means(points, held_out, space.gamma)
    within = float(kernel_means(held_out, held_out, space.gamma).mean())
    everything = space.scale(np.concatenate([owner.features for owner in session.owners.values()]))
    generator = np.random.default_rng(seed)
    drawn = [everything[generator.choice(len(everything), SIZE, replace=False)] for _ in range(DRAWS)]

    def random(target: Points) -> float:
        return float(np.mean([mmd2(choice, target, space.gamma) for choice in drawn]))

    return Shares(
        plain=mmd2(points, wanted, space.gamma) / random(wanted),
        weighted=matching.mmd2 / random(wanted),
        held_out=(matching.square - 2.0 * float(matching.weights @ across) + within) / random(held_out),
    )


def _bought(session: TwoClasses) -> Points:
    points = [each.candidate.point for each in session.delivered if each.candidate is not None]
    assert len(points) == SIZE
    return np.stack(points)


def check_weights_bring_it_near_the_target(shares: Shares) -> None:
    """At most a fiftieth of a random choice's MMD²: ten seeds of both datasets had 0.0114 at most."""
    assert shares.weighted <= 0.02


def check_greedy_needs_no_weights(path: Path, seed: int) -> None:
    assert shares(path, seed, EXACT).plain <= 0.02


@pytest.mark.parametrize("name", DATASETS)
def test_private_points_with_weights_come_near_the_target(name: str, shared_data: Locate) -> None:
    found = shares(shared_data(name), 0)
    check_weights_bring_it_near_the_target(found)
    assert found.plain <= 0.3
    assert found.held_out <= 0.25


def test_greedy_comes_near_the_target_without_weights(shared_data: Locate) -> None:
    check_greedy_needs_no_weights(shared_data(DATASETS[0]), 0)


def test_weights_do_not_mend_a_purchase_that_overshoots(shared_data: Locate) -> None:
    """The control: both checks see a seed set that counts in full, and scores without jitter."""
    found = shares(shared_data(DATASETS[0]), 0, OVERSHOOTS)
    assert found.plain > 1.0
    with pytest.raises(AssertionError):
        check_weights_bring_it_near_the_target(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", DATASETS)
def test_they_do_in_ten_seeds_of_ten(name: str, shared_data: Locate) -> None:
    """Without weights, noise leaves a fifth of a random choice's MMD² on average, more in some seeds."""
    found = [shares(shared_data(name), seed) for seed in range(10)]
    for each in found:
        check_weights_bring_it_near_the_target(each)
    assert np.mean([each.plain for each in found]) <= 0.3
    assert max(each.plain for each in found) <= 0.75
    for seed in range(10):
        check_greedy_needs_no_weights(shared_data(name), seed)
