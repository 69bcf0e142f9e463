"""Prices, budgets and caps of a choice that counts: they hold, and all that they allow is bought."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hushbid.protocol.space.herding import herd
from hushbid.protocol.space.prices import Prices
from hushbid.protocol.space.terms import NO_TERMS, Purse, Terms


def by_hand(
    values: Any,
    mean: Any,
    count: int,
    ranks: list[int],
    prices: list[int],
    budget: int | None,
    caps: list[int],
) -> list[int]:
    """The same choice in fractions: at each step the best row after which the rest can still be paid."""

    def cheapest(rows: list[int], sold: list[int], more: int) -> int | None:
        """The cost of the cheapest `more` rows, within the caps; None if there are too few."""
        cost, left = 0, [cap - had for cap, had in zip(caps, sold, strict=True)]
        for row in sorted(rows, key=lambda each: prices[ranks[each]]):
            if more and left[ranks[row]]:
                cost, more = cost + prices[ranks[row]], more - 1
                left[ranks[row]] -= 1
        return None if more else cost

    rows, sold, spent = list(range(len(values))), [0] * len(caps), 0
    most = max(
        number
        for number in range(count + 1)
        if (cost := cheapest(rows, sold, number)) is not None and (budget is None or cost <= budget)
    )
    chosen: list[int] = []
    while len(chosen) < most:
        total = values[chosen].sum(axis=0) if chosen else np.zeros(len(mean), dtype=np.int64)
        wanted = [(len(chosen) + 1) * int(a) - int(t) for a, t in zip(mean, total, strict=True)]

        def key(row: int, wanted: list[int] = wanted) -> tuple[bool, Fraction, bytes, int]:
            score = sum(int(v) * w for v, w in zip(values[row], wanted, strict=True))
            worth = Fraction(score) if score < 0 else Fraction(score, prices[ranks[row]])
            return score < 0, -worth, values[row].astype(np.int16).tobytes(), row

        allowed = []
        for row in rows:
            if sold[ranks[row]] == caps[ranks[row]]:
                continue
            after = sold.copy()
            after[ranks[row]] += 1
            rest = cheapest([each for each in rows if each != row], after, most - len(chosen) - 1)
            if rest is not None and (budget is None or spent + prices[ranks[row]] + rest <= budget):
                allowed.append(row)
        best = min(allowed, key=key)
        rows.remove(best)
        chosen.append(best)
        sold[ranks[best]] += 1
        spent += prices[ranks[best]]
    return chosen


@pytest.mark.parametrize("seed", range(60))
def test_the_choice_is_that_of_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    owners, n, count = 4, 30, int(rng.integers(1, 20))
    values = rng.integers(-3_000, 3_000, (n, 5)).astype(np.int64)
    if seed % 3 == 0:
        values = values // 1_500 * 1_500  # many equal scores
    mean = rng.integers(-1_000, 1_000, 5).astype(np.int64)
    ranks = np.sort(rng.integers(0, owners, n))
    prices = rng.integers(1, 5, owners) * 10_000
    caps = rng.integers(1, 12, owners) if seed % 2 else np.full(owners, n)
    budget = int(rng.integers(count, 4 * count + 1)) * 10_000 if seed % 5 else None
    terms = Terms(Prices(tuple(prices.tolist())), budget, tuple(caps.tolist()))
    found = herd(
        values, mean, count, features=values.astype(np.int16), purse=Purse(terms, ranks.astype(np.intp))
    )
    expected = by_hand(values, mean, count, ranks.tolist(), prices.tolist(), budget, caps.tolist())
    assert list(found) == expected
    assert budget is None or prices[ranks[list(found)]].sum() <= budget
    assert (np.bincount(ranks[list(found)], minlength=owners) <= caps).all()


def test_prices_that_are_all_the_same_change_no_choice() -> None:
    rng = np.random.default_rng(1)
    values, mean = rng.integers(-3_000, 3_000, (40, 5)), rng.integers(-1_000, 1_000, 5)
    ranks = np.repeat(np.arange(4), 10).astype(np.intp)
    choices = [
        herd(values, mean, 15, features=values.astype(np.int16), purse=Purse(terms, ranks))
        for terms in (NO_TERMS, Terms(Prices((30_000,) * 4)))
    ]
    assert choices[0] == choices[1]


def test_copies_that_were_counted_for_each_owner_end_a_choice_early() -> None:
    values = np.tile(np.arange(12, dtype=np.int64).reshape(4, 3), (2, 1))
    purse = Purse(
        NO_TERMS,
        np.repeat([0, 1], 4).astype(np.intp),
        copies=np.tile(np.arange(4), 2).astype(np.intp),
        seller=lambda row, _offered: row,
    )
    found = herd(values, np.ones(3, dtype=np.int64), 8, features=values.astype(np.int16), purse=purse)
    assert sorted(row % 4 for row in found) == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(40))
def test_copies_count_once_and_are_bought_from_the_cheapest(seed: int) -> None:
    """As many points as the money pays for, none above the least price among its owners."""
    rng = np.random.default_rng(seed)
    held = rng.integers(-3_000, 3_000, (12, 5)).astype(np.int64)  # scores below zero too
    points = np.concatenate([np.flatnonzero(rng.random(12) < 0.6) for _owner in range(4)])
    ranks = np.concatenate([[0], 1 + np.flatnonzero(np.diff(points) <= 0)])  # where the next owner begins
    ranks = (np.searchsorted(ranks, np.arange(len(points)), side="right") - 1).astype(np.intp)
    units = rng.integers(1, 5, 4) * 10_000
    budget = int(rng.integers(5, 30)) * 10_000
    purse = Purse(
        Terms(Prices(tuple(units.tolist())), budget),
        ranks,
        copies=points.astype(np.intp),
        seller=lambda _row, offered: int(np.flatnonzero(offered)[-1]),
    )
    values = held[points]
    mean = rng.integers(-1_000, 1_000, 5).astype(np.int64)
    found = list(herd(values, mean, 12, features=values.astype(np.int16), purse=purse))
    least = {point: units[ranks[points == point]].min() for point in points.tolist()}
    paid = [int(units[ranks[row]]) for row in found]
    assert paid == [least[point] for point in points[found].tolist()]
    assert len(set(points[found].tolist())) == len(found)
    payable = np.cumsum(sorted(least.values())) <= budget
    assert sum(paid) <= budget
    assert len(found) == payable.sum()


def test_what_an_owner_may_sell_no_more_of_is_anothers_to_sell() -> None:
    values = np.array([[300], [200], [300], [200]], dtype=np.int64)
    purse = Purse(
        Terms(Prices((10_000, 20_000)), 30_000, (1, 4)),
        np.array([0, 0, 1, 1]),
        copies=np.array([0, 1, 0, 1]),
        seller=lambda row, _offered: row,
    )
    assert herd(values, np.array([500]), 2, features=values.astype(np.int16), purse=purse) == (0, 3)
