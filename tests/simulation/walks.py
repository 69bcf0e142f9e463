"""Random walks through the machines: honest moves, slow and broken networks, and hostile peers.

Every step is held to the machine's contract: it gives effects, or raises `RemoteProtocolError` for a
peer's frame and leaves the state as it was; what was had before gives nothing; timers that were set anew
fire into nothing. A walk notes which edges of the transition table it took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from consumer.events import CheckPurchases, PurchasesHashed, ReleaseTarget, TargetReleased
from consumer.machine import ConsumerMachine
from curator.events import ComputeWeights, DrawNoise
from curator.machine import CONSUMER
from owner.events import Scored, ScorePoints, Withdraw
from owner.machine import OwnerMachine
from protocol.acquisition import RULES, acquisition_rule
from protocol.errors import Offence, RemoteProtocolError
from protocol.machine import (
    Connected,
    Effect,
    Event,
    Lost,
    Machine,
    Offended,
    Received,
    Returned,
    Send,
    SetTimer,
    Started,
    TimerFired,
    trigger_of,
)
from protocol.messages import (
    PROTOCOL_VERSION,
    Ask,
    Broadcast,
    Close,
    Delivery,
    Farewell,
    Hello,
    Message,
    Offer,
    Purchase,
    Receipt,
    Refused,
    Welcome,
    fixed,
)
from protocol.participant import CURATOR
from tests.simulation.harness import (
    DIMENSION,
    MAP,
    CuratorBench,
    Player,
    candidate_of,
    corners,
    names,
    session_file,
    weights_of,
)
from tests.simulation.snapshots import snapshot

__all__ = ["Edge", "consumer_walk", "curator_walk", "owner_walk", "rows_of"]

Edge = tuple[str, str, str]
CORNERS = corners()
WRONG = 77
"""A number that nothing has here: round, part, handle."""


def rows_of(machine: type[Machine]) -> set[Edge]:
    """Every edge that a machine's table allows."""
    return {(row.phase, row.trigger, to) for row in machine.TRANSITIONS for to in row.to}


class Walk:
    """Feeds one machine, and checks every step."""

    def __init__(self, machine: Machine, step: Callable[[Event], tuple[Effect, ...]]) -> None:
        self.machine = machine
        self.raw_step = step
        self.edges: set[Edge] = set()
        self.offences: set[Offence] = set()
        self.accepted: list[Received] = []

    def step(self, event: Event) -> bool:
        """Take an event; whether it was taken, and not refused."""
        before, phase = snapshot(self.machine), self.machine.phase
        try:
            effects = self.raw_step(event)
        except RemoteProtocolError as error:
            assert isinstance(event, Received), "only a peer's frame can be a peer's breach"
            assert snapshot(self.machine) == before, f"{event.message.kind} was refused and left traces"
            self.offences.add(error.offence)
            self.step(
                Offended(
                    event.peer,
                    event.sequence,
                    event.acknowledged,
                    error.offence,
                    error.what,
                    error.advice,
                )
            )
            return False
        if isinstance(event, Received):
            self.accepted.append(event)
        if snapshot(self.machine) != before or effects:
            self.edges.add((phase, trigger_of(event), self.machine.phase))
        return True

    def repeat(self, event: Received) -> None:
        """A frame comes a second time: nothing happens, or a hello is answered again."""
        if event.sequence == 0 or self.machine.phase == "done":
            return
        before = snapshot(self.machine)
        assert self.raw_step(event) == ()
        assert snapshot(self.machine) == before

    def note(self, phase: str, event: Event) -> None:
        """Count an edge whose step need not change anything."""
        self.edges.add((phase, trigger_of(event), self.machine.phase))


