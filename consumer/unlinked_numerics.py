"""A blind consumer's numerics where the curator cannot link (`hushbid.protocol.crypto.unlinking`)."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from typing import Any

from hushbid.consumer.events import (
    CheckAward,
    ChoicePlaced,
    OpenRound,
    PlaceChoice,
    PurchasesChecked,
    RoundOpened,
    SealWeight,
)
from hushbid.consumer.numerics import BlindConsumerNumerics
from hushbid.protocol.crypto.blinding import Mask
from hushbid.protocol.crypto.unlinking import OwnMask, PairKey, Places
from hushbid.protocol.machine.machine import Computation, Event
from hushbid.protocol.space.grid import Features
from hushbid.protocol.wire.blind import BlindPurchase
from hushbid.protocol.wire.messages import unfixed
from hushbid.protocol.wire.unlinked import PLACE_BYTES

__all__ = ["UnlinkedConsumerNumerics"]


class UnlinkedConsumerNumerics(BlindConsumerNumerics):
    """Carries out the computations of a consumer whose curator cannot link."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._pairs: dict[str, PairKey] = {}
        self._round = 0
        """The last round that was opened."""
        self._of_rounds: defaultdict[int, dict[str, Places]] = defaultdict(dict)
        """Places of owners' boxes in this round, and those that were drawn ahead."""
        self._awarded = 0
        """The round of the award that is checked."""

    def perform(self, effect: Computation) -> Event | None:
        if type(effect) is OpenRound:
            return self._open_round(effect)
        if type(effect) is PlaceChoice:
            number = effect.choice.round
            handles = tuple(
                self._places(each.owner, number).handle(unfixed(each.place)) for each in effect.choice.chosen
            )
            return ChoicePlaced(number, handles)
        return super().perform(effect)

    def _pair(self, owner: str) -> PairKey:
        if owner not in self._pairs:
            identity, session = self._require_identity(), self._session
            theirs = session.public_identity(owner).sealing
            self._pairs[owner] = PairKey(identity.sealing, theirs, session.identifier)
        return self._pairs[owner]

    def ahead(self) -> None:
        """Draw the places of the next round, for owners that may have sold by then."""
        if 0 < self._round < self._session.rounds:
            for owner in self._of_rounds[self._round]:
                self._places(owner, self._round + 1)

    def _places(self, owner: str, number: int) -> Places:
        places = self._of_rounds[number]
        if owner not in places:
            places[owner] = self._pair(owner).places(number, self._session.batch)
        return places[owner]

    def _open_round(self, effect: OpenRound) -> RoundOpened:
        self._round = effect.round
        for number in [number for number in self._of_rounds if number < effect.round]:
            del self._of_rounds[number]
        sealed = self._sealed(SealWeight(effect.round, effect.weights))
        taken = b""
        for owner, boxes in groupby(effect.taken, key=lambda each: each[0]):
            places = self._places(owner, effect.round)
            taken += places.taken([handle for _, handle in boxes]).astype(f">u{PLACE_BYTES}").tobytes()
        return RoundOpened(sealed.round, sealed.box, sealed.signature, taken)

    # -- purchases ----------------------------------------------------------------------------------------

    def _check_award(self, effect: CheckAward) -> PurchasesChecked:
        self._awarded = effect.award.round
        return super()._check_award(effect)

    def _own_mask(self, purchase: BlindPurchase, mask: Mask) -> OwnMask:
        return OwnMask(mask, self._places(purchase.owner, self._awarded))

    def _holds_nothing(self, content: bytes) -> bool:
        return not any(content)

    def _scored_as_nothing(self, purchase: BlindPurchase, mask: Mask) -> bool:
        return self._own_mask(purchase, mask).is_floor(purchase.score)

    def _fits(self, score: int, purchase: BlindPurchase, features: Features, mask: Mask) -> bool:
        return self._own_mask(purchase, mask).fits(purchase.score, score, features)
