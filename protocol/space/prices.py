"""Public prices of owners' points: what they cost, and gain per price, in whole numbers.

Prices are whole ten-thousandths, so that all who compare gains per price compare the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

import numpy as np
import numpy.typing as npt
from pydantic.dataclasses import dataclass as figures

from hushbid.protocol.figures import Figures

__all__ = ["MAX_BUDGET", "MAX_PRICE", "UNITS", "Bill", "BillLine", "Prices", "in_units", "per_price"]

UNITS: Final = 10_000
"""Units in a price of 1."""
MAX_PRICE: Final = 1e6
MAX_BUDGET: Final = 1e11
"""Below 2^53 units: each has a float64 number of its own."""

_LISTED: Final = 8
"""Owners that a bill for people lists."""

SHIFT: Final = 70
"""Two quotients of whole numbers by prices below 2^34 units that differ do so by more than 2^-68."""


def in_units(amount: float) -> int:
    """An amount in ten-thousandths.

    Raises:
        ValueError: It has more than four places after the point.
    """
    units = round(amount * UNITS)
    if units / UNITS != amount:
        raise ValueError("has more than four places after the point")
    return units


def per_price(score: int, units: int) -> int:
    """The order of points that have prices: higher first.

    A score from 0 counts by what it is for its price: ⌊score·2^70/units⌋, which is in the order of the exact
    quotients, equal ones and no others being equal. A negative score counts as it is. It is below all others,
    and no price makes a point that does harm better or worse.

    Args:
        score: In units of 2^-37.
        units: The price, in ten-thousandths, from 1 to 10^10.
    """
    return score if score < 0 else (score << SHIFT) // units


@dataclass(frozen=True)
class Prices:
    """Price of a point, by owner.

    Attributes:
        units: In ten-thousandths, by the owner's rank: its place among the sorted names.
    """

    units: tuple[int, ...]

    @classmethod
    def of(cls, prices: Mapping[str, float]) -> Prices:
        """Prices by owner's name."""
        return cls(tuple(in_units(prices[owner]) for owner in sorted(prices)))

    def per_price(self, score: int, rank: int) -> int:
        """What a point of an owner is ordered by (`per_price`)."""
        return per_price(score, self.units[rank])

    def about(self, scores: npt.NDArray[np.float64], ranks: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        """`per_price` of points without the factor of 2^70, and with rounding of 1 part in 2^52.

        Negative scores are divided by `MAX_PRICE`, whose quotients are in the scores' order too.
        """
        divisors = np.where(scores < 0.0, MAX_PRICE * UNITS, self._divisors[ranks])
        return np.asarray(scores / divisors, dtype=np.float64)

    @cached_property
    def _divisors(self) -> npt.NDArray[np.float64]:
        return np.array(self.units, dtype=np.float64)


@figures(frozen=True, slots=True)
class BillLine(Figures):
    """An owner's line of a bill: how many points, at what price, and what they cost."""

    points: int
    price: float
    amount: float


@figures(frozen=True, slots=True)
class Bill(Figures):
    """The points bought from each owner, and their cost. Paying an owner by it tells it how many were bought.

    Attributes:
        owners: Each owner's line.
        points: How many all sold.
        total: What these cost.
        budget: What they may cost at most; None: anything.
    """

    owners: Mapping[str, BillLine]
    points: int
    total: float
    budget: float | None

    @classmethod
    def of(cls, prices: Mapping[str, float], sold: Mapping[str, int], budget: float | None) -> Self | None:
        """The bill for these points; None without prices.

        Args:
            prices: By owner; none: the session has no prices.
            sold: How many points are to be paid for, by owner; owners that sold none may be left out.
            budget: What they may cost at most; None: anything.
        """
        if not prices:
            return None
        counts = {owner: sold.get(owner, 0) for owner in sorted(prices)}
        owed = {owner: in_units(prices[owner]) * count for owner, count in counts.items()}
        return cls(
            {owner: BillLine(count, prices[owner], owed[owner] / UNITS) for owner, count in counts.items()},
            sum(counts.values()),
            sum(owed.values()) / UNITS,
            budget,
        )

    def sentence(self, name: Callable[[str], str] = str) -> str:
        """The bill for people.

        Args:
            name: What people read for an owner.
        """
        within = "" if self.budget is None else f", of a budget of {self.budget:,.2f}"
        owed = [
            f"{name(owner)}: {line.points} at {line.price:g} = {line.amount:,.2f}"
            for owner, line in self.owners.items()
            if line.points
        ]
        listed = "; ".join(owed[:_LISTED]) + (
            f"; and {len(owed) - _LISTED} more" if len(owed) > _LISTED else ""
        )
        detail = f" ({listed})" if owed else ""
        return f"{self.points} points cost {self.total:,.2f}{within}{detail}."
