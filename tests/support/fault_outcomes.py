"""A played session of two owners and three rounds, and the outcome of a fault in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hushbid.consumer.machine import ConsumerMachine
from hushbid.consumer.party import consumer_machine
from hushbid.owner.machine import OwnerMachine
from hushbid.protocol.errors import ExitCode, RemoteProtocolError
from hushbid.protocol.machine.machine import (
    Effect,
    Event,
    Finish,
    Lost,
    Offended,
    Received,
    SignHead,
    Started,
    TimerFired,
)
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.wire.messages import (
    Broadcast,
    Close,
    Delivery,
    Ready,
    Refused,
    Roots,
    SecretMap,
    Welcome,
)
from tests.simulation.committing import commitment_of
from tests.simulation.harness import HEAD_SIGNED, CuratorBench, names, session_file
from tests.support.curator_rounds import A, B, W

POINTS = 3


class Recorded(CuratorBench):
    """A curator, the kinds of the events on its record, and peers that answer when they are let.

    Attributes:
        record: As a driver records them: a refused frame is an offence.
        mute: Peers that no longer answer.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(session_file(owners=names(2), points=POINTS, **options))
        self.record: list[str] = []
        self.mute: set[str] = set()

    def take(self, event: Event) -> tuple[Effect, ...]:
        try:
            effects = super().take(event)
        except RemoteProtocolError as error:
            assert isinstance(event, Received)
            event = Offended(
                event.peer, event.sequence, event.acknowledged, error.offence, error.what, error.advice
            )
            effects = super().take(event)
        self.record.append(event.trigger)
        return effects

    def come(self, *peers: str) -> Recorded:
        """Let peers say hello, and the consumer then send its target, if it has not yet."""
        for peer in peers:
            self.mute.discard(peer)
            self.say(peer, self.hello(peer))
            if peer == CONSUMER and self.machine.target is None and self.machine.gathered:
                self.say(CONSUMER, self.target())
        return self

    def commit(self, *owners: str) -> Recorded:
        """Let owners commit to their rows."""
        for owner in owners:
            self.say(owner, commitment_of(self, owner))
        return self

    def lose(self, peer: str) -> None:
        """End a peer's connection; it no longer answers."""
        self.mute.add(peer)
        self.lost(peer)

    def begun(self) -> Recorded:
        """Reach the state with all present, and the first broadcast sent."""
        self.step(Started())
        self.come(A, B, CONSUMER).broadcast(W)
        return self

    def delivering(self) -> Recorded:
        """Reach the end of all rounds, with the delivery sent."""
        return self.begun().play(until="delivering")

    def closing(self) -> Recorded:
        """Reach a complete session, before anybody has said farewell."""
        return self.delivering().play(until="closing")

    def play(self, until: str = "done") -> Recorded:
        """Let all that are not mute do what is due, and let clocks run out where nobody does."""
        while self.machine.phase != until and not (self.finish and self.machine.phase != "done"):
            if self.jobs:
                self._compute()
            elif not any(self._answer(peer) for peer in (B, A, CONSUMER)):
                self._wait()
        return self

    def _compute(self) -> None:
        if self.machine.phase == "weighing":
            self.broadcast(W)
        else:
            self.verify()

    def _answer(self, peer: str) -> bool:
        if peer in self.mute or {message.kind for message in self.inbox.get(peer, [])} <= {"welcome"}:
            return False
        machine = self.machine
        last = next(message for message in reversed(self.inbox[peer]) if not isinstance(message, Welcome))
        if isinstance(last, Broadcast) and machine.seats[peer].broadcast == last.round:
            self.say(peer, self.no_bid(last.round))
        elif isinstance(last, SecretMap) and not machine.seats[peer].enrolled:
            self.say(peer, Ready())
        elif isinstance(last, Roots) and machine.target is None:
            self.say(CONSUMER, self.target())
        elif (
            isinstance(last, Delivery) and machine.phase == "delivering" and last.part == machine.ending.part
        ):
            self.say(peer, self.receipt(last.part))
        elif isinstance(last, Close) and peer not in machine.ending.farewells:
            self.say_farewell(peer)
        else:
            return False
        return True

    def _wait(self) -> None:
        """Let the first due timer run out that was not cleared."""
        live = [t for t in self.timers.values() if self.machine._attempts[t.name] == t.attempt]
        timer = min(live, key=lambda timer: timer.due)
        self.fire(timer.name)
        if self.timers[timer.name] is timer:
            del self.timers[timer.name]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case.

    Attributes:
        record: Kinds of the events that are on record because of the fault, in order: on the curator's
            record, unless there is no curator.
        result: Fields of the curator's result that name the fault.
        codes: Each party's exit code.
    """

    record: list[str]
    result: Mapping[str, Any]
    codes: str
    bench: Recorded | None = field(default=None, compare=False)


def outcome(bench: Recorded, record: list[str], itself: str, *, ends: bool = True) -> Outcome:
    """The outcome of a played session.

    Args:
        record: The record of the fault; checked to be there, in that order.
        itself: The party at fault.
        ends: Whether its process ends by what it is told, or for want of it; otherwise there is none.
    """
    there = iter(bench.record)
    assert all(kind in there for kind in record), (record, bench.record)
    ledger = bench.machine.ledger
    assert bench.finish is not None
    result = {
        "absences": dict(Counter(absence.owner for absence in ledger.absences)),
        "faults": [(fault.owner, fault.bid_round) for fault in ledger.faults],
        "refusals": [(refusal.peer, refusal.offence.value) for refusal in ledger.refusals],
    }
    complete = bench.finish.code is ExitCode.DONE  # else an error is told in the place of a result
    others = {code_of(bench, peer) for peer in (A, B, CONSUMER) if peer != itself}
    assert len(others) == 1, "all others end alike"
    codes = {CURATOR: int(bench.finish.code), "others": others.pop()}
    if ends:
        codes["itself"] = code_of(bench, itself) if itself != CURATOR else codes[CURATOR]
    return Outcome(
        record, {name: value for name, value in result.items() if value and complete}, told_of(codes), bench
    )


def told_of(codes: Mapping[str, int]) -> str:
    if len(codes) == 3 and len(set(codes.values())) == 1:
        return f"all {codes[CURATOR]}"
    return ", ".join(f"{who} {code}" for who, code in codes.items())


def code_of(bench: CuratorBench, peer: str) -> int:
    """The exit code of a party that got the curator's message; without an end, it waits too long."""
    machine = consumer_machine(bench.opened) if peer == CONSUMER else OwnerMachine(bench.opened, name=peer)
    step(machine, Started())
    said = bench.inbox.get(peer, [])
    end = next((message for message in said if isinstance(message, Refused | Close)), None)
    if isinstance(end, Refused):
        return code(step(machine, Received(CURATOR, 0, 0, b"", end)))
    public_map = bench.opened.public_map
    digest = None if public_map is None else public_map.digest
    version = bench.opened.protocol_version
    welcome = Welcome(version=version, feature_map=digest, sent=0, received=0)
    step(machine, Received(CURATOR, 0, 0, b"", welcome))
    if isinstance(end, Close):
        return code(step(machine, Received(CURATOR, 1, 0, b"", end)))
    (timer,) = [effect for effect in step(machine, Lost(CURATOR)) if not isinstance(effect, Finish)]
    return code(step(machine, TimerFired("abandon", timer.attempt)))  # type: ignore[attr-defined]


def step(machine: OwnerMachine | ConsumerMachine, event: Event) -> tuple[Effect, ...]:
    effects = machine.step(event, 0.0)
    return machine.step(HEAD_SIGNED, 0.0) if SignHead() in effects else effects


def code(effects: tuple[Effect, ...]) -> int:
    (finish,) = [effect for effect in effects if isinstance(effect, Finish)]
    return int(finish.code)
