"""Lower bounds on ε from counts: what they are, and that they are too high as rarely as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from hushbid.evidence.audit.bounds import allowed_alarms, epsilon_lower, lower_proportion, upper_proportion


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
    """The control: the ratio of what was counted."""
    rng = np.random.default_rng(1)
    rare = 1 / (1 + math.e)
    hits, false_alarms = rng.binomial(500, math.e * rare, 20_000), rng.binomial(500, rare, 20_000)
    assert (np.log(hits / false_alarms) > 1.0).mean() > 0.4


def test_a_series_may_have_as_many_alarms_as_its_error_rate_explains() -> None:
    assert allowed_alarms(1, 0.95) == 0
    assert allowed_alarms(20, 0.95) == 4
    assert allowed_alarms(20, 0.999) < allowed_alarms(20, 0.9)
