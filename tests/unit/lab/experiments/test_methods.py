"""Methods of buying: each chooses as its name says, and sessions as an independent baseline does."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from hushbid.datasets import Partition, build
from hushbid.lab.experiments.exact_greedy import _Rough, exact_greedy
from hushbid.lab.experiments.market import Market
from hushbid.lab.experiments.methods import METHODS, check_methods, proportional
from hushbid.lab.experiments.purchases import judged
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.space.mmd import kernel_means
from tests.support.exact_points import marginal_gains

P = 12


@pytest.fixture(scope="module")
def market() -> Market:
    return Market(_digits(), 0.5, "logistic", 3, (3, 4))


def _digits() -> Partition:
    return build("digits", seed=3, options={"owner_points": 60})


def test_greedy_through_the_protocol_is_the_independent_greedy_exactly(market: Market) -> None:
    """The curator, the owners and the consumer by messages; and one loop over all points."""
    assert METHODS["exact"].choose(market, P, None).selection == market.greedy_features(P)


def test_a_shorter_greedy_choice_begins_a_longer_one(market: Market) -> None:
    alone = Market(_digits(), 0.5, "logistic", 3)
    for name in ("greedy_kernel", "greedy_features"):
        longer = getattr(market, name)(P)
        assert getattr(market, name)(5) == getattr(alone, name)(5) == longer[:5]


@pytest.mark.parametrize(("gamma", "block"), [(0.01, 7), (0.5, 256), (8.0, 1)])
def test_exact_greedy_takes_the_point_of_the_largest_gain_each_time(
    gamma: float, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against every candidate's gain, recomputed for each choice; repeated rows make ties."""
    monkeypatch.setattr("hushbid.lab.experiments.exact_greedy._BLOCK", block)
    generator = np.random.default_rng(5)
    candidates = np.repeat(generator.random((30, 3)), 2, axis=0)
    wanted = generator.random((9, 3)) ** 2
    places = exact_greedy(candidates, wanted, gamma, 20)
    assert len(set(places.tolist())) == 20
    for step, place in enumerate(places):
        gains = marginal_gains(wanted, candidates[places[:step]], candidates, gamma)
        gains[places[:step]] = -np.inf
        assert gains[place] == pytest.approx(gains.max(), abs=1e-12)
    assert len(exact_greedy(candidates, wanted, gamma, 100)) == 60


@pytest.mark.parametrize("gamma", [0.01, 0.1])
def test_exact_greedy_tells_points_apart_that_float32_does_not(gamma: float) -> None:
    """Rows as wide as an image's, each with neighbours that differ in the ninth digit."""
    generator = np.random.default_rng(7)
    candidates = np.repeat(generator.random((12, 784)), 5, axis=0)
    candidates += 1e-8 * generator.standard_normal(candidates.shape)
    wanted = generator.random((6, 784))
    places = exact_greedy(candidates, wanted, gamma, 30)
    told_apart = 0
    for step, place in enumerate(places):
        gains = marginal_gains(wanted, candidates[places[:step]], candidates, gamma)
        gains[places[:step]] = -np.inf
        assert gains[place] == pytest.approx(gains.max(), abs=1e-14)
        told_apart += int((gains > gains.max() - 1e-9).sum() > 1)
    assert told_apart > 15, "else any choice is as good"


@pytest.mark.parametrize(("columns", "gamma"), [(3, 8.0), (784, 0.01), (784, 0.1)])
def test_rough_sums_are_below_the_true_ones_and_near_them(columns: int, gamma: float) -> None:
    generator = np.random.default_rng(8)
    candidates = generator.random((200, columns))
    candidates[:20] = candidates[20:40] * (1.0 + 1e-7)
    rough = _Rough(candidates, gamma)
    for row in candidates[:15]:
        rough.add(row)
    true = len(candidates[:15]) * kernel_means(candidates, candidates[:15], gamma)
    assert (rough.least <= true).all()
    assert rough.least == pytest.approx(true, rel=0.01)


def test_uniform_draws_alike_of_each_owner_and_proportional_by_its_size() -> None:
    held = _digits()
    names = sorted(held.owners)
    few = {names[0]: held.owners[names[0]].take(np.arange(20))}
    market = Market(Partition(**{**vars(held), "owners": held.owners | few}), 0.5, "logistic", 3)
    drawn = {
        name: Counter(owner for owner, _ in METHODS[name].choose(market, 26, None).selection)
        for name in ("uniform", "proportional")
    }
    assert sorted(drawn["uniform"].values()) == [5, 5, 5, 5, 6]
    assert drawn["proportional"] == {names[0]: 2, **dict.fromkeys(names[1:], 6)}


def test_shares_are_rounded_by_largest_remainders() -> None:
    drawn = proportional({"a": 5, "b": 3, "c": 2}, 3, np.random.default_rng(0))
    assert Counter(name for name, _ in drawn) == {"a": 1, "b": 1, "c": 1}
    everything = proportional({"a": 5, "b": 3}, 99, np.random.default_rng(0))
    assert sorted(everything) == [("a", n) for n in range(5)] + [("b", n) for n in range(3)]


def test_all_is_every_point_once(market: Market) -> None:
    chosen = METHODS["all"].choose(market, P, None).selection
    assert len(chosen) == len(set(chosen)) == sum(market.sizes.values())


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.calibrated])
def test_a_calibrated_method_states_its_epsilon(name: str, market: Market) -> None:
    bought = METHODS[name].choose(market, P, 2.0)
    assert len(set(bought.selection)) == P
    assert bought.epsilon_owners is not None
    assert bought.epsilon_consumer is not None
    assert 0.9 * 2.0 < bought.epsilon_consumer <= 2.0
    assert bought.epsilon_owners <= 2.0


def test_the_published_parameters_cost_the_consumer_more_than_printed_and_protect_no_owner(
    market: Market,
) -> None:
    bought = METHODS["published"].choose(market, P, None)
    assert bought.epsilon_owners is None
    assert bought.epsilon_consumer is not None
    assert bought.epsilon_consumer > 1.4  # DPDS §4, at δ = 0.01


def test_what_is_bought_is_judged_with_and_without_weights(market: Market) -> None:
    found = judged(market, {"points": P, "method": "uniform", "epsilon": None}, exact=True)
    assert found["bought"] == P
    assert found["weighted"]["mmd2"] < found["plain"]["mmd2"]
    assert found["weighted"]["effective_points"] < found["plain"]["effective_points"] == P
    assert found["plain"]["mmd2"] == pytest.approx(
        market.mmd2(METHODS["uniform"].choose(market, P, None).selection)
    )
    assert found["plain"]["increase_exact"] > found["plain"]["increase"] > 0.0
    greedy = judged(market, {"points": P, "method": "greedy-features", "epsilon": None}, exact=False)
    assert greedy["plain"]["increase"] == 0.0


def test_a_purchase_too_large_for_weights_has_none(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushbid.lab.experiments.purchases.MOST_WEIGHED", P)
    configuration = {"points": P, "method": "all", "epsilon": None}
    found = judged(market, configuration, exact=False)
    assert set(found["weighted"].values()) == {None}
    assert found["plain"]["accuracy"] is not None


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no method barter.*Methods are: greedy-kernel"):
        check_methods(["uniform", "barter"])