class CuratorWalk:
    """One curator, and peers that do what they like."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        rng = self.rng
        owners = names(int(rng.integers(1, 4)))
        rule = sorted(RULES)[int(rng.integers(len(RULES)))]
        session = session_file(
            owners=owners,
            points=int(rng.integers(1, 4)),
            rule=rule,
            min_owners=int(rng.integers(1, len(owners) + 1)),
        )
        self.bench = CuratorBench(session)
        self.walk = Walk(self.bench.machine, self.bench.step)
        self.players = {
            owner: Player(self.bench, owner, CORNERS[rng.integers(0, 16, size=int(rng.integers(0, 4)))])
            for owner in owners
        }
        self.peers = (*owners, CONSUMER)
        self.lost: set[str] = set()
        self.diligence = float(rng.choice([0.1, 0.7]))
        """How soon computations come back."""
        self.slow = {owner for owner in owners if rng.random() < 0.4}
        self.hostility = float(rng.choice([0.0, 0.05, 0.3]))
        self.trouble = float(rng.choice([0.0, 0.1, 0.4]))

    def run(self, steps: int = 120) -> Walk:
        self.walk.step(Started())
        for _ in range(steps):
            if self.bench.machine.phase == "done":
                break
            dice = self.rng.random()
            if dice < self.hostility:
                self._hostile()
            elif dice < self.hostility + self.trouble:
                self._trouble()
            else:
                self._honest()
        return self.walk

    def _pick(self, peers: Iterator[str] | tuple[str, ...]) -> str:
        several = tuple(peers)
        return several[int(self.rng.integers(len(several)))]

    def _say(self, peer: str, message: Message, **changes: int) -> bool:
        event = self.bench.received(peer, message, **changes)
        phase = self.bench.machine.phase
        taken = self.walk.step(event)
        if taken:
            self.walk.note(phase, event)
            self.bench.sent[peer] = max(self.bench.sent.get(peer, 0), event.sequence)
        return taken

    def _compute(self) -> bool:
        bench = self.bench
        if not bench.jobs or bench.machine.phase == "done":
            return False
        phase = bench.machine.phase
        if type(bench.jobs[0]) in (DrawNoise, ComputeWeights):
            values = [int(value) for value in self.rng.integers(-2, 3, size=DIMENSION)]
            if type(bench.jobs[0]) is DrawNoise:
                bench.draw()
                self.walk.edges.add((phase, "noise-drawn", bench.machine.phase))
            else:
                bench.broadcast(weights_of(*values))
                self.walk.edges.add((phase, "weights-computed", bench.machine.phase))
        else:
            bench.verify()
            self.walk.edges.add((phase, "points-hashed", bench.machine.phase))
        return True

    def _honest(self) -> None:
        if self.rng.random() < self.diligence and self._compute():
            return
        peer = self._pick(self.peers)
        if peer not in self.bench.machine.links or (peer in self.lost and self.rng.random() < 0.5):
            self.lost.discard(peer)
            self._say(peer, self.bench.hello(peer))
        elif peer == CONSUMER:
            self._consumer()
        elif peer not in self.slow or self.rng.random() < 0.15:
            self._owner(peer)

    def _consumer(self) -> None:
        machine = self.bench.machine
        if machine.target is None:
            self._say(CONSUMER, self.bench.target())
            return
        last = self.bench.last(CONSUMER)
        if isinstance(last, Delivery) and machine.phase == "delivering":
            self._say(CONSUMER, Receipt(part=last.part))
        elif isinstance(last, Close):
            self._say(CONSUMER, Farewell())

    def _owner(self, owner: str) -> None:
        seat, last = self.bench.machine.seats[owner], self.bench.last(owner)
        if isinstance(last, Broadcast) and seat.broadcast == last.round:
            bid = self.players[owner].answer(last)
            if self.rng.random() < 0.1 and bid.candidate is not None and not bid.exhausted:
                # A lie that only shows when the point is verified.
                bid = bid.model_copy(update={"score": fixed(WRONG)})
            self._say(owner, bid)
        elif isinstance(last, Ask) and seat.asked:
            self._say(owner, self.players[owner].offer(last))
        elif isinstance(last, Close):
            self._say(owner, Farewell())

    def _trouble(self) -> None:
        known = tuple(peer for peer in self.peers if peer in self.bench.machine.links)
        dice = self.rng.random()
        phase = self.bench.machine.phase
        if dice < 0.4 and known:
            peer = self._pick(known)
            event: Event = Returned(peer) if peer in self.lost else Lost(peer)
            self.lost ^= {peer}
            self.walk.step(event)
            self.walk.note(phase, event)
        elif dice < 0.75 and self.bench.timers:
            name = self._pick(tuple(sorted(self.bench.timers)))
            timer = self.bench.timers.pop(name)
            self.walk.step(TimerFired(name, timer.attempt))
            if self.bench.machine.phase != "done" and timer.attempt > 1:
                assert self.bench.step(TimerFired(name, timer.attempt - 1)) == ()
        elif self.walk.accepted:
            self.walk.repeat(self.walk.accepted[int(self.rng.integers(len(self.walk.accepted)))])

    def _hostile(self) -> None:
        bench = self.bench
        owner = self._pick(tuple(self.players))
        point = CORNERS[int(self.rng.integers(16))]
        weights = weights_of(1, 1, 1, 1)
        round_number = max(1, bench.machine.round)
        honest = bench.bid(round_number, point, 1, weights)
        wide = np.zeros(DIMENSION + 2, dtype=np.int16)
        other_way = None if honest.candidate is not None else candidate_of(point)
        attempts: list[tuple[str, Message, dict[str, int]]] = [
            (owner, bench.hello(owner, versions=(PROTOCOL_VERSION + 1,)), {}),
            (owner, bench.hello(owner, session=bytes(32)), {}),
            (owner, bench.hello(owner, name="somebody"), {}),
            (owner, bench.hello(owner, role="consumer"), {}),
            (owner, bench.hello(owner, sent=0, received=WRONG), {}),
            (owner, bench.hello(owner), {"sequence": bench.sent.get(owner, 0) + 1}),
            ("nobody", bench.hello("nobody"), {}),
            ("nobody", Farewell(), {}),
            (CONSUMER, bench.target(), {}),
            (CONSUMER, bench.target(), {"sequence": 0}),
            (CONSUMER, bench.target(embedding=np.zeros(DIMENSION + 2)), {}),
            (CONSUMER, bench.target(seed_total=np.full(DIMENSION, -(2**63), dtype=np.int64)), {}),
            (CONSUMER, Receipt(part=WRONG), {}),
            (CONSUMER, Farewell(), {}),
            (owner, Farewell(), {}),
            (owner, honest, {"sequence": 0}),
            (owner, honest, {"sequence": bench.sent.get(owner, 0) + 2}),
            (owner, honest, {"acknowledged": WRONG}),
            (owner, honest.model_copy(update={"round": WRONG}), {}),
            (owner, honest.model_copy(update={"handle": fixed(-1)}), {}),
            (owner, honest.model_copy(update={"candidate": other_way}), {}),
            (owner, honest.model_copy(update={"candidate": candidate_of(wide)}), {}),
            (
                owner,
                Offer.model_construct(round=round_number, handle=fixed(WRONG), candidate=candidate_of(point)),
                {},
            ),
        ]
        peer, message, changes = attempts[int(self.rng.integers(len(attempts)))]
        self._say(peer, message, **changes)


def curator_walk(seed: int) -> Walk:
    """One curator's life."""
    return CuratorWalk(seed).run()


