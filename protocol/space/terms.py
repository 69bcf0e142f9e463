"""What bounds a choice besides its points: public prices, a budget, and the most that an owner may sell.

Under `tender` no owner is told what was chosen, so the choice may count what it bought (docs/privacy.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.space.prices import Prices

__all__ = ["NO_TERMS", "Purse", "Terms"]

_ROUNDING: Final = 2.0**-50
"""More than the relative error of `Prices.about`."""


@dataclass(frozen=True)
class Terms:
    """The public terms of a purchase; None: there is no such bound.

    Attributes:
        prices: By the owner's rank.
        budget: The most that all points may cost, in units of `hushbid.protocol.space.prices`.
        caps: By the owner's rank, the most points that it may sell.
    """

    prices: Prices | None = None
    budget: int | None = None
    caps: tuple[int, ...] | None = None


NO_TERMS: Final = Terms()


class Purse:
    """A purchase that goes on point by point, within its terms.

    Args:
        ranks: Rank of each point's owner, shape (n,).
        copies: For each point a number that its copies share, shape (n,); None: no two are copies. A point is
            bought once, from the cheapest owner.
        seller: Which of several copies at one price is bought: takes one of them and whether each point is
            offered, shape (n,).
    """

    def __init__(
        self,
        terms: Terms,
        ranks: npt.NDArray[np.intp],
        *,
        copies: npt.NDArray[np.intp] | None = None,
        seller: Callable[[int, npt.NDArray[np.bool_]], int] | None = None,
    ) -> None:
        self._terms = terms
        self._ranks = ranks
        self._copies = copies
        self._seller = seller
        self._left = np.ones(len(ranks), dtype=np.bool_)
        self._supply = np.bincount(ranks)
        self._room = np.full(len(self._supply), len(ranks), dtype=np.int64)
        if terms.caps is not None:
            self._room = np.array(terms.caps[: len(self._supply)], dtype=np.int64)
        prices = terms.prices
        units = () if prices is None else prices.units[: len(self._supply)]
        self._units = np.array(units, dtype=np.int64)
        self._cheapest_first = np.argsort(self._units, kind="stable")
        self._money = terms.budget

    def affordable(self, count: int) -> int:
        """How many of `count` points can be bought: the cheapest that owners have left and may sell."""
        supply = np.minimum(self._supply, self._room)
        most = min(count, int(supply.sum()))
        if self._money is None or not len(self._units):
            return most
        money, bought = self._money, 0
        for rank in self._cheapest_first.tolist():
            price = int(self._units[rank])
            number = min(most - bought, int(supply[rank]), money // price)
            bought, money = bought + number, money - number * price
        return bought

    def offered(self, more: int) -> npt.NDArray[np.bool_]:
        """Whether each point can be bought, and then `more` - 1 others, within the terms."""
        open_ = self._room > 0
        if self._money is not None and len(self._units):
            open_ &= self._within(self._money, more)
        offered: npt.NDArray[np.bool_] = self._left & open_[self._ranks]
        return offered

    def _within(self, money: int, more: int) -> npt.NDArray[np.bool_]:
        """By rank: whether a point is paid for, and the cheapest others as well."""
        order = self._cheapest_first
        supply = np.minimum(self._supply, self._room)[order]
        before = np.cumsum(supply) - supply
        taken = np.clip(more - before, 0, supply)
        cheapest = int((taken * self._units[order]).sum())
        used = order[taken > 0]
        dearest = int(self._units[used[-1]]) if len(used) else 0
        # One of the cheapest costs nothing more than all of them do; any other comes in place of the dearest.
        cost = cheapest + np.maximum(self._units - dearest, 0)
        within: npt.NDArray[np.bool_] = cost <= money
        return within

    def first(
        self,
        scores: npt.NDArray[np.float64],
        offered: npt.NDArray[np.bool_],
        tie: Callable[[int], tuple[bytes, int]],
    ) -> int:
        """The offered point that comes first: by score, or by score for the price (`Prices.per_price`).

        Args:
            scores: Whole numbers below 2^53, shape (n,).
            offered: At least one.
            tie: Orders points of equal worth.
        """
        prices, ranks = self._terms.prices, self._ranks
        if prices is None:
            scores = np.where(offered, scores, -np.inf)
            equal = np.flatnonzero(scores == scores.max()).tolist()
            return int(min(equal, key=tie) if len(equal) > 1 else equal[0])
        about = np.where(offered, prices.about(scores, ranks), -np.inf)
        most = about.max()
        near = np.flatnonzero(about >= most - _ROUNDING * abs(most)).tolist()
        worth = {row: -prices.per_price(int(scores[row]), int(ranks[row])) for row in near}
        return int(min(near, key=lambda row: (worth[row], *tie(row))))

    def buy(self, row: int, offered: npt.NDArray[np.bool_]) -> int:
        """Buy a point, or a copy of it at its price, and return which; all its copies are gone."""
        same = np.zeros(0, dtype=np.intp)
        if self._copies is not None:
            same = np.flatnonzero(self._copies == self._copies[row])
        if len(same) > 1 and self._seller is not None:
            at_price = np.zeros(len(offered), dtype=np.bool_)
            at_price[same] = offered[same]
            if len(self._units):
                at_price[same] &= self._units[self._ranks[same]] == self._units[self._ranks[row]]
            row = self._seller(row, at_price)
        rank = int(self._ranks[row])
        gone = same[self._left[same]] if len(same) else np.array([row])
        np.subtract.at(self._supply, self._ranks[gone], 1)
        self._left[gone] = False
        self._room[rank] -= 1
        if self._money is not None and len(self._units):
            self._money -= int(self._units[rank])
        return row
