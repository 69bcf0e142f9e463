"""Random walks through the machine of a blind curator, whose process starts again from its record.

Scores are any: a curator cannot tell them from masked ones. What an honest party says must be taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, ClassVar

import numpy as np

from hushbid.curator.events import CheckBids
from hushbid.curator.machine import CuratorMachine
from hushbid.curator.selection.blind import BlindSelection
from hushbid.protocol.crypto.blinding import MASK_BYTES
from hushbid.protocol.crypto.sealing import SIGNATURE_BYTES
from hushbid.protocol.machine.machine import Effect, Event, Received
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.wire.blind import Account, Award, BlindBid, Maps, SealedBroadcast
from hushbid.protocol.wire.messages import Broadcast, Close, Message, Ready, SecretMap, unfixed
from hushbid.protocol.wire.unlinked import (
    NUMBER_BYTES,
    PLACE_BYTES,
    Choice,
    Picked,
    PickedBox,
    Picks,
    RoundOpening,
)
from tests.simulation.breaches import WRONG, Attempt, hellos, out_of_turn
from tests.simulation.harness import FAREWELL, farewell_of, session_file
from tests.simulation.snapshots import snapshot
from tests.simulation.walks import CuratorWalk, Edge, Walk
from tests.support.blind_parties import BlindBench, account_of, masked, signed_bid

__all__ = ["blind_curator_walk", "unlinked_curator_walk"]


class RecordedBench(BlindBench):
    """A blind curator whose process can end, and starts again from what it recorded."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.recorded: list[tuple[Event, float, tuple[Effect, ...]]] = []
        """The events that were taken, with their times and effects."""

    def take(self, event: Event) -> tuple[Effect, ...]:
        repeated = isinstance(event, Received) and self.machine.is_repeat(event)
        effects = super().take(event)
        if not repeated:
            self.recorded.append((event, self.now, effects))
        return effects

    def start_again(self) -> None:
        """Replace the machine by one that takes in the record, and then knows the same."""
        again = CuratorMachine(self.opened)
        for event, now, effects in self.recorded:
            assert again.step(event, now) == effects, f"{event.trigger} has other effects than on record"
        assert snapshot(again) == snapshot(self.machine), "not all that the machine knew is on record"
        self.machine = again


def _made(message: Message) -> Callable[[], Message]:
    return lambda: message


