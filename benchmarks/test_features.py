"""Hashing and checking points at MNIST's size: 784 columns, d = 140."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hushbid.protocol.space.features import FEATURE_SPACES, FeatureMap, FourierMap, feature_map
from hushbid.protocol.space.grid import Features
from tests.support.exact_points import round_features


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


ROWS = 60_000
LEAST_RATIO = 0.5
"""Of the rate of the same features in float64 arithmetic, by BLAS and the mathematical library."""


def test_exact_features_beside_those_of_float64(benchmark: BenchmarkFixture) -> None:
    """60,000 rows. What exactness costs: in float64, φ depends on what stands beside a point."""
    made = feature_map("paired", seed=1, dimension=140, gamma=0.01, lower=0.0, upper=255.0, columns=784)
    assert isinstance(made, FourierMap)
    points = np.random.default_rng(1).integers(0, 256, (ROWS, 784)).astype(np.float64)
    projection, phases = (made.frequencies / made.space.range).T, made.phases

    def in_float64() -> Features:
        hashed = np.empty((ROWS, 140), dtype=np.int16)
        for start in range(0, ROWS, 2**20 // 784):
            angles = (points[start : start + 2**20 // 784] - made.space.lower) @ projection + phases
            waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
            waves *= math.sqrt(2.0 / 140)
            hashed[start : start + len(waves)] = round_features(waves)
        return hashed

    hashed = benchmark.pedantic(made.hash, (points,), rounds=5, warmup_rounds=1)  # type: ignore[no-untyped-call]
    assert np.abs(hashed - in_float64().astype(int)).max() <= 1
    begun = time.perf_counter()
    for _ in range(5):
        in_float64()
    seconds = (time.perf_counter() - begun) / 5
    if benchmark.stats is not None:
        benchmark.extra_info["ratio"] = seconds / benchmark.stats.stats.mean
        assert seconds > LEAST_RATIO * benchmark.stats.stats.mean
