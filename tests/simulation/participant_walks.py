"""Random walks through the machines of owners and consumer, whose curator does anything."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import numpy as np

from hushbid.consumer.buying.open import OpenBuying
from hushbid.consumer.events import CheckPurchases, Delivered, PurchasesChecked, ReleaseTarget, TargetReleased
from hushbid.consumer.machine import ConsumerMachine
from hushbid.consumer.party import consumer_machine
from hushbid.owner.events import (
    CommitRows,
    MapOpened,
    MapRefused,
    OpenMap,
    RowsCommitted,
    Scored,
    ScorePoints,
    Withdraw,
)
from hushbid.owner.machine import OwnerMachine
from hushbid.protocol.crypto.sealing import EPHEMERAL_BYTES, SIGNATURE_BYTES
from hushbid.protocol.machine.machine import (
    Charge,
    Connected,
    Effect,
    Event,
    Finish,
    Lost,
    Received,
    Restarted,
    Returned,
    Send,
    SetTimer,
    SignHead,
    Started,
    TimerFired,
)
from hushbid.protocol.names import CURATOR
from hushbid.protocol.privacy.acquisition.tender import Tender
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.space.grid import Features
from hushbid.protocol.wire.messages import (
    COMMITTED_VERSION,
    Ask,
    Broadcast,
    Call,
    Candidate,
    Close,
    Delivery,
    Hello,
    Message,
    Next,
    Purchase,
    Refused,
    Roots,
    SealedCandidate,
    SecretMap,
    Welcome,
    fixed,
)
from tests.simulation.breaches import WRONG
from tests.simulation.committing import commitment_to
from tests.simulation.harness import (
    DIMENSION,
    MAP,
    RULES_IN_THE_CLEAR,
    candidate_of,
    names,
    sealed_candidate_of,
    session_file,
    weights_of,
)
from tests.simulation.walks import CORNERS, EXACT, LIKELY, MAP_BOX, Edge, Purse, Walk, private

__all__ = ["consumer_walk", "owner_walk"]


class ParticipantWalk:
    """An owner or a consumer, and a curator that does anything.

    Args:
        seed: Seed of everything drawn.
        toward: Rows of the table. Where one of them begins, its trigger is likely to come next.
    """

    def __init__(self, seed: int, toward: Collection[Edge] = ()) -> None:
        self.rng = np.random.default_rng(seed)
        rows = sorted(toward)
        self.aim: Edge = rows[int(self.rng.integers(len(rows)))] if rows else ("", "", "")
        self.commits = self.aim[0] in ("committing", "gathering")
        """The row is one of sessions whose owners commit to what they have."""
        self.session = self.open_session(RULES_IN_THE_CLEAR[int(self.rng.integers(len(RULES_IN_THE_CLEAR)))])
        self.rule = self.session.rule
        self.machine = self.make()
        self.walk = Walk(self.machine, self._raw)
        self.now = 0.0
        self.timers: dict[str, SetTimer] = {}
        self.jobs: list[Effect] = []
        self.done: list[Effect] = []
        self.sent = self.had = 0
        self.connected = self.lost = False
        self.hostility = float(self.rng.choice([0.0, 0.05, 0.3]))
        self.trouble = float(self.rng.choice([0.05, 0.3]))
        if rows:  # nothing else is to come first
            self.hostility, self.trouble = self.hostility / 4.0, self.trouble / 4.0

    def open_session(self, rule: str) -> Session:
        return open_session(session_file(owners=names(2), points=4, rule=rule))

    def make(self) -> OwnerMachine | ConsumerMachine:
        raise NotImplementedError

    def honest(self) -> None:
        raise NotImplementedError

    def hostile_messages(self) -> list[Message]:
        raise NotImplementedError

    def compute(self, job: Effect) -> Event | None:
        raise NotImplementedError

    def _raw(self, event: Event) -> tuple[Effect, ...]:
        self.now += 1e-3
        effects = self.machine.step(event, self.now)
        for effect in effects:
            if type(effect) is SetTimer:
                self.timers[effect.name] = effect
            elif type(effect) is Send:
                self.had = max(self.had, effect.sequence)
            elif type(effect) not in (Charge, SignHead, Finish):
                self.jobs.append(effect)
        self.done += effects
        return effects

    def say(self, message: Message, **changes: int) -> bool:
        control = isinstance(message, Hello | Welcome | Refused)
        values = {
            "sequence": 0 if control else self.sent + 1,
            "acknowledged": 0 if control else self.had,
        } | changes
        event = Received(CURATOR, body=b"", message=message, **values)
        phase = self.machine.phase
        taken = self.walk.step(event)
        if taken:
            self.walk.note(phase, event)
            self.sent = max(self.sent, event.sequence)
        return taken

    def feed(self, event: Event) -> None:
        phase = self.machine.phase
        self.walk.step(event)
        self.walk.note(phase, event)

    def welcome(self, **changes: object) -> Welcome:
        values: dict[str, object] = {
            "version": self.session.protocol_version,
            "feature_map": None if self.rule.sealed else MAP.digest,
            "sent": self.sent,
            "received": self.had,
        }
        return Welcome.model_validate(values | changes)

    def candidate(self, features: Features) -> Candidate | SealedCandidate:
        return sealed_candidate_of(features, self.session) if self.rule.sealed else candidate_of(features)

    def run(self, steps: int = 60) -> Walk:
        self.feed(Started())
        for _ in range(steps):
            if self.machine.phase == "done":
                break
            dice = self.rng.random()
            if self.machine.phase == self.aim[0] and self.rng.random() < LIKELY and self._aim():
                continue
            if dice < self.hostility:
                self._say_one_of(self.hostile_messages())
            elif dice < self.hostility + self.trouble:
                self._trouble()
            elif self.jobs and self.rng.random() < 0.8:
                outcome = self.compute(self.jobs.pop(0))
                if outcome is not None:
                    self.feed(outcome)
            else:
                self.honest()
        return self.walk

    def _say_one_of(self, messages: list[Message]) -> None:
        self.say(
            messages[int(self.rng.integers(len(messages)))],
            **({"sequence": self.sent + 2} if self.rng.random() < 0.1 else {}),
        )

    def _aim(self) -> bool:
        """Cause the trigger of the row that this life heads for; returns whether that was possible."""
        head, _, name = self.aim[1].partition(":")
        if head == "received":
            known = [self.welcome(), self._close("complete"), self._close("abandoned")]
            known = [each for each in (*known, *self.hostile_messages()) if each.kind == name]
            if not known or self.rng.random() < 0.5:
                return False  # an honest one may do
            self._say_one_of(known)
        elif head == "offended":
            self._say_one_of(self.hostile_messages())
        elif head == "timer" and name in self.timers:
            self.walk.step(TimerFired(name, self.timers[name].attempt))
        elif head == "connected":
            self.feed(Connected())
        elif head == "restarted":
            self.feed(Restarted())
        elif head in ("lost", "returned") or name == "abandon":  # it is set when the curator is lost
            self._lose_or_return()
        else:
            return False
        return True

    def _lose_or_return(self) -> None:
        self.feed(Returned(CURATOR) if self.lost else Lost(CURATOR))
        self.lost = not self.lost

    def _close(self, outcome: Literal["complete", "abandoned"]) -> Close:
        return Close(outcome=outcome, head=bytes(32), signature=b"")

    def _trouble(self) -> None:
        dice = self.rng.random()
        if dice < 0.25:
            self.feed(Connected())
        elif dice < 0.3:
            self.feed(Restarted())
        elif dice < 0.6:
            self._lose_or_return()
        elif dice < 0.7 and "abandon" in self.timers:
            self.walk.step(TimerFired("abandon", self.timers["abandon"].attempt))
        elif dice < 0.8:
            self.say(self.welcome())
        elif dice < 0.85:
            self.say(self._close("complete" if self.rng.random() < 0.5 else "abandoned"))
        elif self.walk.accepted:
            self.walk.repeat(self.walk.accepted[-1])


class OwnerWalk(ParticipantWalk):
    def open_session(self, rule: str) -> Session:
        if self.rng.random() < 0.15 or self.aim[1] in ("received:call", "received:next"):
            return open_session(session_file(owners=names(2), points=4, rule=Tender.name, batch=2))
        if self.rng.random() < 0.15 or self.commits:
            return open_session(session_file(owners=names(2), points=4, rule="sealed", commitment_depth=4))
        return super().open_session(rule)

    def call(self, **changes: Any) -> Call:
        seeds = {"seed_total": np.ones(4, dtype=np.int64), "seed_size": 3}
        values: dict[str, Any] = {"embedding": np.zeros(4), **seeds, **changes}
        return Call(round=self.machine.round + 1, weights=weights_of(1, 2, 3, 4), noise="none", **values)

    def make(self) -> OwnerMachine:
        return OwnerMachine(self.session, name="owner-0")

    def honest(self) -> None:
        machine = self.machine
        assert isinstance(machine, OwnerMachine)
        if machine.phase == "greeting":
            self.say(self.welcome())
        elif machine.phase == "mapping":
            self.say(SecretMap(box=MAP_BOX))
        elif machine.phase == "waiting":
            if machine._last_bid and self.rng.random() < 0.5:
                handle = machine._last_bid[0]
                self.say(Ask(round=machine.round, handle=fixed(handle)))
            elif self.rule.herds:
                self.say(Next(round=1) if machine.round else self.call())
            elif machine.round < 4:
                self.say(Broadcast(round=machine.round + 1, weights=weights_of(1, 2, 3, 4), noise="none"))

    def compute(self, job: Effect) -> Event | None:
        if isinstance(job, CommitRows):
            return RowsCommitted(bytes(32), bytes(SIGNATURE_BYTES))
        if isinstance(job, OpenMap):
            return MapOpened() if self.rng.random() < 0.8 else MapRefused("It does not open.", "Ask.")
        if not isinstance(job, ScorePoints):
            return None
        withdrawn = {row for effect in self.done if isinstance(effect, Withdraw) for row in effect.rows}
        row = int(self.rng.integers(-1, 5))
        if row in withdrawn:
            row = -1
        ephemeral = bytes(EPHEMERAL_BYTES) if self.rule.sealed else b""
        rows, scores = ((row,), (WRONG,)) if row >= 0 else ((), ())
        return Scored(job.round, rows, scores, self.candidate(CORNERS[row]), ephemeral)

    def hostile_messages(self) -> list[Message]:
        machine = self.machine
        assert isinstance(machine, OwnerMachine)
        return [
            self.welcome(version=COMMITTED_VERSION + 1),
            self.welcome(feature_map=bytes(32)),
            self.welcome(received=WRONG),
            Refused(code="configuration", detail="d", advice="a"),
            Refused(code="never-heard-of", detail="d", advice="a"),
            Broadcast(round=max(1, machine.round), weights=weights_of(1, 2, 3, 4), noise="none"),
            Broadcast(round=WRONG, weights=weights_of(1, 2, 3, 4), noise="none"),
            Broadcast(round=machine.round + 1, weights=weights_of(1), noise="none"),
            self.call(),
            self.call(embedding=np.zeros(3)),
            self.call(seed_total=np.ones(5, dtype=np.int64)),
            self.call(seed_total=np.full(4, 2**40), seed_size=1),
            Next(round=WRONG),
            Next(round=max(1, machine.round)),
            Ask(round=max(1, machine.round), handle=fixed(WRONG)),
            SecretMap(box=MAP_BOX),
        ]


def _part(machine: ConsumerMachine) -> int:
    """The delivery's last part that arrived."""
    assert isinstance(machine.buying, OpenBuying)
    return machine.buying.part


