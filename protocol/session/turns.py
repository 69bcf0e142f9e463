"""Public turns: the rounds in which an owner with a cap takes part.

An owner with cap c has ⌊c/b⌋ turns, and no round buys more than b points, so at most c of its points are
bought. Turns depend only on public numbers, so data do not affect them. An owner without a turn is absent
like any other (docs/privacy.md §3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Turns"]


@dataclass(frozen=True)
class Turns:
    """The rounds of each owner.

    Attributes:
        rounds: T.
        given: Owner with a cap → its rounds, counted from 1; all other owners have every round.
    """

    rounds: int
    given: Mapping[str, frozenset[int]]

    @classmethod
    def of(cls, caps: Mapping[str, int], *, rounds: int, batch: int) -> Turns:
        """The turns that follow from caps, which are most points by owner.

        Turns are assigned to one owner after the other, by name, and take rounds in an order with steps of
        about T/1.618. So an owner's turns are spread evenly over the session, and the numbers of capped
        owners in any two rounds differ by at most one.
        """
        order = _spread(rounds) if caps else []
        given, dealt = {}, 0
        for owner in sorted(caps):
            count = min(rounds, caps[owner] // batch)
            given[owner] = frozenset(order[(dealt + turn) % rounds] for turn in range(count))
            dealt += count
        return cls(rounds, given)

    def has(self, owner: str, number: int) -> bool:
        """Whether an owner takes part in round number 1, 2, and so on."""
        return owner not in self.given or number in self.given[owner]

    def count(self, owner: str) -> int:
        return len(self.given[owner]) if owner in self.given else self.rounds

    def fewest(self, owners: Sequence[str]) -> int:
        """Number of these owners in the round that has the fewest of them."""
        return sum(self.count(owner) for owner in owners) // self.rounds


def _spread(rounds: int) -> list[int]:
    """All rounds in an order whose every stretch is evenly spread, with at most three gap sizes."""
    step = (math.isqrt(5 * rounds * rounds) - rounds) // 2
    while math.gcd(step, rounds) != 1:
        step += 1
    return [step * place % rounds + 1 for place in range(rounds)]
