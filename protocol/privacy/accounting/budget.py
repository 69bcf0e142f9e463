"""A budget, and the filter that refuses charges beyond it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from hushbid.protocol.errors import BudgetExceeded, ConfigError
from hushbid.protocol.privacy.accounting.accountant import epsilon_of
from hushbid.protocol.privacy.accounting.costs import Cost, merge_costs
from hushbid.protocol.privacy.accounting.validation import check_delta, check_epsilon

__all__ = ["Budget", "PrivacyFilter"]

HALVINGS: Final = 20
"""Number of times a look-ahead is halved before a charge is composed alone."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that may be spent: (ε, δ)-differential privacy.

    Attributes:
        epsilon: Positive and finite.
        delta: In (0, 1).

    Raises:
        ConfigError: A value is out of range; the error names the key.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)

    def admits(self, costs: Iterable[Cost]) -> bool:
        """Whether all these costs together are within the budget."""
        return epsilon_of(tuple(costs), self.delta) <= self.epsilon


class PrivacyFilter:
    """Admits releases as long as they are together within a budget.

    The costs, and so the moment of a refusal, must not depend on data: in a session they are public
    parameters. The state is one count per kind of release, however many releases there are.

    Composing takes milliseconds, so a charge looks ahead: it checks whether twice as much of everything would
    still be within the budget, and later charges up to that need no composition. n charges of k kinds need
    about k·ln² n compositions.

    Args:
        neighbours: The datasets that the budget compares. Every cost must be for them.

    Raises:
        ConfigError: No neighbour relation was given.
    """

    def __init__(self, budget: Budget, *, neighbours: str) -> None:
        if not neighbours:
            raise ConfigError(
                "A privacy budget names no neighbour relation, and so it means nothing.",
                advice='Say what it compares, such as neighbours = "add-remove-one".',
            )
        self.budget = budget
        self.neighbours = neighbours
        self._spent: dict[Cost, int] = {}
        self._cleared: dict[Cost, int] = {}

    @property
    def costs(self) -> tuple[Cost, ...]:
        """The charges, one entry per kind of release."""
        return _as_costs(self._spent)

    def expect(self, *costs: Cost) -> None:
        """Compose all the charges planned for a session, so that charges up to them need no composition.

        Raises:
            BudgetExceeded: They exceed the remaining budget. Nothing is charged either way.
        """
        wanted = self._with(costs)
        if not self.budget.admits(_as_costs(wanted)):
            raise self._exceeded(wanted, "All that is asked for")
        self._cleared = wanted

    def charge(self, *costs: Cost) -> None:
        """Charge one or more costs, either all or none.

        Raises:
            BudgetExceeded: They exceed the remaining budget; nothing was charged.
        """
        wanted = self._with(costs)
        if any(count > self._cleared.get(kind, 0) for kind, count in wanted.items()):
            self._cleared = self._look_ahead(wanted)
        self._spent = wanted

    def spent(self, delta: float) -> float:
        return epsilon_of(self.costs, delta)

    def _with(self, costs: Iterable[Cost]) -> dict[Cost, int]:
        """The charges plus these costs: a count per kind of release."""
        wanted = dict(self._spent)
        for cost in merge_costs(costs):
            kind = replace(cost, count=1)
            wanted[kind] = wanted.get(kind, 0) + cost.count
        return wanted

    def _look_ahead(self, wanted: dict[Cost, int]) -> dict[Cost, int]:
        """The largest multiple of `wanted`, found by halving, that is within the budget."""
        if not self.budget.admits(_as_costs(wanted)):
            raise self._exceeded(wanted, "This release")
        ahead = most = max(wanted.values())
        for _ in range(HALVINGS):
            if ahead < 1:
                break
            more = {kind: count + math.ceil(ahead * count / most) for kind, count in wanted.items()}
            if self.budget.admits(_as_costs(more)):
                return more
            ahead //= 2
        return wanted

    def _exceeded(self, wanted: dict[Cost, int], what: str) -> BudgetExceeded:
        budget = self.budget
        total = epsilon_of(_as_costs(wanted), budget.delta)
        return BudgetExceeded(
            f"{what} would bring ε to {total:.6g} at δ = {budget.delta:.4g} ({self.neighbours}), over the "
            f"budget of {budget.epsilon:.6g}; {self.spent(budget.delta):.6g} was spent so far.",
            advice="Nothing was spent. Raise the budget, or ask for fewer releases or for more noise.",
        )


def _as_costs(counts: dict[Cost, int]) -> tuple[Cost, ...]:
    return tuple(replace(kind, count=count) for kind, count in counts.items())