class BlindCuratorWalk(CuratorWalk):
    bench: RecordedBench
    commits: ClassVar[dict[str, Any]] = {}
    answered: ClassVar[dict[str, type[Message]]] = {"ready": SecretMap, "blind-bid": SealedBroadcast}

    def make(self, seed: int, owners: tuple[str, ...], *, few: bool) -> RecordedBench:
        rounds, batch = int(self.rng.integers(1, 4)), 1 + (seed % 3 == 0)
        session = session_file(
            owners=owners,
            points=rounds * batch,
            batch=batch,
            rule="blind",
            min_owners=self.needed(len(owners), few=few),
            fixed_cadence=2.0 if self.paced else None,
            **self.commits,
        )
        return RecordedBench(session)

    @property
    def selection(self) -> BlindSelection:
        selection = self.bench.machine.selection
        assert isinstance(selection, BlindSelection)
        return selection

    def compute(self) -> None:
        effect = self.bench.jobs.pop(0)
        assert isinstance(effect, CheckBids)
        outcome = self.bench.numerics.perform(effect)
        assert outcome is not None
        self.walk.step(outcome)

    def restart(self) -> None:
        self.bench.start_again()
        self.walk.machine = self.bench.machine
        super().restart()

    # -- where a life heads -----------------------------------------------------------------------------

    def _aim(self) -> bool:
        phase, trigger, to = self.aim
        due = self.due_from_consumer() if CONSUMER in self.bench.inbox else None
        here = tuple(
            peer for peer in self.peers if peer in self.bench.machine.links and peer not in self.lost
        )
        gone = "comeback" in self.bench.timers if trigger == "timer:comeback" else self.lost
        if trigger in ("returned", "timer:comeback") and here and not gone:
            self._lose_or_return(self.pick(here))
        elif trigger == "offended" and to == "closing":
            self.say(CONSUMER, Ready())
        elif due is not None and trigger == f"received:{due.kind}":
            self.honestly(CONSUMER, due)
        elif phase == "verifying" and to == "bidding":
            self.say(CONSUMER, self.weights(self.bench.machine.round + 1)[0])
        else:
            return super()._aim()
        return True

    def _honest(self) -> None:
        machine = self.bench.machine
        if self.aim[1] == "head-signed" and not machine.links:
            self._fire("enrolment")
        elif self.aim[:2] == ("closing", "bids-checked") and machine.phase == "verifying":
            self.say(CONSUMER, Ready())
        else:
            super()._honest()

    # -- owners -----------------------------------------------------------------------------------------

    def bid(self, owner: str, told: Broadcast | SealedBroadcast) -> None:
        others = tuple(other for other in self.players if other != owner)
        heads = self.aim[1] == "received:blind-bid" and "bidding" not in self.aim
        if heads and self.bench.machine.phase == "bidding" and others and owner < min(others):
            if "round" in self.bench.timers and self.rng.random() < 0.3:
                self._fire("round")
            return  # until the round has gone on without it
        lies = self.rng.random() < 0.1  # such that it only shows when the signature is checked
        if lies and others:
            self.say(owner, self.bid_of(owner, signer=self.pick(others)))
        else:
            self.honestly(owner, self.bid_of(owner))

    def bid_of(self, owner: str, **changes: Any) -> BlindBid:
        machine, had = self.bench.machine, self.selection.bids_had[owner]
        number = max(1, machine.seats[owner].broadcast)
        scores = masked(*self.scores(number, had))
        return signed_bid(self.bench.opened, owner, number, scores, bids=had, **changes)

    def scores(self, number: int, had: int) -> list[int]:
        """Of all its boxes so far, some of which matter no more."""
        batch = self.bench.session.batch
        scores = self.rng.integers(1, 5, size=batch * (had + 1))
        scores[: batch * had] *= self.rng.random(batch * had) < 0.7
        return [int(score) for score in scores]

    # -- the consumer -----------------------------------------------------------------------------------

    def consumer(self) -> None:
        message = self.due_from_consumer()
        if message is not None:
            self.honestly(CONSUMER, message)

    def honestly(self, peer: str, message: Message) -> None:
        assert self.say(peer, message), f"an honest {message.kind} is refused"

    def said(self, *kinds: type[Message]) -> int:
        """How often the consumer said such."""
        return sum(type(event.message) in kinds for event in self.walk.accepted if event.peer == CONSUMER)

    def told(self, kind: type[Message]) -> int:
        """How often the consumer was told such."""
        return sum(type(message) is kind for message in self.bench.inbox[CONSUMER])

    def due_from_consumer(self) -> Message | None:
        """What the consumer has to say by what it was told, if anything."""
        bench, machine = self.bench, self.bench.machine
        if isinstance(bench.last(CONSUMER), Close):
            return farewell_of(bench.opened, CONSUMER)
        if not self.said(Maps):
            return bench.maps() if machine.gathered else None
        return self.due_in_a_round()

    def due_in_a_round(self) -> Message | None:
        over = self.told(Award)
        if over == self.bench.opened.rounds:
            return None if self.said(Account) else account_of(self.bench)
        return self.bench.weight(over + 1) if self.said(SealedBroadcast) == over else None

    # -- what is to be refused --------------------------------------------------------------------------

    def breaches(self, owner: str) -> tuple[list[Attempt], Callable[[], Message]]:
        bench = self.bench
        honest = self.bid_of(owner)
        account = account_of(bench)
        number = bench.machine.round + 1
        wrong = honest.model_copy(update={"round": WRONG})
        attempts: list[Attempt] = [
            *hellos(bench, owner),
            (CONSUMER, bench.maps, {}),
            (CONSUMER, bench.maps, {"sequence": 0}),
            (CONSUMER, lambda: Maps(maps=bytes(WRONG)), {}),
            (CONSUMER, lambda: FAREWELL, {}),
            (CONSUMER, Ready, {}),
            (CONSUMER, lambda: account, {}),
            (CONSUMER, lambda: account.model_copy(update={"signature": bytes(SIGNATURE_BYTES)}), {}),
            (CONSUMER, lambda: account_of(bench, void=np.full(len(account.void), WRONG)), {}),
            (owner, lambda: account, {}),
            (owner, bench.maps, {}),
            *out_of_turn(bench, owner, honest),
            (owner, lambda: honest.model_copy(update={"boxes": honest.boxes[:-1]}), {}),
            (owner, lambda: honest.model_copy(update={"scores": honest.scores[MASK_BYTES:]}), {}),
            (owner, lambda: honest.model_copy(update={"scores": bytes(len(honest.scores))}), {}),
            (owner, lambda: honest.model_copy(update={"digests": honest.digests + bytes(32)}), {}),
            (owner, lambda: wrong, {}),
        ]
        for weight in (*self.weights(number), *self.weights(number - 1), *self.weights(WRONG)):
            attempts += [(peer, _made(weight), {}) for peer in (CONSUMER, owner)]
        return attempts, lambda: wrong

    def weights(self, number: int) -> list[Message]:
        """A round's weight, and one of another length."""
        weight = self.bench.weight(max(1, number))
        return [weight, weight.model_copy(update={"box": weight.box + b"\2"})]


