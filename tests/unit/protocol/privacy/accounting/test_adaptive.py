"""The releases that a cap admits if each is chosen in view of the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting import (
    ApproximateCost,
    BoundedRangeCost,
    Cost,
    DiscreteGaussianCost,
    LaplaceCost,
    adaptive_epsilon,
    epsilon_of,
    for_two_steps,
)
from hushbid.protocol.privacy.accounting.adaptive import APPROXIMATE_SHARE
from hushbid.protocol.privacy.accounting.costs import GaussianCost, ZcdpCost
from hushbid.protocol.privacy.accounting.gaussian import gaussian_delta
from hushbid.protocol.privacy.accounting.zcdp import bounded_range_rho, epsilon_of_rho, pure_rho
from tests.support.losses import delta_of

DELTA = 1e-5
GAUSSIAN = GaussianCost(noise_multiplier=5.0, count=1)


def coins(epsilon: float, count: int) -> list[tuple[Cost, ...]]:
    """So many randomised responses, each chosen by itself."""
    return [(ApproximateCost(epsilon=epsilon, delta=0.0, count=1),)] * count


# -- Against one who chooses in view of what was released ---------------------------------------------


def worst_delta(small: float, large: float, epsilon: float, admits: Callable[[int, int], bool]) -> float:
    """The δ at ε that the best strategy gets out of randomised responses of two kinds, exactly.

    After each answer it chooses whether to go on, and by which kind, as far as a filter of the counts admits.
    It maximises E[max(0, 1 - e^(ε - loss))], which is δ for the strategy's whole view.
    """

    @cache
    def allowed(smalls: int, larges: int) -> bool:
        return admits(smalls, larges)

    @cache
    def value(smalls: int, larges: int, up_small: int, up_large: int) -> float:
        loss = (2 * up_small - smalls) * small + (2 * up_large - larges) * large
        best = max(0.0, -math.expm1(epsilon - loss))
        if allowed(smalls + 1, larges):
            p = 1.0 / (1.0 + math.exp(-small))
            up = value(smalls + 1, larges, up_small + 1, up_large)
            best = max(best, p * up + (1.0 - p) * value(smalls + 1, larges, up_small, up_large))
        if allowed(smalls, larges + 1):
            p = 1.0 / (1.0 + math.exp(-large))
            up = value(smalls, larges + 1, up_small, up_large + 1)
            best = max(best, p * up + (1.0 - p) * value(smalls, larges + 1, up_small, up_large))
        return best

    return value(0, 0, 0, 0)


def by_fixed_composition(small: float, large: float, delta: float) -> Callable[[int, int], float]:
    """The ledgers' former rule: all costs, composed as if they had been fixed in advance."""

    def composed(smalls: int, larges: int) -> float:
        kinds = ((small, smalls), (large, larges))
        costs = [ApproximateCost(epsilon=each, delta=0.0, count=n) for each, n in kinds if n]
        return epsilon_of(costs, delta)

    return composed


def test_one_who_chooses_in_view_of_releases_gets_more_than_fixed_composition_says() -> None:
    """The control: by fixed composition δ is 1.3 times the cap's."""
    composed = by_fixed_composition(0.1, 0.5, 0.01)
    worst = worst_delta(0.1, 0.5, 1.0, lambda smalls, larges: composed(smalls, larges) <= 1.0)
    assert worst > 1.25 * 0.01


@pytest.mark.parametrize(
    ("small", "large", "epsilon", "delta"),
    [(0.1, 0.5, 1.0, 0.01), (0.1, 1.0, 1.05, 0.05), (0.2, 1.0, 1.5, 0.01), (0.3, 1.1, 2.0, 0.1)],
)
def test_no_choice_in_view_of_releases_gets_past_the_filter(
    small: float, large: float, epsilon: float, delta: float
) -> None:
    def admits(smalls: int, larges: int) -> bool:
        return adaptive_epsilon([*coins(small, smalls), *coins(large, larges)], delta) <= epsilon

    assert admits(1, 0), "else nothing is tried"
    assert worst_delta(small, large, epsilon, admits) <= delta


# -- The figure --------------------------------------------------------------------------------------


def test_nothing_costs_nothing() -> None:
    free = (ApproximateCost(epsilon=0.0, delta=0.0, count=1),)
    assert adaptive_epsilon([], DELTA) == 0.0
    assert adaptive_epsilon([(), free], DELTA) == 0.0
    assert adaptive_epsilon([free, (GAUSSIAN,)], DELTA) == adaptive_epsilon([(GAUSSIAN,)], DELTA)
    with pytest.raises(ConfigError):
        adaptive_epsilon([], 0.0)


