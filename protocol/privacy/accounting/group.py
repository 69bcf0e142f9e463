"""The cost of a release for datasets two steps apart: one record removed, and one added."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hushbid.protocol.privacy.accounting.costs import (
    ApproximateCost,
    BoundedRangeCost,
    Cost,
    DiscreteGaussianCost,
    GaussianCost,
    LaplaceCost,
    ZcdpCost,
)

__all__ = ["for_two_steps"]


def for_two_steps(costs: Sequence[Cost]) -> tuple[Cost, ...] | None:
    """Costs for datasets that are two steps of the costs' own neighbour relation apart.

    Under `add-remove-one` a step adds or removes a record. Replacing a record takes two steps: D, D without
    it, D with the other in its place. So the cost of a release under `add-remove-one` determines its cost
    under `substitute-one`. The converse does not hold: a release that is private under substitution may
    reveal the exact number of records, which differs between datasets that differ by a record.

    Proof, with P, Q, R the release's laws on the three datasets, and each step at the stated cost.

    - Gaussian noise, continuous and discrete: ‖s(D) - s(D'')‖ ≤ ‖s(D) - s(D')‖ + ‖s(D') - s(D'')‖ ≤ 2Δ. So μ
      doubles, and ρ is four times as large.
    - Laplace noise: likewise in the L1 norm, and ε doubles.
    - Bounded range η: ln P/R = ln P/Q + ln Q/R, each of which stays within an interval of length η. So
      the sum stays within one of length 2η.
    - zCDP: k² times ρ for k steps (Bun and Steinke 2016, Proposition 27), four times for two.
    - (ε, δ): P(E) ≤ e^ε·Q(E) + δ ≤ e^ε·(e^ε·R(E) + δ) + δ = e^2ε·R(E) + (1 + e^ε)·δ.

    Adaptive releases preserve this: given the earlier releases, each has these laws. ∎

    Returns:
        The costs for two steps, with the same kinds and counts; None if a δ would reach 1, so that nothing is
        guaranteed.
    """
    doubled = [_doubled(cost) for cost in costs]
    return None if None in doubled else tuple(cost for cost in doubled if cost is not None)


def _doubled(cost: Cost) -> Cost | None:
    match cost:
        case GaussianCost():
            return replace(cost, noise_multiplier=cost.noise_multiplier / 2.0)
        case DiscreteGaussianCost():
            return replace(cost, sensitivity=2.0 * cost.sensitivity)
        case LaplaceCost():
            return replace(cost, epsilon=2.0 * cost.epsilon)
        case BoundedRangeCost():
            return replace(cost, eta=2.0 * cost.eta)
        case ZcdpCost():
            return replace(cost, rho_each=4.0 * cost.rho_each)
        case ApproximateCost():
            # As e^(ε + ln δ): e^ε alone may exceed float64.
            delta = (
                cost.delta + math.exp(min(cost.epsilon + math.log(cost.delta), 0.0)) if cost.delta else 0.0
            )
            return replace(cost, epsilon=2.0 * cost.epsilon, delta=delta) if delta < 1.0 else None
