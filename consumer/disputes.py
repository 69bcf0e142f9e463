"""What sellers did wrong, by the disputes: a signature that does not hold is one fault of all its points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.events import Delivered
from hushbid.protocol.figures import Figures
from hushbid.protocol.session.points import NOT_SIGNED
from hushbid.protocol.wire.blind import BlindPurchase
from hushbid.protocol.wire.messages import Candidate, Purchase, unfixed

__all__ = ["SellerFault", "SellerFaults", "told"]

_TOLD: Final = 3
"""Faults that people are told one by one."""


@figures(frozen=True, slots=True)
class SellerFault(Figures):
    """A fault of one owner, and how many of the bought points it concerns."""

    owner: str
    round: int
    """The round in which the first of them was chosen."""
    bid_round: int
    """The round of the bid that brought them."""
    what: str
    points: int

    @property
    def text(self) -> str:
        return self.what if self.points == 1 else f"{self.what} ({self.points} points)"


class SellerFaults:
    """Counts the faults of delivered points.

    One signature covers all points of a batch, or of a message of a submission. If it does not hold, that is
    one fault, whatever number of these points was bought, in whichever parts and rounds.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, str, bytes | int], SellerFault] = {}

    def __iter__(self) -> Iterator[SellerFault]:
        return iter(self._found.values())

    def note(self, purchases: Iterable[Purchase | BlindPurchase], delivered: Sequence[Delivered]) -> None:
        """Count what was found in a part of the delivery, or in an award.

        Args:
            purchases: What came.
            delivered: What was found, in the same order; without boxes of nothing, which come after an
                owner's points (`hushbid.consumer.buying.blind`).
        """
        of_owner: defaultdict[str, list[Purchase | BlindPurchase]] = defaultdict(list)
        for purchase in purchases:
            of_owner[purchase.owner].append(purchase)
        waiting = {owner: iter(each) for owner, each in of_owner.items()}
        for entry in delivered:
            purchase = next(waiting[entry.owner])
            if not entry.dispute:
                continue
            candidate = purchase.candidate
            of: bytes | int = unfixed(purchase.handle)
            if entry.dispute == NOT_SIGNED and not isinstance(candidate, Candidate):
                of = candidate.signature
            key = entry.owner, purchase.bid_round, entry.dispute, of
            first = SellerFault(entry.owner, entry.chosen_round, purchase.bid_round, entry.dispute, 0)
            found = self._found.get(key, first)
            self._found[key] = replace(found, points=found.points + 1)


def told(faults: Iterable[SellerFault]) -> str:
    """The faults of sellers for people; nothing if there are none."""
    found = [f"{fault.owner}, bid of round {fault.bid_round}: {fault.text}" for fault in faults]
    more = [f"and {len(found) - _TOLD} more"] if len(found) > _TOLD else []
    return "; ".join([*found[:_TOLD], *more])
