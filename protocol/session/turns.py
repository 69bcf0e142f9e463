"""Public turns: in which rounds an owner with a cap takes part.

An owner of cap c has ⌊c/b⌋ turns, and no round buys more than b points, so that at most c of its points are
bought. Turns follow from public numbers only, so they are the same whatever the data are. An owner without a
turn is absent like any other (docs/privacy.md §3).
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
        """The turns that caps come to.

        Turns are dealt one owner after the other, in the order of their names, round after round in an order
        that takes steps of about T/1.618. So an owner's turns are spread evenly over the session, and the
        numbers of owners with caps in two rounds differ by one at most.

        Args:
            caps: Most points by owner.
            rounds: T.
            batch: b.
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
        """How many rounds an owner takes part in."""
        return len(self.given[owner]) if owner in self.given else self.rounds

    def fewest(self, owners: Sequence[str]) -> int:
        """How many of the owners take part in the round that has the fewest."""
        return sum(self.count(owner) for owner in owners) // self.rounds


def _spread(rounds: int) -> list[int]:
    """All rounds in an order of which every stretch lies evenly: by gaps of three sizes at most."""
    step = (math.isqrt(5 * rounds * rounds) - rounds) // 2
    while math.gcd(step, rounds) != 1:
        step += 1
    return [step * place % rounds + 1 for place in range(rounds)]
