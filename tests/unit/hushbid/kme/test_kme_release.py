"""A recipient's uses of a release: means with stated errors, distances, tests, samples, models."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from hushbid.kme import KernelMeanRelease, Release
from hushbid.kme.kernels import kernel
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.space.mmd import mmd2

Points = npt.NDArray[np.float64]
COUNT = 8_000


def records(seed: int, count: int = COUNT) -> Points:
    generator = np.random.default_rng(seed)
    centres = np.array([[2.0, 7.0], [6.0, 3.0], [8.0, 8.0]])
    return np.clip(generator.normal(centres[generator.integers(0, 3, count)], 0.8), 0.0, 10.0)


def release_of(data: Points, seed: int = 0, **change: Any) -> Release:
    settings: dict[str, Any] = {
        "lower": 0.0, "upper": 10.0, "epsilon": 1.0, "delta": 1e-6, "neighbours": "substitute-one",
        "method": "subspace", "points": 150, "gamma": 20.0, "features": 600, "random_state": 0,
        "noise": partial(SimulatedNoise, seed, "kme"),
    } | change  # fmt: skip
    return KernelMeanRelease(**settings).fit(data).release_


@pytest.fixture(scope="module")
def data() -> Points:
    return records(0)


@pytest.fixture(scope="module", params=["subspace", "features"])
def release(request: pytest.FixtureRequest, data: Points) -> Release:
    return release_of(data, method=request.param)


FUNCTIONS: dict[str, Callable[[Points], Points]] = {
    "a coordinate": lambda x: x[:, 0],
    "a product": lambda x: x[:, 0] * x[:, 1] / 10.0,
    "a wave": lambda x: np.sin(x[:, 0]) + np.cos(0.7 * x[:, 1]),
    "a bump": lambda x: np.exp(-((x - 5.0) ** 2).sum(axis=1) / 4.0),
    "a half-plane": lambda x: (x[:, 0] + x[:, 1] > 10.0).astype(float),
    "a threshold": lambda x: 1.0 / (1.0 + np.exp(-4.0 * (x[:, 1] - 6.0))),
    "a constant": lambda x: np.ones(len(x)),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_the_mean_of_any_function_is_within_its_stated_error(
    release: Release, data: Points, function: Callable[[Points], Points]
) -> None:
    estimate = release.mean(function)
    truth = float(function(data).mean())
    assert abs(estimate.value - truth) <= estimate.error
    # It says something: no function here has a range below 1.
    assert estimate.error < 0.5 * np.abs(function(data)).max()


@pytest.mark.parametrize(
    ("method", "epsilon"), [("subspace", 0.1), ("subspace", 10.0), ("features", 0.1), ("features", 10.0)]
)
def test_stated_errors_hold_over_noise_and_functions(data: Points, method: str, epsilon: float) -> None:
    """4 releases, 25 functions of the RKHS each: at most 1 in 20 may miss the 95 % bound."""
    generator = np.random.default_rng(1)
    missed, shares = 0, []
    for seed in range(4):
        released = release_of(data, seed, method=method, epsilon=epsilon, points=60)
        for _ in range(25):
            centres, sizes = generator.uniform(0, 1, (3, 2)), generator.normal(size=3)

            def function(x: Points, centres: Points = centres, sizes: Points = sizes) -> Points:
                return np.asarray(kernel(x / 10.0, centres, 20.0) @ sizes)

            estimate = released.mean(function)
            share = abs(estimate.value - float(function(data).mean())) / estimate.error
            shares.append(share)
            missed += share > 1.0
    assert missed <= 0.05 * len(shares)
    assert max(shares) > 0.02, "the stated error is not fifty times what comes about"


def test_a_delta_that_lets_a_record_be_published_is_no_guarantee() -> None:
    release_of(records(0, 20), delta=0.049)
    with pytest.raises(ConfigError, match="not below 1 over the number of rows"):
        release_of(records(0, 20), delta=0.05)


def test_distance_is_stated_for_a_confidence(release: Release) -> None:
    for stated in (release.distance, release.span_distance):
        assert 0 < stated(0.5) < stated(0.95) < stated(0.999)
        with pytest.raises(ConfigError, match="level"):
            stated(1.0)


@pytest.mark.parametrize("points", [3, 20])
def test_the_bound_on_the_distance_covers_what_records_have_beside_the_span(
    data: Points, points: int
) -> None:
    """With few public points nearly all of the records' embedding is beside their span."""
    released = release_of(data, points=points)
    exact = released.mmd(data)
    if points == 3:
        assert exact > 2.0 * released.span_distance(0.999)
    assert released.span_distance() < released.distance()
    assert exact <= released.distance() <= 1.5


def test_of_random_features_the_distance_is_the_whole_as_it_was(release: Release) -> None:
    assert (release.distance() == release.span_distance()) is (release.method == "features")


