"""The points that a curator must buy: docs/protocol.md and docs/wire.md, "Prices" and "Copies"."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.interop.minimal.choice import aimed
from tests.interop.minimal.formats import Session


@dataclass(frozen=True, eq=False)
class Entry:
    """A valid point that was handed over."""

    owner: str
    handle: int
    features: npt.NDArray[np.int16]
    copy: int
    """Its place among its owner's points of equal φ; 0 where copies are bought, too."""

    @property
    def phi(self) -> bytes:
        return self.features.astype("<i2").tobytes()


class Choice:
    """One choice among points of present owners."""

    def __init__(self, session: Session, left: list[Entry]) -> None:
        self.session, self.left = session, left
        self._distinct = session.tables["session"]["distinct"]
        self._points = session.tables["session"]["points"]
        owners = sorted(session.tables["roster"]["owners"])
        self._ranks = {owner: rank for rank, owner in enumerate(owners)}
        wishes = session.tables.get("wishes", {})
        self._prices = {owner: Fraction(str(price)) for owner, price in wishes.get("prices", {}).items()}
        budget = wishes.get("budget") if self._prices else None
        self._money = None if budget is None else Fraction(str(budget))
        self._room = Counter(dict.fromkeys(owners, len(left)) | wishes.get("caps", {}))

    def name(self, entry: Entry) -> tuple[Any, ...]:
        """The points bought together: where copies count once, all copies."""
        return (entry.phi, entry.copy) if self._distinct else (entry.owner, entry.handle)

    def best(self, scores: Mapping[Entry, int], room: int) -> list[Entry]:
        """The best scores, in rounds; turns keep caps."""
        bought: list[Entry] = []
        while self.left and len(bought) < room:
            first = min(self.left, key=lambda entry: self._key(scores[entry], entry))
            bought.append(self._buy(first, self.left))
        return bought

    def together(self, target: Mapping[str, Any]) -> list[Entry]:
        """The points that are best together, in a tender, within prices, budget and caps."""
        told = {**target, "embedding": target.get("finer", target["embedding"])}
        mechanism = self.session.tables["target"]["mechanism"]
        if not self.left:
            return []
        values, aim = aimed(mechanism, told, np.stack([entry.features for entry in self.left]))
        y = dict(zip(self.left, values, strict=True))
        total = np.zeros_like(aim)
        bought: list[Entry] = []
        most = self._affordable(self._points)
        while len(bought) < self._points:
            if not (offered := self._offered(most - len(bought))):
                # Caps may have made others the sellers of what several hold.
                most = len(bought) + self._affordable(self._points - len(bought))
                if not (offered := self._offered(most - len(bought))):
                    break
            ahead = (len(bought) + 1) * aim - total
            gains = {entry: int(y[entry] @ ahead) for entry in offered}
            first = min(offered, key=lambda entry: self._key(gains[entry], entry))
            bought.append(self._buy(first, offered))
            total = total + y[bought[-1]]
        return bought

    def _price(self, entry: Entry) -> Fraction:
        return self._prices.get(entry.owner, Fraction(1))

    def _key(self, gain: int, entry: Entry) -> tuple[Any, ...]:
        """The order of points, best first: by gain per price; no price makes harm worth buying."""
        worth = (0, -gain / self._price(entry)) if gain >= 0 else (1, Fraction(-gain))
        return (*worth, entry.phi, entry.copy if self._distinct else self._ranks[entry.owner])

    def _buy(self, entry: Entry, offered: list[Entry]) -> Entry:
        if self._distinct:
            beginning = b"hushbid copy 1\0" + self.session.identifier
            beginning += entry.copy.to_bytes(4, "big") + entry.phi
            draws = {
                each: hashlib.sha256(beginning + self._ranks[each.owner].to_bytes(4, "big")).digest()
                for each in offered
                if self.name(each) == self.name(entry)
            }
            entry = min(draws, key=lambda each: draws[each])
        self._room[entry.owner] -= 1
        if self._money is not None:
            self._money -= self._price(entry)
        self.left = [each for each in self.left if self.name(each) != self.name(entry)]
        return entry

    def _for_sale(self) -> list[Entry]:
        """Points of owners that may still sell; among copies, those of the cheapest."""
        least: dict[tuple[Any, ...], Fraction] = {}
        there = [entry for entry in self.left if self._room[entry.owner] > 0]
        for entry in there:
            least[self.name(entry)] = min(least.get(self.name(entry), self._price(entry)), self._price(entry))
        return [entry for entry in there if self._price(entry) == least[self.name(entry)]]

    def _cheapest(self) -> list[Fraction]:
        """The sorted prices of all purchasable points: each counts once, and caps hold."""
        first = {self.name(entry): entry for entry in sorted(self._for_sale(), key=self._rank, reverse=True)}
        supply = Counter(entry.owner for entry in first.values())
        kept = {entry.owner: self._price(entry) for entry in first.values()}
        prices = [[kept[owner]] * min(count, self._room[owner]) for owner, count in supply.items()]
        return sorted(price for each in prices for price in each)

    def _rank(self, entry: Entry) -> int:
        return self._ranks[entry.owner]

    def _affordable(self, count: int) -> int:
        """How many points can be bought, of so many."""
        number, spent = 0, Fraction(0)
        for price in self._cheapest()[:count]:
            spent += price
            if self._money is not None and spent > self._money:
                break
            number += 1
        return number

    def _offered(self, more: int) -> list[Entry]:
        """Points after whose purchase the cheapest others can still be paid."""
        sale = self._for_sale()
        if more <= 0:
            return []
        if self._money is None:
            return sale
        cheapest = self._cheapest()[:more]
        dearest = cheapest[-1] if cheapest else Fraction(0)
        within = self._money - sum(cheapest)
        return [entry for entry in sale if max(self._price(entry) - dearest, Fraction(0)) <= within]