class UnlinkedCuratorWalk(BlindCuratorWalk):
    """Owners commit to their rows, and the consumer draws what is behind a place."""

    commits: ClassVar[dict[str, Any]] = {"commitment_depth": 4}

    def scores(self, number: int, had: int) -> list[int]:
        batch = self.bench.session.batch
        scores = np.zeros(max(batch * number, batch * (had + 1)), dtype=np.int64)
        places = self.rng.permutation(len(scores))[: batch * (had + 1)]
        scores[places] = self.rng.integers(1, 5, size=len(places))
        return [int(score) for score in scores]

    def due_in_a_round(self) -> Message | None:
        over = self.told(Picked)
        if self.told(Choice) > over:
            return self.picks(over + 1)
        if over == self.bench.opened.rounds:
            return None if self.said(Account) else account_of(self.bench)
        return self.opening(over + 1) if self.said(RoundOpening) == over else None

    def picks(self, number: int) -> Picks:
        """Boxes for the last choice: any that were not asked for, and some that were never sent."""
        (*_, choice) = (each for each in self.bench.inbox[CONSUMER] if isinstance(each, Choice))
        numbers = []
        for owner, count in sorted(Counter(chosen.owner for chosen in choice.chosen).items()):
            given = {
                unfixed(box.handle) for box in self.boxes() if box.owner == owner and any(box.candidate.box)
            }
            left = [each for each in range(1, self.bench.session.batch * number + 1) if each not in given]
            numbers += sorted(int(each) for each in self.rng.permutation(left)[:count])
        return Picks(round=number, numbers=b"".join(each.to_bytes(NUMBER_BYTES, "big") for each in numbers))

    def boxes(self) -> list[PickedBox]:
        """Those that the consumer was sent; zeros are none."""
        told = self.bench.inbox.get(CONSUMER, ())
        boxes = (box for message in told if isinstance(message, Picked) for box in message.boxes)
        return [box for box in boxes if any(box.candidate.box)]

    def opening(self, number: int) -> RoundOpening:
        """A round's weight, with any places for the boxes that were bought."""
        sold = Counter(box.owner for box in self.boxes())
        most = self.bench.session.batch * number
        places = [sorted(self.rng.permutation(most)[: sold[owner]]) for owner in sorted(self.players)]
        weight = self.bench.weight(number)
        taken = b"".join(int(place).to_bytes(PLACE_BYTES, "big") for own in places for place in own)
        return RoundOpening(round=number, box=weight.box, signature=weight.signature, taken=taken)

    def weights(self, number: int) -> list[Message]:
        opening = self.opening(max(1, number))
        other = opening.model_copy(update={"taken": opening.taken + bytes(PLACE_BYTES)})
        picks = Picks(round=max(1, number), numbers=bytes(NUMBER_BYTES))
        return [opening, opening.model_copy(update={"box": opening.box + b"\2"}), other, picks]


def blind_curator_walk(seed: int, toward: Collection[Edge] = ()) -> Walk:
    """One blind curator's life, which heads `toward` rows of the table."""
    return BlindCuratorWalk(seed, toward).run()


def unlinked_curator_walk(seed: int, toward: Collection[Edge] = ()) -> Walk:
    """One life of a curator that cannot link, which heads `toward` rows of the table."""
    return UnlinkedCuratorWalk(seed, toward).run()