def test_mmd_to_data_is_that_of_the_weighted_points(release: Release, data: Points) -> None:
    some = data[:500]
    equal = replace(release, weights=np.full(len(release.points), 1 / len(release.points)))
    expected = math.sqrt(mmd2(equal.scale(equal.points), equal.scale(some), release.gamma))
    assert equal.mmd(some) == pytest.approx(expected, rel=1e-6)
    assert release.mmd(data) < 0.3 * equal.mmd(data) or release.mmd(data) < 0.02


def test_releases_of_one_dataset_are_near_and_of_two_far(data: Points) -> None:
    first, second = release_of(data, 0), release_of(data, 1, method="features")
    shifted = release_of(np.clip(data + np.array([1.0, 0.0]), 0.0, 10.0), 2)
    assert first.mmd(first) < 1e-6
    assert first.mmd(second) < 0.03
    assert first.mmd(shifted) > 0.2
    assert first.mmd(shifted) == pytest.approx(shifted.mmd(first))


def test_releases_of_different_kernels_are_not_compared(data: Points) -> None:
    with pytest.raises(ConfigError, match="kernels"):
        release_of(data).mmd(release_of(data, gamma=10.0))


@pytest.mark.parametrize("method", ["subspace", "features"])
def test_the_two_sample_test_keeps_its_level_and_sees_a_shift(data: Points, method: str) -> None:
    """Its threshold is a bound: at level 5 %, none of 30 samples of one distribution should exceed it."""
    released = release_of(data, method=method, points=60)
    same = [released.two_sample_test(records(seed, 2000)) for seed in range(1, 31)]
    assert sum(test.rejected for test in same) <= 2
    shifted = released.two_sample_test(np.clip(records(50, 2000) + np.array([0.6, 0.0]), 0.0, 10.0))
    assert shifted.rejected
    assert shifted.level == 0.05
    assert max(test.mmd / test.threshold for test in same) > 0.1, "the threshold is not ten times too high"


def test_a_sample_has_no_weights_and_stands_for_the_same(release: Release, data: Points) -> None:
    drawn = release.sample(1500, np.random.default_rng(0))
    assert drawn.shape == (1500, 2)
    assert release.mmd(drawn) < 0.05
    assert {tuple(row) for row in drawn} <= {tuple(row) for row in release.points}
    assert not np.array_equal(drawn, release.sample(1500, np.random.default_rng(1)))
    with pytest.raises(ConfigError, match="0 points"):
        release.sample(0, np.random.default_rng(0))


def test_negative_weights_are_not_dropped_but_made_up_for(data: Points) -> None:
    released = release_of(data, points=60, epsilon=5.0)
    assert (released.weights < 0).any()
    positive = released.positive_weights()
    assert (positive >= 0).all()
    assert positive.sum() == pytest.approx(1.0)
    clipped = np.maximum(released.weights, 0.0)
    near = replace(released, weights=positive).mmd(released)
    assert near < 0.5 * replace(released, weights=clipped / clipped.sum()).mmd(released)


def test_models_learn_from_weighted_points_what_they_learn_from_the_data() -> None:
    generator = np.random.default_rng(0)
    inputs = generator.uniform(0, 10, (COUNT, 1))
    labels = (inputs[:, :1] + generator.normal(0, 0.5, (COUNT, 1)) > 5.0).astype(float)
    targets = np.clip(0.8 * inputs + 1.0 + generator.normal(0, 0.3, inputs.shape), 0, 10)
    released = release_of(np.hstack([inputs, targets]), points=300)
    line = released.train(LinearRegression(), target=1)
    assert line.coef_[0] == pytest.approx(0.8, abs=0.08)
    classes = release_of(np.hstack([inputs, 10.0 * labels]), points=300)
    model = classes.train(LogisticRegression(), target=1, classes=(0.0, 10.0))
    assert model.score(inputs, 10.0 * labels[:, 0]) > 0.9


@pytest.mark.parametrize(
    "wrong", [np.zeros((0, 2)), np.zeros((3, 3)), np.zeros(3), np.full((3, 2), np.nan)], ids=str
)
def test_points_that_do_not_fit_are_refused(release: Release, wrong: Any) -> None:
    for use in (release.mmd, release.two_sample_test):
        with pytest.raises(DataError, match="do not fit"):
            use(wrong)


@pytest.mark.parametrize("function", [lambda x: x, lambda x: np.full(len(x), np.nan)], ids=["shape", "nan"])
def test_a_function_that_gives_no_numbers_is_refused(release: Release, function: Any) -> None:
    with pytest.raises(DataError, match="finite number"):
        release.mean(function)


def test_levels_are_between_0_and_1(release: Release, data: Points) -> None:
    with pytest.raises(ConfigError, match="level"):
        release.two_sample_test(data[:10], level=0.0)
