"""Check that a blind curator passed on what owners bid: the best boxes of those present.

Its file contains everything that determined its order: the masked scores, which owners bid in time, and
SHA-256 of every box. Owners sign boxes and scores, so replaced ones are detected too. For a box that the
consumer found void, the curator is responsible if the award differs from the bid, otherwise the owner.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hushbid.consumer.events import PurchasesChecked
from hushbid.curator.verification import UncheckedBid, bid_holds
from hushbid.protocol.crypto.blinding import MASK_BYTES, NOT_SENT
from hushbid.protocol.names import CURATOR
from hushbid.protocol.session.points import NOT_SIGNED
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.record import RecordedItem
from hushbid.protocol.wire.blind import Award, BlindBid, BlindPurchase
from hushbid.protocol.wire.messages import boxes_of, unfixed
from hushbid.transcripts.verification.shapes import OtherBox, VoidBox, VoidFault

__all__ = ["LEFT_OUT", "NOT_BID", "OTHER", "WORSE", "Awards", "VoidBoxes"]

OTHER: Final = "the owner bid another box under this number"
NOT_BID: Final = "the owner bid no box under this number, or it was awarded before"
_SCORE: Final = "the owner gave it another score"
WORSE: Final = "owners that were present had better boxes"
LEFT_OUT: Final = "it is among the best, and was not awarded"


class _Kept(NamedTuple):
    bid_round: int
    box: bytes
    """SHA-256 of the box."""
    digests: bytes
    signature: bytes


class _Awarded(NamedTuple):
    handle: int
    as_bid: bool
    """Whether it is what was bid."""
    bid_round: int
    signature: bytes


class VoidBoxes:
    """Collects the void boxes from the consumer's file."""

    def __init__(self) -> None:
        self.found: dict[tuple[int, str], list[str]] = {}
        """Round and owner → the fault of each of its points in that award, in order; empty: no fault."""

    def take(self, item: RecordedItem) -> None:
        if item.kind != PurchasesChecked.KIND or "delivered" not in item.private:
            return
        try:
            delivered = PurchasesChecked.restored({"mmd2": None, **item.private}).delivered
        except (KeyError, TypeError):
            return  # This is no party's own file; a replay reports it.
        for entry in delivered:
            self.found.setdefault((entry.chosen_round, entry.owner), []).append(entry.dispute)


@dataclass
class _Owner:
    rank: int
    boxes: dict[int, _Kept] = field(default_factory=dict)
    """Boxes that were not awarded, by number."""
    bids: int = 0
    scores: bytes = b""
    round: int = 0
    """Round of its last bid."""
    faulty: bool = False

    def scored(self) -> Iterable[tuple[bytes, int]]:
        for handle in self.boxes:
            if (score := self.score(handle)) != NOT_SENT:
                yield score, handle

    def score(self, handle: int) -> bytes:
        return self.scores[MASK_BYTES * (handle - 1) : MASK_BYTES * handle]


class Awards:
    """Follows a blind curator's file: what it received, and what it forwarded."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._owners = {owner: _Owner(rank) for rank, owner in enumerate(session.file.owners)}
        self._awarded: dict[tuple[int, str], list[_Awarded]] = {}
        """Round and owner → its boxes, in order."""
        self.checked = 0
        self.others: list[OtherBox] = []

    def take_bid(self, name: str, bid: BlindBid) -> None:
        """Note a bid as the curator recorded it: with SHA-256 of each box in the box's place."""
        owner, session = self._owners[name], self._session
        first = owner.bids * session.batch + 1
        boxes = boxes_of(bid)
        owner.bids += 1
        owner.round = bid.round
        if not bid_holds(session, UncheckedBid(name, bid, first), boxes):
            owner.faulty = True
            return
        owner.scores = bid.scores
        for handle, box in enumerate(boxes, start=first):
            owner.boxes[handle] = _Kept(bid.round, box, bid.digests, bid.signature)

    def take_award(self, record: int, award: Award) -> None:
        best = self._best(award.round)
        self.checked += 1
        for purchase in award.purchases:
            handle = unfixed(purchase.handle)
            what = self._wrong(purchase, handle)
            awarded = _Awarded(handle, not what, purchase.bid_round, purchase.candidate.signature)
            self._awarded.setdefault((award.round, purchase.owner), []).append(awarded)
            if (purchase.owner, handle) in best:
                best.remove((purchase.owner, handle))
            else:
                what = what or WORSE
            if what:
                self._note(record, award.round, purchase.owner, handle, what)
        for name, handle in best:
            self._note(record, award.round, name, handle, LEFT_OUT)
        for purchase in award.purchases:
            if purchase.owner in self._owners:
                self._owners[purchase.owner].boxes.pop(unfixed(purchase.handle), None)

    def _note(self, record: int, number: int, owner: str, handle: int, what: str) -> None:
        self.others.append(OtherBox(record=record, round=number, owner=owner, handle=handle, what=what))

    def _best(self, number: int) -> list[tuple[str, int]]:
        """The boxes that a round buys, best first, by owner and number."""
        found = [
            (int.from_bytes(score, "big"), owner.rank, handle, name)
            for name, owner in self._owners.items()
            if owner.round == number and not owner.faulty
            for score, handle in owner.scored()
        ]
        found.sort(key=lambda each: (-each[0], each[1], each[2]))
        return [(name, handle) for _, _, handle, name in found[: self._session.bought_in(number)]]

    def _wrong(self, purchase: BlindPurchase, handle: int) -> str:
        owner = self._owners.get(purchase.owner)
        kept = owner.boxes.get(handle) if owner is not None else None
        if owner is None or kept is None:
            return NOT_BID
        box = hashlib.sha256(purchase.candidate.box).digest()
        candidate = purchase.candidate
        if kept != (purchase.bid_round, box, candidate.digests, candidate.signature):
            return OTHER
        return "" if owner.score(handle) == purchase.score else _SCORE

    def void(self, boxes: VoidBoxes) -> list[VoidBox]:
        """The boxes that the consumer found void."""
        return [box for _, box in self._void(boxes)]

    def faults(self, boxes: VoidBoxes) -> list[VoidFault]:
        """The causes of void boxes, each once: a failed signature is one fault of all boxes of the bid."""
        found: dict[tuple[str, int, str, str, bytes | int], VoidFault] = {}
        for awarded, box in self._void(boxes):
            of = awarded.signature if box["what"] == NOT_SIGNED else awarded.handle
            key = box["owner"], awarded.bid_round, box["what"], box["by"], of
            fault = found.setdefault(key, {**box, "bid_round": awarded.bid_round, "boxes": 0})
            fault["boxes"] += 1
        return list(found.values())

    def _void(self, boxes: VoidBoxes) -> Iterator[tuple[_Awarded, VoidBox]]:
        for (number, owner), disputes in sorted(boxes.found.items()):
            awarded = self._awarded.get((number, owner), [])
            # Empty boxes are not delivered. They score lowest, and so come after an owner's points.
            for dispute, each in zip(disputes, awarded, strict=False):
                if dispute:
                    by = owner if each.as_bid else CURATOR
                    box = VoidBox(round=number, owner=owner, handle=each.handle, what=dispute, by=by)
                    yield each, box
