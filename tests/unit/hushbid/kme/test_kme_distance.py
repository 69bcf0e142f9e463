"""The bound on a release's distance by Algorithm 1: how often it holds, and how tight it is."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.kme import KernelMeanRelease, Release
from hushbid.kme.kernels import distance, squared_norm
from hushbid.protocol.privacy.noise import SimulatedNoise

Points = npt.NDArray[np.float64]
GAMMA = 20.0


def records(count: int) -> Points:
    generator = np.random.default_rng(0)
    centres = np.array([[0.2, 0.7], [0.6, 0.3], [0.8, 0.8]])
    return np.clip(generator.normal(centres[generator.integers(0, 3, count)], 0.08), 0.0, 1.0)


def release_of(data: Points, seed: int, **change: Any) -> Release:
    settings: dict[str, Any] = {
        "lower": 0.0, "upper": 1.0, "epsilon": 1.0, "delta": 1e-6, "neighbours": "substitute-one",
        "method": "subspace", "gamma": GAMMA, "random_state": 0,
        "noise": partial(SimulatedNoise, seed, "kme"),
    } | change  # fmt: skip
    return KernelMeanRelease(**settings).fit(data).release_


@pytest.mark.parametrize(
    ("neighbours", "delta"), [("substitute-one", 1e-6), ("add-remove-one", 1e-6), ("substitute-one", 0.0)]
)
@pytest.mark.parametrize("points", [12, 80])
def test_the_bound_holds_as_often_as_it_says(neighbours: str, delta: float, points: int) -> None:
    """40 releases, of which 2 may miss at 5 %; 7 or more would miss with a probability of 0.0034.

    Few points leave much beside the span, many hardly anything. As a control, the distance within the span of
    few points is no bound on the whole.
    """
    data = records(800)
    length = squared_norm(data, GAMMA)
    covered, within = 0, 0
    for seed in range(40):
        released = release_of(data, seed, points=points, neighbours=neighbours, delta=delta)
        exact = distance(np.asarray(released.points, dtype=np.float64), released.weights, data, GAMMA, length)
        covered += exact <= released.distance()
        within += exact <= released.span_distance()
    assert covered >= 40 - 6
    if points == 12 and delta:
        assert within < 20


@pytest.mark.parametrize(("epsilon", "most"), [(1.0, 0.09), (10.0, 0.02)])
def test_with_good_public_points_it_is_far_below_what_is_known_without_a_release(
    epsilon: float, most: float
) -> None:
    """An embedding of length ℓ is at most √(1 - ℓ²) beside any span: that was the bound, however small ε."""
    data = records(8_000)
    before = math.sqrt(1.0 - squared_norm(data, GAMMA))
    assert before > 0.8
    released = release_of(data, 0, points=400, epsilon=epsilon)
    assert released.mmd(data) <= released.distance() < most
    assert released.risk.beside is not None
    assert abs(released.risk.beside.mean) < most


def test_where_records_lie_far_from_public_points_it_says_so() -> None:
    data = records(2_000)
    corner = np.random.default_rng(1).uniform(0.0, 0.1, size=(40, 2))
    released = release_of(data, 0, points=corner, epsilon=10.0)
    assert released.risk.beside is not None
    assert released.risk.beside.mean > 0.9
    assert released.mmd(data) <= released.distance()
