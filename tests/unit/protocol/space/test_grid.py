"""Fixed-point arithmetic: scores are exact, in whatever order they are summed."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hushbid.protocol import limits
from hushbid.protocol.space.grid import (
    FEATURE_UNIT,
    SCORE_UNIT,
    WEIGHT_UNIT,
    Features,
    Weights,
    exact_scores,
    features_to_float,
    round_weights,
    weights_to_float,
)
from tests.support.exact_points import round_features

LARGEST_WEIGHT = round(limits.MAX_WEIGHT / WEIGHT_UNIT)


def largest_feature(dimension: int) -> int:
    """Largest coordinate of a feature map, with a unit of rounding."""
    return math.ceil(math.sqrt(2.0 / dimension) / FEATURE_UNIT) + 1


@st.composite
def problems(draw: st.DrawFn) -> tuple[Features, Weights]:
    """Features and weights up to their largest values, at dimensions small and large."""
    dimension = draw(st.sampled_from([4, 5, 16, 140, limits.MAX_DIMENSION]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bound = largest_feature(dimension)
    rows = draw(st.integers(1, 4))
    if draw(st.booleans()):
        features = bound * rng.choice([-1, 1], size=(rows, dimension))
        weights = LARGEST_WEIGHT * rng.choice([-1, 1], size=dimension)
    else:
        features = rng.integers(-bound, bound + 1, size=(rows, dimension))
        weights = rng.integers(-LARGEST_WEIGHT, LARGEST_WEIGHT + 1, size=dimension)
    return features.astype(np.int16), weights.astype(np.int32)


def in_python(features: Features, weights: Weights) -> list[int]:
    w = weights.tolist()
    return [sum(a * b for a, b in zip(row, w, strict=True)) for row in features.tolist()]


@given(problems())
def test_a_score_is_the_integer_that_python_computes(problem: tuple[Features, Weights]) -> None:
    assert exact_scores(*problem).tolist() == in_python(*problem)


@given(problems(), st.integers(0, 2**32 - 1))
def test_no_order_of_summation_changes_a_score(problem: tuple[Features, Weights], seed: int) -> None:
    features, weights = problem
    expected = exact_scores(features, weights)
    order = np.random.default_rng(seed).permutation(len(weights))
    a, b = features[:, order], weights[order]
    assert np.array_equal(exact_scores(a, b), expected)
    assert np.array_equal(exact_scores(np.asfortranarray(a), b), expected)
    products = a.astype(np.float64) * b.astype(np.float64)
    assert np.array_equal(products.cumsum(axis=1)[:, -1], expected.astype(np.float64))
    assert np.array_equal(products.sum(axis=1), expected.astype(np.float64))
    assert np.array_equal(np.einsum("ij,j->i", a.astype(np.int64), b.astype(np.int64)), expected)


@given(problems())
def test_every_partial_sum_is_below_2_to_the_53(problem: tuple[Features, Weights]) -> None:
    features, weights = problem
    largest = np.abs(features.astype(object)) @ np.abs(weights.astype(object))
    assert max(largest) < 2**53


def test_the_largest_score_is_below_2_to_the_53_at_every_dimension() -> None:
    worst = max(d * largest_feature(d) for d in range(limits.MIN_DIMENSION, limits.MAX_DIMENSION + 1))
    assert worst * LARGEST_WEIGHT < 2**53


def test_a_sum_beyond_the_limits_shows_why_they_are_there() -> None:
    """Without the limits float64 does lose units: the test above would notice."""
    features = np.full((1, 2**13), 2**15 - 1, dtype=np.int16)
    weights = np.full(2**13, 2**31 - 1, dtype=np.int32)
    assert exact_scores(features, weights).tolist() != in_python(features, weights)


FINITE = arrays.arrays(
    np.float64,
    st.integers(1, 8),
    elements=st.floats(allow_nan=False, allow_infinity=False),
)


@given(FINITE)
def test_weights_are_clipped_and_rounded_to_the_nearest(values: npt.NDArray[np.float64]) -> None:
    weights = round_weights(values)
    assert weights.dtype == np.int32
    assert np.abs(weights.astype(np.int64)).max() <= LARGEST_WEIGHT
    clipped = np.clip(values, -limits.MAX_WEIGHT, limits.MAX_WEIGHT)
    assert np.abs(weights_to_float(weights) - clipped).max() <= WEIGHT_UNIT / 2


@pytest.mark.parametrize("value", [limits.MAX_WEIGHT, limits.MAX_WEIGHT + 1.0, 1e300])
def test_a_weight_over_its_limit_becomes_the_limit(value: float) -> None:
    assert round_weights(np.array([value, -value])).tolist() == [LARGEST_WEIGHT, -LARGEST_WEIGHT]


def test_halves_are_rounded_to_even() -> None:
    assert round_features(np.array([0.5, 1.5, -0.5, -1.5]) * FEATURE_UNIT).tolist() == [0, 2, 0, -2]
    assert round_weights(np.array([0.5, 1.5, -0.5, -1.5]) * WEIGHT_UNIT).tolist() == [0, 2, 0, -2]


@given(arrays.arrays(np.int16, st.integers(1, 8)))
def test_features_go_to_float_and_back(features: Features) -> None:
    assert np.array_equal(round_features(features_to_float(features)), features)


def test_totals_up_to_2_to_the_53_go_to_float_exactly() -> None:
    totals = np.array([2**53, -(2**53), 2**53 - 1], dtype=np.int64)
    assert (features_to_float(totals) / FEATURE_UNIT).astype(np.int64).tolist() == totals.tolist()


def test_a_score_has_the_units_of_feature_and_weight() -> None:
    features, weights = round_features(np.array([[0.5, -0.25]])), round_weights(np.array([2.0, 4.0]))
    assert exact_scores(features, weights)[0] * SCORE_UNIT == 0.5 * 2.0 - 0.25 * 4.0