def test_the_first_choice_is_no_random_variable_and_costs_what_the_accountant_says() -> None:
    assert adaptive_epsilon([(GAUSSIAN,)], DELTA) == epsilon_of([GAUSSIAN], DELTA)
    whole = ApproximateCost(epsilon=1.0, delta=DELTA, count=1)
    assert adaptive_epsilon([(whole,)], DELTA) == 1.0
    assert adaptive_epsilon([(whole,), (GAUSSIAN,)], DELTA) == math.inf


def test_choices_add_up_by_their_zcdp_at_half_of_delta() -> None:
    mixed: list[tuple[Cost, ...]] = [
        (GAUSSIAN,),
        (LaplaceCost(epsilon=0.3, count=2),),
        (BoundedRangeCost(eta=0.5, count=3), ZcdpCost(rho_each=0.01, count=1)),
        (ApproximateCost(epsilon=0.2, delta=1e-7, count=2),),
    ]
    rho = GAUSSIAN.rho + 2 * pure_rho(0.3) + 3 * bounded_range_rho(0.5) + 0.01 + 2 * pure_rho(0.2)
    assert adaptive_epsilon(mixed, DELTA) == pytest.approx(epsilon_of_rho(rho, DELTA / 2), rel=1e-12)


def test_pure_choices_add_up_plainly_where_that_is_less() -> None:
    choices: list[tuple[Cost, ...]] = [*coins(0.01, 3), (BoundedRangeCost(eta=0.02, count=1),)]
    assert adaptive_epsilon(choices, DELTA) == pytest.approx(0.05)


def test_what_fails_with_some_probability_has_half_of_delta_together() -> None:
    share = APPROXIMATE_SHARE * DELTA
    two = [(ApproximateCost(epsilon=0.4, delta=share / 2, count=1),)] * 2
    assert adaptive_epsilon(two, DELTA) == pytest.approx(0.8)
    assert adaptive_epsilon([*two, (ApproximateCost(epsilon=0.0, delta=1e-12, count=1),)], DELTA) == math.inf


@given(
    st.lists(
        st.one_of(
            st.floats(0.3, 50.0).map(lambda ratio: (GaussianCost(noise_multiplier=ratio, count=1),)),
            st.floats(1e-3, 2.0).map(lambda epsilon: (LaplaceCost(epsilon=epsilon, count=1),)),
            st.floats(1e-3, 2.0).map(lambda eta: (BoundedRangeCost(eta=eta, count=2),)),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_another_choice_never_costs_less_than_nothing(choices: list[tuple[Cost, ...]]) -> None:
    spent = [adaptive_epsilon(choices[:number], DELTA) for number in range(len(choices) + 1)]
    assert all(before <= after + 1e-12 for before, after in pairwise(spent))


# -- Two steps -----------------------------------------------------------------------------------------


def test_two_steps_cost_what_group_privacy_says() -> None:
    one: tuple[Cost, ...] = (
        GaussianCost(noise_multiplier=4.0, count=3),
        DiscreteGaussianCost(sensitivity=10.0, sigma=50.0, width=7, count=2),
        LaplaceCost(epsilon=0.1, count=5),
        BoundedRangeCost(eta=0.2, count=1),
        ZcdpCost(rho_each=0.01, count=4),
        ApproximateCost(epsilon=0.5, delta=1e-6, count=1),
        ApproximateCost(epsilon=0.5, delta=0.0, count=1),
    )
    two = for_two_steps(one)
    assert two is not None
    assert [type(cost) for cost in two] == [type(cost) for cost in one]
    assert [cost.count for cost in two] == [cost.count for cost in one]
    for before, after in zip(one[:5], two[:5], strict=True):
        assert after.rho == pytest.approx(4.0 * before.rho)
    assert isinstance(two[5], ApproximateCost)
    assert (two[5].epsilon, two[5].delta) == pytest.approx((1.0, (1 + math.exp(0.5)) * 1e-6))
    assert two[6] == ApproximateCost(epsilon=1.0, delta=0.0, count=1)


def test_no_conversion_of_an_epsilon_and_delta_is_below_that_of_the_mechanism() -> None:
    """A Gaussian of μ, known by its (ε, δ) alone, and converted, still covers the Gaussian of 2μ."""
    for mu in (0.2, 0.5, 1.0):
        for epsilon in (0.1, 0.5, 1.0, 2.0):
            known = ApproximateCost(epsilon=epsilon, delta=gaussian_delta(mu, epsilon), count=1)
            converted = for_two_steps([known])
            if converted is not None:
                assert gaussian_delta(2 * mu, 2 * epsilon) <= delta_of(converted, 2 * epsilon)


def test_where_delta_would_reach_one_nothing_is_left() -> None:
    assert for_two_steps([ApproximateCost(epsilon=3.0, delta=0.1, count=1)]) is None
    assert for_two_steps([GAUSSIAN, ApproximateCost(epsilon=900.0, delta=1e-9, count=1)]) is None