class ConsumerWalk(ParticipantWalk):
    parts = 2

    def open_session(self, rule: str) -> Session:
        target = private(Neighbours.SUBSTITUTE_ONE) if self.rng.random() < 0.4 else EXACT
        owners = names(2)
        if self.rng.random() < 0.2 or self.commits:
            file = session_file(owners=owners, points=4, rule="sealed", target=target, commitment_depth=4)
        else:
            file = session_file(owners=owners, points=4, rule=rule, target=target)
        return open_session(file)

    def make(self) -> ConsumerMachine:
        machine = consumer_machine(self.session)
        if machine._filter is not None:
            machine._filter = Purse(int(self.rng.integers(0, 2)), Neighbours.SUBSTITUTE_ONE)
        return machine

    def honest(self) -> None:
        machine = self.machine
        assert isinstance(machine, ConsumerMachine)
        if machine.phase == "greeting":
            self.say(self.welcome())
        elif machine.phase == "gathering":
            self.say(self.roots())
        elif machine.phase == "waiting":
            self.say(self.delivery(_part(machine) + 1))

    def roots(self, owners: int = 2) -> Roots:
        session = self.session
        if owners != 2 or not session.commitment_depth:
            return Roots(roots=bytes(32 * owners), signatures=bytes(SIGNATURE_BYTES * owners))
        return Roots.told([commitment_to(session, owner, bytes(32)) for owner in session.file.owners])

    def delivery(self, part: int, *, count: int = 2, width: int = DIMENSION) -> Delivery:
        features = np.zeros(width, dtype=np.int16) if width != DIMENSION else CORNERS[0]
        purchases = tuple(
            Purchase.model_construct(
                owner="owner-0",
                round=1,
                bid_round=1,
                handle=fixed(100 * part + place),
                candidate=self.candidate(features),
            )
            for place in range(count)
        )
        return Delivery.model_construct(part=part, parts=self.parts, purchases=purchases)

    def compute(self, job: Effect) -> Event | None:
        if isinstance(job, ReleaseTarget):
            zeros = np.zeros(DIMENSION)
            maps = MAP_BOX * 2 if self.rule.sealed else b""
            return TargetReleased(zeros, 3, zeros.astype(np.int64), 2, b"", maps, "none", ())
        if isinstance(job, CheckPurchases):
            return PurchasesChecked(
                tuple(
                    Delivered(purchase.owner, purchase.round, candidate_of(CORNERS[0]), "")
                    for purchase in job.purchases
                ),
                np.zeros(len(job.purchases)) if job.last else None,
            )
        return None

    def hostile_messages(self) -> list[Message]:
        machine = self.machine
        assert isinstance(machine, ConsumerMachine)
        (purchase,) = self.delivery(_part(machine) + 1, count=1).purchases
        other_form = (
            candidate_of(CORNERS[0]) if self.rule.sealed else sealed_candidate_of(CORNERS[0], self.session)
        )
        strange = [
            purchase.model_copy(update=change) for change in ({"owner": "nobody"}, {"candidate": other_form})
        ]
        return [
            *(
                Delivery.model_construct(part=_part(machine) + 1, parts=self.parts, purchases=(entry,))
                for entry in strange
            ),
            self.welcome(sent=0, received=WRONG),
            Refused(code="state-lost", detail="d", advice="a"),
            Refused(code="malformed", detail="d", advice="a"),
            self.roots(),
            self.roots(3),
            Roots(roots=bytes(64), signatures=bytes(2 * SIGNATURE_BYTES)),
            Roots(roots=bytes(64), signatures=b"x" * 2 * SIGNATURE_BYTES),
            self.delivery(WRONG),
            self.delivery(_part(machine)),
            self.delivery(_part(machine) + 1, count=5),
            self.delivery(_part(machine) + 1, width=DIMENSION + 1),
            Delivery.model_construct(part=_part(machine) + 1, parts=WRONG, purchases=()),
            Delivery.model_construct(part=_part(machine) + 1, parts=max(1, _part(machine)), purchases=()),
        ]


def owner_walk(seed: int, toward: Collection[Edge] = ()) -> Walk:
    """One owner's life, which heads `toward` rows of the table."""
    return OwnerWalk(seed, toward).run()


def consumer_walk(seed: int, toward: Collection[Edge] = ()) -> Walk:
    """One consumer's life, which heads `toward` rows of the table."""
    return ConsumerWalk(seed, toward).run()
