"""The accountant over all kinds of costs, against closed forms, samples and dp-accounting's accountants."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import dp_accounting
import numpy as np
import pytest

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting import (
    ApproximateCost,
    BoundedRangeCost,
    Cost,
    DiscreteGaussianCost,
    LaplaceCost,
    cost_from_record,
    cost_to_record,
    epsilon_of,
    merge_costs,
    odometer,
)
from hushbid.protocol.privacy.accounting.costs import GaussianCost, ZcdpCost
from hushbid.protocol.privacy.accounting.distribution import (
    approximate_profile,
    bounded_range_profile,
    numerical_allowance,
)
from hushbid.protocol.privacy.accounting.zcdp import epsilon_of_rho
from tests.support.losses import compose, delta_of

ALL_KINDS: list[Cost] = [
    GaussianCost(noise_multiplier=30.0, count=100),
    DiscreteGaussianCost(sensitivity=65536.0, sigma=3e6, width=140, count=500),
    LaplaceCost(epsilon=0.02, count=50),
    BoundedRangeCost(eta=0.05, count=80),
    ZcdpCost(rho_each=1e-4, count=20),
    ApproximateCost(epsilon=0.1, delta=1e-7, count=2),
]


# -- Against dp-accounting's own accountants --------------------------------------------------------

NEIGHBOURS = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE


def by_pld(events: list[tuple[dp_accounting.DpEvent, int]], delta: float, interval: float) -> float:
    accountant = dp_accounting.pld.PLDAccountant(NEIGHBOURS, value_discretization_interval=interval)
    for event, count in events:
        accountant.compose(event, count)
    return float(accountant.get_epsilon(delta))


def by_rdp(events: list[tuple[dp_accounting.DpEvent, int]], delta: float) -> float:
    orders = [1 + x for x in np.geomspace(1e-2, 1e3, 400)]
    accountant = dp_accounting.rdp.RdpAccountant(orders, NEIGHBOURS)
    for event, count in events:
        accountant.compose(event, count)
    return float(accountant.get_epsilon(delta))


@pytest.mark.parametrize(
    ("noise_multiplier", "count", "delta", "golden"),
    [
        (1.0, 1, 1e-5, 4.3771781),
        (10.0, 100, 1e-5, 4.3771781),
        (50.0, 1000, 1e-6, 2.92160059),
        (4.0, 1, 1e-3, 0.592006718),
    ],
)
def test_gaussian_compositions_agree(
    noise_multiplier: float, count: int, delta: float, golden: float
) -> None:
    """Golden: the analytic formula. dp-accounting's PLD is pessimistic, its RDP more so."""
    ours = epsilon_of([GaussianCost(noise_multiplier=noise_multiplier, count=count)], delta)
    events = [(dp_accounting.GaussianDpEvent(noise_multiplier), count)]
    theirs = by_pld(events, delta, 1e-3)
    assert ours == pytest.approx(golden, rel=1e-6)
    assert ours * (1 - 1e-9) <= theirs <= ours * 1.002
    assert ours < by_rdp(events, delta)


@pytest.mark.parametrize(
    ("epsilon", "count", "delta", "golden"),
    [
        (0.1, 1, 1e-3, 0.0979990),
        (0.1, 100, 1e-5, 4.220347),
        (0.02, 500, 1e-4, 1.486222),
        (1.0, 5, 1e-6, 4.999968),
    ],
)
def test_laplace_compositions_agree(epsilon: float, count: int, delta: float, golden: float) -> None:
    """One release has a closed form; the other golden values are dp-accounting's on a fine grid (ε/400)."""
    ours = epsilon_of([LaplaceCost(epsilon=epsilon, count=count)], delta)
    events = [(dp_accounting.LaplaceDpEvent(1 / epsilon), count)]
    assert ours == pytest.approx(golden, rel=1e-4)
    assert ours == pytest.approx(by_pld(events, delta, epsilon / 50), rel=1e-3)
    assert ours <= by_rdp(events, delta) * (1 + 1e-3)


def test_a_mix_of_gaussian_and_laplace_agrees() -> None:
    ours = epsilon_of(
        [GaussianCost(noise_multiplier=20.0, count=100), LaplaceCost(epsilon=0.1, count=40)], 1e-5
    )
    events = [(dp_accounting.GaussianDpEvent(20.0), 100), (dp_accounting.LaplaceDpEvent(10.0), 40)]
    assert ours == pytest.approx(by_pld(events, 1e-5, 1e-3), rel=2e-3)
    assert ours < by_rdp(events, 1e-5)


