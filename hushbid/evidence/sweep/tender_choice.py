"""The choice of a tender, recomputed from the definitions alone, point by point, in integers.

It is slow compared with the code that it checks (`hushbid.protocol.space.herding` and `terms`), and shares
only φ, y and the aim with it. The definitions: docs/protocol.md ("A tender"), docs/configuration.md
("Wishes").
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from hushbid.protocol.privacy.releases.aim import Aim
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import Features

__all__ = ["Entry", "TenderMarket", "herded"]

_Vector: TypeAlias = list[int]


class _RunningSums:
    """y of the points, the aim, and Σy over the points chosen so far."""

    def __init__(self, features: Features, aim: Aim) -> None:
        self._rows: list[_Vector] = aim.statistic.of(features).tolist() if len(features) else []
        self._aim: _Vector = aim.mean.tolist()
        self._total = [0] * len(self._aim)
        self._chosen = 0

    def score(self, row: int) -> int:
        """y·((k + 1)·a - Σy)."""
        wanted = zip(self._rows[row], self._aim, self._total, strict=True)
        return sum(y * ((self._chosen + 1) * mean - total) for y, mean, total in wanted)

    def choose(self, row: int) -> None:
        """Add a row to the chosen ones."""
        self._chosen += 1
        self._total = [total + y for total, y in zip(self._total, self._rows[row], strict=True)]


def herded(features: Features, aim: Aim, count: int) -> list[int]:
    """The rows that an owner submits, in order of choice, at most `count`.

    Args:
        features: φ of its rows, int16 of shape (n, d).
    """
    sums, left = _RunningSums(features, aim), list(range(len(features)))
    chosen: list[int] = []
    while left and len(chosen) < count:
        best = min(left, key=lambda row: (-sums.score(row), features[row].tobytes(), row))
        sums.choose(best)
        left.remove(best)
        chosen.append(best)
    return chosen


class Entry(NamedTuple):
    """A point that the curator chooses among; `features` is its φ, int16 of shape (d,)."""

    owner: str
    handle: int
    features: Features


@dataclass(frozen=True)
class _Copy:
    """The identity that copies of a point share: φ, and its position among its owner's points of this φ."""

    phi: bytes
    place: int


class TenderMarket:
    """The curator's choice among submitted points, within the session's wishes.

    Args:
        entries: Points of participating owners, each owner's in order of arrival.
    """

    def __init__(self, session: Session, entries: Sequence[Entry]) -> None:
        self._session = session
        self._ranks = {owner: rank for rank, owner in enumerate(session.file.owners)}
        self._entries = sorted(entries, key=lambda entry: self._ranks[entry.owner])
        self._left = list(range(len(self._entries)))
        wishes: Any = session.file.wishes
        self._prices: dict[str, Fraction] = {}
        self._caps: dict[str, int] = {}
        self._money: Fraction | None = None
        if wishes is not None:
            self._prices = {owner: Fraction(price) for owner, price in wishes.prices.items()}
            self._caps = dict(wishes.caps)
            self._money = None if wishes.budget is None else Fraction(wishes.budget)
        self._sold: Counter[str] = Counter()
        self._copies = self._copies_of_each() if session.file.distinct else []

    def choose(self, features: Features, aim: Aim, count: int) -> list[Entry]:
        """The bought points, in order.

        Args:
            features: φ of `entries`, in their order, int16 of shape (n, d).
        """
        sums = _RunningSums(features, aim)
        chosen: list[Entry] = []
        most = self._affordable(count)
        while len(chosen) < count:
            offered = self._offered(most - len(chosen))
            if not offered:
                most = len(chosen) + self._affordable(count - len(chosen))
                offered = self._offered(most - len(chosen))
            if not offered:
                break
            best = min(offered, key=lambda row: (*self._worth(sums.score(row), row), self._tie(row)))
            row = self._seller(best, offered)
            self._buy(row)
            sums.choose(row)
            chosen.append(self._entries[row])
        return chosen

    @property
    def entries(self) -> Sequence[Entry]:
        """Owner by owner, by rank."""
        return self._entries

    def _price(self, row: int) -> Fraction:
        return self._prices.get(self._entries[row].owner, Fraction(0))

    def _room(self, owner: str) -> int:
        return self._caps.get(owner, len(self._entries)) - self._sold[owner]

    def _for_sale(self) -> list[int]:
        """Remaining points of owners that may sell; among copies, the cheapest."""
        rows = [row for row in self._left if self._room(self._entries[row].owner) > 0]
        least: dict[object, Fraction] = {}
        for row in rows:
            point = self._point(row)
            least[point] = min(least.get(point, self._price(row)), self._price(row))
        return [row for row in rows if self._price(row) == least[self._point(row)]]

    def _point(self, row: int) -> object:
        return self._copies[row] if self._copies else row

    def _sellable(self) -> list[Fraction]:
        """The price of each point that can still be sold within caps, once, at its first seller's price."""
        first = {self._point(row): row for row in reversed(self._for_sale())}
        counted: Counter[str] = Counter()
        prices = []
        for row in sorted(first.values()):
            owner = self._entries[row].owner
            if counted[owner] < self._room(owner):
                counted[owner] += 1
                prices.append(self._price(row))
        return sorted(prices)

    def _affordable(self, count: int) -> int:
        """The maximum number of points that can be bought."""
        cost, bought = Fraction(0), 0
        for price in self._sellable()[:count]:
            cost += price
            if self._money is not None and cost > self._money:
                break
            bought += 1
        return bought

    def _offered(self, more: int) -> list[int]:
        """The affordable points, then the cheapest others, `more` points in all."""
        if not more:
            return []
        cheapest = self._sellable()[:more]
        rows = self._for_sale()
        if self._money is None:
            return rows
        money = self._money - sum(cheapest)
        return [row for row in rows if max(self._price(row) - cheapest[-1], Fraction(0)) <= money]

    def _worth(self, score: int, row: int) -> tuple[bool, Fraction]:
        """Sorts points by score for the price; a negative score comes after all others, and has no price."""
        price = self._price(row) or Fraction(1)
        return score < 0, -(Fraction(score) if score < 0 else score / price)

    def _tie(self, row: int) -> tuple[bytes, int]:
        return self._entries[row].features.tobytes(), row

    # -- copies ---------------------------------------------------------------------------------------------

    def _copies_of_each(self) -> list[_Copy]:
        seen: Counter[tuple[str, bytes]] = Counter()
        copies = []
        for entry in self._entries:
            phi = entry.features.tobytes()
            copies.append(_Copy(phi, seen[entry.owner, phi]))
            seen[entry.owner, phi] += 1
        return copies

    def _seller(self, best: int, offered: Sequence[int]) -> int:
        """Among copies at one price, the one with the smallest hash of session, point and owner's rank."""
        if not self._copies:
            return best
        copy = self._copies[best]
        same = [row for row in offered if self._copies[row] == copy and self._price(row) == self._price(best)]

        def lot(row: int) -> bytes:
            rank = self._ranks[self._entries[row].owner].to_bytes(4, "big")
            drawn = b"hushbid copy 1\0" + self._session.identifier + copy.place.to_bytes(4, "big")
            return hashlib.sha256(drawn + copy.phi + rank).digest()

        return min(same, key=lot)

    def _buy(self, row: int) -> None:
        gone = {row}
        if self._copies:
            gone = {other for other in self._left if self._copies[other] == self._copies[row]}
        self._left = [other for other in self._left if other not in gone]
        self._sold[self._entries[row].owner] += 1
        if self._money is not None:
            self._money -= self._price(row)
