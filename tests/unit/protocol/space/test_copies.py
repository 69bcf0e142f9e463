"""A pool in which a point that several owners hold counts once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.space.copies import Copies
from hushbid.protocol.space.grid import Features
from hushbid.protocol.space.scoring import Best, Pool

SESSION = b"a session's name"
WEIGHTS = np.array([3, 1], dtype=np.int32)
OWNERS = 4


def pool() -> Pool:
    return Pool(2, norm_bound=2.0, copies=Copies(SESSION))


def phi(*values: int) -> Features:
    return np.array(values, dtype=np.int16)


Element = tuple[tuple[int, ...], int]
"""A φ, and a place among the points of that φ."""


class Reference:
    """In sets of (φ, place): of each φ, as much as one owner has at most can be bought."""

    def __init__(self) -> None:
        self.held: Counter[tuple[tuple[int, ...], int]] = Counter()
        """Points of a φ, by rank."""
        self.entries: dict[tuple[Element, int], int] = {}
        self.sold: set[Element] = set()

    def append(self, features: Features, rank: int) -> None:
        row = tuple(features.tolist())
        self.entries[(row, self.held[row, rank]), rank] = len(self.entries)
        self.held[row, rank] += 1

    def first(self, weights: list[int], count: int, withheld: list[bool]) -> list[Element]:
        left = {element for element, rank in self.entries if not withheld[rank]} - self.sold
        order = sorted(
            left,
            key=lambda point: (
                -sum(a * b for a, b in zip(point[0], weights, strict=True)),
                np.array(point[0], dtype=np.int16).tobytes(),
                point[1],
            ),
        )
        return order[:count]


@given(st.integers(0, 2**32 - 1))
def test_a_pool_sells_each_point_once_in_the_total_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    palette = rng.integers(-3, 4, size=(int(rng.integers(1, 6)), 2)).astype(np.int16)
    found, reference = pool(), Reference()
    for _ in range(20):
        for _ in range(int(rng.integers(0, 6))):
            row, rank = palette[rng.integers(len(palette))], int(rng.integers(OWNERS))
            found.extend(row[None], np.array([rank]))
            reference.append(row, rank)
        weights = rng.integers(-2, 3, size=2).astype(np.int32)
        withheld = rng.random(OWNERS) < 0.3
        count = int(rng.integers(1, 5))
        bought = found.first(weights, count, withheld=withheld)
        named = {entry: key for key, entry in reference.entries.items()}
        points = [named[best.entry][0] for best in bought]
        assert points == reference.first(weights.tolist(), count, withheld.tolist())
        assert not any(withheld[named[best.entry][1]] for best in bought)
        for best in bought:
            assert best.score == int(weights.astype(np.int64) @ found.features(best.entry))
            found.withdraw(best.entry)
        reference.sold |= set(points)


def test_a_copy_of_what_was_bought_is_out() -> None:
    found = pool()
    found.extend(np.stack([phi(1, 2)] * 2), np.arange(2))
    (best,) = found.first(WEIGHTS, 5)
    assert best.entry in (0, 1)
    found.withdraw(best.entry)
    assert found.first(WEIGHTS, 5) == ()
    found.extend(phi(1, 2)[None], np.array([2]))
    assert len(found) == 3
    assert found.first(WEIGHTS, 5) == ()
    with pytest.raises(LocalProtocolError, match="withdrawn before"):
        found.withdraw(1 - best.entry)


def test_an_owner_that_holds_a_point_twice_can_sell_it_twice() -> None:
    found = pool()
    found.extend(np.stack([phi(1, 2)] * 3), np.array([0, 0, 1]))
    first, second = found.first(WEIGHTS, 5)
    assert first.entry in (0, 2)
    assert second == Best(1, first.score)
    found.withdraw(first.entry)
    assert found.first(WEIGHTS, 5) == (second,)


def sellers(copies: Copies, ranks: list[int], points: int) -> list[int]:
    """The seller of each point that the owners of these ranks all hold."""
    rows = [phi(number, 1) for number in range(points)]
    copies.extend(np.repeat(rows, len(ranks), axis=0), np.tile(ranks, points))
    available = np.ones(points * len(ranks), dtype=np.bool_)
    sold = [copies.seller(len(ranks) * number, row, available) for number, row in enumerate(rows)]
    return [ranks[entry % len(ranks)] for entry in sold]


def test_no_name_sells_more_than_another() -> None:
    counted = Counter(sellers(Copies(SESSION), [0, 1, 2, 3], 2000))
    # 500 each, and a deviation of 19.4: an owner is beyond these bounds once in 10^6.
    assert all(400 < count < 600 for count in counted.values())


def test_another_session_has_other_sellers() -> None:
    assert sellers(Copies(SESSION), [0, 1], 50) != sellers(Copies(bytes(16)), [0, 1], 50)


def test_who_comes_in_addition_takes_a_sale_over_or_leaves_it_where_it_was() -> None:
    before, after = (sellers(Copies(SESSION), ranks, 200) for ranks in ([0, 1, 3], [0, 1, 2, 3]))
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert set(changed) == {2}
    assert len(changed) > 20


def test_who_is_away_does_not_sell() -> None:
    found = pool()
    found.extend(np.stack([phi(5, 5)] * OWNERS), np.arange(OWNERS))
    for away in range(OWNERS):
        withheld = np.array([rank == away for rank in range(OWNERS)])
        (best,) = found.first(WEIGHTS, 1, withheld=withheld)
        assert best.entry != away