# -- Against closed forms and samples ---------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 3.0])
@pytest.mark.parametrize("share", [1e-6, 0.1, 0.5])
def test_a_single_laplace_release_has_its_closed_form(epsilon: float, share: float) -> None:
    """δ(t) = 1 - e^((t-ε)/2), at a share of δ(0); pessimistic by at most a grid step."""
    delta = -share * math.expm1(-epsilon / 2)
    exact = epsilon + 2 * math.log1p(-delta)
    stated = epsilon_of([LaplaceCost(epsilon=epsilon, count=1)], delta)
    assert exact * (1 - 1e-12) <= stated <= exact + epsilon / 50


@pytest.mark.parametrize("count", [2, 7])
def test_composed_laplace_releases_match_an_enumeration(count: int) -> None:
    """Monte Carlo of 10⁶ losses, fixed seed; its standard error in δ is below 3·10⁻⁴."""
    generator = np.random.default_rng(11)
    noise = generator.laplace(0.0, 1 / 0.4, (count, 1_000_000))
    losses = 0.4 * (np.abs(noise - 1.0) - np.abs(noise)).sum(axis=0)
    epsilon = epsilon_of([LaplaceCost(epsilon=0.4, count=count)], 0.02)
    sampled = float(np.maximum(-np.expm1(epsilon - losses), 0.0).mean())
    assert sampled == pytest.approx(0.02, abs=1.2e-3)


@pytest.mark.parametrize("count", [1, 300, 40_000])
@pytest.mark.parametrize("delta", [1e-2, 1e-5])
def test_pure_mechanisms_compose_as_kairouz_oh_and_viswanath_have_it(count: int, delta: float) -> None:
    """(ε, 0)-DP composes like randomised response, whose losses are binomial: no worse than Theorem 7."""
    epsilon = 1.0 / math.sqrt(count)
    stated = epsilon_of([ApproximateCost(epsilon=epsilon, delta=0.0, count=count)], delta)
    least = min(compose(epsilon, 0.0, delta, "original", counts=count)[0], count * epsilon)
    assert stated <= least * (1 + 1e-9)
    from scipy.stats import binom

    def exact(target: float) -> float:
        k = np.arange(count + 1)
        losses = (2 * k - count) * epsilon
        p = binom.pmf(k, count, 1 / (1 + math.exp(-epsilon)))
        return float((p * np.maximum(-np.expm1(target - losses), 0.0)).sum())

    assert exact(stated) <= delta * (1 + 1e-6)
    assert exact(stated * 0.998 - 1e-6) > delta


