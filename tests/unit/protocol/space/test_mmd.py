"""MMD², J and gains against their definitions, written as loops over pairs."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.protocol.errors import DataError
from hushbid.protocol.space import mmd
from hushbid.protocol.space.features import FeatureMap, feature_map
from hushbid.protocol.space.grid import features_to_float
from tests.support.exact_points import marginal_gains

GAMMA = 0.7

Array: TypeAlias = npt.NDArray[np.float64]
Sets: TypeAlias = tuple[Array, Array, Array]


def kernel(x: Array, y: Array) -> float:
    return math.exp(-GAMMA * float(((x - y) ** 2).sum()))


def mean_kernel(x: Array, y: Array) -> float:
    return sum(kernel(a, b) for a in x for b in y) / (len(x) * len(y))


@pytest.fixture
def sets() -> Sets:
    generator = np.random.default_rng(7)
    return generator.random((9, 4)), generator.random((6, 4)) ** 2, generator.random((5, 4))


def test_mmd2_is_the_biased_estimate_of_eq_1(sets: Sets) -> None:
    x, y, _ = sets
    expected = mean_kernel(x, x) - 2 * mean_kernel(x, y) + mean_kernel(y, y)
    assert mmd.mmd2(x, y, GAMMA) == pytest.approx(expected, abs=1e-14)


def test_mmd2_of_a_set_with_itself_is_zero_and_never_negative(sets: Sets) -> None:
    assert 0.0 <= mmd.mmd2(sets[0], sets[0][::-1], GAMMA) < 1e-15


def test_chunks_change_nothing(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, _ = sets
    whole = mmd.mmd2(x, y, GAMMA)
    monkeypatch.setattr(mmd, "CHUNK_VALUES", 13)
    assert mmd.mmd2(x, y, GAMMA) == pytest.approx(whole, abs=1e-15)


@pytest.mark.parametrize("rows", [1, 4, 5, 9, 12])
def test_each_pair_of_a_set_with_itself_is_computed_once_and_counts_for_both(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    x = np.random.default_rng(13).random((9, 4))
    monkeypatch.setattr(mmd, "_BLOCK_ROWS", rows)
    computed = 0
    kernel_of = mmd._kernel

    def counted(*of: Any) -> Array:
        nonlocal computed
        values = kernel_of(*of)
        computed += values.size
        return values

    monkeypatch.setattr(mmd, "_kernel", counted)
    means = mmd.kernel_means(x, x, GAMMA)
    assert means == pytest.approx([mean_kernel(x[i : i + 1], x) for i in range(9)], abs=1e-15)
    assert computed <= 9 * (9 + rows) / 2


def test_distances_far_from_the_origin_do_not_cancel(sets: Sets) -> None:
    x, y, _ = sets
    assert mmd.mmd2(x + 1e6, y + 1e6, GAMMA) == pytest.approx(mmd.mmd2(x, y, GAMMA), abs=1e-8)


@pytest.mark.parametrize("chunk", [1, 13, 2**21])
def test_a_curve_is_mmd2_of_every_prefix(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    generator = np.random.default_rng(11)
    x, y = generator.random((150, 4)), generator.random((40, 4)) ** 2
    x[70:] = x[3]  # the same point again and again
    expected = [mmd.mmd2(x[:size], y, GAMMA) for size in range(1, len(x) + 1)]
    monkeypatch.setattr(mmd, "CHUNK_VALUES", chunk)
    curve = mmd.mmd2_curve(x, y, GAMMA)
    assert curve.dtype == np.float64
    np.testing.assert_allclose(curve, expected, rtol=0, atol=1e-12)


def test_a_curve_comes_down_to_zero_and_never_below(sets: Sets) -> None:
    curve = mmd.mmd2_curve(sets[0], sets[0], GAMMA)
    assert curve.min() >= 0.0
    assert curve[-1] < 1e-15


def test_objective_and_mmd2_add_up_to_the_target_s_own_mean_kernel(sets: Sets) -> None:
    summary, target, _ = sets
    total = mmd.objective(target, summary, GAMMA) + mmd.mmd2(target, summary, GAMMA)
    assert total == pytest.approx(mean_kernel(target, target), abs=1e-14)


@pytest.mark.parametrize("q", [0, 1, 9])
def test_a_marginal_gain_is_the_difference_of_two_objectives(sets: Sets, q: int) -> None:
    summary, target, candidates = sets[0][:q], sets[1], sets[2]
    before = mmd.objective(target, summary, GAMMA)
    expected = [mmd.objective(target, np.vstack([summary, x]), GAMMA) - before for x in candidates]
    assert marginal_gains(target, summary, candidates, GAMMA) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("name", ["paired", "cosine"])
@pytest.mark.parametrize("q", [0, 1, 9])
def test_an_embedding_gain_is_the_difference_of_two_objectives(sets: Sets, name: str, q: int) -> None:
    summary, target, candidates = (features_to_float(_map(name).hash(points)) for points in sets)
    summary = summary[:q]
    wanted = target.mean(axis=0)
    mean = summary.sum(axis=0) / max(q, 1)
    before = mmd.embedding_objective(wanted, mean)
    expected = [
        mmd.embedding_objective(wanted, np.vstack([summary, x]).mean(axis=0)) - before for x in candidates
    ]
    assert mmd.embedding_gains(wanted, mean, q, candidates) == pytest.approx(expected, abs=1e-14)
    assert mmd.embedding_gain(wanted, mean, q, candidates[0]) == pytest.approx(expected[0], abs=1e-14)


def test_the_gain_is_its_score_term_plus_the_documented_constant(sets: Sets) -> None:
    summary, target, candidates = (features_to_float(_map("paired").hash(points)) for points in sets)
    q, wanted, mean, x = len(summary), target.mean(axis=0), summary.mean(axis=0), candidates[0]
    score = 2 / (q + 1) * (wanted @ x - q / (q + 1) * mean @ x)
    gain = mmd.embedding_gain(wanted, mean, q, x)
    assert gain == pytest.approx(score + mmd.gain_constant(wanted, mean, q, float(x @ x)), abs=1e-15)


def test_many_features_approach_the_exact_kernel(sets: Sets) -> None:
    summary, target, candidates = sets
    phi = _map("paired", dimension=4096)
    s, t, c = (features_to_float(phi.hash(points)) for points in sets)
    exact = marginal_gains(target, summary, candidates, GAMMA)
    by_features = mmd.embedding_gains(t.mean(axis=0), s.mean(axis=0), len(s), c)
    # A kernel value has a standard error below 1/√d = 0.016; a gain has about 2/(q+1) = 0.2 of it.
    assert np.abs(exact - by_features).max() < 0.02


@pytest.mark.parametrize("far", [1e160, 1e308, math.inf, math.nan])
def test_a_distance_that_cannot_be_computed_is_refused_and_not_called_zero(sets: Sets, far: float) -> None:
    x, y, _ = sets
    x[3] = far
    for first, second in ((x, y), (y, x), (x, x)):
        for distance in (mmd.mmd2, mmd.mmd2_curve):
            with pytest.raises(DataError, match="too far"):
                distance(first, second, GAMMA)


@pytest.mark.parametrize(("x", "y"), [((0, 4), (2, 4)), ((2, 4), (0, 4)), ((2, 4), (2, 3)), ((4,), (4,))])
def test_sets_that_cannot_be_compared_are_refused(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    for distance in (mmd.mmd2, mmd.mmd2_curve):
        with pytest.raises(DataError):
            distance(np.zeros(x), np.zeros(y), GAMMA)


def _map(name: str, dimension: int = 64) -> FeatureMap:
    return feature_map(name, seed=3, dimension=dimension, gamma=GAMMA, lower=0.0, upper=1.0, columns=4)
