"""Kernel herding on whole numbers: each row is the best beside those before it, on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.limits import MAX_HERDED
from hushbid.protocol.space.copies import Copies
from hushbid.protocol.space.herding import FARTHEST, herd, shortlisted
from hushbid.protocol.space.scoring import Points, Pool
from hushbid.protocol.space.shortlist import ValueScreen
from hushbid.protocol.space.terms import NO_TERMS, Purse, Terms


def rows(count: int, seed: int = 0, width: int = 6) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-12_000, 12_000, (count, width)).astype(np.int16)


def by_hand(values: Any, mean: Any, count: int, features: Any, left: Any) -> list[int]:
    """The same in Python's own whole numbers."""
    chosen: list[int] = []
    available = [row for row in range(len(values)) if left[row]]
    total = [0] * len(mean)
    while available and len(chosen) < count:
        wanted = [int(a) * (len(chosen) + 1) - t for a, t in zip(mean, total, strict=True)]

        def key(row: int, wanted: list[int] = wanted) -> tuple[int, bytes, int]:
            score = sum(int(v) * w for v, w in zip(values[row], wanted, strict=True))
            return -score, features[row].tobytes(), row

        best = min(available, key=key)
        available.remove(best)
        chosen.append(best)
        total = [t + int(v) for t, v in zip(total, values[best], strict=True)]
    return chosen


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_choice_by_whole_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rows(40, seed) // 4000 * 4000 if seed % 2 else rows(40, seed)  # many equal scores
    mean = rng.integers(-9_000, 9_000, 6).astype(np.int64)
    left = rng.random(40) < 0.7
    values = features.astype(np.int64)
    found = herd(values[left], mean, 25, features=features[left])
    assert np.flatnonzero(left)[list(found)].tolist() == by_hand(values, mean, 25, features, left)


