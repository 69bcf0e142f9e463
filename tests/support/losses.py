"""Privacy losses that only tests need: δ at an ε, an odometer of μ², and Theorem 7 of DPDS.

They check the accountant from the other side. Theorem 7 is Theorem 3.5 of Kairouz, Oh and Viswanath (2017).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting import ApproximateCost, Cost, accountant, merge_costs
from hushbid.protocol.privacy.accounting.composition import kinds
from hushbid.protocol.privacy.accounting.distribution import compose_distribution, numerical_allowance
from hushbid.protocol.privacy.accounting.gaussian import gaussian_delta, gaussian_epsilons, law_ratios

__all__ = ["TheoremForm", "compose", "delta_of", "delta_of_rho", "gaussian_odometer"]

TheoremForm = Literal["original", "printed"]

NEGLIGIBLE_DELTA: Final = 1e-30
"""Most that the comparison of discrete with rounded noise may add to a requested δ."""

DELTA_ORDERS: Final = 20_001
"""Number of orders α that `delta_of_rho` tries, less than 0.5 % apart."""

LOWEST_LOG_EXCESS: Final = -10.0
"""ln(α - 1) of the lowest order; lower ones give no useful δ."""


def compose(
    epsilons: npt.ArrayLike,
    deltas: npt.ArrayLike,
    slack: float,
    form: TheoremForm,
    *,
    counts: npt.ArrayLike = 1,
) -> tuple[float, float]:
    """(ε, δ) of the k-fold adaptive composition of (ε_i, δ_i)-DP mechanisms: the least of three bounds.

    Σε; Σε·tanh(ε/2) + √(2Σε²·ln(1/slack)); and Σε·tanh(ε/2) + √(2Σε²·ln(e + √(Σε²)/slack)). DPDS prints
    √(Σ2ε²) for the √(Σε²) inside the last logarithm: larger, so valid, but loose.

    Args:
        epsilons: ε_i: one number, or as many as there are kinds of mechanisms.
        deltas: δ_i, in the same form.
        slack: δ̃ of the theorem, in [0, 1].
        form: ``original``, or ``printed`` for the third bound as DPDS has it.
        counts: Number of mechanisms of each kind.

    Returns:
        ε, and δ = 1 - (1 - slack)·Π(1 - δ_i).

    Raises:
        ConfigError: A value is out of range, or lengths differ.
    """
    eps, dlt, number = kinds(epsilons, deltas, counts)
    if not 0.0 <= slack <= 1.0:
        raise ConfigError(f"The composition's slack is {slack}.", advice="Set it between 0 and 1.")
    certain = slack == 1.0 or bool(np.any((dlt == 1.0) & (number > 0)))
    delta = 1.0 if certain else -math.expm1(float(number @ _log_complement(dlt)) + math.log1p(-slack))
    simple = float(number @ eps)
    if slack == 0.0:
        return simple, delta
    drift = float(number @ (eps * np.tanh(eps / 2.0)))
    squares = float(number @ (eps * eps))
    inside = math.sqrt(squares if form == "original" else 2.0 * squares)
    second = drift + math.sqrt(2.0 * squares * math.log(1.0 / slack))
    third = drift + math.sqrt(2.0 * squares * math.log(math.e + inside / slack))
    return min(simple, second, third), delta


def _log_complement(deltas: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """ln(1 - δ), with 0 for a δ of 1: that kind has a count of 0."""
    return np.log1p(-np.where(deltas < 1.0, deltas, 0.0))


def delta_of(costs: Sequence[Cost], epsilon: float) -> float:
    """The δ of all costs together at ε; the inverse of `epsilon_of` up to rounding.

    Args:
        costs: Costs of one neighbour relation, in any order.
        epsilon: At least 0.

    Returns:
        δ in [0, 1].

    Raises:
        ConfigError: ε < 0 or not finite.
    """
    if not (math.isfinite(epsilon) and epsilon >= 0.0):
        raise ConfigError(f"epsilon is {epsilon}.", advice="Set epsilon to at least 0.")
    merged = merge_costs(costs)
    known = [cost for cost in merged if isinstance(cost, ApproximateCost)]
    best = _delta_by_rho_or_distribution(merged, epsilon)
    if known:
        left = epsilon - math.fsum(cost.epsilon * cost.count for cost in known)
        summed = math.fsum(cost.delta * cost.count for cost in known)
        if left >= 0.0:
            rest = [cost for cost in merged if not isinstance(cost, ApproximateCost)]
            best = min(best, summed + _delta_by_rho_or_distribution(rest, left))
    return min(best, 1.0)


def _delta_by_rho_or_distribution(costs: Sequence[Cost], epsilon: float) -> float:
    if not costs:
        return 0.0
    if accountant._sum_of_bounds(costs) <= epsilon:
        return 0.0
    simple = delta_of_rho(accountant.total_rho(costs), epsilon)
    if not accountant._has_distribution(costs) or epsilon > accountant.LARGEST_EPSILON:
        return simple
    down, up = law_ratios(accountant._discrete(costs), epsilon, NEGLIGIBLE_DELTA)
    left = epsilon - down - up
    if not left >= 0.0:
        return simple
    if accountant._all_gaussian(costs):
        exact = gaussian_delta(math.sqrt(2.0 * accountant.total_rho(costs)), left)
    else:
        exact = float(compose_distribution(costs).get_delta_for_epsilon(left)) + numerical_allowance(costs)
    return min(simple, math.exp(down) * (exact + NEGLIGIBLE_DELTA if up > 0.0 else exact))


def delta_of_rho(rho: float, epsilon: float) -> float:
    """The least δ that the Rényi curve of ρ-zCDP gives at ε ≥ 0, at most 1.

    min over α > 1 of e^((α-1)(αρ-ε))·(1 - 1/α)^α/(α - 1): Canonne, Kamath, Steinke (2020), Proposition 12.
    Every α is valid, so an inexact minimum is still a guarantee.
    """
    if rho == 0.0:
        return 0.0
    if not math.isfinite(rho):
        return 1.0
    # The optimum is near (ε - ρ)/2ρ for a small δ, and near 1/√ρ if ε is close to 0.
    highest = math.log(max(epsilon / (2.0 * rho), 1.0 / math.sqrt(rho), 1.0)) + 2.0
    log_excess = np.linspace(LOWEST_LOG_EXCESS, highest, DELTA_ORDERS)
    excess = np.exp(log_excess)
    order = 1.0 + excess
    exponents = excess * (order * rho - epsilon) + order * (log_excess - np.log1p(excess)) - log_excess
    return math.exp(min(0.0, float(exponents.min())))


def gaussian_odometer(mu_squared_per_release: npt.ArrayLike, delta: float) -> npt.NDArray[np.float64]:
    """ε at δ after each of n Gaussian releases, for continuous noise or such noise rounded.

    Args:
        mu_squared_per_release: (Δ/σ)² of each release, shape (n,).
        delta: In (0, 1).

    Returns:
        float64 of shape (n,), never decreasing.

    Raises:
        ConfigError: `delta` outside of (0, 1), or a μ² that is negative or not finite.
    """
    squares = np.asarray(mu_squared_per_release, dtype=np.float64)
    if not np.all(squares >= 0.0):
        raise ConfigError("A release was said to have a negative μ².", advice="Give (Δ/σ)² of each release.")
    return gaussian_epsilons(np.sqrt(np.cumsum(squares)), delta)
