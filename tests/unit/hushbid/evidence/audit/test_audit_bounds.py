"""Lower bounds on ε from counts: their values, and that they are too high as rarely as stated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from hushbid.evidence.audit.bounds import (
    JOINTLY,
    allowed_alarms,
    epsilon_lower,
    epsilon_lower_jointly,
    epsilon_lower_of,
    lower_proportion,
    upper_proportion,
)


def bound(hits: int, false_alarms: int, trials: int, delta: float = 0.0) -> float:
    counts = np.array([hits]), np.array([false_alarms])
    return float(epsilon_lower(*counts, trials, delta=delta, confidence=0.95)[0])


@pytest.mark.parametrize("successes", [0, 1, 7, 49, 50])
def test_the_bounds_on_a_proportion_are_those_of_clopper_and_pearson(successes: int) -> None:
    reference = binomtest(successes, 50).proportion_ci(0.95, method="exact")
    counts = np.array([successes])
    assert lower_proportion(counts, 50, 0.025)[0] == pytest.approx(reference.low)
    assert upper_proportion(counts, 50, 0.025)[0] == pytest.approx(reference.high)


def test_what_was_never_seen_in_n_runs_may_still_occur() -> None:
    assert upper_proportion(np.array([0]), 100, 0.025)[0] == pytest.approx(1 - 0.025 ** (1 / 100))
    assert bound(100, 0, 100) < 4
    assert bound(10_000, 0, 10_000) > 7


def test_a_bound_on_epsilon_is_the_worst_that_both_proportions_allow() -> None:
    hit, alarm = (binomtest(count, 1000).proportion_ci(0.95, method="exact") for count in (400, 100))
    by_event = math.log((hit.low - 0.01) / alarm.high)
    by_complement = math.log((1 - alarm.high - 0.01) / (1 - hit.low))
    assert by_event > by_complement
    assert bound(400, 100, 1000, delta=0.01) == pytest.approx(by_event)
    # The same counts told by the complement: what was rare on D is now common.
    assert bound(900, 600, 1000, delta=0.01) == pytest.approx(by_event)


@pytest.mark.parametrize(("hits", "false_alarms"), [(0, 0), (50, 50), (10, 60), (100, 100), (3, 0)])
def test_what_shows_nothing_bounds_nothing(hits: int, false_alarms: int) -> None:
    assert bound(hits, false_alarms, 100, delta=0.05) == 0.0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (1.0, 0.1), (3.0, 0.01)])
def test_a_bound_is_too_high_in_at_most_one_of_twenty_audits(epsilon: float, delta: float) -> None:
    """20,000 audits of the mechanism that is exactly (ε, δ)-DP. Fails by chance less than once in 10^6."""
    rng = np.random.default_rng(1)
    rare = (1 - delta) / (1 + math.exp(epsilon))
    common = math.exp(epsilon) * rare + delta
    hits, false_alarms = rng.binomial(500, common, 20_000), rng.binomial(500, rare, 20_000)
    too_high = epsilon_lower(hits, false_alarms, 500, delta=delta, confidence=0.95) > epsilon
    assert too_high.mean() < 0.05


def test_bounds_that_forget_the_confidence_are_too_high_far_more_often() -> None:
    """The control: the ratio of the counts."""
    rng = np.random.default_rng(1)
    rare = 1 / (1 + math.e)
    hits, false_alarms = rng.binomial(500, math.e * rare, 20_000), rng.binomial(500, rare, 20_000)
    assert (np.log(hits / false_alarms) > 1.0).mean() > 0.4


# -- both counts together ----------------------------------------------------------------------------------


def jointly(hits: int, false_alarms: int, trials: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    return epsilon_lower_jointly(hits, false_alarms, trials, delta=delta, confidence=confidence)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.5, 0.1), (1.0, 0.0), (1.0, 0.5)])
def test_a_bound_of_both_counts_is_too_high_as_rarely_as_it_says_whatever_p_and_q_are(
    epsilon: float, delta: float
) -> None:
    """Computed, not sampled: all counts of 10 runs, at 90 %, for the worst P of many Q."""
    trials, counts = 10, range(11)
    bounds = np.array([[jointly(h, f, trials, delta, 0.9) for f in counts] for h in counts])
    worst = 0.0
    for alarm in np.linspace(0.0, 1.0, 101):
        by_complement = 1.0 - max(1.0 - alarm - delta, 0.0) / math.exp(epsilon)
        hit = min(math.exp(epsilon) * alarm + delta, by_complement, 1.0)
        weights = np.outer(binom.pmf(counts, trials, hit), binom.pmf(counts, trials, alarm))
        worst = max(worst, float(weights[bounds > epsilon + 1e-9].sum()))
    assert worst <= 0.1
    # The control: bounds at less confidence are higher.
    assert jointly(trials, 0, trials, delta, 0.4) > bounds.max() > epsilon


def test_what_is_always_seen_with_one_and_never_with_the_other_is_as_probable_as_its_formula_says() -> None:
    # The largest Pⁿ(1 - Q)ⁿ with P ≤ e^ε·Q and 1 - Q ≤ e^ε(1 - P) is (e^ε/(1 + e^ε))²ⁿ.
    found = jointly(15, 0, 15)
    likely = [(math.exp(epsilon) / (1.0 + math.exp(epsilon))) ** 30 for epsilon in (found, found + 0.03)]
    assert likely[0] <= 0.05 < likely[1]


@pytest.mark.parametrize("delta", [0.0, 0.01, 0.5])
@pytest.mark.parametrize("trials", [15, JOINTLY])
def test_both_counts_together_say_no_less_than_two_bounds(trials: int, delta: float) -> None:
    for hits in (trials, trials - 1, 2 * trials // 3):
        for false_alarms in (0, trials // 4):
            alone = bound(hits, false_alarms, trials, delta)
            # Of ε that are tested, the last below.
            assert jointly(hits, false_alarms, trials, delta) > alone - 0.02


@pytest.mark.parametrize(("hits", "false_alarms"), [(0, 0), (15, 15), (3, 9), (2, 0)])
def test_what_shows_nothing_bounds_nothing_together_either(hits: int, false_alarms: int) -> None:
    assert jointly(hits, false_alarms, 15, delta=0.05) == 0.0


def test_few_runs_are_bounded_together_and_many_apart() -> None:
    few, many = (
        epsilon_lower_of(runs - 1, 0, runs, delta=0.1, confidence=0.95) for runs in (JOINTLY, JOINTLY + 1)
    )
    assert few == jointly(JOINTLY - 1, 0, JOINTLY, delta=0.1)
    assert many == bound(JOINTLY, 0, JOINTLY + 1, delta=0.1)


def test_a_series_may_have_as_many_alarms_as_its_error_rate_explains() -> None:
    assert allowed_alarms(1, 0.95) == 0
    assert allowed_alarms(20, 0.95) == 4
    assert allowed_alarms(20, 0.999) < allowed_alarms(20, 0.9)
