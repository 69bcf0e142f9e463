"""Matching weights: the minimum by another solver, the certificate's worth, and bad input."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize

from hushbid.consumer import matching, matching_solvers
from hushbid.consumer.balance import Group
from hushbid.consumer.label_part import label_part
from hushbid.consumer.matching import TOLERANCE, effective_points, match
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.space.mmd import kernel_matrix, kernel_means, mmd2

Points = npt.NDArray[np.float64]
GAMMA = 3.0
SIZES = {"few": (2_000, 6_000), "many": (0, 6_000), "more than fit into memory": (0, 0)}


@pytest.fixture(params=SIZES)
def any_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way of weighing points, whatever their number."""
    few, held = SIZES[request.param]
    monkeypatch.setattr(matching, "_FEW", few)
    monkeypatch.setattr(matching, "_HELD", held)


def sets(points: int, wanted: int, seed: int = 0) -> tuple[Points, Points]:
    rng = np.random.default_rng(seed)
    return rng.random((points, 2)), rng.beta(2, 5, (wanted, 2))


def distance(weights: Points, points: Points, wanted: Points) -> float:
    """MMD² by its definition."""
    within = weights @ kernel_matrix(points, GAMMA) @ weights
    cross = weights @ kernel_means(points, wanted, GAMMA)
    return float(within - 2.0 * cross + kernel_means(wanted, wanted, GAMMA).mean())


def objective(weights: Points, points: Points, wanted: Points, ridge: float) -> float:
    return distance(weights, points, wanted) + ridge * float(weights @ weights)


