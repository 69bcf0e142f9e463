"""The blind selection of version 4: the curator orders scores and cannot tell whose box each is of.

Owners send scores in places that they draw anew in every round (`hushbid.protocol.crypto.unlinking`). The
curator sends the consumer the places that it chose. The consumer, which knows the places, answers with the
numbers of the boxes that are behind them, in an order of their own, and is sent these boxes. With the next
weight it names the places of boxes that were bought, so that they are not chosen again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import numpy as np
import numpy.typing as npt

from hushbid.curator.ledger import Ledger
from hushbid.curator.round import Round
from hushbid.curator.seat import Seat
from hushbid.curator.selection.blind import BlindSelection, Box
from hushbid.protocol.crypto.blinding import MASK_BYTES
from hushbid.protocol.crypto.sealing import DIGEST_BYTES, SIGNATURE_BYTES
from hushbid.protocol.errors import Offence, RemoteProtocolError
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.blind import Account, BlindBid, BlindCandidate
from hushbid.protocol.wire.messages import boxes_of, fixed
from hushbid.protocol.wire.unlinked import (
    NUMBER_BYTES,
    PLACE_BYTES,
    Choice,
    Chosen,
    Picked,
    PickedBox,
    Picks,
    RoundOpening,
)

__all__ = ["UnlinkedSelection"]


class UnlinkedSelection(BlindSelection):
    """Owners' scores stand in places; places are chosen, and the consumer asks for the boxes behind them."""

    def __init__(self, session: Session, seats: Mapping[str, Seat], ledger: Ledger) -> None:
        super().__init__(session, seats, ledger)
        self._taken: dict[str, npt.NDArray[np.intp]] = {}
        """Owner → the places, from 0, of its boxes that were bought, in the last round that was opened."""
        self._asked: tuple[int, list[str]] | None = None
        """A round, and the owners of the places that were chosen in it, until their boxes are asked for."""
        self._picked = 0
        """The last round of which boxes were asked for."""
        self._sold: Counter[str] = Counter()
        self._given: set[tuple[str, int]] = set()
        """Owner and number of each box that was asked for."""

    # -- a round ------------------------------------------------------------------------------------------

    def take_opening(self, opening: RoundOpening, *, due: bool) -> None:
        """Keep the weight of the next round, and the places whose boxes were bought."""
        if opening.round != self._picked + 1:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "A round is opened before the boxes of the last one were asked for."
            )
        taken = self._places_in(opening)
        self.take_weight(opening.broadcast(), due=due)
        self._taken = taken

    def _places_in(self, opening: RoundOpening) -> dict[str, npt.NDArray[np.intp]]:
        due = PLACE_BYTES * self._sold.total()
        if len(opening.taken) != due:
            raise RemoteProtocolError(
                Offence.MALFORMED, f"Places of bought boxes take {len(opening.taken)} bytes; {due} were due."
            )
        places = np.frombuffer(opening.taken, dtype=">u4").astype(np.intp)
        found, at = {}, 0
        for owner in self._seats:
            own = places[at : at + self._sold[owner]]
            at += len(own)
            if len(own) and (own[-1] >= self._batch * opening.round or not (np.diff(own) > 0).all()):
                raise RemoteProtocolError(
                    Offence.MALFORMED, "Places of bought boxes are out of range, or not in order."
                )
            found[owner] = own
        return found

    def _scores_due(self, bid: BlindBid, had: int) -> int:
        return self._batch * bid.round

    def _check_scores(self, bid: BlindBid, had: int) -> None:
        if not all(map(any, boxes_of(bid))):
            # To the consumer zeros are a box that never came, whose number is not used up.
            raise RemoteProtocolError(Offence.MALFORMED, "A bid has a box of zeros, where all are sealed.")
        given = np.frombuffer(bid.scores, dtype=">u8").reshape(-1, 2).any(axis=1).sum()
        if given != self._batch * had:
            raise RemoteProtocolError(
                Offence.MALFORMED, f"A bid has {given} scores; {self._batch * had} were due."
            )

    # -- the choice ---------------------------------------------------------------------------------------

    def choose(self, current: Round, present: AbstractSet[str]) -> Choice:
        best = self.best(sorted(present), self._session.bought_in(current.number))
        chosen = [
            Chosen.model_construct(owner=owner, place=fixed(number - 1), score=score)
            for score, owner, number in best
        ]
        self._asked = current.number, sorted(each.owner for each in chosen)
        return Choice(round=current.number, chosen=tuple(chosen))

    def candidates(self, owner: str) -> npt.NDArray[np.intp]:
        left = np.ones(len(self.scores[owner]) // MASK_BYTES, dtype=np.bool_)
        left[self._taken[owner]] = False
        return np.flatnonzero(left) + 1

    def take_picks(self, picks: Picks, *, due: bool) -> Picked:
        """The boxes that the consumer asks for, behind the places that were chosen in a round."""
        if not due or self._asked is None or picks.round != self._asked[0]:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "Boxes were asked for that are not due.")
        number, owners = self._asked
        if len(picks.numbers) != NUMBER_BYTES * len(owners):
            raise RemoteProtocolError(
                Offence.MALFORMED,
                f"Boxes are asked for in {len(picks.numbers)} bytes; {NUMBER_BYTES * len(owners)} were due.",
            )
        handles = np.frombuffer(picks.numbers, dtype=">u8").tolist()
        asked = list(zip(owners, handles, strict=True))
        if (
            asked != sorted(set(asked))
            or not self._given.isdisjoint(asked)
            or not all(1 <= handle <= self._batch * number for handle in handles)
        ):
            raise RemoteProtocolError(
                Offence.MALFORMED,
                "A box is asked for a second time, under no number of its owner's, or not in order.",
            )
        self._asked, self._picked = None, number
        boxes = []
        for owner, handle in asked:
            box = self.boxes[owner].pop(handle, None)
            if box is None:
                # The number is not used up. Else whether a later box of it counts would depend on the
                # round in which it is chosen, which one record of another owner changes (docs/privacy.md).
                box = self._no_box(number)
            else:
                self._given.add((owner, handle))
                self._sold[owner] += 1
            self._note_win(owner, handle, box, number)
            boxes.append(
                PickedBox.model_construct(
                    owner=owner, bid_round=box.bid_round, handle=fixed(handle), candidate=box.candidate
                )
            )
        return Picked(round=number, boxes=tuple(boxes))

    def _no_box(self, number: int) -> Box:
        """In the place of a box that its owner gave a score and never sent: to the consumer it is void."""
        blank = BlindCandidate.model_construct(
            box=bytes(self._session.box_length),
            digests=bytes(DIGEST_BYTES * (self._batch + 1)),
            signature=bytes(SIGNATURE_BYTES),
        )
        return Box(number, blank)

    def take_account(self, account: Account, *, due: bool) -> None:
        if self._asked is not None:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "The account came before the boxes of the last round were asked for."
            )
        super().take_account(account, due=due)
