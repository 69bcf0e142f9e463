"""Algorithm 2's reduced set: a local minimum within the bounds and the ball, found from public values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.kme.l1_ball import L1Ball, within_norm
from hushbid.kme.reduced_set import _Fit, reduced_set
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.threads import threads
from hushbid.protocol.space.features import FourierMap, PairedSpace
from hushbid.protocol.space.features.cosine import CosineSpace
from hushbid.protocol.space.grid import features_to_float

SPACE = PairedSpace(dimension=400, gamma=20.0, lower=-1.0, upper=1.0, columns=2)


def target_of(phi: FourierMap, points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(features_to_float(phi.hash(points)).mean(axis=0))


@pytest.fixture(scope="module")
def phi() -> FourierMap:
    return SPACE.map(0)


@pytest.fixture(scope="module")
def data() -> npt.NDArray[np.float64]:
    generator = np.random.default_rng(0)
    return np.clip(generator.normal([0.3, -0.2], [0.2, 0.1], (4000, 2)), -1.0, 1.0)


def missed(phi: FourierMap, target: Any, points: Any, weights: Any) -> float:
    return float(np.linalg.norm(weights @ features_to_float(phi.hash(points)) - target))


def test_gradients_are_those_of_the_objective(phi: FourierMap, data: npt.NDArray[np.float64]) -> None:
    fit = _Fit(target_of(phi, data), phi, np.full(2, -1.0), np.full(2, 1.0), 1.0, 0.0)
    generator = np.random.default_rng(1)
    places, weights, step = generator.uniform(-0.3, 0.3, (5, 2)), generator.random(5) / 5, 1e-2
    with threads() as mapped:
        value, by_place, by_weight = fit._gradient(places, weights, mapped)
        assert value > 0
        for row in range(5):
            change = np.zeros(5)
            change[row] = step
            rise = fit._gradient(places, weights + change, mapped)[0]
            fall = fit._gradient(places, weights - change, mapped)[0]
            assert (rise - fall) / (2 * step) == pytest.approx(by_weight[row], abs=2e-4)
            for column in range(2):
                moved = np.zeros((5, 2))
                moved[row, column] = step
                rise = fit._gradient(places + moved, weights, mapped)[0]
                fall = fit._gradient(places - moved, weights, mapped)[0]
                assert (rise - fall) / (2 * step) == pytest.approx(by_place[row, column], abs=2e-4)


@pytest.mark.parametrize("weights", ["optimised", "uniform"])
@pytest.mark.parametrize("count", [3, 40, 300])
def test_points_stand_for_the_data_far_better_than_as_many_of_the_data_do(
    phi: FourierMap, data: npt.NDArray[np.float64], count: int, weights: Any
) -> None:
    target = target_of(phi, data)
    points, found = reduced_set(target, phi, lower=-1.0, upper=1.0, count=count, weights=weights, seed=3)
    assert points.shape == (count, 2)
    assert (np.abs(points) <= 1.0).all()
    assert math.fsum(np.abs(found)) <= 1.0
    if weights == "uniform":
        assert len(set(found)) == 1
    drawn = missed(phi, target, data[:count], np.full(count, 1 / count))
    assert missed(phi, target, points, found) < 0.5 * drawn


def test_noise_is_not_fitted(phi: FourierMap, data: npt.NDArray[np.float64]) -> None:
    """The constraint keeps what is found far nearer to the truth than the noisy target is."""
    target = target_of(phi, data)
    noise = np.random.default_rng(5).normal(0, 0.01, len(target))
    found = reduced_set(target + noise, phi, lower=-1.0, upper=1.0, count=100, sigma=0.01, seed=3)
    assert missed(phi, target, *found) < 0.3 * np.linalg.norm(noise)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(
    phi: FourierMap, data: npt.NDArray[np.float64]
) -> None:
    target = target_of(phi, data)
    first, second, other = (
        reduced_set(target, phi, lower=-1.0, upper=1.0, count=20, seed=seed) for seed in (1, 1, 2)
    )
    assert first[0].tobytes() == second[0].tobytes()
    assert first[1].tobytes() == second[1].tobytes()
    assert first[0].tobytes() != other[0].tobytes()


def test_given_starting_points_are_used(phi: FourierMap) -> None:
    place = np.array([[0.5, 0.5]])
    target = features_to_float(phi.hash(place))[0]
    points, weights = reduced_set(target, phi, lower=-1.0, upper=1.0, count=1, seed=0, start=place + 0.05)
    assert points == pytest.approx(place, abs=1e-3)
    assert weights == pytest.approx([1.0], abs=1e-3)


@pytest.mark.parametrize("norm", [0.7, 1.0, 3.0])
def test_weights_are_within_the_ball_exactly(
    phi: FourierMap, data: npt.NDArray[np.float64], norm: float
) -> None:
    _, weights = reduced_set(target_of(phi, data), phi, lower=-1.0, upper=1.0, count=30, norm=norm, seed=0)
    assert 0.6 < math.fsum(np.abs(weights)) <= norm


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"count": 0}, "0 points"),
        ({"norm": 0.0}, "norm"),
        ({"norm": math.nan}, "norm"),
        ({"seed": -1}, "seed"),
        ({"start": np.zeros((7, 3))}, "Starting points"),
        ({"start": np.zeros((7, 2)), "count": 3}, "Starting points"),
        ({"target": np.zeros(12)}, "shape"),
        ({"space_map": CosineSpace(dimension=400, gamma=1.0, lower=0.0, upper=1.0, columns=2).map(0)}, "map"),
    ],
    # By hand: an object's address would be another in each process.
    ids=["no points", "no norm", "norm nan", "seed", "columns", "too many", "target", "map"],
)
def test_what_cannot_be_is_refused(phi: FourierMap, change: dict[str, Any], match: str) -> None:
    arguments: dict[str, Any] = {"target": np.zeros(400), "space_map": phi, "count": 5, "seed": 0} | change
    target, space_map = arguments.pop("target"), arguments.pop("space_map")
    with pytest.raises(ConfigError, match=match):
        reduced_set(target, space_map, lower=-1.0, upper=1.0, **arguments)


@pytest.mark.parametrize("norm", [1.0, 4.0])
def test_shares_are_weights_and_their_gradient_is_that_of_the_weights(norm: float) -> None:
    ball = L1Ball(4, norm)
    generator = np.random.default_rng(0)
    shares, slope, step = generator.random(ball.size) + 0.1, generator.normal(size=4), 1e-6
    assert np.abs(ball.weights(shares)).sum() <= norm
    gradient = ball.pull_back(shares, slope)
    for place in range(ball.size):
        moved = np.zeros(ball.size)
        moved[place] = step
        numeric = slope @ (ball.weights(shares + moved) - ball.weights(shares - moved)) / (2 * step)
        assert numeric == pytest.approx(gradient[place], abs=1e-6)
    wanted = np.array([0.4, 0.2, 0.1, 0.05])
    assert ball.weights(ball.shares(wanted)) == pytest.approx(wanted, abs=0.01)


def test_scaling_into_the_ball_holds_to_the_last_bit() -> None:
    generator = np.random.default_rng(0)
    for _ in range(200):
        weights = generator.normal(size=37)
        scaled = within_norm(weights, 1.0)
        assert 1.0 - 1e-14 < math.fsum(np.abs(scaled)) <= 1.0
    inside = np.array([0.1, -0.2])
    assert np.array_equal(within_norm(inside, 1.0), inside)
