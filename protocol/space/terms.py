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

    Copies are one point, which is bought once: from the cheapest of its owners that may still sell.

    Args:
        ranks: Rank of each entry's owner, shape (n,).
        copies: For each entry a number that its copies share, shape (n,); None: no two are copies.
        seller: Which of several copies at one price is bought: takes one of them and whether each entry is
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
        owners = int(ranks.max()) + 1 if len(ranks) else 0
        self._room = np.full(owners, len(ranks), dtype=np.int64)
        if terms.caps is not None:
            self._room = np.array(terms.caps[:owners], dtype=np.int64)
        prices = terms.prices
        self._units = np.zeros(owners, dtype=np.int64)
        if prices is not None:
            self._units = np.array(prices.units[:owners], dtype=np.int64)
        self._cheapest_first = np.argsort(self._units, kind="stable")
        self._money = terms.budget if prices is not None else None
        self._look()

    def _look(self) -> None:
        """Look which entries are for sale: those left whose owners may sell; of copies, the cheapest."""
        self._for_sale: npt.NDArray[np.bool_] = self._left & (self._room > 0)[self._ranks]
        counted = self._for_sale
        if self._copies is not None:
            entries = np.flatnonzero(self._for_sale)
            points, units = self._copies[entries], self._units[self._ranks[entries]]
            least = np.full(int(points.max(initial=-1)) + 1, np.iinfo(np.int64).max)
            np.minimum.at(least, points, units)
            entries = entries[units == least[points]]
            self._for_sale = np.zeros(len(self._left), dtype=np.bool_)
            self._for_sale[entries] = True
            # Entries are in the order of ranks: a point counts as its first seller's.
            _, first = np.unique(self._copies[entries], return_index=True)
            counted = np.zeros(len(self._left), dtype=np.bool_)
            counted[entries[first]] = True
        self._counted = counted
        self._supply = np.bincount(self._ranks[counted], minlength=len(self._room))

    @property
    def priced(self) -> bool:
        """Whether points have prices, and the score for the price decides."""
        return self._terms.prices is not None

    def affordable(self, count: int) -> int:
        """How many of `count` points can be bought: the cheapest, of owners that may sell them."""
        supply = np.minimum(self._supply, self._room)
        most = min(count, int(supply.sum()))
        if self._money is None:
            return most
        money, bought = self._money, 0
        for rank in self._cheapest_first.tolist():
            price = int(self._units[rank])
            number = min(most - bought, int(supply[rank]), money // price)
            bought, money = bought + number, money - number * price
        return bought

    def offered(self, more: int) -> npt.NDArray[np.bool_]:
        """Whether each entry can be bought, and then `more` - 1 other points, within the terms."""
        if self._money is None:
            return self._for_sale
        offered: npt.NDArray[np.bool_] = self._for_sale & self._within(self._money, more)[self._ranks]
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
        """Buy a point, of whichever copy at its price the lot falls on, and return that one."""
        gone = np.array([row])
        if self._copies is not None:
            gone = np.flatnonzero(self._copies == self._copies[row])
            if offered[gone].sum() > 1 and self._seller is not None:
                same = np.zeros(len(offered), dtype=np.bool_)
                same[gone] = offered[gone]
                row = self._seller(row, same)
        rank = int(self._ranks[row])
        np.subtract.at(self._supply, self._ranks[gone[self._counted[gone]]], 1)
        self._left[gone] = self._for_sale[gone] = self._counted[gone] = False
        self._room[rank] -= 1
        if self._money is not None:
            self._money -= int(self._units[rank])
        if self._room[rank] == 0:
            self._look()  # what it held may be another's to sell
        return row
