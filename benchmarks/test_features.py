"""Hashing and checking points at MNIST's size: 784 columns, d = 140."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from protocol.features import FEATURE_SPACES, FeatureMap, feature_map


@pytest.fixture(params=sorted(FEATURE_SPACES))
def phi(request: pytest.FixtureRequest) -> FeatureMap:
    return feature_map(request.param, seed=1, dimension=140, gamma=0.01, lower=0.0, upper=255.0, columns=784)


@pytest.mark.parametrize("n", [1, 4, 8, 10_000])
def test_hash(benchmark: BenchmarkFixture, phi: FeatureMap, n: int) -> None:
    points = np.random.default_rng(1).integers(0, 256, (n, 784)).astype(np.uint8)
    assert benchmark(phi.hash, points).shape == (n, 140)


def test_admits(benchmark: BenchmarkFixture, phi: FeatureMap) -> None:
    features = phi.hash(np.random.default_rng(1).integers(0, 256, (4, 784)).astype(np.uint8))
    assert benchmark(phi.space.admits, features).all()
