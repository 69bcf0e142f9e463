"""Gain per price: the order of exact quotients, the same in the pool as with fractions; and the bill."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol.space.grid import exact_scores
from hushbid.protocol.space.jitter import Jitter, scores_of
from hushbid.protocol.space.prices import MAX_PRICE, UNITS, Bill, Prices, in_units, per_price
from hushbid.protocol.space.scoring import Best, Pool
from tests.support.exact_points import round_features

SCORES = st.integers(-(2**62), 2**62)
PRICES = st.integers(1, round(MAX_PRICE * UNITS))


def place(score: int, units: int) -> tuple[bool, Fraction]:
    """The points' order in fractions: harm comes last, whatever it costs."""
    return (True, Fraction(score, units)) if score >= 0 else (False, Fraction(score))


@given(SCORES, PRICES, SCORES, PRICES)
def test_the_order_is_that_of_exact_quotients(first: int, price: int, second: int, other: int) -> None:
    ours, theirs = per_price(first, price), per_price(second, other)
    wanted, against = place(first, price), place(second, other)
    assert (ours > theirs, ours == theirs) == (wanted > against, wanted == against)


@given(st.integers(1, 2**28), PRICES, PRICES, st.integers(-1, 1))
def test_quotients_that_all_but_tie_are_told_apart(many: int, price: int, other: int, off: int) -> None:
    # many·price/price and (many·other + off)/other lie 1/other apart, or tie.
    ours, theirs = per_price(many * price, price), per_price(many * other + off, other)
    assert (ours > theirs, ours == theirs) == (off < 0, off == 0)


def test_no_price_makes_a_point_that_does_harm_better_or_worse() -> None:
    assert len({per_price(-5, units) for units in (1, 10, 10**10)}) == 1
    assert per_price(-1, 1) < per_price(0, 10**10) == per_price(0, 1) < per_price(1, 10**10)


@pytest.mark.parametrize("amount", [0.0001, 0.1, 2.0, 3.3333, 1e6])
def test_an_amount_is_whole_ten_thousandths(amount: float) -> None:
    assert Fraction(in_units(amount), UNITS) == Fraction(str(amount))


def test_an_amount_of_more_places_is_refused() -> None:
    with pytest.raises(ValueError, match="four places"):
        in_units(0.12345)


@pytest.mark.parametrize("jitter", [None, Jitter(b"a session's name")], ids=["plain", "jitter"])
@pytest.mark.parametrize("near", [True, False], ids=["near ties", "apart"])
def test_a_pool_chooses_as_fractions_do(near: bool, jitter: Jitter | None) -> None:
    # Scores that are large and a few units apart, which float32 cannot tell: the screen must keep them.
    rng = np.random.default_rng(5)
    for _ in range(40):
        owners = int(rng.integers(2, 6))
        units = tuple(int(each) for each in rng.choice([1, 9_999, 10_000, 10_001, 20_000, 10**10], owners))
        features = round_features(np.tile(rng.normal(size=(1, 8)) / 3, (60, 1)))
        features[:, -1] += rng.integers(-100, 101, size=60).astype(np.int16)
        ranks = rng.integers(0, owners, size=60)
        pool = Pool(8, norm_bound=4.0, jitter=jitter, prices=Prices(units))
        pool.extend(features, ranks.astype(np.intp))
        for entry in rng.choice(60, size=10, replace=False).tolist():
            pool.withdraw(entry)
        out = pool._withdrawn
        weights = rng.integers(-(2**20), 2**20, size=8 + (jitter is not None)).astype(np.int32)
        if near:
            weights[7:] = 1
        scores = scores_of(features, weights, jitter).tolist()
        withheld = rng.random(owners) < 0.2
        entries = [each for each in range(60) if each not in out and not withheld[ranks[each]]]

        def key(entry: int) -> tuple[bool, Fraction]:
            return place(scores[entry], units[ranks[entry]])  # noqa: B023

        rest = sorted(entries, key=lambda each: (features[each].tobytes(), ranks[each], each))
        wanted = sorted(rest, key=key, reverse=True)  # stable: ties are as in `rest`
        for count in (1, 4, 100):
            found = pool.first(weights, count, withheld=withheld)
            assert found == tuple(Best(each, scores[each]) for each in wanted[:count])


def test_within_an_owner_the_order_is_that_of_scores() -> None:
    rng = np.random.default_rng(6)
    features = round_features(rng.normal(size=(50, 8)) / 4)
    weights = rng.integers(-(2**20), 2**20, size=8).astype(np.int32)
    pools = [Pool(8, norm_bound=4.0, prices=prices) for prices in (None, Prices((7,)), Prices((10**10,)))]
    for pool in pools:
        pool.extend(features, np.zeros(50, dtype=np.intp))
    first, *others = [pool.first(weights, 50) for pool in pools]
    assert [best.score for best in first] == sorted(exact_scores(features, weights).tolist(), reverse=True)
    assert all(found == first for found in others)


def test_a_bill_is_exact_and_says_whom_and_how_much() -> None:
    made = Bill.of({"north": 0.1, "south": 2.5}, {"north": 3}, 10.0)
    assert made is not None
    assert made.as_json() == {
        "owners": {
            "north": {"points": 3, "price": 0.1, "amount": 0.3},
            "south": {"points": 0, "price": 2.5, "amount": 0.0},
        },
        "points": 3,
        "total": 0.3,
        "budget": 10.0,
    }
    assert made.sentence() == "3 points cost 0.30, of a budget of 10.00 (north: 3 at 0.1 = 0.30)."
    assert Bill.of({}, {"north": 3}, None) is None