@pytest.mark.parametrize("eta", [0.01, 1.0, 6.0])
def test_the_bounded_range_profile_is_the_worst_of_all_mechanisms_of_that_range(eta: float) -> None:
    """The extreme ones have two outcomes, of losses a and a - η; some a attains the profile at each t."""
    t = np.linspace(-eta, eta, 41)[1:-1]
    a = np.linspace(0.0, eta, 20_001)[1:-1, None]
    under_q = np.expm1(a - eta) / (np.exp(a) * np.expm1(-eta))  # of the first outcome
    under_p = np.exp(a) * under_q
    curves = np.maximum(under_p - np.exp(t) * under_q, 0.0)
    curves += np.maximum((1.0 - under_p) - np.exp(t) * (1.0 - under_q), 0.0)
    assert bounded_range_profile(t, eta) == pytest.approx(curves.max(axis=0), rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("eta", [0.1, 2.0])
def test_profiles_are_continuous_and_end_at_their_delta(eta: float) -> None:
    t = np.array([-3 * eta, -eta * (1 + 1e-12), -eta, eta, 2 * eta])
    assert bounded_range_profile(t, eta) == pytest.approx([*-np.expm1(t[:3]), 0.0, 0.0], abs=1e-11)
    pure = approximate_profile(t, eta, 0.25)
    assert pure == pytest.approx([*(1 - 0.75 * np.exp(t[:3])), 0.25, 0.25], abs=1e-11)


def test_a_logistic_ask_has_bounded_range() -> None:
    """P(ask at rank r) = 1/(1+e^(ε(r-r0))), one rank apart: the divergence is below the profile at any t."""
    epsilon, t = 0.7, np.linspace(-0.9, 0.9, 37)
    profile = bounded_range_profile(t, epsilon)
    for rank in range(-40, 41):
        p, q = (1 / (1 + math.exp(epsilon * (r - 0.5))) for r in (rank, rank + 1))
        for ask, other in ((p, q), (q, p)):
            divergence = np.maximum(ask - np.exp(t) * other, 0.0)
            divergence += np.maximum((1 - ask) - np.exp(t) * (1 - other), 0.0)
            assert np.all(divergence <= profile + 1e-12)


# -- Which bound is stated --------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
def test_the_smaller_of_distribution_and_zcdp_is_stated(delta: float) -> None:
    costs: list[Cost] = [BoundedRangeCost(eta=0.05, count=200), LaplaceCost(epsilon=0.02, count=300)]
    rho = 200 * 0.05**2 / 8 + 300 * 0.02**2 / 2
    composed = epsilon_of(costs, delta)
    assert 0.0 < composed <= min(epsilon_of_rho(rho, delta), 200 * 0.05 + 300 * 0.02)
    # At a large δ the distribution is the tighter of the two, far out the range's own ρ is.
    assert (composed < epsilon_of_rho(rho, delta)) == (delta == 1e-3)


def test_at_a_delta_below_the_rounding_of_transforms_zcdp_is_stated() -> None:
    cost = LaplaceCost(epsilon=0.01, count=1000)
    assert epsilon_of([cost], 1e-13) == epsilon_of_rho(cost.rho, 1e-13)


def test_kinds_of_very_different_size_are_composed_on_a_bounded_grid() -> None:
    """A coarser grid than the small kind's own loss is pessimistic, and zCDP caps it."""
    costs = [LaplaceCost(epsilon=0.1, count=2000), LaplaceCost(epsilon=1e-6, count=10**6)]
    large = epsilon_of(costs[:1], 1e-5)
    assert large * 0.9999 <= epsilon_of(costs, 1e-5) <= large * 1.05


def test_what_is_known_by_epsilon_and_delta_is_added_up_if_nothing_better_holds() -> None:
    one = ApproximateCost(epsilon=1.0, delta=1e-6, count=1)
    two = replace(one, count=2)
    assert epsilon_of([one], 1e-6) == 1.0
    assert epsilon_of([two], 2e-6) == pytest.approx(2.0, rel=1e-9)
    assert epsilon_of([two], 1.9e-6) == math.inf
    assert 1.0 < epsilon_of([two], 1e-2) < 2.0  # a δ to spare
    rho = ZcdpCost(rho_each=0.01, count=1)
    assert epsilon_of([one, rho], 1e-5) == pytest.approx(1.0 + epsilon_of_rho(0.01, 9e-6))
    # A mere probability of failure takes from δ and nothing else.
    failure = ApproximateCost(epsilon=0.0, delta=4e-6, count=1)
    gaussian = GaussianCost(noise_multiplier=5.0, count=1)
    assert epsilon_of([failure, gaussian], 1e-5) == pytest.approx(epsilon_of([gaussian], 6e-6), rel=1e-3)


def test_nothing_costs_nothing() -> None:
    assert epsilon_of([], 1e-5) == 0.0
    assert delta_of([], 0.0) == 0.0
    assert list(odometer([(), ()], 1e-5)) == [0.0, 0.0]


@pytest.mark.parametrize("count", [1, 3, 6])
def test_delta_is_the_inverse_of_epsilon(count: int) -> None:
    costs = ALL_KINDS[:count]
    for delta in (1e-6, 1e-3):
        epsilon = epsilon_of(costs, delta)
        assert delta_of(costs, epsilon) == pytest.approx(delta, rel=0.02)
        assert delta_of(costs, 1.2 * epsilon) < delta


def test_a_pure_composition_needs_no_delta_at_its_sum() -> None:
    costs: list[Cost] = [LaplaceCost(epsilon=0.1, count=3), BoundedRangeCost(eta=0.2, count=1)]
    assert delta_of(costs, 0.5 + 1e-12) == 0.0
    assert delta_of(costs, 0.4) > 0.0


def test_what_transforms_may_round_grows_with_the_number_of_compositions() -> None:
    """It is added to every δ of a distribution; otherwise a δ near the rounding error would not hold."""
    one, many = (LaplaceCost(epsilon=0.1, count=count) for count in (1, 64))
    assert numerical_allowance([one]) == 2.0**-43 + 2.0**-49
    assert numerical_allowance([many, many]) == 3 * 2.0**-43


def repeated(cost: Cost, count: int) -> Cost:
    (merged,) = merge_costs([cost] * count)
    return merged


def test_more_of_anything_costs_more() -> None:
    total = epsilon_of(ALL_KINDS, 1e-5)
    for index, cost in enumerate(ALL_KINDS):
        more = [*ALL_KINDS[:index], repeated(cost, 2), *ALL_KINDS[index + 1 :]]
        fewer = [*ALL_KINDS[:index], *ALL_KINDS[index + 1 :]]
        assert epsilon_of(fewer, 1e-5) < total < epsilon_of(more, 1e-5)


def test_the_order_and_the_split_of_costs_do_not_matter_in_any_digit() -> None:
    split = [cost_from_record({**cost_to_record(c), "count": n}) for c in ALL_KINDS for n in (1, c.count - 1)]
    assert set(merge_costs(split)) == set(ALL_KINDS)
    assert len(merge_costs(split)) == len(ALL_KINDS)
    assert epsilon_of(split, 1e-5) == epsilon_of(ALL_KINDS, 1e-5)
    assert epsilon_of(ALL_KINDS[::-1], 1e-5) == epsilon_of(ALL_KINDS, 1e-5)


def test_the_odometer_of_mechanisms_without_a_closed_form_is_sound_at_every_step() -> None:
    step: tuple[Cost, ...] = (BoundedRangeCost(eta=0.02, count=5), LaplaceCost(epsilon=0.01, count=5))
    readings = odometer([step] * 60, 1e-5)
    assert np.all(np.diff(readings) >= 0.0)
    assert readings[-1] == pytest.approx(epsilon_of(list(step) * 60, 1e-5), rel=1e-9)
    assert readings[29] >= epsilon_of(list(step) * 30, 1e-5) * (1 - 1e-9)


# -- Costs as records, and bad input ----------------------------------------------------------------


@pytest.mark.parametrize("cost", ALL_KINDS, ids=lambda cost: type(cost).__name__)
def test_a_cost_is_read_back_from_its_record(cost: Cost) -> None:
    assert cost_from_record(cost_to_record(cost)) == cost


@pytest.mark.parametrize(
    ("record", "names"),
    [
        ({"kind": "magic", "count": 1}, "magic"),
        ({"count": 1}, "None"),
        ({"kind": "laplace", "count": 1}, "epsilon"),
        ({"kind": "laplace", "epsilon": "1", "count": 1}, "epsilon"),
        ({"kind": "laplace", "epsilon": 1.0, "count": True}, "epsilon"),
        ({"kind": "laplace", "epsilon": 1.0, "count": 1, "more": 1}, "epsilon"),
        ({"kind": "laplace", "epsilon": 1.0, "count": 1.5}, "count"),
    ],
)
def test_a_record_of_no_cost_is_refused(record: dict[str, object], names: str) -> None:
    with pytest.raises(ConfigError, match=names):
        cost_from_record(record)


@pytest.mark.parametrize(
    ("cost", "change"),
    [
        (ALL_KINDS[0], {"noise_multiplier": 0.0}),
        (ALL_KINDS[1], {"sigma": -1.0}),
        (ALL_KINDS[1], {"width": 0}),
        (ALL_KINDS[2], {"epsilon": math.inf}),
        (ALL_KINDS[3], {"eta": math.nan}),
        (ALL_KINDS[4], {"rho_each": 0.0}),
        (ALL_KINDS[4], {"count": 0}),
        (ALL_KINDS[5], {"delta": 1.0}),
        (ALL_KINDS[5], {"count": 0}),
    ],
)
def test_a_cost_that_cannot_be_is_refused_by_name(cost: Cost, change: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(change))):
        replace(cost, **change)  # type: ignore[arg-type]


def test_an_epsilon_or_delta_out_of_range_is_refused() -> None:
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(ConfigError, match="delta"):
            epsilon_of(ALL_KINDS, delta)
    for epsilon in (-0.1, math.inf, math.nan):
        with pytest.raises(ConfigError, match="epsilon"):
            delta_of(ALL_KINDS, epsilon)


def test_a_party_that_needs_no_distribution_does_not_load_dp_accounting() -> None:
    """Loading takes half a second, which every process of a session would pay."""
    script = (
        "import sys, protocol.privacy.accounting as a;"
        "a.gaussian_sigma(1.0, 1e-5, 65536.0, 1000, 140_000);"
        "print(any(name.startswith('dp_accounting') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("value", [1e-200, 0.99e-100, 1.01e100, 1e200, 0.0, -1.0, math.nan, math.inf])
def test_what_is_past_float64_when_squared_is_no_cost(value: float) -> None:
    with pytest.raises(ConfigError, match="noise_multiplier"):
        GaussianCost(noise_multiplier=value, count=1)
    with pytest.raises(ConfigError, match="sigma"):
        DiscreteGaussianCost(sensitivity=1.0, sigma=value, width=1, count=1)
