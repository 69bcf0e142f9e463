"""Algorithm 2 warns, before anything is spent, if it would likely do no better than public points."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.estimators import PoorReleaseWarning
from hushbid.kme import KernelMeanRelease
from hushbid.kme.kernels import kernel_means, squared_norm
from hushbid.protocol.privacy.noise import SimulatedNoise

Points = npt.NDArray[np.float64]
GAMMA, COUNT = 10.0, 60


def records(columns: int, seed: int) -> Points:
    generator = np.random.default_rng(seed)
    centres = generator.uniform(0.1, 0.9, (5, columns))
    return np.clip(generator.normal(centres[generator.integers(0, 5, 2_000)], 0.08), 0.0, 1.0)


def estimator(seed: int, **change: Any) -> KernelMeanRelease:
    given: dict[str, Any] = {
        "lower": 0.0, "upper": 1.0, "epsilon": 0.1, "delta": 1e-6, "neighbours": "substitute-one",
        "points": COUNT, "features": 300, "gamma": GAMMA, "random_state": seed,
        "noise": partial(SimulatedNoise, seed, "kme"),
    } | change  # fmt: skip
    return KernelMeanRelease(**given)


def distance(points: Any, weights: Any, data: Points) -> float:
    cross = float(weights @ kernel_means(points, data, GAMMA))
    return math.sqrt(max(0.0, squared_norm(points, GAMMA, weights) + squared_norm(data, GAMMA) - 2.0 * cross))


def at_random(columns: int, seed: int, data: Points) -> float:
    drawn = np.random.default_rng(seed).uniform(size=(COUNT, columns))
    return distance(drawn, np.full(COUNT, 1.0 / COUNT), data)


@pytest.mark.parametrize(("columns", "epsilon"), [(8, 0.05), (10, 0.1)])
def test_it_is_said_and_true_where_noise_drowns_the_embedding(columns: int, epsilon: float) -> None:
    worse = 0
    for seed in range(5):
        data = records(columns, seed)
        with pytest.warns(PoorReleaseWarning, match="Nothing has been spent yet"):
            released = estimator(seed, epsilon=epsilon).fit(data).release_
        worse += distance(released.points, released.weights, data) > 0.9 * at_random(columns, seed, data)
    assert worse >= 4


@pytest.mark.parametrize(("columns", "epsilon"), [(1, 0.1), (2, 0.3), (5, 1.0)])
def test_it_is_not_said_where_a_release_is_nearer(columns: int, epsilon: float) -> None:
    for seed in range(3):
        data = records(columns, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            released = estimator(seed, epsilon=epsilon).fit(data).release_
        assert distance(released.points, released.weights, data) < at_random(columns, seed, data)


def test_whoever_makes_it_an_error_spends_nothing() -> None:
    drawn: list[Any] = []

    class Watched(SimulatedNoise):
        def draw(self, draw: Any) -> Any:
            drawn.append(draw)
            return super().draw(draw)

    with warnings.catch_warnings():
        warnings.simplefilter("error", PoorReleaseWarning)
        with pytest.raises(PoorReleaseWarning):
            estimator(0, noise=partial(Watched, 0, "kme")).fit(records(10, 0))
    assert not drawn
