"""Privacy-loss distributions, by dp-accounting: tight composition of any mechanisms.

A mechanism is given by its profile δ(t), a bound on its hockey-stick divergence at every real t. On a grid of
losses, dp-accounting replaces the profile by the curve that connects its values, piecewise linear in e^t.
That curve lies above the profile, so it is pessimistic, and it has no drift (Doroshenko et al. 2022).
dp-accounting's own constructors are used where they have no drift either; other mechanisms use their
profiles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.privacy.accounting.costs import (
    ApproximateCost,
    BoundedRangeCost,
    Cost,
    DiscreteGaussianCost,
    GaussianCost,
    LaplaceCost,
    ZcdpCost,
)

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

__all__ = ["approximate_profile", "bounded_range_profile", "compose_distribution", "numerical_allowance"]

Distribution: TypeAlias = "PrivacyLossDistribution"

POINTS_PER_BOUND: Final = 50
"""Grid points from 0 to the smallest loss bound of a composition: ε is then within 0.1 % of its limit."""

MAX_GRID_POINTS: Final = 2**21
"""Grid points within twenty standard deviations of a composition; a coarser grid is used above."""

STAGE: Final = 256
"""Compositions per transform. dp-accounting bounds the support of a composition by moments that suit a few
hundred at a time; a million at once would keep a hundred times the relevant losses.
"""


def compose_distribution(costs: Sequence[Cost]) -> Distribution:
    """A pessimistic privacy-loss distribution of all costs together.

    The Gaussian costs, rounded or continuous, become one Gaussian with their Σμ². For discrete noise, the
    caller allows for the difference of its law (`hushbid.protocol.privacy.accounting.gaussian.law_ratios`).

    Args:
        costs: At least one, and no `ZcdpCost`, which has no distribution.
    """
    # Imported here because it takes half of a party's start-up time, and most sessions do not use it.
    from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415

    step = _step(costs)
    parts: list[Distribution] = []
    mu_squared = 0.0
    for cost in costs:
        if isinstance(cost, GaussianCost | DiscreteGaussianCost):
            mu_squared += cost.mu_squared
        else:
            parts.append(_repeat(_single(cost, step), cost.count))
    if mu_squared > 0.0:
        parts.append(
            privacy_loss_distribution.from_gaussian_mechanism(
                1.0 / math.sqrt(mu_squared), value_discretization_interval=step
            )
        )
    composed = parts[0]
    for part in parts[1:]:
        composed = composed.compose(part)
    return composed


def bounded_range_profile(losses: npt.NDArray[np.float64], eta: float) -> npt.NDArray[np.float64]:
    """δ(t) = (1 - e^((t - η)/2))²/(1 - e^-η) for |t| ≤ η, 0 above, 1 - e^t below.

    This is the worst mechanism of range η: Dong, Durfee and Rogers (2020).

    Args:
        losses: t, float64 of any shape.
    """
    inside = np.expm1((np.clip(losses, -eta, eta) - eta) / 2.0) ** 2 / -math.expm1(-eta)
    below = -np.expm1(np.minimum(losses, 0.0))
    return np.asarray(np.where(losses <= -eta, below, inside), dtype=np.float64)


def approximate_profile(
    losses: npt.NDArray[np.float64], epsilon: float, delta: float
) -> npt.NDArray[np.float64]:
    """Δ + (1 - δ)·(1 - e^(t - ε))/(1 + e^-ε) for |t| ≤ ε, δ above, δ + (1 - δ)·(1 - e^t) below.

    This is the worst (ε, δ)-differentially private mechanism: Kairouz, Oh, Viswanath (2017). dp-accounting's
    own constructor rounds both losses up to the grid, and so drifts.

    Args:
        losses: t, float64 of any shape.
    """
    inside = -np.expm1(np.clip(losses, -epsilon, epsilon) - epsilon) / (1.0 + math.exp(-epsilon))
    pure = np.where(losses <= -epsilon, -np.expm1(np.minimum(losses, 0.0)), inside)
    return np.asarray(delta + (1.0 - delta) * pure, dtype=np.float64)


def numerical_allowance(costs: Sequence[Cost]) -> float:
    """Most that rounding in the transforms may change a δ by.

    The spectrum of a distribution has errors of a few 2^-53, which its n-th power multiplies by n. The few
    frequencies at which that power is not negligible spread them over all losses.
    """
    return 2.0**-43 + 2.0**-49 * sum(cost.count for cost in costs)


def _step(costs: Sequence[Cost]) -> float:
    """The grid's spacing: fine enough for the smallest mechanism, unless the grid would become too long."""
    bounds = [bound for cost in costs if (bound := _loss_bound(cost)) > 0.0]
    spread = math.sqrt(
        sum(cost.count * _loss_bound(cost) ** 2 for cost in costs if not _is_gaussian(cost))
        + sum(cost.mu_squared for cost in costs if isinstance(cost, GaussianCost | DiscreteGaussianCost))
    )
    finest = min(bounds, default=1.0)
    return max(finest / POINTS_PER_BOUND, 20.0 * spread / MAX_GRID_POINTS)


def _is_gaussian(cost: Cost) -> bool:
    return isinstance(cost, GaussianCost | DiscreteGaussianCost)


def _loss_bound(cost: Cost) -> float:
    """Largest finite loss of one mechanism; for a Gaussian, which has none, that of all together."""
    match cost:
        case GaussianCost() | DiscreteGaussianCost():
            return math.sqrt(cost.mu_squared)
        case BoundedRangeCost():
            return cost.eta
        case LaplaceCost() | ApproximateCost():
            return cost.epsilon
        case ZcdpCost():
            raise LocalProtocolError("A cost known by its zCDP alone has no privacy-loss distribution.")


def _single(cost: Cost, step: float) -> Distribution:
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution  # noqa: PLC0415

    match cost:
        case LaplaceCost():
            return privacy_loss_distribution.from_laplace_mechanism(
                1.0 / cost.epsilon, value_discretization_interval=step
            )
        case BoundedRangeCost():
            reach = math.ceil(cost.eta / step - 1e-9)
            profile = bounded_range_profile(_grid(reach, step), cost.eta)
        case ApproximateCost():
            reach = math.ceil(cost.epsilon / step - 1e-9)
            profile = approximate_profile(_grid(reach, step), cost.epsilon, cost.delta)
        case _:
            raise LocalProtocolError(f"A {type(cost).__name__} is not composed one by one.")
    masses: Any = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -reach, reach, profile)
    return privacy_loss_distribution.PrivacyLossDistribution(masses)


def _grid(reach: int, step: float) -> npt.NDArray[np.float64]:
    return np.arange(-reach, reach + 1, dtype=np.float64) * step


def _repeat(unit: Distribution, count: int) -> Distribution:
    """`unit` composed with itself, in stages of `STAGE`."""
    composed: Distribution | None = None
    while count:
        count, rest = divmod(count, STAGE)
        if rest:
            part = unit.self_compose(rest)
            composed = part if composed is None else composed.compose(part)
        if count:
            unit = unit.self_compose(STAGE)
    assert composed is not None, "a cost has a count of at least 1"
    return composed