def least(points: Points, wanted: Points, ridge: float) -> float:
    """The minimum by SciPy's SLSQP, which knows nothing of projections."""
    count = len(points)
    found = minimize(
        objective,
        np.full(count, 1 / count),
        args=(points, wanted, ridge),
        bounds=[(0, 1)] * count,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return float(found.fun)


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("ridge", [0.0, 0.01, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_no_other_solver_finds_less(ridge: float, seed: int) -> None:
    points, wanted = sets(12, 30, seed)
    found = match(points, wanted, GAMMA, ridge=ridge)
    mine = objective(found.weights, points, wanted, ridge)
    assert mine <= least(points, wanted, ridge) + TOLERANCE
    assert found.gap <= TOLERANCE
    assert found.weights.min() >= 0.0
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert found.mmd2 == pytest.approx(distance(found.weights, points, wanted), abs=1e-12)
    assert found.square == pytest.approx(found.weights @ kernel_matrix(points, GAMMA) @ found.weights)


def test_the_gap_bounds_how_far_any_weights_are_from_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after steps that were cut short: then it is large, and true."""
    points, wanted = sets(60, 80)
    best = objective(match(points, wanted, GAMMA, ridge=0.0).weights, points, wanted, 0.0)
    for steps in (1, 3, 10):
        monkeypatch.setattr(matching_solvers, "_MOST_STEPS", steps)
        rough = match(points, wanted, GAMMA, ridge=0.0)
        assert rough.gap > TOLERANCE
        assert best - TOLERANCE <= objective(rough.weights, points, wanted, 0.0) <= best + rough.gap


@pytest.mark.usefixtures("any_size")
def test_weights_bring_points_nearer_and_a_ridge_keeps_them_even() -> None:
    points, wanted = sets(200, 100)
    plain = mmd2(points, wanted, GAMMA)
    matched = [match(points, wanted, GAMMA, ridge=ridge) for ridge in (0.0, 0.1, 1.0, 1e9)]
    distances = [each.mmd2 for each in matched]
    effective = [each.effective_points for each in matched]
    assert distances == sorted(distances)
    assert distances[2] < plain / 2
    assert distances[3] == pytest.approx(plain, rel=1e-6)
    assert effective == sorted(effective)
    assert effective[3] == pytest.approx(200.0)


@pytest.mark.usefixtures("any_size")
def test_a_kernel_matrix_that_is_singular_is_no_obstacle() -> None:
    """Copies of a point share its weight; the ridge decides how."""
    points, wanted = sets(20, 40)
    once = match(points, wanted, GAMMA, ridge=0.0)
    thrice = match(np.tile(points, (3, 1)), wanted, GAMMA, ridge=0.0)
    assert np.linalg.matrix_rank(kernel_matrix(np.tile(points, (3, 1)), GAMMA)) <= 20
    assert thrice.mmd2 == pytest.approx(once.mmd2, abs=2 * TOLERANCE)
    shared = match(np.tile(points, (3, 1)), wanted, GAMMA, ridge=1.0).weights.reshape(3, 20)
    assert np.allclose(shared, shared[0], atol=1e-4)


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("gamma", [1e-9, 1e-3, 1e3, 1e9])
def test_a_kernel_that_tells_no_points_apart_or_all_gives_weights_too(gamma: float) -> None:
    points, wanted = sets(50, 20)
    found = match(points, wanted, gamma)
    assert found.gap <= TOLERANCE
    assert found.effective_points == pytest.approx(50.0, rel=0.1)


def test_a_point_is_as_near_itself_as_can_be_however_narrow_the_kernel() -> None:
    points, _ = sets(40, 1)
    assert kernel_matrix(points, 1e18).diagonal().tolist() == [1.0] * 40


@pytest.mark.usefixtures("any_size")
def test_one_point_has_all_the_weight_and_one_wanted_point_draws_it() -> None:
    points, wanted = sets(30, 40)
    assert match(points[:1], wanted, GAMMA).weights.tolist() == [1.0]
    nearest = int(np.argmin(((points - wanted[0]) ** 2).sum(axis=1)))
    alone = match(points, wanted[:1], GAMMA, ridge=1e-6)
    assert int(np.argmax(alone.weights)) == nearest


def test_the_kernel_matrix_is_that_of_its_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    points, _ = sets(37, 1)
    whole = kernel_matrix(points, GAMMA)
    monkeypatch.setattr("hushbid.protocol.space.mmd.CHUNK_VALUES", 100)
    assert np.allclose(kernel_matrix(points, GAMMA), whole, atol=1e-15)
    distances = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    assert np.allclose(whole, np.exp(-GAMMA * distances), atol=1e-14)


def test_effective_points_count_equal_weights() -> None:
    assert effective_points(np.full(8, 1 / 8)) == 8.0
    assert effective_points(np.array([0.5, 0.5, 0.0])) == 2.0


@pytest.mark.parametrize("ridge", [-1e-9, math.nan, math.inf])
def test_a_ridge_that_is_none_is_refused(ridge: float) -> None:
    points, wanted = sets(3, 3)
    with pytest.raises(ConfigError, match="ridge"):
        match(points, wanted, GAMMA, ridge=ridge)


BAD: dict[str, tuple[Any, Any, str]] = {
    "no points": (np.empty((0, 2)), np.zeros((3, 2)), "cannot be compared"),
    "nothing wanted": (np.zeros((3, 2)), np.empty((0, 2)), "cannot be compared"),
    "other columns": (np.zeros((3, 2)), np.zeros((3, 3)), "cannot be compared"),
    "far away": (np.array([[0.0, 0.0], [1e300, 0.0]]), np.zeros((3, 2)), "too far"),
}


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("case", BAD)
def test_sets_that_cannot_be_matched_are_refused(case: str) -> None:
    points, wanted, what = BAD[case]
    with pytest.raises(DataError, match=what):
        match(points, wanted, GAMMA)


def test_too_many_points_are_refused_before_memory_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MOST_POINTS", 4)
    points, wanted = sets(5, 3)
    with pytest.raises(DataError, match="5 points are too many to be weighed: at most 4"):
        match(points, wanted, GAMMA)


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_no_other_solver_finds_less_where_groups_have_shares(ridge: float) -> None:
    points, wanted = sets(12, 30, 1)
    groups = (Group(np.arange(0, 5), 0.7), Group(np.arange(5, 11), 0.3), Group(np.array([11]), 0.0))
    found = match(points, wanted, GAMMA, ridge=ridge, groups=groups)
    assert [float(found.weights[rows].sum()) for rows, _ in groups] == pytest.approx([0.7, 0.3, 0.0])
    other = minimize(
        objective,
        np.concatenate([np.full(5, 0.14), np.full(6, 0.05), [0.0]]),
        args=(points, wanted, ridge),
        bounds=[(0, 1)] * 12,
        constraints=[
            {"type": "eq", "fun": lambda weights, rows=rows, share=share: weights[rows].sum() - share}
            for rows, share in groups
        ],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert objective(found.weights, points, wanted, ridge) <= float(other.fun) + TOLERANCE
    assert found.gap <= TOLERANCE


LABELS: dict[str, tuple[Any, Any]] = {
    "none": (None, None),
    "classes": ([row % 3 for row in range(350)], [row % 4 for row in range(90)]),
    "classes with gaps": (
        [None if row % 5 == 0 else row % 3 for row in range(350)],
        [row % 2 for row in range(90)],
    ),
    "amounts with gaps": (
        [None if row % 7 == 0 else (row % 11) / 3 for row in range(350)],
        [(row % 5) / 3 for row in range(90)],
    ),
}


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_all_ways_find_the_same_least(labels: str, ridge: float, monkeypatch: pytest.MonkeyPatch) -> None:
    points, wanted = sets(350, 90)
    part = label_part(LABELS[labels][0] or [None] * 350, LABELS[labels][1])
    assert (part is None) == (labels == "none")
    found = []
    for few, held in SIZES.values():
        monkeypatch.setattr(matching, "_FEW", few)
        monkeypatch.setattr(matching, "_HELD", held)
        found.append(match(points, wanted, GAMMA, ridge=ridge, labels=part))
    one, *others = found
    for each in others:
        assert each.gap <= max(TOLERANCE, one.gap)
        assert each.mmd2 == pytest.approx(distance(each.weights, points, wanted), abs=1e-10)
        if ridge:  # f is strongly convex: λ‖w - w'‖² is at most the gaps together
            assert ridge * float(np.square(each.weights - one.weights).sum()) <= each.gap + one.gap
        if part is None:
            mine, other = (objective(every.weights, points, wanted, ridge) for every in (each, one))
            assert abs(mine - other) <= each.gap + one.gap


def test_many_points_are_weighed_without_the_kernel_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """3,500 points have 98 MB of kernel values; here they are held for fewer points than usual."""
    monkeypatch.setattr(matching, "_HELD", 3_000)
    points, wanted = sets(3_500, 20)
    tracemalloc.start()
    try:
        found = match(points, wanted, GAMMA)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.gap <= TOLERANCE
    assert found.mmd2 < mmd2(points, wanted, GAMMA) / 10
    assert peak < 75e6


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("apart", [0.0, 1e-6])
def test_points_that_repeat_are_weighed_without_a_ridge(apart: float) -> None:
    """The minimum is then not unique, and Newton's steps on the dual of a small rest lead nowhere."""
    rng = np.random.default_rng(5)
    points = np.repeat(rng.random((12, 3)), 50, axis=0) + apart * rng.standard_normal((600, 3))
    found = match(points, rng.random((90, 3)), GAMMA, ridge=0.0)
    assert found.gap <= 1e-5


def test_of_many_points_some_that_are_far_out_are_refused() -> None:
    points = np.random.default_rng(0).random((2_001, 8))
    points[::2] = points[1] + 1e8
    with pytest.raises(DataError, match="too far"):
        match(points, np.zeros((3, 8)), GAMMA)
