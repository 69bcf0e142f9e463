"""Gaussian noise: the analytic profile, and what is proved about discrete noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr
from scipy.stats import chi2

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting import DiscreteGaussianCost, epsilon_of, odometer
from hushbid.protocol.privacy.accounting.costs import GaussianCost
from hushbid.protocol.privacy.accounting.gaussian import (
    discrete_gaussian_epsilon,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_epsilons,
    gaussian_mu,
    law_ratios,
)
from hushbid.protocol.privacy.accounting.zcdp import epsilon_of_rho
from tests.support.losses import gaussian_odometer

# -- The continuous profile -------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [1e-4, 0.03, 0.25, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.05])
def test_epsilon_is_dp_accounting_s_closed_form(mu: float, delta: float) -> None:
    """dp-accounting's root is good to 10⁻¹² in ε; ours is rounded up."""
    assert gaussian_epsilon(mu, delta) == pytest.approx(
        get_epsilon_gaussian(1 / mu, delta), rel=1e-9, abs=3e-12
    )


@pytest.mark.parametrize(
    ("mu", "delta", "expected"),
    [
        # From the formula of Balle and Wang in 50 digits (mpmath), bisected.
        (0.25, 1e-5, 0.926341503998229439),
        (1.0, 1e-5, 4.37717809568122461),
        (0.01, 1e-6, 0.0336737801308064752),
        (4.0, 1e-9, 31.3818400717866467),
    ],
)
def test_epsilon_is_the_golden_one(mu: float, delta: float, expected: float) -> None:
    assert gaussian_epsilon(mu, delta) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("mu", [0.01, 0.7, 6.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_epsilon_delta_and_mu_are_each_other_s_inverses(mu: float, delta: float) -> None:
    epsilon = gaussian_epsilon(mu, delta)
    assert gaussian_delta(mu, epsilon) <= delta * (1 + 1e-12)
    assert gaussian_delta(mu, epsilon) == pytest.approx(delta, rel=1e-6)
    assert gaussian_mu(epsilon, delta) == pytest.approx(mu, rel=1e-6)


def test_no_release_costs_nothing_and_a_delta_above_that_at_zero_needs_no_epsilon() -> None:
    assert gaussian_epsilon(0.0, 1e-5) == 0.0
    assert gaussian_delta(0.0, 0.0) == 0.0
    assert gaussian_delta(0.1, 0.0) < 0.05
    assert gaussian_epsilon(0.1, 0.05) == 0.0


# -- Discrete noise against brute force -------------------------------------------------------------


def exact_discrete_delta(epsilon: float, sensitivity: int, sigma: float) -> float:
    """The sum of (P(k) - e^ε·P(k - Δ))⁺ for the one-dimensional discrete Gaussian, summed over ±40σ."""
    reach = math.ceil(40 * sigma) + sensitivity
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-(k**2) / (2 * sigma**2))
    shifted = np.exp(-((k - sensitivity) ** 2) / (2 * sigma**2))
    return float(np.maximum(weights - math.exp(epsilon) * shifted, 0.0).sum() / weights.sum())


@pytest.mark.parametrize("sigma", [0.4, 0.9, 1.0, 1.7, 3.0, 10.0, 40.0, 200.0])
@pytest.mark.parametrize("sensitivity", [1, 5, 40])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_the_stated_epsilon_holds_for_one_value(sigma: float, sensitivity: int, delta: float) -> None:
    """In one dimension the worst neighbours differ by Δ, and the exact profile is a sum."""
    stated = discrete_gaussian_epsilon(sensitivity, sigma, 1, 1, delta)
    if stated < 700.0:  # beyond, e^ε overflows
        assert exact_discrete_delta(stated, sensitivity, sigma) <= delta * (1 + 1e-9)


@pytest.mark.parametrize(("sigma", "sensitivity"), [(1.0, 1), (1.7, 5), (3.0, 1), (10.0, 5), (200.0, 5)])
def test_the_continuous_profile_alone_does_not_hold(sigma: float, sensitivity: int) -> None:
    """The control: without the proof's additions, discrete noise of the same σ falls short."""
    claimed = gaussian_epsilon(sensitivity / sigma, 1e-9)
    assert exact_discrete_delta(claimed, sensitivity, sigma) > 1e-9 * (1 + 1e-5)


@pytest.mark.parametrize(("sigma", "within"), [(10.0, 0.03), (40.0, 0.01), (200.0, 1e-3)])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_the_stated_epsilon_is_close_to_the_least_that_holds(
    sigma: float, within: float, delta: float
) -> None:
    """A slightly smaller ε does not hold; at a small σ the exact profile has steps."""
    sensitivity = round(sigma / 2)
    stated = discrete_gaussian_epsilon(sensitivity, sigma, 1, 1, delta)
    assert exact_discrete_delta(stated * (1 - within) - 1e-3, sensitivity, sigma) > delta


@pytest.mark.parametrize("sigma", [1.0, 1.5, 2.5, 8.0])
def test_every_inequality_of_the_proof_holds_value_by_value(sigma: float) -> None:
    """The laws of one value, computed: D ≤ e^a·R everywhere, and R ≤ e^b·D within the radius."""
    x = 40.0 - math.log(1e-5)
    down, up = law_ratios([DiscreteGaussianCost(sensitivity=1.0, sigma=sigma, width=1, count=1)], 0.0, 1e-5)
    k = np.arange(0, math.ceil(15 * sigma) + 1, dtype=np.float64)  # both laws are symmetric
    weights = -(k**2) / (2 * sigma**2)
    log_discrete = weights - math.log(2 * np.exp(weights).sum() - 1.0)
    upper, lower = log_ndtr((-k + 0.5) / sigma), log_ndtr((-k - 0.5) / sigma)
    log_rounded = upper + np.log1p(-np.exp(lower - upper))
    inside = k <= sigma * (math.sqrt(1 + 2 * math.sqrt(x) + 2 * x) + 1 / (2 * sigma))
    assert np.all(log_discrete - log_rounded <= down + 1e-12)
    assert np.all((log_rounded - log_discrete)[inside] <= up + 1e-12)
    assert down < up < (15 + 1) ** 2 / (24 * sigma**2)


@pytest.mark.parametrize("n", [1, 2, 50, 420_000])
@pytest.mark.parametrize("x", [1.0, 10.0, 60.0])
def test_the_radius_is_exceeded_as_rarely_as_the_lemma_says(n: int, x: float) -> None:
    assert chi2.sf(n + 2 * math.sqrt(n * x) + 2 * x, n) <= math.exp(-x)


@pytest.mark.parametrize("mu", [0.01, 0.25, 3.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5])
def test_at_usual_settings_nothing_is_lost_against_the_continuous_profile(mu: float, delta: float) -> None:
    """σ of 10⁶ grid units and 420,000 values: 3,000 releases of 140 coordinates."""
    sigma, releases = 1e6, 3000
    sensitivity = mu * sigma / math.sqrt(releases)
    stated = discrete_gaussian_epsilon(sensitivity, sigma, releases, 420_000, delta)
    continuous = gaussian_epsilon(mu, delta)
    assert continuous <= stated <= continuous * (1 + 1e-4)
    assert stated < 0.98 * epsilon_of_rho(mu * mu / 2, delta)


def test_where_the_proof_gives_nothing_zcdp_is_stated() -> None:
    """A σ below 1, or so many values that the laws differ by more than the profile saves."""
    assert discrete_gaussian_epsilon(1.0, 0.99, 1, 1, 1e-5) == epsilon_of_rho(1 / (2 * 0.99**2), 1e-5)
    assert discrete_gaussian_epsilon(1.0, 50.0, 100, 10**6, 1e-5) == epsilon_of_rho(0.02, 1e-5)


@given(
    mu=st.floats(1e-3, 5.0),
    sigma=st.floats(0.5, 1e7),
    releases=st.integers(1, 50),
    width=st.integers(1, 500),
    delta=st.floats(1e-12, 0.1),
)
def test_more_noise_never_costs_more_and_more_releases_never_less(
    mu: float, sigma: float, releases: int, width: int, delta: float
) -> None:
    def stated(noise: float, times: int, target: float) -> float:
        return discrete_gaussian_epsilon(mu * sigma, noise, times, times * width, target)

    epsilon = stated(sigma, releases, delta)
    assert stated(1.1 * sigma, releases, delta) <= epsilon * (1 + 1e-9)
    assert stated(sigma, releases + 1, delta) >= epsilon * (1 - 1e-9)
    assert stated(sigma, releases, delta / 2) >= epsilon * (1 - 1e-9)
    assert epsilon <= epsilon_of_rho(releases * mu * mu / 2, delta) * (1 + 1e-12)


def test_releases_of_different_noise_are_a_sum_of_squares() -> None:
    """μ² = Σ Δ²/σ²; the discrete ones at this σ lose no more than the tolerance."""
    sigmas = np.linspace(2e6, 4e6, 300)
    costs = [DiscreteGaussianCost(sensitivity=65536.0, sigma=s, width=140, count=1) for s in sigmas]
    mu = math.sqrt(sum((65536.0 / sigmas) ** 2))
    assert gaussian_epsilon(mu, 1e-5) <= epsilon_of(costs, 1e-5) <= gaussian_epsilon(mu, 1e-5) * (1 + 1e-5)
    assert epsilon_of([*costs, GaussianCost(noise_multiplier=2.0, count=4)], 1e-5) == pytest.approx(
        gaussian_epsilon(math.hypot(mu, 1.0), 1e-5), rel=1e-5
    )


# -- The odometer -----------------------------------------------------------------------------------


def test_the_odometer_shows_what_each_number_of_releases_costs() -> None:
    squares = np.random.default_rng(3).uniform(0.0, 1e-3, 50)
    readings = gaussian_odometer(squares, 1e-5)
    for n in (1, 7, 50):
        assert readings[n - 1] == pytest.approx(
            gaussian_epsilon(math.sqrt(squares[:n].sum()), 1e-5), rel=1e-9
        )
    assert np.all(np.diff(readings) > 0.0)


def test_the_last_of_ten_thousand_readings_is_that_of_them_all() -> None:
    readings = gaussian_odometer(np.full(10_000, 1e-4), 1e-5)
    assert readings[-1] == pytest.approx(gaussian_epsilon(1.0, 1e-5), rel=1e-9)


def test_the_odometer_of_a_session_ends_at_what_the_accountant_states() -> None:
    one = DiscreteGaussianCost(sensitivity=65536.0, sigma=5e6, width=140, count=1)
    readings = odometer([(), *[(one,)] * 400], 1e-5)
    assert readings[0] == 0.0  # the first release shows public points alone
    assert readings[-1] == pytest.approx(epsilon_of([one] * 400, 1e-5), rel=1e-9)
    assert readings[100] == pytest.approx(epsilon_of([one] * 100, 1e-5), rel=1e-5)
    assert np.all(np.diff(readings) > 0.0)


def test_the_odometer_adds_what_discrete_noise_costs_beyond_the_continuous() -> None:
    costs = [DiscreteGaussianCost(sensitivity=10, sigma=12, width=30, count=1)] * 2
    by_zcdp = epsilon_of_rho(sum(cost.rho for cost in costs), 1e-5)
    stated = [epsilon_of(costs[:count], 1e-5) for count in (1, 2)]
    assert stated[-1] < by_zcdp - 0.1, "the profile of the continuous noise decides, and both ratios matter"
    readings = odometer([(cost,) for cost in costs], 1e-5)
    assert readings[-1] == pytest.approx(stated[-1], rel=1e-9)
    assert readings[0] >= stated[0] * (1 - 1e-9), "a and b are those of all releases"


def test_the_odometer_is_that_of_zcdp_where_the_proof_gives_nothing() -> None:
    one = DiscreteGaussianCost(sensitivity=1.0, sigma=0.9, width=1, count=1)
    readings = odometer([(one,)] * 3, 1e-5)
    assert readings == pytest.approx([epsilon_of_rho(n * one.rho, 1e-5) for n in (1, 2, 3)], rel=1e-9)


# -- Bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan])
def test_a_delta_outside_of_0_and_1_is_refused_by_name(delta: float) -> None:
    with pytest.raises(ConfigError, match="delta"):
        gaussian_epsilon(1.0, delta)
    with pytest.raises(ConfigError, match="delta"):
        discrete_gaussian_epsilon(1.0, 10.0, 1, 1, delta)
    with pytest.raises(ConfigError, match="delta"):
        gaussian_odometer([0.1], delta)


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ((0.0, 10.0, 1, 1), "sensitivity"),
        ((1.0, -1.0, 1, 1), "sigma"),
        ((1.0, math.inf, 1, 1), "sigma"),
        ((1.0, 10.0, 0, 1), "releases"),
        ((1.0, 10.0, 3, 10), "values"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(
    arguments: tuple[float, float, int, int], key: str
) -> None:
    with pytest.raises(ConfigError, match=key):
        discrete_gaussian_epsilon(*arguments, 1e-5)


def test_negative_squares_are_refused() -> None:
    with pytest.raises(ConfigError, match="μ²"):
        gaussian_odometer([0.1, -0.1], 1e-5)
    with pytest.raises(ConfigError, match="μ"):
        gaussian_epsilon(-1.0, 1e-5)
    with pytest.raises(ConfigError, match="μ"):
        gaussian_epsilons(np.array([0.1, -1.0]), 1e-5)


def test_the_least_epsilon_has_a_mu() -> None:
    assert gaussian_mu(5e-324, 1e-5) == gaussian_mu(1e-300, 1e-5) > 0.0
