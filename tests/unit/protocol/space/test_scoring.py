"""The best of many points: `Points` and `Pool` always answer as plain integers do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.space.grid import Features, Weights, exact_scores
from hushbid.protocol.space.jitter import Jitter
from hushbid.protocol.space.scoring import Best, Points, Pool
from hushbid.protocol.space.shortlist import FixedScreen, GrowingScreen
from tests.support.exact_points import round_features

NORM_BOUND = 1.1
"""Above every ‖φ‖ here, moved by single grid units as some are."""


class Reference:
    """The same in Python integers: no floats, no screen."""

    def __init__(self, features: Features, jitter: Jitter | None = None) -> None:
        self.jitter = jitter
        self.entries: list[tuple[list[int], int]] = [(self.coordinates(row), 0) for row in features]
        self.bytes = [row.tobytes() for row in features]
        self.out: set[int] = set()

    def coordinates(self, features: Features) -> list[int]:
        return [*features.tolist(), *(self.jitter.of(features[None]).tolist() if self.jitter else ())]

    def append(self, features: Features, rank: int) -> None:
        self.entries.append((self.coordinates(features), rank))
        self.bytes.append(features.tobytes())

    def first(self, weights: Weights, count: int, withheld: list[bool] | None = None) -> tuple[Best, ...]:
        w = weights.tolist()
        places = [
            (-sum(a * b for a, b in zip(row, w, strict=True)), self.bytes[entry], rank, entry)
            for entry, (row, rank) in enumerate(self.entries)
            if entry not in self.out and not (withheld and withheld[rank])
        ]
        return tuple(Best(entry, -score) for score, _, _, entry in sorted(places)[:count])

    def best(self, weights: Weights) -> Best | None:
        return next(iter(self.first(weights, 1)), None)


def best_of(
    table: Points | Pool, weights: Weights, withheld: npt.NDArray[np.bool_] | None = None
) -> Best | None:
    if isinstance(table, Pool):
        return next(iter(table.first(weights, 1, withheld=withheld)), None)
    return next(iter(table.first(weights, 1)), None)


def unit_points(rng: np.random.Generator, count: int, dimension: int) -> Features:
    """Points of the paired map's kind: pairs on a circle of radius √(2/d)."""
    angles = rng.uniform(0, 2 * np.pi, size=(count, dimension // 2))
    values = np.hstack([np.cos(angles), np.sin(angles)]) * np.sqrt(2.0 / dimension)
    return round_features(values)


def points_of(features: Features, jitter: Jitter | None = None) -> Points:
    return Points(features, norm_bound=NORM_BOUND, jitter=jitter)


def pool_of(features: Features, ranks: Sequence[int] | None = None, jitter: Jitter | None = None) -> Pool:
    pool = Pool(features.shape[1], norm_bound=NORM_BOUND, jitter=jitter)
    pool.extend(features, np.array(ranks or [0] * len(features), dtype=np.intp))
    return pool


JITTERS = [None, Jitter(b"a session's name")]
MAKERS: list[Callable[[Features], Points | Pool]] = [points_of, pool_of]


@st.composite
def small_tables(draw: st.DrawFn) -> tuple[Features, np.random.Generator]:
    """Few distinct points, so that ties and duplicates are the rule."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    distinct = unit_points(rng, draw(st.integers(1, 6)), 4)
    rows = distinct[rng.integers(0, len(distinct), size=draw(st.integers(0, 12)))]
    return rows, rng


def few_valued(rng: np.random.Generator, dimension: int) -> Weights:
    return (rng.integers(-2, 3, size=dimension) * int(rng.choice([1, 2**20]))).astype(np.int32)


@pytest.mark.parametrize("jitter", JITTERS)
@given(small_tables())
def test_the_best_of_a_pool_are_the_first_in_the_total_order(
    jitter: Jitter | None, made: tuple[Features, np.random.Generator]
) -> None:
    features, rng = made
    pool, reference = pool_of(features, jitter=jitter), Reference(features, jitter)
    owners = 3
    for _ in range(30):
        weights = few_valued(rng, 4 + (jitter is not None))
        withheld = rng.random(owners) < 0.3 if rng.random() < 0.5 else None
        count = int(rng.integers(1, 5))
        found = pool.first(weights, count, withheld=withheld)
        assert found == reference.first(weights, count, None if withheld is None else withheld.tolist())
        for best in found if rng.random() < 0.5 else ():
            pool.withdraw(best.entry)
            reference.out.add(best.entry)
        if rng.random() < 0.4:
            row = unit_points(rng, 1, 4)[0] if rng.random() < 0.5 or not len(features) else features[0]
            rank = int(rng.integers(owners))
            pool.extend(row[None], np.array([rank]))
            reference.append(row, rank)
        assert len(pool) == len(reference.entries)


@pytest.mark.parametrize("jitter", JITTERS)
@given(small_tables())
def test_the_best_of_an_owner_are_the_first_in_the_total_order(
    jitter: Jitter | None, made: tuple[Features, np.random.Generator]
) -> None:
    features, rng = made
    if not len(features):
        return
    points, reference = points_of(features, jitter), Reference(features, jitter)
    for _ in range(30):
        weights = few_valued(rng, 4 + (jitter is not None))
        count = int(rng.integers(1, 5))
        found = points.first(weights, count)
        assert found == reference.first(weights, count)
        for best in found if rng.random() < 0.5 else ():
            points.withdraw(best.entry)
            reference.out.add(best.entry)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("count", "dimension"), [(700, 140), (2000, 8), (50, 1024), (300, 70)])
def test_many_rounds_of_slowly_moving_weights(
    make: Callable[[Features], Points | Pool], count: int, dimension: int
) -> None:
    """As in a session: the weight moves by about 1/q, and the best point goes."""
    rng = np.random.default_rng(count)
    features = unit_points(rng, count, dimension)
    features[1::7] = features[0::7][: len(features[1::7])]
    table, reference = make(features), Reference(features)
    values = rng.normal(size=dimension) / np.sqrt(dimension)
    for step in range(40):
        values += rng.normal(size=dimension) / np.sqrt(dimension) / (50 + step)
        weights = np.rint(values * 2**22).astype(np.int32)
        found = best_of(table, weights)
        assert found is not None
        assert found == reference.best(weights)
        table.withdraw(found.entry)
        reference.out.add(found.entry)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("scale", [1, 2**10, 2**24])
def test_points_whose_scores_differ_by_one_unit(
    make: Callable[[Features], Points | Pool], scale: int
) -> None:
    """float32 cannot distinguish them: the decision is exact all the same."""
    rng = np.random.default_rng(scale)
    for _ in range(100):
        base = unit_points(rng, 1, 140)[0]
        rows = np.repeat(base[None], 40, axis=0)
        # Each row is the base with a few coordinates moved by one grid unit.
        for row in rows[1:]:
            row[rng.integers(0, 140, size=3)] += rng.choice([-1, 0, 1], size=3).astype(np.int16)
        weights = rng.integers(-scale * 4, scale * 4 + 1, size=140).astype(np.int32)
        # One unit of weight where most of the score is: neighbours in score, at one unit's distance.
        weights[rng.integers(0, 140, size=100)] = rng.choice([-1, 1])
        assert best_of(make(rows), weights) == Reference(rows).best(weights)


def test_float32_alone_would_get_near_ties_wrong() -> None:
    """The control: the table of the test above is beyond float32."""
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(100):
        base = unit_points(rng, 1, 140)[0]
        rows = np.repeat(base[None], 40, axis=0)
        for row in rows[1:]:
            row[rng.integers(0, 140, size=3)] += rng.choice([-1, 0, 1], size=3).astype(np.int16)
        weights = rng.integers(-(2**24), 2**24 + 1, size=140).astype(np.int32)
        weights[rng.integers(0, 140, size=100)] = 1
        exact = Reference(rows).best(weights)
        assert exact is not None
        wrong += int((rows.astype(np.float32) @ weights.astype(np.float32)).argmax()) != exact.entry
    assert wrong > 0


def test_equal_scores_go_by_the_bytes_of_the_features() -> None:
    features = np.array([[1, 2, 0, 0], [2, 1, 0, 0], [0, 3, 0, 0]], dtype=np.int16)
    first = min(range(3), key=lambda row: features[row].tobytes())
    weights = np.array([1, 1, 0, 0], dtype=np.int32)
    for make in MAKERS:
        assert best_of(make(features), weights) == Best(first, 3)


def test_equal_points_go_by_rank_and_then_by_age() -> None:
    row = np.array([1, 2, 3, 4], dtype=np.int16)
    table = pool_of(np.repeat(row[None], 4, axis=0), ranks=(2, 1, 1, 0))
    weights = np.ones(4, dtype=np.int32)
    order = []
    while (found := best_of(table, weights)) is not None:
        order.append(found.entry)
        table.withdraw(found.entry)
    assert order == [3, 1, 2, 0]


@pytest.mark.parametrize("jitter", JITTERS)
def test_a_pool_that_grows_forgets_nothing_of_the_points_before(jitter: Jitter | None) -> None:
    rng = np.random.default_rng(11)
    features, ranks = unit_points(rng, 600, 8), rng.integers(0, 3, size=600)
    pool, reference = pool_of(features[:200], ranks[:200].tolist(), jitter), Reference(features[:0], jitter)
    for start in (200, 400):
        pool.extend(features[start : start + 200], ranks[start : start + 200])
    for row, rank in zip(features, ranks.tolist(), strict=True):
        reference.append(row, rank)
    weights = rng.integers(-(2**20), 2**20, size=8 + (jitter is not None)).astype(np.int32)
    withheld = np.array([False, True, False])
    assert pool.first(weights, 600) == reference.first(weights, 600)
    assert pool.first(weights, 5, withheld=withheld) == reference.first(weights, 5, withheld.tolist())


def test_points_of_withheld_ranks_are_as_if_they_were_not_there() -> None:
    table = pool_of(np.repeat(np.array([[10], [9], [8]], dtype=np.int16), 4, axis=1), ranks=(0, 1, 2))
    weights = np.ones(4, dtype=np.int32)
    assert best_of(table, weights, withheld=np.array([True, False, False])) == Best(1, 36)
    assert best_of(table, weights, withheld=np.array([True, True, True])) is None
    assert best_of(table, weights) == Best(0, 40)


def test_nothing_has_no_best() -> None:
    weights = np.ones(4, dtype=np.int32)
    assert best_of(pool_of(np.zeros((0, 4), dtype=np.int16)), weights) is None
    for make in MAKERS:
        table = make(np.ones((1, 4), dtype=np.int16))
        table.withdraw(0)
        assert best_of(table, weights) is None


@pytest.mark.parametrize("make", MAKERS)
def test_an_entry_is_withdrawn_once(make: Callable[[Features], Points | Pool]) -> None:
    table = make(np.ones((2, 4), dtype=np.int16))
    table.withdraw(1)
    with pytest.raises(LocalProtocolError, match="Entry 1 was withdrawn before"):
        table.withdraw(1)


@pytest.mark.parametrize("make", MAKERS)
def test_the_features_that_were_given_do_not_change(make: Callable[[Features], Points | Pool]) -> None:
    features = unit_points(np.random.default_rng(0), 600, 8)
    before = features.copy()
    features.flags.writeable = False
    table = make(features)
    for entry in (0, 599, 5):
        table.withdraw(entry)
    assert len(table) == 600
    for entry in range(600):
        row = table.features(entry)
        assert np.array_equal(row, before[entry])
        assert not row.flags.writeable


@given(st.integers(0, 2**32 - 1), st.sampled_from([4, 6, 64, 140, 1024]))
def test_no_screened_score_is_further_from_the_exact_one_than_is_said(seed: int, dimension: int) -> None:
    """Choosing among the points within that distance of the top makes the screen safe."""
    rng = np.random.default_rng(seed)
    features = unit_points(rng, 30, dimension)
    weights = np.rint(rng.normal(size=dimension) * 2.0 ** rng.integers(0, 27, size=dimension))
    weights = np.clip(weights, -(2**30), 2**30).astype(np.int32)
    growing = GrowingScreen(dimension, norm_bound=NORM_BOUND)
    growing.extend(features[:7])
    growing.extend(features[7:])
    for screen in (FixedScreen(features, norm_bound=NORM_BOUND), growing):
        screened = screen.screen(weights)
        distance = np.abs(screened.scores * screened.scale - exact_scores(features, weights))
        assert distance.max() <= screened.error
