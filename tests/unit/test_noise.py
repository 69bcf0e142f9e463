"""Simulated noise: the distributions it says it has, and streams that repeat and do not meet.

Statistical tests are at a false-positive rate of 10⁻³ each, on fixed seeds; each has a control at a scale
that is 5 % off, which must fail.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from protocol.errors import ConfigError, LocalProtocolError
from protocol.noise import NOISE_SOURCES, Draw, SimulatedNoise

N = 50_000


def sample(request: Draw, seed: int = 1, party: str = "curator") -> npt.NDArray[Any]:
    return SimulatedNoise(seed, party).draw(request)


@pytest.mark.parametrize("distribution", ["uniform", "laplace", "discrete-gaussian"])
def test_a_draw_has_the_dtype_and_shape_of_its_distribution(distribution: Any) -> None:
    noise = sample(Draw(distribution, 1.0, 17))
    assert noise.shape == (17,)
    assert noise.dtype == (np.int64 if distribution == "discrete-gaussian" else np.float64)


def test_uniform_and_laplace_are_what_they_say() -> None:
    assert stats.kstest(sample(Draw("uniform", 1.0, N)), "uniform").pvalue > 1e-3
    laplace = sample(Draw("laplace", 3.0, N))
    assert stats.kstest(laplace, stats.laplace(scale=3.0).cdf).pvalue > 1e-3
    assert stats.kstest(laplace, stats.laplace(scale=3.15).cdf).pvalue < 1e-3


def discrete_gaussian_pvalue(noise: npt.NDArray[np.int64], sigma: float) -> float:
    """χ² of the counts against P(x) ∝ exp(-x²/(2σ²)), tails pooled where fewer than 20 are expected."""
    wide = int(10 * sigma) + 5
    support = np.arange(-wide, wide + 1)
    mass = np.exp(-(support**2) / (2 * sigma**2))
    expected = mass / mass.sum() * len(noise)
    observed = np.bincount(noise + wide, minlength=len(support)).astype(float)
    keep = expected >= 20
    pooled = [np.append(v[keep], v[~keep].sum()) for v in (observed, expected)]
    return float(stats.chisquare(*pooled).pvalue)


@pytest.mark.parametrize("sigma", [0.4, 1.0, 7.3])
def test_the_discrete_gaussian_is_sampled_and_not_a_rounded_normal(sigma: float) -> None:
    noise = sample(Draw("discrete-gaussian", sigma, N))
    assert discrete_gaussian_pvalue(noise, sigma) > 1e-3
    assert discrete_gaussian_pvalue(noise, sigma * 1.05) < 1e-3
    if sigma < 2:
        normal = np.rint(sigma * np.random.default_rng(1).standard_normal(N)).astype(np.int64)
        assert discrete_gaussian_pvalue(normal, sigma) < 1e-3


def test_the_discrete_gaussian_of_a_release_s_size_is_gaussian() -> None:
    """σ in grid units is in the millions: against the continuous distribution."""
    noise = sample(Draw("discrete-gaussian", 2e6, N))
    assert stats.kstest(noise, stats.norm(scale=2e6).cdf).pvalue > 1e-3
    assert stats.kstest(noise, stats.norm(scale=2.1e6).cdf).pvalue < 1e-3


def test_a_seed_and_a_party_make_a_stream() -> None:
    request = Draw("laplace", 1.0, 5)
    assert np.array_equal(sample(request), sample(request))
    streams = [sample(request, seed, party) for seed in (1, 2, 2**200) for party in ("", "a", "b", "ab")]
    bare = np.random.Generator(np.random.PCG64(1)).laplace(0.0, 1.0, 5)
    assert len({stream.tobytes() for stream in [*streams, bare]}) == len(streams) + 1


def test_a_stream_goes_on() -> None:
    source = SimulatedNoise(1, "curator")
    first, second = (source.draw(Draw("uniform", 1.0, 5)) for _ in range(2))
    assert not np.array_equal(first, second)


def test_simulated_noise_says_that_it_protects_nobody() -> None:
    assert NOISE_SOURCES["simulated"] is SimulatedNoise
    assert (SimulatedNoise.name, SimulatedNoise.protects) == ("simulated", False)


@pytest.mark.parametrize(
    ("distribution", "scale", "size"),
    [
        ("laplace", 0.0, 1),
        ("laplace", -1.0, 1),
        ("laplace", float("nan"), 1),
        ("laplace", float("inf"), 1),
        ("laplace", 1.0, 0),
        ("uniform", 2.0, 1),
    ],
)
def test_a_senseless_draw_is_refused(distribution: Any, scale: float, size: int) -> None:
    with pytest.raises(LocalProtocolError):
        Draw(distribution, scale, size)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ConfigError, match="seed"):
        SimulatedNoise(-1, "curator")
