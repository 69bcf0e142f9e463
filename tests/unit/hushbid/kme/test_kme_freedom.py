"""Degrees of freedom of a reduced set: at least those in which it follows noise, but not all."""

from __future__ import annotations

import numpy as np
import pytest

from hushbid.kme import freedom
from hushbid.kme.freedom import degrees_of_freedom
from hushbid.kme.reduced_set import reduced_set
from hushbid.protocol.space.features import FourierMap, PairedSpace
from hushbid.protocol.space.grid import features_to_float


def space_map(columns: int, dimension: int = 300) -> FourierMap:
    space = PairedSpace(dimension=dimension, gamma=10.0, lower=0.0, upper=1.0, columns=columns)
    found = space.map(0)
    assert isinstance(found, FourierMap)
    return found


@pytest.mark.parametrize(("columns", "most"), [(1, 3.0), (2, 3.5)])
@pytest.mark.parametrize("sigma", [0.01, 0.05])
def test_they_are_at_least_what_the_fit_follows_noise_in(columns: int, most: float, sigma: float) -> None:
    """Σ cov(v_i, b_i)/σ², over 12 draws of noise, is known within a tenth or so."""
    here, generator = space_map(columns), np.random.default_rng(1)
    data = np.clip(generator.normal(0.4, 0.15, (500, columns)), 0.0, 1.0)
    mean = features_to_float(here.hash(data)).mean(axis=0)
    true, counted = [], []
    for seed in range(12):
        noise = sigma * generator.standard_normal(len(mean))
        points, weights = reduced_set(
            mean + noise, here, lower=0.0, upper=1.0, count=60, sigma=sigma, seed=seed
        )
        fitted = weights @ features_to_float(here.hash(points))
        true.append(float(noise @ (fitted - mean)) / sigma**2)
        counted.append(degrees_of_freedom(here, points, weights))
    assert np.mean(true) <= np.mean(counted) <= most * np.mean(true)
    # A degree for each weight and coordinate, as it was counted once, would be several times as many.
    assert np.mean(counted) < 0.5 * 60 * (columns + 1)


def test_points_that_lie_together_count_once() -> None:
    here = space_map(2)
    few = np.array([[0.2, 0.2], [0.8, 0.3], [0.5, 0.9]])
    many = np.repeat(few, 20, axis=0)
    assert degrees_of_freedom(here, few, np.full(3, 1 / 3)) == 9
    assert degrees_of_freedom(here, many, np.full(60, 1 / 60)) == 9
    assert degrees_of_freedom(here, few, np.array([1.0, 0.0, 0.0])) == 3
    assert degrees_of_freedom(here, few, np.array([1.0, -1.0, 1e-12])) == 6
    assert degrees_of_freedom(here, few, np.zeros(3)) == 0


def test_points_beyond_the_largest_matrix_count_with_all_their_directions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, generator = space_map(2), np.random.default_rng(3)
    points, weights = generator.uniform(size=(80, 2)), generator.uniform(0.5, 1.0, 80)
    exact = degrees_of_freedom(here, points, weights)
    monkeypatch.setattr(freedom, "MOST_DIRECTIONS", 120)
    assert exact < degrees_of_freedom(here, points, weights) <= 300
