"""The privacy filter charges what fits, and refuses the rest without a trace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol.errors import BudgetExceeded, ConfigError
from hushbid.protocol.privacy.accounting import (
    BoundedRangeCost,
    Budget,
    Cost,
    DiscreteGaussianCost,
    LaplaceCost,
    PrivacyFilter,
    epsilon_of,
    gaussian_sigma,
    mwem_step_epsilon,
)
from hushbid.protocol.privacy.accounting.calibration import mwem_step_cost
from hushbid.protocol.privacy.accounting.costs import GaussianCost, ZcdpCost
from tests.support.examples import examples

BUDGET = Budget(1.0, 1e-5)
RELATION = "add-remove-one"


def calibrated(releases: int) -> DiscreteGaussianCost:
    """One of `releases` releases that together spend the whole budget."""
    sigma = gaussian_sigma(BUDGET.epsilon, BUDGET.delta, 65536.0, releases, 140 * releases)
    return DiscreteGaussianCost(sensitivity=65536.0, sigma=sigma, width=140, count=1)


def test_a_calibrated_session_spends_its_budget_to_the_last_release_and_no_further() -> None:
    budget, one = PrivacyFilter(BUDGET, neighbours=RELATION), calibrated(1000)
    for _ in range(1000):
        budget.charge(one)
    assert budget.spent(1e-5) == pytest.approx(1.0, rel=1e-6)
    assert budget.spent(1e-5) <= 1.0
    with pytest.raises(BudgetExceeded, match=r"over the budget of 1; 1 was spent"):
        budget.charge(one)
    assert budget.costs == (
        DiscreteGaussianCost(sensitivity=65536.0, sigma=one.sigma, width=140, count=1000),
    )


def test_a_calibrated_mwem_session_does_too() -> None:
    step = mwem_step_epsilon(BUDGET.epsilon, BUDGET.delta, 60)
    budget = PrivacyFilter(BUDGET, neighbours=RELATION)
    for _ in range(12):
        budget.charge(*mwem_step_cost(step, 5))
    with pytest.raises(BudgetExceeded):
        budget.charge(*mwem_step_cost(step, 5))


def test_a_refused_charge_leaves_the_state_as_it_was_and_smaller_ones_still_fit() -> None:
    budget = PrivacyFilter(BUDGET, neighbours=RELATION)
    budget.charge(LaplaceCost(epsilon=0.5, count=1))
    before = budget.costs, budget.spent(1e-5)
    with pytest.raises(BudgetExceeded, match=RELATION):
        budget.charge(LaplaceCost(epsilon=0.1, count=1), BoundedRangeCost(eta=5.0, count=1))
    assert (budget.costs, budget.spent(1e-5)) == before
    budget.charge(LaplaceCost(epsilon=0.1, count=1))
    assert budget.spent(1e-5) == pytest.approx(0.6, rel=1e-3)


def test_what_a_session_expects_is_refused_before_its_first_release() -> None:
    budget, one = PrivacyFilter(BUDGET, neighbours=RELATION), calibrated(100)
    with pytest.raises(BudgetExceeded, match="All that is asked for"):
        budget.expect(DiscreteGaussianCost(sensitivity=65536.0, sigma=one.sigma, width=140, count=101))
    assert budget.costs == ()
    budget.expect(DiscreteGaussianCost(sensitivity=65536.0, sigma=one.sigma, width=140, count=100))
    assert budget.costs == ()
    for _ in range(100):
        budget.charge(one)
    with pytest.raises(BudgetExceeded):
        budget.charge(one)


def test_expected_charges_need_no_composition(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: an unexpected kind does."""
    budget = PrivacyFilter(BUDGET, neighbours=RELATION)
    budget.expect(*mwem_step_cost(0.005, 5000))

    def composed(costs: tuple[Cost, ...], delta: float) -> float:
        raise AssertionError("a composition")

    monkeypatch.setattr("hushbid.protocol.privacy.accounting.budget.epsilon_of", composed)
    for _ in range(1000):
        budget.charge(*mwem_step_cost(0.005, 5))
    with pytest.raises(AssertionError, match="a composition"):
        budget.charge(ZcdpCost(rho_each=1e-9, count=1))


def test_ten_thousand_unexpected_charges_keep_one_count() -> None:
    budget, one = PrivacyFilter(BUDGET, neighbours=RELATION), calibrated(10_000)
    for _ in range(10_000):
        budget.charge(one)
    assert len(budget.costs) == 1


@examples(40)
@given(
    st.lists(
        st.one_of(
            st.builds(GaussianCost, noise_multiplier=st.sampled_from([5.0, 20.0]), count=st.integers(1, 9)),
            st.builds(ZcdpCost, rho_each=st.sampled_from([1e-3, 1e-2]), count=st.integers(1, 3)),
        ),
        max_size=25,
    )
)
def test_the_filter_admits_exactly_what_the_accountant_finds_within_the_budget(asked: list[Cost]) -> None:
    budget = PrivacyFilter(BUDGET, neighbours=RELATION)
    admitted: list[Cost] = []
    for cost in asked:
        fits = epsilon_of([*admitted, cost], BUDGET.delta) <= BUDGET.epsilon
        try:
            budget.charge(cost)
        except BudgetExceeded:
            assert not fits
        else:
            assert fits
            admitted.append(cost)
    assert budget.spent(BUDGET.delta) == epsilon_of(admitted, BUDGET.delta)


@pytest.mark.parametrize(
    ("epsilon", "delta", "key"),
    [(0.0, 1e-5, "epsilon"), (-1.0, 1e-5, "epsilon"), (float("inf"), 1e-5, "epsilon"), (1.0, 0.0, "delta")],
)
def test_a_budget_that_cannot_be_is_refused_by_name(epsilon: float, delta: float, key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        Budget(epsilon, delta)


def test_a_filter_without_a_neighbour_relation_is_refused() -> None:
    with pytest.raises(ConfigError, match="neighbour relation"):
        PrivacyFilter(BUDGET, neighbours="")
