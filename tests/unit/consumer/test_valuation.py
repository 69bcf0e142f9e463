"""The worth of owners' points by exact kernels, against brute force over coalitions and orders."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial.distance import cdist

from hushbid.consumer.own_figures import _parts
from hushbid.consumer.valuation import MOST_EXACT, PurchaseGame, exact_shapley, sampled_shapley, value

GAMMA = 2.0
RNG = np.random.default_rng(11)
WANTED, SEEDS = RNG.beta(2, 5, (30, 3)), RNG.random((20, 3))
POINTS = np.concatenate(
    [RNG.beta(2, 5, (12, 3)), RNG.beta(5, 2, (9, 3)), RNG.random((14, 3)), RNG.random((3, 3))]
)
SELLERS = ["heron"] * 12 + ["magpie"] * 9 + ["osprey"] * 14 + ["wren"] * 3
FOUR = ("heron", "magpie", "osprey", "wren")


def kernel(x: Any, y: Any) -> Any:
    return np.exp(-GAMMA * cdist(x, y, "sqeuclidean"))


def mmd2(points: npt.NDArray[Any]) -> float:
    """MMD² against the validation set by whole kernel matrices."""
    pairs = ((points, points, 1.0), (points, WANTED, -2.0), (WANTED, WANTED, 1.0))
    return sum(factor * float(kernel(x, y).mean()) for x, y, factor in pairs)


def worth(coalition: tuple[str, ...], seeds: bool = True) -> float:
    if not coalition:
        return 0.0
    start = mmd2(SEEDS) if seeds else float(kernel(WANTED, WANTED).mean())
    return start - mmd2(POINTS[np.isin(SELLERS, coalition)])


def by_all_orders(seeds: bool = True) -> dict[str, float]:
    """Shapley values by their definition: the mean over all 24 orders."""
    found = dict.fromkeys(FOUR, 0.0)
    for order in permutations(FOUR):
        for place, owner in enumerate(order):
            step = worth(order[: place + 1], seeds) - worth(order[:place], seeds)
            found[owner] += step / math.factorial(len(FOUR))
    return found


@pytest.mark.parametrize("seeds", [True, False], ids=["seed set", "nothing"])
def test_four_owners_values_are_those_of_brute_force(seeds: bool) -> None:
    found = value(POINTS, SELLERS, WANTED, SEEDS if seeds else None, GAMMA, pairs=2, seed=0)
    brute = by_all_orders(seeds)
    whole = worth(FOUR, seeds)
    assert found.total == pytest.approx(whole, abs=1e-12)
    assert list(found.owners) == list(FOUR)
    for owner, each in found.owners.items():
        others = tuple(name for name in FOUR if name != owner)
        assert each.shapley == pytest.approx(brute[owner], abs=1e-12)
        assert each.left_out == pytest.approx(whole - worth(others, seeds), abs=1e-12)
        assert (each.shapley_error, each.points) == (0.0, SELLERS.count(owner))
    assert found.orders == 0
    for name in ("shapley", "gain"):
        assert sum(getattr(each, name) for each in found.owners.values()) == pytest.approx(whole, abs=1e-12)


def test_gains_and_leaving_one_out_are_the_result_s() -> None:
    parts = _parts(POINTS, SELLERS, WANTED, SEEDS, GAMMA, None)
    found = value(POINTS, SELLERS, WANTED, SEEDS, GAMMA, pairs=2, seed=0)
    for owner, part in parts.items():
        assert found.owners[owner].gain == pytest.approx(part.gain, abs=1e-12)
        assert part.mmd2_without is not None
        assert found.owners[owner].left_out == pytest.approx(part.mmd2_without - mmd2(POINTS), abs=1e-12)


def game(owners: int) -> PurchaseGame:
    """A purchase of owners with a few points each."""
    points = [RNG.random((1 + place % 4, 3)) for place in range(owners)]
    pairs = np.array([[kernel(x, y).sum() for y in points] for x in points])
    cross = np.array([kernel(x, WANTED).mean(axis=1).sum() for x in points])
    spread = float(kernel(WANTED, WANTED).mean())
    return PurchaseGame(np.array([float(len(x)) for x in points]), pairs, cross, mmd2(SEEDS), spread)


def test_sampled_values_are_within_their_error_and_add_up() -> None:
    """One of the 4 + 8 values is off by five standard errors once in 10⁵ such tests."""
    for owners in (4, 8):
        purchase = game(owners)
        exact = exact_shapley(purchase.worth, owners)
        generator = np.random.default_rng(owners)
        mean, error = sampled_shapley(purchase.marginals, owners, pairs=400, generator=generator)
        assert (error > 0.0).all()
        assert (np.abs(mean - exact) < 5.0 * error).all()
        assert mean.sum() == pytest.approx(purchase.worth(list(range(owners))), abs=1e-12)
        wide = sampled_shapley(purchase.marginals, owners, pairs=25, generator=generator)[1]
        assert 2.0 < (wide / error).mean() < 8.0, "it falls with the root of the orders: by 4"


def test_a_sample_that_leaves_orders_out_is_caught() -> None:
    """A control: orders that all begin with one owner give values far outside of their error."""

    class Biased:
        def permutation(self, owners: int) -> npt.NDArray[np.intp]:
            return np.concatenate([[0], 1 + generator.permutation(owners - 1)])

    purchase, generator = game(4), np.random.default_rng(2)
    exact = exact_shapley(purchase.worth, 4)
    mean, error = sampled_shapley(purchase.marginals, 4, pairs=400, generator=Biased())  # type: ignore[arg-type]
    assert (np.abs(mean - exact) > 5.0 * error + 1e-12).any()


@pytest.mark.parametrize("owners", [4, MOST_EXACT + 3])
def test_other_names_change_no_value(owners: int) -> None:
    sellers = [f"owner-{place % owners:02}" for place in range(60)]
    points = RNG.random((60, 3))
    names = sorted(set(sellers))
    renamed = dict(zip(names, [f"z{place}" for place in RNG.permutation(owners)], strict=True))
    first = value(points, sellers, WANTED, SEEDS, GAMMA, pairs=20, seed=3)
    second = value(points, [renamed[name] for name in sellers], WANTED, SEEDS, GAMMA, pairs=20, seed=3)
    assert (first.total, first.orders) == (second.total, second.orders)
    assert {renamed[name]: each for name, each in first.owners.items()} == dict(second.owners)
    assert (first.orders == 0) is (owners <= MOST_EXACT)


def test_owners_with_equal_points_have_equal_values() -> None:
    sellers = ["a"] * 10 + ["b"] * 10 + ["c"] * 5
    points = np.concatenate([POINTS[:10], POINTS[:10], POINTS[20:25]])
    found = value(points, sellers, WANTED, SEEDS, GAMMA, pairs=2, seed=0).owners
    assert found["a"].shapley == pytest.approx(found["b"].shapley, abs=1e-12)
    assert found["a"].gain == pytest.approx(found["b"].gain, abs=1e-12)


def test_one_owner_has_it_all() -> None:
    found = value(POINTS, ["heron"] * len(POINTS), WANTED, SEEDS, GAMMA, pairs=2, seed=0)
    own = found.owners["heron"]
    assert own.shapley == own.left_out == found.total == pytest.approx(own.gain, abs=1e-12)
