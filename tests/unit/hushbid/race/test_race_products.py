"""Sums of products: a record's effect, their noise, and the resulting line."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression

from hushbid.protocol.errors import ConfigError, LocalProtocolError
from hushbid.protocol.privacy.accounting import epsilon_of
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.race import PoorModelWarning, RaceRegressor
from hushbid.race.products import (
    BITS,
    DIAGONAL,
    OFF_DIAGONAL,
    Products,
    calibrate_products,
    fewest_points,
    fit_line,
    measure_products,
    reach,
    sensitivity,
    whole_vectors,
)
from hushbid.race.products import _sums as sums_of

Array = npt.NDArray[np.float64]

coordinates = st.floats(-1e6, 1e6, allow_nan=False)


def released(vectors: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The whole numbers that noise is added to."""
    upper = np.triu_indices(vectors.shape[1])
    return sums_of(vectors)[upper] * np.where(upper[0] == upper[1], DIAGONAL, OFF_DIAGONAL)


@given(st.integers(1, 12).flatmap(lambda columns: arrays(float, (6, columns), elements=coordinates)))
def test_neighbours_differ_by_no_more_than_the_sensitivity(rows: Array) -> None:
    size = rows.shape[1] + 1
    base, other = whole_vectors(rows), whole_vectors(rows[::-1] / 3.0)
    for relation, changed in (
        (Neighbours.ADD_REMOVE_ONE, released(base) - released(base[1:])),
        (Neighbours.SUBSTITUTE_ONE, released(base) - released(np.vstack([other[:1], base[1:]]))),
    ):
        one, two = sensitivity(size, relation)
        assert int(np.abs(changed).sum()) <= one
        assert math.isqrt(sum(int(value) ** 2 for value in changed)) <= two


@pytest.mark.parametrize("neighbours", Neighbours)
def test_some_neighbours_differ_by_nearly_the_sensitivity(neighbours: Neighbours) -> None:
    """The L1 bound by equal coordinates, the L2 bound by a single one: both are tight."""
    equal, single = np.ones((1, 20)) * 1e3, np.zeros((1, 20))
    single[0, 0] = 1e6
    flipped = single[:, ::-1].copy()
    for row, other, norm in ((equal, flipped, 1), (single, flipped, 2)):
        changed = released(whole_vectors(row)).astype(np.float64)
        if neighbours is Neighbours.SUBSTITUTE_ONE:
            changed -= released(whole_vectors(other))
        bound = sensitivity(21, neighbours)[norm - 1]
        share = 0.5 if norm == 1 else 0.95
        assert share * bound < float(np.linalg.norm(changed, norm)) <= bound


def test_a_record_adds_the_same_whichever_records_are_beside_it() -> None:
    rows = np.random.default_rng(0).normal(scale=3.0, size=(300, 7))
    together = whole_vectors(rows)
    apart = np.vstack([whole_vectors(row[None]) for row in rows])
    assert (together == apart).all()
    assert (sums_of(together) == sum(np.outer(row, row) for row in together)).all()
    assert (np.square(together).sum(axis=1) <= 4**BITS * reach(8) * (1 + 2.0**-40)).all()


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 0.0), (1.0, 1e-6), (10.0, 1e-6)])
def test_costs_are_what_the_noise_and_the_sensitivity_give(
    neighbours: Neighbours, epsilon: float, delta: float
) -> None:
    found = calibrate_products(16, neighbours=neighbours, epsilon=epsilon, delta=delta)
    one, two = sensitivity(16, neighbours)
    assert found.cells.size == 16 * 17 // 2
    if found.cells.distribution == "discrete-laplace":
        assert 0.999999 * epsilon < one / found.cells.scale <= epsilon
        assert delta == 0.0 or found.cells.variance <= 2.0 * (two / epsilon) ** 2 * 100
    else:
        (cost,) = found.costs
        assert delta > 0.0
        assert (cost.sensitivity, cost.sigma) == (two, found.cells.scale)  # type: ignore[union-attr]
        assert epsilon_of(found.costs, delta) <= epsilon


def test_noise_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError):
        calibrate_products(16, neighbours=Neighbours.ADD_REMOVE_ONE, epsilon=1e-9)
    calibration = calibrate_products(3, neighbours=Neighbours.ADD_REMOVE_ONE, epsilon=1.0)
    with pytest.raises(LocalProtocolError, match="half of what makes them private"):
        measure_products(np.zeros((3, 2)), calibration, None)


def test_fewest_points_are_where_the_noise_of_a_matrix_reaches_a_share_of_a_variance() -> None:
    calibration = calibrate_products(16, neighbours=Neighbours.ADD_REMOVE_ONE, epsilon=1.0)
    points = fewest_points(14, calibration)
    one, _ = sensitivity(16, Neighbours.ADD_REMOVE_ONE)
    noise = math.sqrt(2.0) * one / (OFF_DIAGONAL * 4.0**BITS)
    assert points == pytest.approx(noise * math.sqrt(14) / 0.125, rel=1e-3)


