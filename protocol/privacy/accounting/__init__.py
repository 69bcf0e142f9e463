"""How privacy losses add up: costs, the accountant, calibration, budgets; and the totals of the paper.

Wherever a function takes a δ, it is in (0, 1), or the function raises `ConfigError`. Costs that are added up
belong to one neighbour relation.
"""

from __future__ import annotations

from hushbid.protocol.privacy.accounting.accountant import epsilon_of, odometer
from hushbid.protocol.privacy.accounting.adaptive import adaptive_epsilon
from hushbid.protocol.privacy.accounting.budget import Budget, PrivacyFilter
from hushbid.protocol.privacy.accounting.calibration import (
    ask_epsilon,
    count_epsilon,
    gaussian_sigma,
    mwem_step_epsilon,
    shifted_count_cost,
)
from hushbid.protocol.privacy.accounting.composition import compose_as_claimed
from hushbid.protocol.privacy.accounting.costs import (
    ApproximateCost,
    BoundedRangeCost,
    Cost,
    DiscreteGaussianCost,
    LaplaceCost,
    cost_from_record,
    cost_to_record,
    merge_costs,
)
from hushbid.protocol.privacy.accounting.group import for_two_steps

__all__ = [
    "ApproximateCost",
    "BoundedRangeCost",
    "Budget",
    "Cost",
    "DiscreteGaussianCost",
    "LaplaceCost",
    "PrivacyFilter",
    "adaptive_epsilon",
    "ask_epsilon",
    "compose_as_claimed",
    "cost_from_record",
    "cost_to_record",
    "count_epsilon",
    "epsilon_of",
    "for_two_steps",
    "gaussian_sigma",
    "merge_costs",
    "mwem_step_epsilon",
    "odometer",
    "shifted_count_cost",
]
