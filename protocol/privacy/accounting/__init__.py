"""How privacy losses add up: costs, the accountant, calibration, budgets; and Theorem 7 of the paper."""

from __future__ import annotations

from protocol.privacy.accounting.accountant import delta_of, epsilon_of, odometer, total_rho
from protocol.privacy.accounting.adaptive import APPROXIMATE_SHARE, adaptive_epsilon
from protocol.privacy.accounting.budget import Budget, PrivacyFilter
from protocol.privacy.accounting.calibration import (
    ask_epsilon,
    count_epsilon,
    gaussian_sigma,
    mwem_step_cost,
    mwem_step_epsilon,
    shifted_count_cost,
)
from protocol.privacy.accounting.composition import TheoremForm, compose, compose_as_claimed
from protocol.privacy.accounting.costs import (
    ApproximateCost,
    BoundedRangeCost,
    Cost,
    DiscreteGaussianCost,
    GaussianCost,
    LaplaceCost,
    ZcdpCost,
    cost_from_record,
    cost_to_record,
    merge_costs,
)
from protocol.privacy.accounting.gaussian import (
    discrete_gaussian_epsilon,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_odometer,
)
from protocol.privacy.accounting.group import for_two_steps
from protocol.privacy.accounting.zcdp import (
    bounded_range_rho,
    compose_rho,
    delta_of_rho,
    epsilon_of_rho,
    gaussian_rho,
    pure_rho,
)

__all__ = [
    "APPROXIMATE_SHARE",
    "ApproximateCost",
    "BoundedRangeCost",
    "Budget",
    "Cost",
    "DiscreteGaussianCost",
    "GaussianCost",
    "LaplaceCost",
    "PrivacyFilter",
    "TheoremForm",
    "ZcdpCost",
    "adaptive_epsilon",
    "ask_epsilon",
    "bounded_range_rho",
    "compose",
    "compose_as_claimed",
    "compose_rho",
    "cost_from_record",
    "cost_to_record",
    "count_epsilon",
    "delta_of",
    "delta_of_rho",
    "discrete_gaussian_epsilon",
    "epsilon_of",
    "epsilon_of_rho",
    "for_two_steps",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_odometer",
    "gaussian_rho",
    "gaussian_sigma",
    "merge_costs",
    "mwem_step_cost",
    "mwem_step_epsilon",
    "odometer",
    "pure_rho",
    "shifted_count_cost",
    "total_rho",
]
