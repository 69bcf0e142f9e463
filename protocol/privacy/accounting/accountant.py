"""The accountant: (ε, δ) of everything spent, by the smallest bound that applies.

Composition is adaptive: each release may depend on earlier ones. The number of releases and their noise must
not: the costs are fixed by public parameters (DESIGN §4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypeGuard

import numpy as np
import numpy.typing as npt

from hushbid.protocol.privacy.accounting.costs import (
    ApproximateCost,
    BoundedRangeCost,
    Cost,
    DiscreteGaussianCost,
    GaussianCost,
    LaplaceCost,
    ZcdpCost,
    merge_costs,
)
from hushbid.protocol.privacy.accounting.distribution import compose_distribution, numerical_allowance
from hushbid.protocol.privacy.accounting.gaussian import (
    epsilon_of_gaussians,
    law_ratios,
    odometer_of_gaussians,
    usable_delta,
)
from hushbid.protocol.privacy.accounting.validation import check_delta
from hushbid.protocol.privacy.accounting.zcdp import epsilon_of_rho, epsilons_of_rho, pure_rho

__all__ = ["epsilon_of", "odometer", "pure_epsilon", "total_rho"]

MAX_RHO: Final = 50.0
"""Compositions with a larger ρ are left to zCDP: their ε is useless, and e^loss exceeds float64."""

SMALLEST_SHARE: Final = 10.0
"""δ must be at least this multiple of its numerical error for the distribution to be used."""

LARGEST_EPSILON: Final = 1000.0
"""Largest ε at which discrete noise is compared with rounded noise if no ρ bounds it."""


def total_rho(costs: Sequence[Cost]) -> float:
    """Total ρ of all costs; infinite if one of them has none."""
    return math.fsum(cost.rho for cost in costs)


def epsilon_of(costs: Sequence[Cost], delta: float) -> float:
    """The ε of all costs together at δ: the smallest of the bounds that apply.

    The bounds are zCDP with its tight conversion; the sum of pure ε; and the privacy-loss distribution, in
    closed form for Gaussian noise alone, with the extra cost of discrete over rounded noise
    (`discrete_gaussian_epsilon`). Costs known only by their (ε, δ) are summed and added to one of these
    bounds for the rest.

    Returns:
        ε ≥ 0; infinite if no bound gives one at this δ.
    """
    check_delta(delta)
    merged = tuple(merge_costs(costs))
    known = [cost for cost in merged if isinstance(cost, ApproximateCost)]
    rest = tuple(cost for cost in merged if not isinstance(cost, ApproximateCost))
    best = _epsilon_by_rho_or_distribution(merged, delta)
    if known:
        left = delta - math.fsum(cost.delta * cost.count for cost in known)
        summed = math.fsum(cost.epsilon * cost.count for cost in known)
        if left > 0.0:
            best = min(best, summed + _epsilon_by_rho_or_distribution(rest, left))
        elif left == 0.0 and not rest:
            best = min(best, summed)
    return best


def odometer(costs: Sequence[Sequence[Cost]], delta: float) -> npt.NDArray[np.float64]:
    """ε at δ after each of n releases, for a report; ten thousand releases take well under a second.

    Gaussian releases, and costs with a ρ, are composed at every release. Other bounds are computed for all n
    together, and cap the earlier values.

    Args:
        costs: The costs of each release, in order.

    Returns:
        float64 of shape (n,), never decreasing; its last element is `epsilon_of` of all, up to rounding.
    """
    check_delta(delta)
    flat = [cost for release in costs for cost in release]
    if not flat:
        return np.zeros(len(costs))
    if _all_gaussian(flat):
        after = odometer_of_gaussians(flat, delta)
    else:
        after = np.minimum(
            epsilons_of_rho(np.cumsum([cost.rho for cost in flat]), delta), epsilon_of(flat, delta)
        )
    last = np.cumsum([len(release) for release in costs])
    return np.where(last > 0, after[np.maximum(last - 1, 0)], 0.0)


@lru_cache(maxsize=256)
def _epsilon_by_rho_or_distribution(costs: tuple[Cost, ...], delta: float) -> float:
    """Cached: a party computes the same value at each start, and it takes milliseconds."""
    if not costs:
        return 0.0
    if _all_gaussian(costs):
        return epsilon_of_gaussians(costs, delta)
    rho = total_rho(costs)
    simple = min(epsilon_of_rho(rho, delta), _sum_of_bounds(costs))
    if not _has_distribution(costs):
        return simple
    # A bound on the ε for which the comparison of discrete with rounded noise may be used; beyond it zCDP is
    # smaller anyway, or nothing is guaranteed.
    largest = min(simple, LARGEST_EPSILON)
    down, up = law_ratios(_discrete(costs), largest, delta)
    left = usable_delta(delta, down) if math.isfinite(up) else 0.0
    allowance = numerical_allowance(costs)
    if left < SMALLEST_SHARE * allowance:
        return simple
    composed = float(compose_distribution(costs).get_epsilon_for_delta(left - allowance))
    return min(simple, composed + down + up if composed <= largest else math.inf)


def _all_gaussian(costs: Sequence[Cost]) -> TypeGuard[Sequence[GaussianCost | DiscreteGaussianCost]]:
    return all(isinstance(cost, GaussianCost | DiscreteGaussianCost) for cost in costs)


def _discrete(costs: Sequence[Cost]) -> list[DiscreteGaussianCost]:
    return [cost for cost in costs if isinstance(cost, DiscreteGaussianCost)]


def _has_distribution(costs: Sequence[Cost]) -> bool:
    """Whether the costs have a privacy-loss distribution that can be computed."""
    rho = math.fsum(
        cost.count * pure_rho(cost.epsilon) if isinstance(cost, ApproximateCost) else cost.rho
        for cost in costs
    )
    return rho <= MAX_RHO and not any(isinstance(cost, ZcdpCost) for cost in costs)


def _sum_of_bounds(costs: Sequence[Cost]) -> float:
    """The ε of pure differential privacy; infinite if one of the costs has none."""
    return math.fsum(cost.count * pure_epsilon(cost) for cost in costs)


def pure_epsilon(cost: Cost) -> float:
    """The ε of one such release by pure differential privacy; infinite if it has none."""
    match cost:
        case LaplaceCost():
            return cost.epsilon
        case BoundedRangeCost():
            return cost.eta
        case ApproximateCost() if cost.delta == 0.0:
            return cost.epsilon
        case _:
            return math.inf
