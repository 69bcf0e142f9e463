"""Random walks through the machines of owners and consumer under `blind`; the curator does anything."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from hushbid.consumer.blind_rounds import BLIND, UNLINKED
from hushbid.consumer.buying.blind import BlindBuying
from hushbid.consumer.buying.unlinked import UnlinkedBuying
from hushbid.consumer.events import (
    AccountMade,
    CheckAward,
    ChoicePlaced,
    Delivered,
    MakeAccount,
    OpenRound,
    PlaceChoice,
    PurchasesChecked,
    RoundOpened,
    SealWeight,
    WeightSealed,
)
from hushbid.consumer.machine import ConsumerMachine
from hushbid.owner.events import BlindScored, BroadcastRefused, ScoreBlind, Withdraw
from hushbid.owner.machine import OwnerMachine
from hushbid.protocol.crypto.sealing import DIGEST_BYTES, SIGNATURE_BYTES
from hushbid.protocol.machine.base import TransitionTable
from hushbid.protocol.machine.machine import Effect, Event
from hushbid.protocol.machine.weighing import ComputeWeights, DrawNoise, NoiseDrawn, WeightsComputed
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.wire.blind import Account, Award, BlindCandidate, BlindPurchase, SealedBroadcast
from hushbid.protocol.wire.messages import (
    PROTOCOL_VERSION,
    Ask,
    Broadcast,
    Delivery,
    Message,
    Refused,
    SecretMap,
    fixed,
)
from hushbid.protocol.wire.unlinked import PLACE_BYTES, Choice, Chosen, Picked, PickedBox
from tests.simulation.breaches import WRONG
from tests.simulation.harness import DIMENSION, candidate_of, names, session_file, weights_of
from tests.simulation.participant_walks import ConsumerWalk, OwnerWalk
from tests.simulation.walks import CORNERS, EXACT, MAP_BOX, Edge, Purse, Walk, private

__all__ = ["blind_consumer_walk", "blind_owner_walk", "unlinked_consumer_walk"]

W = weights_of(1, 2, 3, 4)


def committed(walk: OwnerWalk | ConsumerWalk) -> dict[str, Any]:
    """The parameters of a session in which owners may have to commit to their rows."""
    return {"commitment_depth": 4} if walk.rng.random() < 0.3 or walk.commits else {}


class BlindOwnerWalk(OwnerWalk):
    def open_session(self, rule: str) -> Session:
        return open_session(session_file(owners=names(2), points=4, rule="blind", **committed(self)))

    def make(self) -> OwnerMachine:
        return OwnerMachine(self.session, name="owner-0")

    def honest(self) -> None:
        if self.machine.phase != "waiting":
            super().honest()
        elif self.machine.round < 4:
            self.say(self.broadcast(self.machine.round + 1))

    def broadcast(self, number: int) -> SealedBroadcast:
        return SealedBroadcast(round=number, box=b"a box", signature=bytes(SIGNATURE_BYTES))

    def compute(self, job: Effect) -> Event | None:
        if not isinstance(job, ScoreBlind):
            return super().compute(job)
        if self.rng.random() < 0.1:
            return BroadcastRefused("It does not open.", "Ask.")
        withdrawn = {row for effect in self.done if isinstance(effect, Withdraw) for row in effect.rows}
        row = int(self.rng.integers(-1, 5))
        rows = (-1 if row in withdrawn else row,)
        signature = bytes(SIGNATURE_BYTES)
        return BlindScored(job.round, W, rows, b"box", bytes(range(16)), bytes(64), signature, b"")

    def hostile_messages(self) -> list[Message]:
        machine = self.machine
        return [
            self.welcome(version=PROTOCOL_VERSION),
            self.welcome(feature_map=bytes(32)),
            self.welcome(received=WRONG),
            Refused(code="configuration", detail="d", advice="a"),
            Refused(code="never-heard-of", detail="d", advice="a"),
            self.broadcast(max(1, machine.round)),
            self.broadcast(WRONG),
            Broadcast(round=machine.round + 1, weights=W, noise="none"),
            Ask(round=max(1, machine.round), handle=fixed(WRONG)),
            SecretMap(box=MAP_BOX),
        ]


class BlindConsumerWalk(ConsumerWalk):
    table: TransitionTable[ConsumerMachine] = BLIND
    buying: type[BlindBuying] = BlindBuying

    def open_session(self, rule: str) -> Session:
        noisy = self.rng.random() < 0.4
        return open_session(
            session_file(
                owners=names(2),
                points=4,
                rule="blind",
                **committed(self),
                target=private(Neighbours.SUBSTITUTE_ONE) if noisy else EXACT,
                summary=private(Neighbours.ADD_REMOVE_ONE) if noisy else EXACT,
                settlement=1.0 if noisy and self.rng.random() < 0.5 else None,
            )
        )

    def make(self) -> ConsumerMachine:
        machine = ConsumerMachine(self.session, self.table, self.buying)
        if machine._filter is not None:
            machine._filter = Purse(int(self.rng.integers(0, 3)), Neighbours.SUBSTITUTE_ONE)
        assert isinstance(machine.buying, BlindBuying)
        if machine.buying.weighing.filter is not None:
            machine.buying.weighing.filter = Purse(int(self.rng.integers(0, 6)), Neighbours.ADD_REMOVE_ONE)
        return machine

    def honest(self) -> None:
        if self.machine.phase == "waiting":
            self.say(self.award(self.purchase()))
        else:
            super().honest()

    def purchase(self, **changes: object) -> BlindPurchase:
        candidate = BlindCandidate(
            box=bytes(self.session.box_length),
            digests=bytes(2 * DIGEST_BYTES),
            signature=bytes(SIGNATURE_BYTES),
        )
        number = max(1, self.machine.round)
        values: dict[str, object] = {
            "owner": "owner-0",
            "bid_round": number,
            "handle": fixed(number),
            "score": bytes(range(16)),
            "candidate": candidate,
        }
        return BlindPurchase.model_validate(values | changes)

    def award(self, *purchases: BlindPurchase, ahead: int = 0) -> Award:
        return Award(round=max(1, self.machine.round) + ahead, purchases=purchases)

    def compute(self, job: Effect) -> Event | None:
        if isinstance(job, DrawNoise):
            draws = [((np.zeros(DIMENSION),), ()) for _ in range(job.first, job.last + 1)]
            return NoiseDrawn(job.first, tuple(draws))
        if isinstance(job, ComputeWeights):
            return WeightsComputed(job.round, W)
        if isinstance(job, SealWeight):
            return WeightSealed(job.round, b"a box", bytes(SIGNATURE_BYTES))
        if isinstance(job, CheckAward):
            found = tuple(
                Delivered(purchase.owner, job.award.round, candidate_of(CORNERS[0]), "")
                for purchase in job.award.purchases
            )
            return PurchasesChecked(found, np.zeros(len(found)) if job.last else None)
        if isinstance(job, MakeAccount):
            floats, whole = np.zeros(2), np.zeros(2, dtype=np.int64)
            return AccountMade(
                Account(
                    settlement=floats,
                    errors=floats,
                    gains=floats,
                    gain_errors=floats,
                    signal=0,
                    sold=whole,
                    void=whole,
                    signature=bytes(SIGNATURE_BYTES),
                )
            )
        return super().compute(job)

    def hostile_messages(self) -> list[Message]:
        good = self.purchase()
        short = good.candidate.model_copy(update={"box": b"box"})
        return [
            self.welcome(sent=0, received=WRONG),
            self.welcome(version=PROTOCOL_VERSION),
            Refused(code="state-lost", detail="d", advice="a"),
            Refused(code="malformed", detail="d", advice="a"),
            self.award(good, ahead=1),
            self.award(good, good),
            self.award(self.purchase(owner="nobody")),
            self.award(self.purchase(handle=fixed(WRONG))),
            self.award(self.purchase(candidate=short)),
            Delivery(part=1, parts=1, purchases=()),
        ]


class UnlinkedConsumerWalk(BlindConsumerWalk):
    """Boxes are in the places of their numbers."""

    table = UNLINKED
    buying = UnlinkedBuying

    def honest(self) -> None:
        if self.machine.phase == "waiting":
            self.say(self.choice(self.place()))
        elif self.machine.phase == "fetching":
            self.say(self.picked(self.box()))
        else:
            super().honest()

    def place(self, **changes: object) -> Chosen:
        place = max(1, self.machine.round) - 1
        values: dict[str, object] = {"owner": "owner-0", "place": fixed(place), "score": bytes(range(16))}
        return Chosen.model_validate(values | changes)

    def choice(self, *chosen: Chosen, ahead: int = 0) -> Choice:
        return Choice(round=max(1, self.machine.round) + ahead, chosen=chosen)

    def box(self, **changes: object) -> PickedBox:
        bought = self.purchase()
        values: dict[str, object] = {
            name: getattr(bought, name) for name in ("owner", "bid_round", "handle", "candidate")
        }
        return PickedBox.model_validate(values | changes)

    def picked(self, *boxes: PickedBox, ahead: int = 0) -> Picked:
        return Picked(round=max(1, self.machine.round) + ahead, boxes=boxes)

    def compute(self, job: Effect) -> Event | None:
        if isinstance(job, MakeAccount) and self.rng.random() < 0.3:
            # Few lives last to this phase.
            self.say(Refused(code="malformed", detail="d", advice="a"))
            return None
        if isinstance(job, OpenRound):
            taken = b"".join((handle - 1).to_bytes(PLACE_BYTES, "big") for _, handle in job.taken)
            return RoundOpened(job.round, b"a box", bytes(SIGNATURE_BYTES), taken)
        if isinstance(job, PlaceChoice):
            return ChoicePlaced(job.choice.round, tuple(int(each.place[0]) + 1 for each in job.choice.chosen))
        return super().compute(job)

    def hostile_messages(self) -> list[Message]:
        good, (*_, short) = self.place(), (self.box(), self.box(bid_round=WRONG))
        # None of an award, which has no place here; refusals more often, as few lives last to a late phase.
        others = [message for message in super().hostile_messages() if not isinstance(message, Award)]
        return [
            *others,
            *(message for message in others if isinstance(message, Refused)),
            self.choice(good, ahead=1),
            self.choice(good, good),
            self.choice(self.place(owner="nobody")),
            self.choice(self.place(place=fixed(WRONG))),
            self.choice(self.place(place=fixed(0))),
            self.picked(self.box(), ahead=1),
            self.picked(self.box(handle=fixed(WRONG))),
            self.picked(),
            self.picked(short),
        ]


def unlinked_consumer_walk(seed: int, toward: Collection[Edge] = ()) -> Walk:
    """One life of a consumer whose curator cannot link, which heads `toward` rows of the table."""
    return UnlinkedConsumerWalk(seed, toward).run(steps=240)


def blind_owner_walk(seed: int, toward: Collection[Edge] = ()) -> Walk:
    """One owner's life, which heads `toward` rows of the table."""
    return BlindOwnerWalk(seed, toward).run()


def blind_consumer_walk(seed: int, toward: Collection[Edge] = ()) -> Walk:
    """One consumer's life, which heads `toward` rows of the table."""
    return BlindConsumerWalk(seed, toward).run(steps=120)