class ParticipantWalk:
    """An owner or a consumer, and a curator that does what it likes."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        rule = sorted(RULES)[int(self.rng.integers(len(RULES)))]
        self.session = session_file(owners=names(2), points=4, rule=rule)
        self.rule = acquisition_rule(rule, {}, owners=2)
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
            else:
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
            "version": PROTOCOL_VERSION,
            "feature_map": MAP.digest,
            "sent": self.sent,
            "received": self.had,
        }
        return Welcome.model_validate(values | changes)

    def run(self, steps: int = 60) -> Walk:
        self.feed(Started())
        for _ in range(steps):
            if self.machine.phase == "done":
                break
            dice = self.rng.random()
            if dice < self.hostility:
                messages = self.hostile_messages()
                self.say(
                    messages[int(self.rng.integers(len(messages)))],
                    **({"sequence": self.sent + 2} if self.rng.random() < 0.1 else {}),
                )
            elif dice < self.hostility + self.trouble:
                self._trouble()
            elif self.jobs and self.rng.random() < 0.8:
                outcome = self.compute(self.jobs.pop(0))
                if outcome is not None:
                    self.feed(outcome)
            else:
                self.honest()
        return self.walk

    def _trouble(self) -> None:
        dice = self.rng.random()
        if dice < 0.3:
            self.feed(Connected())
        elif dice < 0.6:
            self.feed(Returned(CURATOR) if self.lost else Lost(CURATOR))
            self.lost = not self.lost
        elif dice < 0.7 and "abandon" in self.timers:
            self.walk.step(TimerFired("abandon", self.timers["abandon"].attempt))
        elif dice < 0.8:
            self.say(self.welcome())
        elif dice < 0.85:
            self.say(Close(outcome="complete" if self.rng.random() < 0.5 else "abandoned"))
        elif self.walk.accepted:
            self.walk.repeat(self.walk.accepted[-1])


class OwnerWalk(ParticipantWalk):
    def make(self) -> OwnerMachine:
        return OwnerMachine(self.session, name="owner-0", feature_map=MAP.digest, rule=self.rule)

    def honest(self) -> None:
        machine = self.machine
        assert isinstance(machine, OwnerMachine)
        if machine.phase == "greeting":
            self.say(self.welcome())
        elif machine.phase == "waiting":
            if machine._last_bid and self.rng.random() < 0.5:
                handle = machine._last_bid[0]
                self.say(Ask(round=machine.round, handle=fixed(handle)))
            elif machine.round < 4:
                self.say(Broadcast(round=machine.round + 1, weights=weights_of(1, 2, 3, 4), noise="none"))

    def compute(self, job: Effect) -> Event | None:
        if not isinstance(job, ScorePoints):
            return None
        withdrawn = {effect.row for effect in self.done if isinstance(effect, Withdraw)}
        row = int(self.rng.integers(-1, 5))
        if row in withdrawn:
            row = -1
        return Scored(job.round, row, WRONG, candidate_of(CORNERS[row]))

    def hostile_messages(self) -> list[Message]:
        machine = self.machine
        assert isinstance(machine, OwnerMachine)
        return [
            self.welcome(version=PROTOCOL_VERSION + 1),
            self.welcome(feature_map=bytes(32)),
            self.welcome(received=WRONG),
            Refused(code="configuration", detail="d", advice="a"),
            Refused(code="never-heard-of", detail="d", advice="a"),
            Broadcast(round=max(1, machine.round), weights=weights_of(1, 2, 3, 4), noise="none"),
            Broadcast(round=WRONG, weights=weights_of(1, 2, 3, 4), noise="none"),
            Broadcast(round=machine.round + 1, weights=weights_of(1), noise="none"),
            Ask(round=max(1, machine.round), handle=fixed(WRONG)),
        ]


class ConsumerWalk(ParticipantWalk):
    parts = 2

    def make(self) -> ConsumerMachine:
        return ConsumerMachine(self.session, name=CONSUMER, feature_map=MAP.digest)

    def honest(self) -> None:
        machine = self.machine
        assert isinstance(machine, ConsumerMachine)
        if machine.phase == "greeting":
            self.say(self.welcome())
        elif machine.phase == "waiting":
            self.say(self.delivery(machine._part + 1))

    def delivery(self, part: int, *, count: int = 2, width: int = DIMENSION) -> Delivery:
        features = np.zeros(width, dtype=np.int16) if width != DIMENSION else CORNERS[0]
        purchase = Purchase.model_construct(owner="owner-0", round=1, candidate=candidate_of(features))
        return Delivery.model_construct(part=part, parts=self.parts, purchases=(purchase,) * count)

    def compute(self, job: Effect) -> Event | None:
        if isinstance(job, ReleaseTarget):
            zeros = np.zeros(DIMENSION)
            return TargetReleased(zeros, 3, zeros.astype(np.int64), 2, "none", ())
        if isinstance(job, CheckPurchases):
            points = [purchase.candidate.point for purchase in job.purchases]
            return PurchasesHashed(np.array(points, dtype=np.int16).reshape(-1, DIMENSION))
        return None

    def hostile_messages(self) -> list[Message]:
        machine = self.machine
        assert isinstance(machine, ConsumerMachine)
        return [
            self.welcome(sent=0, received=WRONG),
            Refused(code="state-lost", detail="d", advice="a"),
            self.delivery(WRONG),
            self.delivery(machine._part),
            self.delivery(machine._part + 1, count=5),
            self.delivery(machine._part + 1, width=DIMENSION + 1),
            Delivery.model_construct(part=machine._part + 1, parts=WRONG, purchases=()),
            Delivery.model_construct(part=machine._part + 1, parts=max(1, machine._part), purchases=()),
        ]


def owner_walk(seed: int) -> Walk:
    """One owner's life."""
    return OwnerWalk(seed).run()


def consumer_walk(seed: int) -> Walk:
    """One consumer's life."""
    return ConsumerWalk(seed).run()
