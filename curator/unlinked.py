"""The blind curator of a session of version 4, which orders scores and cannot tell whose box each is of.

Owners send scores in places that they draw anew in every round (`hushbid.protocol.crypto.unlinking`). The
curator sends the consumer the places that it chose. The consumer, which knows the places, answers with the
numbers of the boxes that are behind them, in an order of their own, and is sent these boxes. With the next
weight it names the places of boxes that were bought, so that they are not chosen again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from hushbid.curator.blind import BlindCurator, Box
from hushbid.protocol.crypto.blinding import MASK_BYTES
from hushbid.protocol.crypto.sealing import DIGEST_BYTES, SIGNATURE_BYTES
from hushbid.protocol.errors import Offence, RemoteProtocolError
from hushbid.protocol.machine.base import Transition
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.blind import Account, BlindBid, BlindCandidate, Maps
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

__all__ = ["UnlinkedCurator"]

_TRIGGERS: Final = {"received:sealed-broadcast": "received:round-opening"}
_HANDLERS: Final = {"_on_weight": "_on_opening", "_on_moot_blind": "_on_moot_answer"}
_DECIDED: Final = ("weighing", "pacing", "delivering")
"""Phases in which the consumer answers a choice."""


class UnlinkedCurator(BlindCurator):
    """The curator of one session; its arguments are those of `CuratorState`."""

    TRANSITIONS: ClassVar[tuple[Transition, ...]] = (
        *(
            Transition(
                row.phase,
                _TRIGGERS.get(row.trigger, row.trigger),
                _HANDLERS.get(row.handler, row.handler),
                row.to,
            )
            for row in BlindCurator.TRANSITIONS
            if (row.phase, row.handler) != ("verifying", "_on_weight")  # a choice comes first
        ),
        *(Transition(phase, "received:picks", "_on_picks", (phase,)) for phase in _DECIDED),
        Transition("closing", "received:picks", "_on_moot_answer", ("closing",)),
    )

    def __init__(self, session: Session) -> None:
        super().__init__(session)
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

    def _on_opening(self, peer: str, opening: RoundOpening) -> None:
        if opening.round != self._picked + 1:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "A round is opened before the boxes of the last one were asked for."
            )
        taken = self._places_in(opening)
        self._on_weight(peer, opening.broadcast())
        self._taken = taken

    def _places_in(self, opening: RoundOpening) -> dict[str, npt.NDArray[np.intp]]:
        """Of each owner the places that are not to be chosen from."""
        due = PLACE_BYTES * self._sold.total()
        if len(opening.taken) != due:
            raise RemoteProtocolError(
                Offence.MALFORMED, f"Places of bought boxes take {len(opening.taken)} bytes; {due} were due."
            )
        places = np.frombuffer(opening.taken, dtype=">u4").astype(np.intp)
        found, at = {}, 0
        for owner in self.owners:
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

    def _choose(self, present: AbstractSet[str]) -> None:
        best = self._best(sorted(present), self._opened.bought_in(self.round))
        chosen = [
            Chosen.model_construct(owner=owner, place=fixed(number - 1), score=score)
            for score, owner, number in best
        ]
        self._asked = self.round, sorted(each.owner for each in chosen)
        self._send(CONSUMER, Choice(round=self.round, chosen=tuple(chosen)))

    def _candidates(self, owner: str) -> npt.NDArray[np.intp]:
        left = np.ones(len(self._scores[owner]) // MASK_BYTES, dtype=np.bool_)
        left[self._taken[owner]] = False
        return np.flatnonzero(left) + 1

    def _on_picks(self, peer: str, picks: Picks) -> None:
        if peer != CONSUMER or self._asked is None or picks.round != self._asked[0]:
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
            box = self._boxes[owner].pop(handle, None)
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
        self._send(CONSUMER, Picked(round=number, boxes=tuple(boxes)))

    def _no_box(self, number: int) -> Box:
        """In the place of a box that its owner gave a score and never sent: to the consumer it is void."""
        blank = BlindCandidate.model_construct(
            box=bytes(self._opened.box_length),
            digests=bytes(DIGEST_BYTES * (self._batch + 1)),
            signature=bytes(SIGNATURE_BYTES),
        )
        return Box(number, blank)

    def _on_moot_answer(self, peer: str, message: Maps | RoundOpening | Picks | Account) -> None:
        """Ignore the consumer's messages to a session that was given up."""

    def _on_account(self, peer: str, account: Account) -> None:
        if self._asked is not None:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "The account came before the boxes of the last round were asked for."
            )
        super()._on_account(peer, account)