def line_of(noise: float, seed: int = 0, signal: float = 1.0, points: int = 20_000) -> tuple[Array, Array]:
    """A fitted slope, and the true one, of standardised columns with that noise on covariances."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((points, 6))
    truth = signal * generator.normal(size=6) / 3.0
    y = X @ truth + 0.5 * generator.standard_normal(points)
    Z = np.column_stack([X, np.ones(points), y])
    upper = np.triu(generator.normal(scale=noise * points, size=(8, 8)))
    upper[np.diag_indices(8)] *= 1.4
    sums = Z.T @ Z + upper + np.triu(upper, 1).T
    return fit_line(Products(sums, noise * points)).slope, truth


def test_a_line_comes_to_least_squares_as_noise_goes_and_to_none_as_it_grows() -> None:
    errors = []
    for noise in (0.0, 0.01, 0.05, 0.2):
        pairs = [line_of(noise, seed) for seed in range(10)]
        errors.append(float(np.mean([np.sum((slope - truth) ** 2) for slope, truth in pairs])))
    assert errors == sorted(errors)
    assert errors[0] < 1e-3
    assert not line_of(1.0)[0].any()
    assert errors[3] < float(np.mean([np.sum(line_of(1.0, seed)[1] ** 2) for seed in range(10)]))


def test_where_the_target_has_nothing_to_do_with_features_the_mean_is_told() -> None:
    """Over 20 seeds a line of mere noise is rare, and short."""
    slopes = [line_of(0.05, seed, signal=0.0)[0] for seed in range(20)]
    assert np.mean([slope.any() for slope in slopes]) <= 0.5
    assert max(float(np.linalg.norm(slope)) for slope in slopes) < 0.3


# Never worse than the mean


def blocks(seed: int) -> tuple[Array, Array]:
    """Mean ink of 15 of the 16 blocks of a digit, and of the remaining one: 1,797 points."""
    images = load_digits().images
    ink = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16) / 8.0 - 1.0
    ink = ink[np.random.default_rng(seed).permutation(len(ink))]
    return np.delete(ink, 5, axis=1), ink[:, 5]


def skewed(seed: int) -> tuple[Array, Array]:
    """14 exponential features, the first two of which are nearly the same: 8,000 points."""
    generator = np.random.default_rng(seed)
    X = generator.exponential(size=(8_000, 14))
    X[:, 1] = X[:, 0] + 0.1 * generator.standard_normal(8_000)
    X = np.clip(X, 0.0, 8.0) / 4.0 - 1.0
    y = X @ generator.standard_normal(14) / 4.0
    y = y - y.mean() + 0.5 * y.std() * generator.standard_normal(8_000)
    return X, np.clip(y, -1.0, 1.0)


@pytest.mark.parametrize("data", [blocks, skewed])
@pytest.mark.parametrize(
    ("epsilon", "delta", "blocks_error", "skewed_error"),
    [(1.0, 0.0, 1.02, 0.6), (10.0, 0.0, 0.85, 0.3), (1.0, 1e-6, 0.95, 0.35), (10.0, 1e-6, 0.85, 0.3)],
)
def test_models_of_14_features_and_more_are_no_worse_than_the_mean(
    data: Any, epsilon: float, delta: float, blocks_error: float, skewed_error: float
) -> None:
    """Each of 5 splits on its own, and their mean as good as measured, with some room."""
    errors = []
    for seed in range(5):
        X, y = data(seed)
        inside, outside = slice(0, int(0.8 * len(X))), slice(int(0.8 * len(X)), None)
        model = RaceRegressor(
            lower=-1.0, upper=1.0, target_lower=-1.0, target_upper=1.0, epsilon=epsilon, delta=delta,
            neighbours="add-remove-one", random_state=seed, noise=partial(SimulatedNoise, seed, "products"),
        )  # fmt: skip
        poor = data is blocks and (epsilon, delta) == (1.0, 0.0)
        if poor:
            with pytest.warns(PoorModelWarning, match="the model is the target's mean"):
                model.fit(X[inside], y[inside])
        else:
            model.fit(X[inside], y[inside])
        assert model.model_ == ("mean" if poor else "moments")
        assert model.privacy_ is not None
        assert model.privacy_.epsilon <= epsilon * (1.0 + 1e-12)
        assert model.privacy_.delta == delta
        about_mean = float(np.mean((y[outside] - y[inside].mean()) ** 2))
        errors.append(float(np.mean((model.predict(X[outside]) - y[outside]) ** 2)) / about_mean)
    assert max(errors) < 1.02
    assert np.mean(errors) < (blocks_error if data is blocks else skewed_error)


def test_without_noise_it_is_about_least_squares() -> None:
    X, y = blocks(0)
    bounds: dict[str, Any] = {"lower": -1.0, "upper": 1.0, "target_lower": -1.0, "target_upper": 1.0}
    exact = LinearRegression().fit(X, y)
    model = RaceRegressor(epsilon=None, **bounds).fit(X, y)
    assert model.privacy_ is None
    assert model.score(X, y) > exact.score(X, y) - 0.02


def test_a_fit_that_asks_for_delta_states_it_and_all_costs_once() -> None:
    X, y = skewed(0)
    model = RaceRegressor(
        lower=-1.0, upper=1.0, target_lower=-1.0, target_upper=1.0, epsilon=1.0, delta=1e-6,
        neighbours="substitute-one", noise=partial(SimulatedNoise, 0, "products"),
    ).fit(X, y)  # fmt: skip
    privacy = model.privacy_
    assert privacy is not None
    assert 0.5 < privacy.epsilon <= 1.0
    assert [draw.size for draw in privacy.cells] == [33 * 15, 16 * 17 // 2]
    assert len(privacy.costs) == 2
    assert {draw.distribution for draw in privacy.cells} == {"discrete-gaussian"}
