"""The most privacy that a dataset may lose in its life: what its ledger records, and how that may change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushbid.protocol.config.party import BudgetSection
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting import Budget
from hushbid.protocol.runtime.ledger.spending import checked_neighbours

__all__ = ["Cap", "cap_from_record", "cap_to_record", "next_cap"]


@dataclass(frozen=True, slots=True)
class Cap:
    """A limit on all spendings of a dataset together.

    Attributes:
        neighbours: The datasets that it compares.
    """

    budget: Budget
    neighbours: str

    def __str__(self) -> str:
        return f"ε = {self.budget.epsilon:.6g} at δ = {self.budget.delta:.4g} ({self.neighbours})"

    def allows_no_more_than(self, other: Cap) -> bool:
        return (
            self.neighbours == other.neighbours
            and self.budget.epsilon <= other.budget.epsilon
            and self.budget.delta <= other.budget.delta
        )


def next_cap(path: Path, held: Cap | None, wish: BudgetSection | None, *, neighbours: str) -> Cap | None:
    """The cap that holds from now on. Raising or lifting a recorded one takes an explicit word.

    Args:
        path: The ledger, for messages.
        wish: The party's `[budget]`; None changes nothing.
        neighbours: The datasets that a first cap compares, unless `wish` names some.

    Raises:
        ConfigError: It would be raised, lifted, or be for other neighbours, without the word.
    """
    if wish is None:
        return held
    budget = wish.budget()
    if budget is None:  # `BudgetSection` has seen to it that the word is there
        return None
    wanted = Cap(budget, wish.neighbours or (held.neighbours if held is not None else neighbours))
    if held is None or wish.lift or wanted.allows_no_more_than(held):
        return wanted
    raise ConfigError(
        f"{path}: the dataset's budget on record is {held}, and {wanted} was asked for.",
        advice="A budget is lowered at any time, and only raised or changed by an explicit word, which the "
        "ledger keeps: `lift = true` beside it in [budget], or `--lift-budget`.",
    )


def cap_to_record(cap: Cap | None) -> dict[str, float] | None:
    """(ε, δ) of a cap as JSON; its relation is a field of its own."""
    return None if cap is None else {"epsilon": cap.budget.epsilon, "delta": cap.budget.delta}


def cap_from_record(record: Mapping[str, Any], *, neighbours: object) -> Cap | None:
    """The cap of a ledger's first line, or of a line that changes it.

    Raises:
        ConfigError, KeyError, TypeError, AttributeError: It is malformed.
    """
    relation = checked_neighbours(record.get("neighbours", neighbours))
    budget = record["budget"]
    return None if budget is None else Cap(Budget(**budget), relation)
