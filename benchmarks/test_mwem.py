"""MWEM at the paper's size: T = 1656 steps over d = 140 coordinates. Aim: under 50 ms on one core."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Setting, release_mechanism

LIMIT_SECONDS = 0.05


@pytest.mark.parametrize("count", [380, 10_000])
def test_a_release_of_1656_steps(benchmark: BenchmarkFixture, count: int) -> None:
    parameters = {
        "neighbours": "substitute-one",
        "calibration": "published",
        "step_epsilon": 0.01,
        "steps": 1656,
        "eta": 1 / 70,
    }
    setting = Setting(dimension=140, releases=1, norm_bound=1.0, delta=1e-5)
    mechanism = release_mechanism("mwem", parameters, setting)
    source = SimulatedNoise(1, "consumer")
    noise = tuple(source.draw(draw) for draw in mechanism.draws(0))
    total = np.linspace(-3000, 3000, 140).astype(np.int64) * count
    released = benchmark(mechanism.stream().release, 0, total, count, noise)
    assert released.shape == (140,)
    if benchmark.stats is not None:  # timing was asked for
        assert benchmark.stats.stats.min < LIMIT_SECONDS
