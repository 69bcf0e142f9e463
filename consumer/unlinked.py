"""The consumer of a session of version 4 under `blind`: it alone knows which box is behind a chosen place.

The curator sends places (`hushbid.curator.unlinked`), and the consumer asks for the boxes behind them by
their owners' numbers. It then has an award as under version 3, and goes on as `BlindConsumer` does.
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar, Final

import numpy as np

from hushbid.consumer.blind import BlindConsumer, reversed_bytes
from hushbid.consumer.events import (
    AccountMade,
    ChoicePlaced,
    OpenRound,
    PlaceChoice,
    PurchasesChecked,
    RoundOpened,
    TargetReleased,
)
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.base import Transition
from hushbid.protocol.machine.machine import Event
from hushbid.protocol.machine.weighing import NoiseDrawn, WeightsComputed
from hushbid.protocol.names import CURATOR
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import Weights
from hushbid.protocol.wire.blind import Award, BlindPurchase
from hushbid.protocol.wire.messages import unfixed
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

__all__ = ["UnlinkedConsumer"]

_ADDED: Final = ("placing", "fetching")
_OTHERWISE: Final = ("weight-sealed", "received:award")


class UnlinkedConsumer(BlindConsumer):
    """The consumer of one session; its arguments are those of `ConsumerMachine`."""

    PHASES: ClassVar[tuple[str, ...]] = (*BlindConsumer.PHASES[:-2], *_ADDED, *BlindConsumer.PHASES[-2:])
    OUTCOMES: ClassVar[tuple[type[Event], ...]] = (
        TargetReleased,
        NoiseDrawn,
        WeightsComputed,
        RoundOpened,
        ChoicePlaced,
        PurchasesChecked,
        AccountMade,
    )
    TRANSITIONS: ClassVar[tuple[Transition, ...]] = (
        *(row for row in BlindConsumer.TRANSITIONS if row.trigger not in _OTHERWISE),
        # What every party does in every phase.
        *(
            Transition(
                phase, row.trigger, row.handler, tuple(phase if to == "waiting" else to for to in row.to)
            )
            for phase in _ADDED
            for row in BlindConsumer.TRANSITIONS
            if row.phase == "waiting" and row.trigger not in _OTHERWISE
        ),
        Transition("weighing", "round-opened", "_on_opened", ("waiting",)),
        Transition("waiting", "received:choice", "_on_choice", ("placing",)),
        Transition("placing", "choice-placed", "_on_placed", ("fetching",)),
        Transition("fetching", "received:picked", "_on_picked", ("checking",)),
    )

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._bought: list[tuple[str, int]] = []
        """Owner and number of each box that was bought, in order."""
        self._choice: Choice | None = None
        self._placed: tuple[int, ...] = ()
        """The number of the box behind each chosen place."""
        self._closed: frozenset[tuple[str, int]] = frozenset()
        """Owner and place of each box that was bought, in this round."""

    # -- a round ------------------------------------------------------------------------------------------

    def _seal_weight(self, weights: Weights) -> None:
        self._do(OpenRound(self.round, weights, tuple(self._bought)))

    def _on_opened(self, opened: RoundOpened) -> None:
        self.phase = "waiting"
        places = np.frombuffer(opened.taken, dtype=f">u{PLACE_BYTES}").tolist()
        self._closed = frozenset(zip((owner for owner, _ in self._bought), places, strict=True))
        message = RoundOpening(
            round=opened.round, box=opened.box, signature=opened.signature, taken=opened.taken
        )
        self._send(CURATOR, message)

    def _on_choice(self, peer: str, choice: Choice) -> None:
        """Refuse a choice that no correct curator makes; find the boxes of any other."""
        self._check_round(choice.round, len(choice.chosen))
        places = [(each.owner, unfixed(each.place)) for each in choice.chosen]
        for owner, place in places:
            self._check_owner(owner)
            if not 0 <= place < self._opened.batch * self.round:
                raise RemoteProtocolError(Offence.MALFORMED, "A place was chosen that no score is in.")
        if len(set(places)) < len(places) or not self._closed.isdisjoint(places):
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "A place was chosen whose box was bought.")
        order = [
            (reversed_bytes(each.score), self._ranks[each.owner], unfixed(each.place))
            for each in choice.chosen
        ]
        if any(first > second for first, second in pairwise(order)):
            raise RemoteProtocolError(Offence.MALFORMED, "Places are not in the order of their scores.")
        self.phase = "placing"
        self._choice = choice
        self._do(PlaceChoice(choice))

    def _on_placed(self, placed: ChoicePlaced) -> None:
        self._placed = placed.handles
        self.phase = "fetching"
        numbers = b"".join(handle.to_bytes(NUMBER_BYTES, "big") for _, handle in sorted(self._behind()))
        self._send(CURATOR, Picks(round=placed.round, numbers=numbers))

    def _behind(self) -> dict[tuple[str, int], Chosen]:
        """Owner and number of each box that is asked for, and the place that it is behind."""
        if self._choice is None:
            raise LocalProtocolError("There is no choice.")
        owners = (each.owner for each in self._choice.chosen)
        return dict(zip(zip(owners, self._placed, strict=True), self._choice.chosen, strict=True))

    def _on_picked(self, peer: str, picked: Picked) -> None:
        behind = self._behind()
        if picked.round != self.round or [_numbered(box) for box in picked.boxes] != sorted(behind):
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
        self._on_award(peer, Award.model_construct(round=picked.round, purchases=tuple(purchases)))
        # A box that never came uses no number up (`hushbid.curator.unlinked`).
        self._numbers.difference_update(_numbered(box) for box in picked.boxes if not any(box.candidate.box))
        self._bought = sorted(self._numbers)
        self._choice = None


def _numbered(box: PickedBox) -> tuple[str, int]:
    return box.owner, unfixed(box.handle)
