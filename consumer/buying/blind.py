"""Awards of a blind curator: boxes that come in every round, with the masked scores that chose them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from hushbid.consumer.buying.base import Buying
from hushbid.consumer.events import (
    WRONG_SCORE,
    CheckAward,
    MakeAccount,
    OpenRound,
    PurchasesChecked,
    SealWeight,
)
from hushbid.protocol.crypto.sealing import DIGEST_BYTES
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.machine import Charge
from hushbid.protocol.machine.weighing import Weighing, WeightsComputed
from hushbid.protocol.session.session import Session
from hushbid.protocol.session.settling import HandedOver
from hushbid.protocol.space.grid import Weights
from hushbid.protocol.wire.blind import Award, BlindPurchase
from hushbid.protocol.wire.messages import Target, unfixed

__all__ = ["BlindBuying", "reversed_bytes"]


class BlindBuying(Buying):
    """Boxes come in every round, and the next round's weight follows from what is in them.

    Attributes:
        weighing: What the round's weights are computed from.
        target: The target against which the consumer weighs, once it is released.
        void: Chosen boxes of each owner that do not hold what the owner said.
        settled: Whether a private settlement was charged.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.rounds = session.rounds
        self._turns = session.turns
        self._ranks = {owner: rank for rank, owner in enumerate(session.file.owners)}
        self.weighing = Weighing(session)
        self.target: Target | None = None
        self._weights: Weights | None = None
        self._award: Award | None = None
        self._wins: list[HandedOver] = []
        self._sold: Counter[str] = Counter()
        self.void: Counter[str] = Counter()
        self.settled = False

    # -- the weight -------------------------------------------------------------------------------------

    def begin(self, target: Target) -> None:
        """Take in the released target; no round precedes it."""
        self.target = target
        self.weighing.begin(target)

    def weighed(self, computed: WeightsComputed, number: int) -> tuple[Charge, ...]:
        """Take in a round's weights; return the charges to record first; `BudgetExceeded` if refused."""
        charges = self.weighing.computed(computed, number)
        self._weights = computed.weights
        return charges

    def seal(self, number: int, weights: Weights) -> SealWeight | OpenRound:
        """How a round's weights are encrypted for owners."""
        return SealWeight(number, weights)

    # -- awards -----------------------------------------------------------------------------------------

    def take_award(self, award: Award, number: int) -> CheckAward:
        """Take in what was chosen in a round, to be checked."""
        self.check_award(award, number)
        self._numbers.update(_numbers_of(award))
        self._received += len(award.purchases)
        self._award = award
        if self._weights is None:
            raise LocalProtocolError("An award came before any weight.")
        return CheckAward(award, self._weights, last=number == self.rounds)

    def check_award(self, award: Award, number: int) -> None:
        """Refuse an award that no correct curator makes; bids are not known here."""
        self._check_round(award.round, len(award.purchases), number)
        numbers = _numbers_of(award)
        if len(self._numbers.union(numbers)) < len(self._numbers) + len(numbers):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "A box is awarded a second time under its owner's number of it."
            )
        for purchase in award.purchases:
            self._check_box(purchase, number)
        order = [self._place(purchase) for purchase in award.purchases]
        if order != sorted(order):
            raise RemoteProtocolError(
                Offence.MALFORMED, "The boxes of an award are not in the order of their scores."
            )
        self._check_wishes(self._numbers.union(numbers))

    def _check_round(self, chosen_round: int, count: int, number: int) -> None:
        """Refuse what was chosen in another round, or another number of boxes than are due."""
        if chosen_round != number:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, f"An award of round {chosen_round} came in round {number}."
            )
        due = self._session.bought_in(number)
        # The award is empty if nobody was present, which includes owners with forged bids only.
        if count not in (0, due):
            raise RemoteProtocolError(Offence.MALFORMED, f"An award has {count} boxes; {due} were due.")

    def _check_owner(self, owner: str, number: int) -> None:
        if owner not in self._ranks:
            raise RemoteProtocolError(
                Offence.MALFORMED, "The owner of an awarded box is not on the session's roster."
            )
        if not self._turns.has(owner, number):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "A box was chosen in a round in which its owner has no turn."
            )

    def _check_box(self, purchase: BlindPurchase, number: int) -> None:
        self._check_owner(purchase.owner, number)
        batch, handle, candidate = self._session.batch, unfixed(purchase.handle), purchase.candidate
        if not (1 <= handle <= batch * number and purchase.bid_round <= number):
            raise RemoteProtocolError(
                Offence.MALFORMED, "An awarded box has a number, or a round, that it cannot have."
            )
        lengths = (len(candidate.box), len(candidate.digests))
        if lengths != (self._session.box_length, DIGEST_BYTES * (batch + 1)):
            raise RemoteProtocolError(
                Offence.MALFORMED, "An awarded box, or its bid's digests, are of another length."
            )

    def _place(self, purchase: BlindPurchase) -> tuple[bytes, int, int]:
        return reversed_bytes(purchase.score), self._ranks[purchase.owner], unfixed(purchase.handle)

    def checked(self, outcome: PurchasesChecked) -> Award:
        """Take the boxes that were checked into the sum; return the award that they came in."""
        award = self._award
        if award is None:
            raise LocalProtocolError("An award was checked that did not come.")
        self._award = None
        good = []
        for entry in outcome.delivered:
            (self.void if entry.dispute else self._sold)[entry.owner] += 1
            if entry.candidate is None or entry.dispute not in ("", WRONG_SCORE):
                continue
            # Whether a score is wrong depends on the round in which its point was chosen, and one record of
            # another owner changes that round for many points. The counts of a release or a private
            # settlement must not depend on it.
            good.append(entry.candidate.features)
            if not entry.dispute or self._session.settlement is not None:
                self._wins.append(HandedOver(entry.owner, 0, 0, 0, entry.candidate, entry.chosen_round))
        if good:
            self.weighing.add(np.stack(good))
        self.weighing.end_round()
        return award

    # -- the end ----------------------------------------------------------------------------------------

    def charge_settlement(self) -> tuple[Charge, ...]:
        """Charge a private settlement, if there is one; `BudgetExceeded` if the filter refuses."""
        if self._session.settlement is None:
            return ()
        charges = self.weighing.charge(self._session.owners_releases)
        self.settled = True
        return charges

    def account(self) -> MakeAccount:
        """What the account is made of, once a private settlement is charged."""
        noise: tuple[Any, ...] = self.weighing.end_round() if self.settled else ()
        if self.target is None:
            raise LocalProtocolError("There is no target to settle by.")
        sold, void = dict(self._sold), dict(self.void)
        return MakeAccount(self.target, tuple(self._wins), sold, void, self.weighing.first_weights, noise)


def _numbers_of(award: Award) -> list[tuple[str, int]]:
    return [(purchase.owner, unfixed(purchase.handle)) for purchase in award.purchases]


def reversed_bytes(score: bytes) -> bytes:
    """Bytes in reversed order."""
    return bytes(255 - byte for byte in score)
