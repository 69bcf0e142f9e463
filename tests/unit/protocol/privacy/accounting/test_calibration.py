"""Calibration: the accountant confirms each result, and slightly less noise must not suffice."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting import (
    BoundedRangeCost,
    Cost,
    LaplaceCost,
    ask_epsilon,
    epsilon_of,
    gaussian_sigma,
    mwem_step_epsilon,
)
from hushbid.protocol.privacy.accounting.calibration import mwem_step_cost
from hushbid.protocol.privacy.accounting.gaussian import (
    discrete_gaussian_epsilon,
    gaussian_epsilon,
    gaussian_mu,
)

FEATURE_UNITS = 2.0**15
"""Grid units in one unit of φ."""


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
@pytest.mark.parametrize("releases", [1, 3000])
def test_sigma_is_the_smallest_that_meets_the_target(epsilon: float, delta: float, releases: int) -> None:
    sensitivity, values = 2 * FEATURE_UNITS, 140 * releases
    sigma = gaussian_sigma(epsilon, delta, sensitivity, releases, values)
    assert discrete_gaussian_epsilon(sensitivity, sigma, releases, values, delta) <= epsilon
    less = sigma * (1 - 1e-6)
    assert discrete_gaussian_epsilon(sensitivity, less, releases, values, delta) > epsilon


def test_sigma_is_that_of_design_s_reference_setting() -> None:
    """DESIGN §2: σ = 2√p/μ, with μ the Gaussian-DP parameter of the target."""
    sigma = gaussian_sigma(1.0, 1e-5, 2 * FEATURE_UNITS, 1000, 140_000) / FEATURE_UNITS
    assert sigma == pytest.approx(2 * math.sqrt(1000) / gaussian_mu(1.0, 1e-5), rel=1e-6)
    assert sigma == pytest.approx(235.945, rel=1e-4)


@pytest.mark.parametrize("sensitivity", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.5, 10.0])
def test_sigma_of_a_few_grid_units_is_calibrated_too(sensitivity: float, epsilon: float) -> None:
    """There the discrete law is stated at more than the continuous one: more noise, never less."""
    sigma = gaussian_sigma(epsilon, 1e-6, sensitivity, 4, 40)
    assert discrete_gaussian_epsilon(sensitivity, sigma, 4, 40, 1e-6) <= epsilon
    assert gaussian_epsilon(2 * sensitivity / sigma, 1e-6) <= epsilon


@pytest.mark.parametrize("steps", [1, 4, 1656])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.1, 1e-3), (5.0, 1e-6)])
def test_a_step_of_mwem_is_the_largest_that_meets_the_target(
    steps: int, epsilon: float, delta: float
) -> None:
    step = mwem_step_epsilon(epsilon, delta, steps)
    halves: list[Cost] = [
        BoundedRangeCost(eta=step / 2, count=steps),
        LaplaceCost(epsilon=step / 2, count=steps),
    ]
    assert list(mwem_step_cost(step, steps)) == halves
    assert epsilon_of(halves, delta) <= epsilon
    assert epsilon_of(mwem_step_cost(step * 1.001, steps), delta) > epsilon
    assert step >= epsilon / steps * 0.999  # never worse than basic composition


@pytest.mark.parametrize("rounds", [1, 10, 3000])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (3.0, 1e-9)])
def test_an_ask_is_the_largest_that_meets_the_target(rounds: int, epsilon: float, delta: float) -> None:
    ask = ask_epsilon(epsilon, delta, rounds)
    assert epsilon_of([BoundedRangeCost(eta=ask, count=rounds)], delta) <= epsilon
    assert epsilon_of([BoundedRangeCost(eta=ask * 1.001, count=rounds)], delta) > epsilon


CALIBRATIONS: list[Callable[[float, float], float]] = [
    lambda epsilon, delta: gaussian_sigma(epsilon, delta, 1.0, 1, 1),
    lambda epsilon, delta: mwem_step_epsilon(epsilon, delta, 1),
    lambda epsilon, delta: ask_epsilon(epsilon, delta, 1),
]


@pytest.mark.parametrize("calibrate", CALIBRATIONS, ids=["gaussian", "mwem", "ask"])
def test_a_target_out_of_range_is_refused_by_name(calibrate: Callable[[float, float], float]) -> None:
    for epsilon in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ConfigError, match="epsilon"):
            calibrate(epsilon, 1e-5)
    for delta in (0.0, 1.0, -0.5, math.nan):
        with pytest.raises(ConfigError, match="delta"):
            calibrate(1.0, delta)


def test_other_values_out_of_range_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="sensitivity"):
        gaussian_sigma(1.0, 1e-5, 0.0, 1, 1)
    with pytest.raises(ConfigError, match="releases"):
        gaussian_sigma(1.0, 1e-5, 1.0, 0, 1)
    with pytest.raises(ConfigError, match="values"):
        gaussian_sigma(1.0, 1e-5, 1.0, 2, 3)
    with pytest.raises(ConfigError, match="steps"):
        mwem_step_epsilon(1.0, 1e-5, 0)
    with pytest.raises(ConfigError, match="rounds"):
        ask_epsilon(1.0, 1e-5, 0)


def test_a_target_that_no_noise_meets_is_refused() -> None:
    with pytest.raises(ConfigError, match="No noise"):
        gaussian_sigma(1e-18, 1e-18, 2 * FEATURE_UNITS, 3000, 420_000)
