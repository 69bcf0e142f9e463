"""From a target (ε, δ) to the noise that meets it, as the accountant states it.

A target is for all releases, steps, counts or rounds together; its neighbour relation is that of the caller's
sensitivity. Each result was checked with the accountant: its stated cost is at most the target, and barely
below it. An argument that is out of range raises `ConfigError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting.accountant import epsilon_of
from hushbid.protocol.privacy.accounting.costs import ApproximateCost, BoundedRangeCost, Cost, LaplaceCost
from hushbid.protocol.privacy.accounting.gaussian import discrete_gaussian_epsilon, gaussian_mu
from hushbid.protocol.privacy.accounting.validation import (
    check_count,
    check_delta,
    check_epsilon,
    check_positive,
)
from hushbid.protocol.privacy.accounting.zcdp import rho_of_epsilon

__all__ = [
    "ask_epsilon",
    "count_epsilon",
    "gaussian_sigma",
    "mwem_step_cost",
    "mwem_step_epsilon",
    "shifted_count_cost",
]

SIGMA_TOLERANCE: Final = 1e-9
"""Relative excess of a σ over the smallest one that meets the target."""

STEP_TOLERANCE: Final = 1e-4
"""Relative shortfall of a step's ε below the largest one that meets the target."""

LARGEST_SIGMA: Final = 2.0**60
"""σ in grid units beyond which noise does not fit int64."""


@lru_cache(maxsize=1024)
def gaussian_sigma(epsilon: float, delta: float, sensitivity: float, releases: int, values: int) -> float:
    """The smallest σ at which `discrete_gaussian_epsilon` is at most ε.

    Args:
        sensitivity: L2 sensitivity of one release, in any unit; σ has that unit. Discrete noise is on its
            whole numbers.
        values: Noise values of all releases together.

    Raises:
        ConfigError: Also if the target is so small that no int64 noise meets it.
    """
    check_epsilon(epsilon)
    check_delta(delta)
    check_positive("sensitivity", sensitivity)
    check_count("releases", releases)
    check_count("values", values)

    def meets(sigma: float) -> bool:
        return discrete_gaussian_epsilon(sensitivity, sigma, releases, values, delta) <= epsilon

    # Continuous noise with this σ would suffice, and discrete noise is never claimed to be better.
    low = sensitivity * math.sqrt(releases) / gaussian_mu(epsilon, delta)
    excess, high = SIGMA_TOLERANCE, low * (1.0 + SIGMA_TOLERANCE)
    while high <= LARGEST_SIGMA and not meets(high):
        excess *= 4.0
        low, high = high, high * (1.0 + excess)
    if high > LARGEST_SIGMA:
        raise ConfigError(
            f"No noise makes {releases} releases meet epsilon = {epsilon:g} at delta = {delta:g}.",
            advice="Raise epsilon or delta, or ask for fewer releases.",
        )
    while high > low * (1.0 + SIGMA_TOLERANCE):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


@lru_cache(maxsize=1024)
def mwem_step_epsilon(epsilon: float, delta: float, steps: int) -> float:
    """The largest ε of a step with which `steps` sound MWEM steps meet (ε, δ).

    A step is a selection of bounded range ε/2 and a measurement that is ε/2-DP: `mwem_step_cost`.
    """
    check_count("steps", steps)
    return _largest(lambda step: mwem_step_cost(step, steps), epsilon, delta)


@lru_cache(maxsize=1024)
def count_epsilon(epsilon: float, delta: float, counts: int) -> float:
    """The largest ε of a count such that `counts` counts that differ by one meet (ε, δ).

    A count with discrete Laplace noise of scale 1/ε' is ε'-DP if neighbours' counts differ by one
    (`shifted_count_cost`).
    """
    check_count("counts", counts)
    return _largest(lambda each: (shifted_count_cost(each, counts),), epsilon, delta)


def shifted_count_cost(epsilon: float, counts: int) -> ApproximateCost:
    """The cost of `counts` counts that differ by one, with discrete Laplace noise of scale 1/ε each.

    P(x) ∝ e^(-ε|x|) and its shift by one have a likelihood ratio of e^ε or e^-ε and nothing between. Its
    privacy loss equals randomised response's, the worst of all ε-DP mechanisms, which `ApproximateCost` with
    δ = 0 represents. `LaplaceCost` does not: continuous noise has losses between.
    """
    return ApproximateCost(epsilon=epsilon, delta=0.0, count=counts)


@lru_cache(maxsize=1024)
def ask_epsilon(epsilon: float, delta: float, rounds: int) -> float:
    """The largest ε of a `logistic` ask with which `rounds` rounds meet (ε, δ).

    An ask at rank r has probability 1/(1 + e^(ε(r - r0))). Ranks differ by at most one between neighbours,
    and so the log-odds by at most ε: a mechanism of bounded range ε, ε²/8-zCDP. All rounds are charged, as
    ranks may differ in any of them (DESIGN §3).

    Args:
        delta: The part of δ for the asks; the misses take the rest.
    """
    check_count("rounds", rounds)
    return _largest(lambda step: (BoundedRangeCost(eta=step, count=rounds),), epsilon, delta)


def mwem_step_cost(step_epsilon: float, steps: int) -> tuple[Cost, ...]:
    """The cost of `steps` sound MWEM steps: as many selections and measurements, at half a step's ε."""
    return (
        BoundedRangeCost(eta=step_epsilon / 2.0, count=steps),
        LaplaceCost(epsilon=step_epsilon / 2.0, count=steps),
    )


def _largest(costs: Callable[[float], tuple[Cost, ...]], epsilon: float, delta: float) -> float:
    """The largest parameter whose costs meet the target; ρ is quadratic in it, and pure ε linear."""
    check_epsilon(epsilon)
    check_delta(delta)

    def excess(log_parameter: float) -> float:
        return math.log(epsilon_of(costs(math.exp(log_parameter)), delta) / epsilon)

    one = math.fsum(cost.rho for cost in costs(1.0))
    bounds = sum(cost.count for cost in costs(1.0))
    # zCDP alone meets the target here, or the sum of the steps' ε does; the accountant knows both.
    low = math.log(max(math.sqrt(rho_of_epsilon(epsilon, delta) / one), epsilon / bounds)) - STEP_TOLERANCE
    at_low = excess(low)
    width = 0.05
    while (at_high := excess(high := low + width)) <= 0.0:
        low, at_low, width = high, at_high, 2.0 * width
    # ln ε is nearly linear in the logarithm of the parameter, so the chord crosses 0 near the root. One end
    # moves there, and the other to within half a tolerance of it. `low` always meets the target.
    margin = STEP_TOLERANCE / 2.0
    while high - low > STEP_TOLERANCE:
        crossing = low - at_low * (high - low) / (at_high - at_low)
        middle = min(max(crossing, low + margin), high - margin)
        at_middle = excess(middle)
        if at_middle <= 0.0:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
    return math.exp(low)
