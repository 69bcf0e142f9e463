"""`Awards` of a curator that cannot link: the places that it chose, and the boxes handed over for them.

The file does not tell which box is behind a place. So the choice is compared with the signed scores, and each
box with what its owner signed under its number.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Final

import numpy as np

from hushbid.protocol.crypto.blinding import MASK_BYTES, NOT_SENT
from hushbid.protocol.names import CURATOR
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.messages import unfixed
from hushbid.protocol.wire.unlinked import PLACE_BYTES, Choice, Picked, RoundOpening
from hushbid.transcripts.verification.awards import LEFT_OUT, NOT_BID, OTHER, WORSE, Awards, VoidBoxes
from hushbid.transcripts.verification.shapes import VoidBox, VoidFault

__all__ = ["ChoiceFollower"]

_SCORE: Final = "the owner's score in this place was different"


class ChoiceFollower(Awards):
    """Follows such a curator's file. In `others`, the handle of a place is the place itself."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._taken: dict[str, frozenset[int]] = {}
        self._sold: Counter[str] = Counter()

    def take_opening(self, opening: RoundOpening) -> None:
        """Note the places from which a round must not choose."""
        places, at = np.frombuffer(opening.taken, dtype=f">u{PLACE_BYTES}").tolist(), 0
        for owner in self._owners:
            self._taken[owner] = frozenset(places[at : at + self._sold[owner]])
            at += self._sold[owner]

    def take_choice(self, record: int, choice: Choice) -> None:
        """Compare a round's choice with the available places."""
        best = dict.fromkeys(self._best(choice.round))
        self.checked += 1
        for chosen in choice.chosen:
            place = unfixed(chosen.place)
            known = (chosen.owner, place) in best
            best.pop((chosen.owner, place), None)
            owner = self._owners.get(chosen.owner)
            what = "" if known else WORSE
            if owner is not None and owner.score(place + 1) != chosen.score:
                what = _SCORE
            if what:
                self._note(record, choice.round, chosen.owner, place, what)
        for name, place in best:
            self._note(record, choice.round, name, place, LEFT_OUT)

    def take_picked(self, record: int, picked: Picked) -> None:
        """Compare the boxes handed over with those that owners sent."""
        for picked_box in picked.boxes:
            owner, handle = self._owners.get(picked_box.owner), unfixed(picked_box.handle)
            kept = owner.boxes.pop(handle, None) if owner is not None else None
            candidate = picked_box.candidate
            what = ""
            if kept is None:
                # Zeros stand for a box that its owner never sent.
                never = owner is not None and handle > owner.bids * self._session.batch
                what = "" if never and not any(candidate.box) else NOT_BID
            else:
                box = hashlib.sha256(candidate.box).digest()
                if kept != (picked_box.bid_round, box, candidate.digests, candidate.signature):
                    what = OTHER
            self._sold[picked_box.owner] += kept is not None
            if what:
                self._note(record, picked.round, picked_box.owner, handle, what)

    def _best(self, number: int) -> list[tuple[str, int]]:
        """The places that a round buys, best first, by owner and place."""
        found = []
        for name, owner in self._owners.items():
            if owner.round != number or owner.faulty:
                continue
            taken = self._taken.get(name, frozenset())
            for place in range(len(owner.scores) // MASK_BYTES):
                score = owner.score(place + 1)
                if score != NOT_SENT and place not in taken:
                    found.append((int.from_bytes(score, "big"), owner.rank, place, name))
        found.sort(key=lambda each: (-each[0], each[1], each[2]))
        return [(name, place) for _, _, place, name in found[: self._session.bought_in(number)]]

    def void(self, boxes: VoidBoxes) -> list[VoidBox]:
        """The boxes that the consumer found void, and why.

        The file does not tell which of an owner's boxes in a round is void, so `handle` is 0. The curator is
        responsible if one of them, or one of the owner's places chosen in the round, is not what was bid.
        """
        found: list[VoidBox] = []
        for (number, owner), disputes in sorted(boxes.found.items()):
            changed = any((other["round"], other["owner"]) == (number, owner) for other in self.others)
            by = CURATOR if changed else owner
            found += [
                VoidBox(round=number, owner=owner, handle=0, what=dispute, by=by)
                for dispute in disputes
                if dispute
            ]
        return found

    def faults(self, boxes: VoidBoxes) -> list[VoidFault]:
        """The causes of void boxes. A box's bid is unknown, so each box counts separately."""
        return [{**box, "bid_round": box["round"], "boxes": 1} for box in self.void(boxes)]
