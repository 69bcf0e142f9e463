"""The consumer under the rule `blind`: it computes weights, opens each round's purchases, and settles."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar, Final

import numpy as np

from hushbid.consumer.events import (
    WRONG_SCORE,
    AccountMade,
    CheckAward,
    MakeAccount,
    PurchasesChecked,
    SealWeight,
    StorePurchases,
    TargetReleased,
    WeightSealed,
)
from hushbid.consumer.machine import ConsumerMachine, target_of
from hushbid.protocol.crypto.sealing import (
    DIGEST_BYTES,
)
from hushbid.protocol.errors import BudgetExceeded, ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.base import Transition
from hushbid.protocol.machine.machine import Event
from hushbid.protocol.machine.participant import participant_transitions
from hushbid.protocol.machine.weighing import NoiseDrawn, Weighing, WeightsComputed
from hushbid.protocol.names import CURATOR
from hushbid.protocol.session.session import Session
from hushbid.protocol.session.settling import HandedOver
from hushbid.protocol.space.grid import Weights
from hushbid.protocol.wire.blind import Award, BlindPurchase, Maps, SealedBroadcast
from hushbid.protocol.wire.messages import Target, unfixed

__all__ = ["BlindConsumer", "reversed_bytes"]

_OPEN: Final = (
    "greeting",
    "gathering",
    "releasing",
    "weighing",
    "waiting",
    "checking",
    "accounting",
    "delivered",
)


class BlindConsumer(ConsumerMachine):
    """The consumer of one session; its arguments are those of `ConsumerMachine`."""

    PHASES: ClassVar[tuple[str, ...]] = (*_OPEN, "leaving", "done")
    OUTCOMES: ClassVar[tuple[type[Event], ...]] = (
        TargetReleased,
        NoiseDrawn,
        WeightsComputed,
        WeightSealed,
        PurchasesChecked,
        AccountMade,
    )
    TRANSITIONS: ClassVar[tuple[Transition, ...]] = (
        *participant_transitions(_OPEN, ("greeting", "gathering", "releasing", "done")),
        Transition("gathering", "received:roots", "_on_roots", ("releasing", "done")),
        Transition("releasing", "target-released", "_on_target_released", ("weighing",)),
        Transition("weighing", "noise-drawn", "_on_noise", ("weighing",)),
        Transition("weighing", "weights-computed", "_on_weights", ("weighing", "done")),
        Transition("weighing", "weight-sealed", "_on_weight_sealed", ("waiting",)),
        Transition("waiting", "received:award", "_on_award", ("checking",)),
        Transition("checking", "purchases-checked", "_on_award_checked", ("weighing", "accounting", "done")),
        Transition("accounting", "account-made", "_on_account_made", ("delivered",)),
    )

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._opened = session
        self._ranks = {owner: rank for rank, owner in enumerate(session.file.owners)}
        self.weighing = Weighing(session)
        self.target: Target | None = None
        """The target against which it weighs, once it is released."""
        self._weights: Weights | None = None
        self._award: Award | None = None
        self._wins: list[HandedOver] = []
        self._sold: Counter[str] = Counter()
        self.void: Counter[str] = Counter()
        """Chosen boxes of each owner that do not hold what the owner said."""
        self.settled = False
        """Whether a private settlement was charged."""

    # -- the weight -----------------------------------------------------------------------------------

    def _on_target_released(self, released: TargetReleased) -> None:
        self.target = target_of(released)
        self.weighing.begin(self.target)
        self._send(CURATOR, Maps(maps=released.maps))
        self._start_round()

    def _start_round(self) -> None:
        self.round += 1
        self.phase = "weighing"
        self._do(self.weighing.start(self.round))

    def _on_noise(self, drawn: NoiseDrawn) -> None:
        self._do(self.weighing.drawn(drawn, self.round))

    def _on_weights(self, computed: WeightsComputed) -> None:
        try:
            charges = self.weighing.computed(computed, self.round)
        except BudgetExceeded as error:
            self._fail(ExitCode.FAILED, error.what, error.advice)
            return
        for charge in charges:
            self._do(charge)
        self._weights = computed.weights
        self._seal_weight(computed.weights)

    def _seal_weight(self, weights: Weights) -> None:
        self._do(SealWeight(self.round, weights))

    def _on_weight_sealed(self, sealed: WeightSealed) -> None:
        self.phase = "waiting"
        self._send(CURATOR, SealedBroadcast(round=sealed.round, box=sealed.box, signature=sealed.signature))

    # -- purchases ----------------------------------------------------------------------------------------

    def _on_award(self, peer: str, award: Award) -> None:
        self._check_award(award)
        self._numbers.update(_numbers_of(award))
        self._received += len(award.purchases)
        self.phase = "checking"
        self._award = award
        if self._weights is None:
            raise LocalProtocolError("An award came before any weight.")
        self._do(CheckAward(award, self._weights, last=self.round == self._opened.rounds))

    def _check_award(self, award: Award) -> None:
        """Refuse an award that no correct curator makes; bids are not known here."""
        self._check_round(award.round, len(award.purchases))
        numbers = _numbers_of(award)
        if len(self._numbers.union(numbers)) < len(self._numbers) + len(numbers):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "A box is awarded a second time under its owner's number of it."
            )
        for purchase in award.purchases:
            self._check_box(purchase)
        order = [self._place(purchase) for purchase in award.purchases]
        if order != sorted(order):
            raise RemoteProtocolError(
                Offence.MALFORMED, "The boxes of an award are not in the order of their scores."
            )
        self._check_wishes(self._numbers.union(numbers))

    def _check_round(self, number: int, count: int) -> None:
        """Refuse what was chosen in another round, or another number of boxes than are due."""
        if number != self.round:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, f"An award of round {number} came in round {self.round}."
            )
        due = self._opened.bought_in(self.round)
        # The award is empty if nobody was present, which includes owners with forged bids only.
        if count not in (0, due):
            raise RemoteProtocolError(Offence.MALFORMED, f"An award has {count} boxes; {due} were due.")

    def _check_owner(self, owner: str) -> None:
        if owner not in self._ranks:
            raise RemoteProtocolError(
                Offence.MALFORMED, "The owner of an awarded box is not on the session's roster."
            )
        if not self._turns.has(owner, self.round):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "A box was chosen in a round in which its owner has no turn."
            )

    def _place(self, purchase: BlindPurchase) -> tuple[bytes, int, int]:
        """What orders an award."""
        return reversed_bytes(purchase.score), self._ranks[purchase.owner], unfixed(purchase.handle)

    def _check_box(self, purchase: BlindPurchase) -> None:
        self._check_owner(purchase.owner)
        batch, handle, candidate = self._opened.batch, unfixed(purchase.handle), purchase.candidate
        if not (1 <= handle <= batch * self.round and purchase.bid_round <= self.round):
            raise RemoteProtocolError(
                Offence.MALFORMED, "An awarded box has a number, or a round, that it cannot have."
            )
        lengths = (len(candidate.box), len(candidate.digests))
        if lengths != (self._opened.box_length, DIGEST_BYTES * (batch + 1)):
            raise RemoteProtocolError(
                Offence.MALFORMED, "An awarded box, or its bid's digests, are of another length."
            )

    def _on_award_checked(self, checked: PurchasesChecked) -> None:
        award = self._award
        if award is None:
            raise LocalProtocolError("An award was checked that did not come.")
        self._award = None
        self.mmd2, self.seed_distance = checked.mmd2, checked.seed_distance
        self.delivered.extend(checked.delivered)
        self.faults.note(award.purchases, checked.delivered)
        good = []
        for entry in checked.delivered:
            (self.void if entry.dispute else self._sold)[entry.owner] += 1
            if entry.candidate is None or entry.dispute not in ("", WRONG_SCORE):
                continue
            # Whether a score is wrong depends on the round in which its point was chosen, and one record of
            # another owner changes that round for many points. The counts of a release or a private
            # settlement must not depend on it.
            good.append(entry.candidate.features)
            if not entry.dispute or self._opened.settlement is not None:
                self._wins.append(HandedOver(entry.owner, 0, 0, 0, entry.candidate, entry.chosen_round))
        if good:
            self.weighing.add(np.stack(good))
        self.weighing.end_round()
        if self.round < self._opened.rounds:
            self._start_round()
            return
        try:
            noise = self._settlement_noise()
        except BudgetExceeded as error:
            self._fail(ExitCode.FAILED, error.what, error.advice)
            return
        self.phase = "accounting"
        if self.target is None:
            raise LocalProtocolError("There is no target to settle by.")
        counts = dict(self._sold), dict(self.void)
        self._do(MakeAccount(self.target, tuple(self._wins), *counts, self.weighing.first_weights, noise))

    def _settlement_noise(self) -> tuple[Any, ...]:
        """Charge a private settlement, if the session has one, and take its noise."""
        if self._opened.settlement is None:
            return ()
        for charge in self.weighing.charge(self._opened.owners_releases):
            self._do(charge)
        self.settled = True
        return self.weighing.end_round()

    def _on_account_made(self, made: AccountMade) -> None:
        self.phase = "delivered"
        self._send(CURATOR, made.account)
        self._do(StorePurchases(tuple(self.delivered)))


def _numbers_of(award: Award) -> list[tuple[str, int]]:
    return [(purchase.owner, unfixed(purchase.handle)) for purchase in award.purchases]


def reversed_bytes(score: bytes) -> bytes:
    """Bytes whose order is reversed."""
    return bytes(255 - byte for byte in score)
