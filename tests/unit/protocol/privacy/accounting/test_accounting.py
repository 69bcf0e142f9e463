"""Theorem 7, zCDP and the paper's totals, against values from independent sources.

Golden ε of zCDP were computed with the bisection of the discrete Gaussian's published reference code
(`cdp_eps`).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting import BoundedRangeCost, LaplaceCost, compose_as_claimed, epsilon_of
from hushbid.protocol.privacy.accounting.zcdp import (
    epsilon_of_rho,
    epsilons_of_rho,
    gaussian_rho,
    rho_of_epsilon,
)
from tests.support.losses import compose, delta_of_rho

T, EPSILON, DELTA = 1656, 0.01, 0.01  # the release of D_v in §4 of the paper


# -- Theorem 7 --------------------------------------------------------------------------------------


def branches(epsilon: float, k: int, slack: float) -> tuple[float, float, float]:
    drift = k * epsilon * (math.exp(epsilon) - 1) / (math.exp(epsilon) + 1)
    squares = k * epsilon * epsilon
    return (
        k * epsilon,
        drift + math.sqrt(2 * squares * math.log(1 / slack)),
        drift + math.sqrt(2 * squares * math.log(math.e + math.sqrt(squares) / slack)),
    )


@pytest.mark.parametrize(
    ("epsilon", "k", "slack", "least"),
    [(0.5, 2, 1e-6, 0), (0.01, 1000, 0.3, 1), (EPSILON, T, DELTA, 2), (1e-4, 10**6, 1e-6, 2)],
)
def test_the_least_of_three_bounds_is_taken(epsilon: float, k: int, slack: float, least: int) -> None:
    """Each of the three is the least in some case."""
    expected = branches(epsilon, k, slack)
    assert int(np.argmin(expected)) == least
    assert compose(epsilon, 0.0, slack, "original", counts=k)[0] == pytest.approx(expected[least], rel=1e-12)


def test_counts_are_repetitions_and_kinds_may_differ() -> None:
    repeated = compose([0.1] * 30 + [0.02] * 500, [0.0] * 30 + [1e-6] * 500, 1e-5, "original")
    assert compose([0.1, 0.02], [0.0, 1e-6], 1e-5, "original", counts=[30, 500]) == pytest.approx(repeated)


def test_delta_is_one_minus_the_product() -> None:
    assert compose(0.1, 1e-3, 1e-2, "original", counts=10)[1] == pytest.approx(
        1 - 0.99 * 0.999**10, rel=1e-12
    )
    assert compose(0.1, 1e-300, 1e-300, "original", counts=2)[1] == pytest.approx(3e-300)
    assert compose(0.1, 1.0, 0.0, "original") == (0.1, 1.0)


def test_without_slack_only_the_sum_holds() -> None:
    assert compose(0.1, 0.0, 0.0, "original", counts=50) == pytest.approx((5.0, 0.0))


@pytest.mark.parametrize(
    ("epsilons", "deltas", "slack", "counts"),
    [
        (-0.1, 0.0, 0.1, 1),
        (math.nan, 0.0, 0.1, 1),
        (0.1, 1.1, 0.1, 1),
        (0.1, 0.0, 1.1, 1),
        (0.1, 0.0, 0.1, 1.5),
        ([0.1, 0.2], [0.0, 0.0, 0.0], 0.1, 1),
    ],
)
def test_a_value_out_of_range_is_refused(
    epsilons: npt.ArrayLike, deltas: npt.ArrayLike, slack: float, counts: npt.ArrayLike
) -> None:
    with pytest.raises(ConfigError):
        compose(epsilons, deltas, slack, "original", counts=counts)


@pytest.mark.parametrize(
    ("epsilons", "slack", "counts"),
    [
        (-0.1, 0.1, 1),
        (math.inf, 0.1, 1),
        (0.1, 0.0, 1),
        (0.1, 1.1, 1),
        (0.1, 0.1, -1),
        ([0.1, 0.2], 0.1, [1, 1, 1]),
    ],
)
def test_a_claim_for_a_value_out_of_range_is_refused(
    epsilons: npt.ArrayLike, slack: float, counts: npt.ArrayLike
) -> None:
    with pytest.raises(ConfigError):
        compose_as_claimed(epsilons, slack, counts=counts)


# -- The paper's totals, and what holds (DESIGN §1) -------------------------------------------------


def test_the_paper_s_arithmetic_gives_its_1_4() -> None:
    assert compose_as_claimed(EPSILON, DELTA, counts=T) == pytest.approx(1.4, rel=0.01)
    assert compose_as_claimed([EPSILON] * T, DELTA) == pytest.approx(
        compose_as_claimed(EPSILON, DELTA, counts=T), rel=1e-12
    )


@pytest.mark.parametrize("p", [10, 1000, 10**6])
def test_the_paper_s_arithmetic_gives_its_0_043_for_any_p(p: int) -> None:
    assert compose_as_claimed(0.01 / math.sqrt(5 * p), 1e-4, counts=5 * p) == pytest.approx(0.043, rel=0.01)


def test_the_claims_relax_theorem_7_but_stay_above_it() -> None:
    """1.40 is the second branch with (e^x-1)/(e^x+1) ≤ x; unrelaxed it gives 1.32, the third less still."""
    assert branches(EPSILON, T, DELTA)[1] == pytest.approx(1.318, rel=1e-3)
    printed, _ = compose(EPSILON, 0.0, DELTA, "printed", counts=T)
    original, _ = compose(EPSILON, 0.0, DELTA, "original", counts=T)
    assert original == pytest.approx(1.200, rel=1e-3)
    assert printed == pytest.approx(1.248, rel=1e-3)


def steps(epsilon: float, count: int, delta: float) -> float:
    """Sound ε of `count` published MWEM steps: a selection of range 4ε and a 2ε measurement each."""
    return epsilon_of(
        [BoundedRangeCost(eta=4 * epsilon, count=count), LaplaceCost(epsilon=2 * epsilon, count=count)], delta
    )


def test_the_sound_total_for_the_target_is_3_10() -> None:
    assert steps(EPSILON, T, DELTA) == pytest.approx(3.10, rel=0.01)


@pytest.mark.parametrize("p", [100, 10_000, 300_000])
def test_the_sound_total_for_the_summary_is_0_072_for_any_p(p: int) -> None:
    assert steps(0.01 / math.sqrt(5 * p), 5 * p, 1e-4) == pytest.approx(0.072, rel=0.01)


# -- zCDP -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rho", "delta", "expected"),
    [
        (1e-6, 1e-5, 0.0034566670612756604),
        (1e-4, 1e-5, 0.04504746208777723),
        (0.05, 1e-6, 1.471594750532416),
        (0.5, 1e-5, 4.728386984943314),
        (2.0, 1e-9, 14.150147553874598),
        (40.0, 1e-2, 64.8968208552207),
    ],
)
def test_the_conversion_of_rho_is_the_reference_s(rho: float, delta: float, expected: float) -> None:
    assert epsilon_of_rho(rho, delta) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rho", [1e-8, 1e-3, 0.3, 10.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_the_conversion_lies_between_the_gaussian_s_own_epsilon_and_the_simple_one(
    rho: float, delta: float
) -> None:
    """The Gaussian mechanism has exactly this ρ and a profile in closed form (Balle and Wang 2018)."""
    converted = epsilon_of_rho(rho, delta)
    mu = math.sqrt(2 * rho)
    true_delta = norm.cdf(mu / 2 - converted / mu) - math.exp(converted) * norm.cdf(-mu / 2 - converted / mu)
    assert true_delta <= delta
    assert converted < rho + 2 * math.sqrt(rho * math.log(1 / delta))


@pytest.mark.parametrize("rho", [1e-8, 1e-3, 0.3, 10.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_epsilon_delta_and_rho_are_converted_back_and_forth(rho: float, delta: float) -> None:
    epsilon = epsilon_of_rho(rho, delta)
    if epsilon == 0.0:  # a δ to spare
        assert delta_of_rho(rho, epsilon) <= delta
        return
    assert delta_of_rho(rho, epsilon) == pytest.approx(delta, rel=1e-3)
    assert rho_of_epsilon(epsilon, delta) == pytest.approx(rho, rel=1e-6)


def test_many_rhos_are_converted_as_each_alone_and_an_infinite_one_to_infinity() -> None:
    rhos = np.array([0.0, 1e-6, 0.05, 2.0, math.inf])
    assert epsilons_of_rho(rhos, 1e-5) == pytest.approx(
        [*(epsilon_of_rho(rho, 1e-5) for rho in rhos[:4]), math.inf]
    )
    assert delta_of_rho(math.inf, 5.0) == 1.0


def test_a_negative_rho_is_refused_among_others_too() -> None:
    for rhos in ([-1.0], [0.5, -1.0]):
        with pytest.raises(ConfigError, match=r"rho -1\.0"):
            epsilons_of_rho(np.array(rhos), 1e-5)


def test_no_rho_is_no_epsilon() -> None:
    assert epsilon_of_rho(0.0, 1e-5) == 0.0
    assert gaussian_rho(2.0, 4.0) == 0.125