def clipped(features: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A y that is wider than φ and exceeds int16."""
    return np.concatenate([features, features[:, :2] * 2], axis=1).astype(np.int64)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("most_near", [0.0, 2.0], ids=["in doubt", "screened"])
def test_a_screen_changes_no_choice(seed: int, most_near: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows it leaves in doubt, with equal scores, an earlier choice, caps and copies."""
    monkeypatch.setattr("hushbid.protocol.space.herding._FEW_COORDINATES", 0)
    monkeypatch.setattr("hushbid.protocol.space.herding._MOST_NEAR", most_near)
    monkeypatch.setattr("hushbid.protocol.space.shortlist._VALUED_ROWS", 37)
    rng = np.random.default_rng(seed)
    features = rows(300, seed, width=70)
    if seed % 2:
        features = features // 4_000 * 4_000
        features[150:200] = features[:50]
    mean = rng.integers(-9_000, 9_000, 72).astype(np.int64)
    before = clipped(rows(9, seed + 1, width=70)) if seed % 3 else None
    values = clipped(features)

    def purse() -> Purse:
        ranks = np.sort(rng.integers(0, 4, 300)).astype(np.intp) if seed % 4 else np.zeros(300, dtype=np.intp)
        copies = np.concatenate([np.arange(150), np.arange(50), np.arange(200, 300)]) if seed % 2 else None
        return Purse(Terms(caps=(20,) * 4) if seed % 4 else NO_TERMS, ranks, copies=copies)

    state = rng.bit_generator.state
    found = herd(clipped, mean, 40, features=features, before=before, purse=purse())
    rng.bit_generator.state = state
    assert found == herd(values, mean, 40, features=features, before=before, purse=purse())
    assert len(found) == 40


@pytest.mark.parametrize("scale", [1, 40, 2**22])
def test_a_screen_bounds_every_score(scale: int) -> None:
    rng = np.random.default_rng(scale)
    features = rows(5_000, scale, width=70)
    features[:7] = 0
    screen = ValueScreen(clipped, features)
    for weights in (rng.integers(-700, 700, 72) * scale, np.eye(72, dtype=np.int64)[3] * scale, np.zeros(72)):
        lower, upper = screen.bounds(weights.astype(np.float64))
        exact = (clipped(features) @ weights.astype(np.int64)).astype(np.float64)
        assert (lower <= exact).all()
        assert (exact <= upper).all()
        assert (upper - lower).max() < 0.1 * np.abs(exact).max() + 100, "it leaves few in doubt"


def test_what_is_chosen_has_nearly_the_wanted_mean() -> None:
    features = rows(2_000)
    mean = np.array([4_000, -2_000, 0, 1_000, 3_000, -5_000], dtype=np.int64)
    found = features[list(herd(features.astype(np.int64), mean, 100, features=features))].mean(axis=0)
    assert np.abs(found - mean).max() < 300


def test_the_order_of_the_rows_does_not_matter() -> None:
    features, mean = rows(60), np.full(6, 2_000, dtype=np.int64)
    order = np.random.default_rng(3).permutation(60)
    first = herd(features.astype(np.int64), mean, 20, features=features)
    moved = features[order]
    second = herd(moved.astype(np.int64), mean, 20, features=moved)
    assert [features[row].tolist() for row in first] == [moved[row].tolist() for row in second]


def test_more_than_there_are_gives_all_and_none_gives_none() -> None:
    features = rows(5)
    mean = np.zeros(6, dtype=np.int64)
    assert sorted(herd(features.astype(np.int64), mean, 9, features=features)) == [0, 1, 2, 3, 4]
    assert herd(np.zeros((0, 6), dtype=np.int64), mean, 9, features=features[:0]) == ()


@pytest.mark.parametrize(("count", "far"), [(MAX_HERDED + 1, 0), (1, FARTHEST + 1), (1, -FARTHEST - 1)])
def test_what_could_not_be_added_exactly_is_refused(count: int, far: int) -> None:
    features = rows(5)
    with pytest.raises(LocalProtocolError, match="cannot be chosen exactly"):
        herd(features.astype(np.int64), np.full(6, far, dtype=np.int64), count, features=features)


def as_they_are(features: Any) -> Any:
    return features.astype(np.int64)


def test_an_owner_s_withdrawn_points_are_not_chosen() -> None:
    points = Points(rows(10), norm_bound=1.5)
    mean = np.full(6, 2_000, dtype=np.int64)
    first = points.herd(as_they_are, mean, 4)
    for row in first:
        points.withdraw(row)
    assert set(first).isdisjoint(points.herd(as_they_are, mean, 10))
    assert len(points.herd(as_they_are, mean, 10)) == 6


def test_a_point_of_two_owners_is_chosen_once_and_absent_owners_have_none() -> None:
    features, mean = rows(6), np.full(6, 2_000, dtype=np.int64)
    ranks = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    features = np.concatenate([features, features[:2]])
    for copies, most in ((Copies(bytes(16)), 6), (None, 8)):
        pool = Pool(6, norm_bound=1.5, copies=copies)
        pool.extend(features, ranks)
        assert len(pool.herd(as_they_are, mean, 20)) == most
        away = pool.herd(as_they_are, mean, 20, withheld=np.array([False, True, False]))
        assert set(ranks[list(away)]) == {0, 2}


def test_what_was_chosen_before_counts_and_no_more_than_can_be_is_chosen() -> None:
    features, mean = rows(60), np.full(6, 2_000, dtype=np.int64)
    whole = Points(features, norm_bound=4.0).herd(lambda each: each.astype(np.int64), mean, 20)
    parts: list[int] = []
    table = Points(features, norm_bound=4.0)
    for _ in range(4):
        found = table.herd(lambda each: each.astype(np.int64), mean, 5)
        parts += found
        for row in found:
            table.withdraw(row)
    assert tuple(parts) == whole


@pytest.mark.parametrize("most", [7, 8, 59])
def test_of_more_rows_than_are_compared_half_are_the_nearest_and_half_are_spread(most: int) -> None:
    features, mean = rows(60), np.array([900, -500, 0, 100, 800, -700], dtype=np.int64)
    numbers = np.arange(60)[np.arange(60) != 13]
    found = shortlisted(lambda each: each.astype(np.int64), mean, features, numbers, most)
    order = sorted(numbers.tolist(), key=lambda row: (-int(features[row].astype(np.int64) @ mean), row))
    half, others = order[: most - most // 2], order[most - most // 2 :]
    spread = [others[place * len(others) // (most // 2)] for place in range(most // 2)]
    assert found.tolist() == sorted(half + spread)
    assert len(set(found.tolist())) == min(most, 59)
