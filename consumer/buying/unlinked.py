"""Choices of a curator that cannot link: the consumer alone knows which box is behind a chosen place.

The curator sends places (`hushbid.curator.selection.unlinked`), and the consumer asks for the boxes behind
them by their owners' numbers. It then has an award as under version 3.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hushbid.consumer.buying.blind import BlindBuying, reversed_bytes
from hushbid.consumer.events import OpenRound, RoundOpened
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import Weights
from hushbid.protocol.wire.blind import Award, BlindPurchase
from hushbid.protocol.wire.messages import unfixed
from hushbid.protocol.wire.unlinked import NUMBER_BYTES, PLACE_BYTES, Choice, Chosen, Picked, PickedBox

__all__ = ["UnlinkedBuying"]


class UnlinkedBuying(BlindBuying):
    """Places are chosen in every round, and the boxes behind them come when they are asked for."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._bought: list[tuple[str, int]] = []
        """Owner and number of each box that was bought, in order."""
        self._choice: Choice | None = None
        self._placed: tuple[int, ...] = ()
        """The number of the box behind each chosen place."""
        self._closed: frozenset[tuple[str, int]] = frozenset()
        """Owner and place of each box that was bought, in this round."""

    def seal(self, number: int, weights: Weights) -> OpenRound:
        return OpenRound(number, weights, tuple(self._bought))

    def opened(self, opened: RoundOpened) -> None:
        """Note the places of the boxes that were bought, which the curator is told with the weight."""
        places = np.frombuffer(opened.taken, dtype=f">u{PLACE_BYTES}").tolist()
        self._closed = frozenset(zip((owner for owner, _ in self._bought), places, strict=True))

    def take_choice(self, choice: Choice, number: int) -> None:
        """Take in the places that were chosen in a round."""
        self.check_choice(choice, number)
        self._choice = choice

    def check_choice(self, choice: Choice, number: int) -> None:
        """Refuse a choice that no correct curator makes."""
        self._check_round(choice.round, len(choice.chosen), number)
        places = [(each.owner, unfixed(each.place)) for each in choice.chosen]
        for owner, place in places:
            self._check_owner(owner, number)
            if not 0 <= place < self._session.batch * number:
                raise RemoteProtocolError(Offence.MALFORMED, "A place was chosen that no score is in.")
        if len(set(places)) < len(places) or not self._closed.isdisjoint(places):
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "A place was chosen whose box was bought.")
        order = [
            (reversed_bytes(each.score), self._ranks[each.owner], unfixed(each.place))
            for each in choice.chosen
        ]
        if any(first > second for first, second in pairwise(order)):
            raise RemoteProtocolError(Offence.MALFORMED, "Places are not in the order of their scores.")

    def placed(self, handles: tuple[int, ...]) -> bytes:
        """Take in the numbers of the boxes behind the chosen places; return them as they are asked for."""
        self._placed = handles
        return b"".join(handle.to_bytes(NUMBER_BYTES, "big") for _, handle in sorted(self._behind()))

    def _behind(self) -> dict[tuple[str, int], Chosen]:
        """Owner and number of each box that is asked for, and the place that it is behind."""
        if self._choice is None:
            raise LocalProtocolError("There is no choice.")
        owners = (each.owner for each in self._choice.chosen)
        return dict(zip(zip(owners, self._placed, strict=True), self._choice.chosen, strict=True))

    def award_of(self, picked: Picked, number: int) -> Award:
        """The award that the boxes which were asked for make."""
        behind = self._behind()
        if picked.round != number or [_numbered(box) for box in picked.boxes] != sorted(behind):
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "Boxes came that were not asked for.")
        purchases = [
            BlindPurchase.model_construct(
                owner=box.owner,
                bid_round=box.bid_round,
                handle=box.handle,
                score=behind[box.owner, unfixed(box.handle)].score,
                candidate=box.candidate,
            )
            for box in picked.boxes
        ]
        purchases.sort(key=self._place)
        return Award.model_construct(round=picked.round, purchases=tuple(purchases))

    def bought(self, picked: Picked) -> None:
        """Count the boxes that came as bought, once their award was taken in."""
        # A box that never came uses no number up (`hushbid.curator.selection.unlinked`).
        self._numbers.difference_update(_numbered(box) for box in picked.boxes if not any(box.candidate.box))
        self._bought = sorted(self._numbers)
        self._choice = None


def _numbered(box: PickedBox) -> tuple[str, int]:
    return box.owner, unfixed(box.handle)
