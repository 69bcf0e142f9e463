"""The table of docs/protocol.md, phase by fault: what is on record and in the result, who ends with what.

Each case plays a session of two owners and three rounds to its end with one fault in it. The page's rows are
compared with what came of it, so neither can say anything that the other does not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from consumer.machine import ConsumerMachine
from owner.machine import OwnerMachine
from protocol.errors import ExitCode, RemoteProtocolError
from protocol.machine import (
    Connected,
    Effect,
    Event,
    Finish,
    Lost,
    Offended,
    Received,
    SignHead,
    Started,
    TimerFired,
    trigger_of,
)
from protocol.messages import PROTOCOL_VERSION, Broadcast, Close, Delivery, Receipt, Refused, Welcome, fixed
from protocol.names import CONSUMER, CURATOR
from tests.conftest import ROOT
from tests.simulation.harness import FAREWELL, HEAD_SIGNED, MAP, CuratorBench, names, session_file
from tests.unit.curator_rounds import BEST, CORNERS, A, B, W

POINTS = 3


class Recorded(CuratorBench):
    """A curator, the kinds of the events on its record, and peers that answer when they are let.

    Attributes:
        record: As a driver records them: a frame that is refused is an offence.
        mute: Peers that do not answer any more.
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
        self.record.append(trigger_of(event))
        return effects

    def come(self, *peers: str) -> Recorded:
        """Peers say hello, and the consumer then sends its target, if it has not yet."""
        for peer in peers:
            self.mute.discard(peer)
            self.say(peer, self.hello(peer))
            if peer == CONSUMER and self.machine.target is None:
                self.say(CONSUMER, self.target())
        return self

    def lose(self, peer: str) -> None:
        """A peer's connection ends, and it does not answer any more."""
        self.mute.add(peer)
        self.lost(peer)

    def begun(self) -> Recorded:
        """All are there, and the first broadcast is out."""
        self.step(Started())
        self.come(A, B, CONSUMER).broadcast(W)
        return self

    def delivering(self) -> Recorded:
        """All rounds are over, and the delivery is out."""
        return self.begun().play(until="delivering")

    def closing(self) -> Recorded:
        """The session is complete, and nobody has said farewell."""
        return self.delivering().play(until="closing")

    def play(self, until: str = "done") -> Recorded:
        """Let all that are not mute do what is due, and clocks run out where nobody does."""
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
        elif isinstance(last, Delivery) and machine.phase == "delivering" and last.part == machine._part:
            self.say(peer, self.receipt(last.part))
        elif isinstance(last, Close) and peer not in machine._farewells:
            self.say(peer, FAREWELL)
        else:
            return False
        return True

    def _wait(self) -> None:
        """The timer that is due first, of those that have not been cleared."""
        live = [t for t in self.timers.values() if self.machine._attempts[t.name] == t.attempt]
        timer = min(live, key=lambda timer: timer.due)
        self.fire(timer.name)
        if self.timers[timer.name] is timer:
            del self.timers[timer.name]


@dataclass(frozen=True)
class Outcome:
    """What came of a case.

    Attributes:
        record: Kinds of the events that are on the record because of the fault, in order: the curator's
            record, but where there is no curator.
        result: Fields of the curator's result that name what happened.
        codes: Who ends with what.
    """

    record: list[str]
    result: Mapping[str, Any]
    codes: str
    bench: Recorded | None = field(default=None, compare=False)


CASES: dict[str, Callable[[], Outcome]] = {}


def case(play: Callable[[], Outcome]) -> Callable[[], Outcome]:
    CASES[play.__name__.replace("_", "-")] = play
    return play


def outcome(bench: Recorded, record: list[str], itself: str, *, ends: bool = True) -> Outcome:
    """What a played session came to.

    Args:
        bench: The session.
        record: What is on record because of the fault; checked to be there, in that order.
        itself: Whose fault it is.
        ends: Whether its process ends by what it is told, or for want of it; else it is not there at all.
    """
    there = iter(bench.record)
    assert all(kind in there for kind in record), (record, bench.record)
    ledger = bench.machine.ledger
    assert bench.finish is not None
    result = {
        "absences": dict(Counter(absence.owner for absence in ledger.absences)),
        "faults": [(fault.owner, fault.round) for fault in ledger.faults],
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
    """The exit code of a party that is told what the curator said; without an end, it waits too long."""
    machine = ConsumerMachine(bench.opened) if peer == CONSUMER else OwnerMachine(bench.opened, name=peer)
    step(machine, Started())
    said = bench.inbox.get(peer, [])
    end = next((message for message in said if isinstance(message, Refused | Close)), None)
    if isinstance(end, Refused):
        return code(step(machine, Received(CURATOR, 0, 0, b"", end)))
    welcome = Welcome(version=PROTOCOL_VERSION, feature_map=MAP.digest, sent=0, received=0)
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


# -- enrolment -------------------------------------------------------------------------------------------


def enrolling(**options: Any) -> Recorded:
    bench = Recorded(**options)
    bench.step(Started())
    return bench


@case
def enrolment_owner_late() -> Outcome:
    bench = enrolling().come(A, CONSUMER)
    bench.now += 50.0
    assert bench.machine.phase == "enrolling"
    return outcome(bench.come(B).play(), ["received:hello"], B)


@case
def enrolment_owner_absent() -> Outcome:
    bench = enrolling().come(A, CONSUMER)
    bench.fire("enrolment")
    return outcome(bench.play(), ["timer:enrolment"], B, ends=False)


@case
def enrolment_too_few_owners() -> Outcome:
    bench = enrolling(min_owners=2).come(A, CONSUMER)
    bench.fire("enrolment")
    return outcome(bench.play(), ["timer:enrolment"], B, ends=False)


@case
def enrolment_owner_returns() -> Outcome:
    bench = enrolling().come(A, B)
    bench.lose(B)
    return outcome(bench.come(B, CONSUMER).play(), ["lost", "received:hello"], B)


@case
def enrolment_owner_twice() -> Outcome:
    """The older process is told by the loop (tests/processes/test_fault_semantics.py)."""
    bench = enrolling().come(A, B)
    return outcome(bench.come(B, CONSUMER).play(), ["received:hello", "received:hello"], B)


@case
def enrolment_owner_misbehaves() -> Outcome:
    bench = enrolling().come(A, CONSUMER)
    bench.say(B, bench.hello(B, session=bytes(32)))
    bench.mute.add(B)
    bench.fire("enrolment")
    return outcome(bench.play(), ["offended", "timer:enrolment"], B)


@case
def enrolment_curator_restarted() -> Outcome:
    bench = enrolling().come(A, B)
    bench.restart()
    assert bench.timers["enrolment"].due > bench.now + 59.0
    return outcome(bench.come(A, B, CONSUMER).play(), ["restarted"], CURATOR)


def without_curator(role: Literal["owner", "consumer"], *, welcomed: bool) -> Outcome:
    opened = Recorded().opened
    machine = ConsumerMachine(opened) if role == "consumer" else OwnerMachine(opened, name=A)
    record = []
    attempt = 0
    events: list[Event] = [Started()]
    if welcomed:
        welcome = Welcome(version=PROTOCOL_VERSION, feature_map=MAP.digest, sent=0, received=0)
        events += [Connected(), Received(CURATOR, 0, 0, b"", welcome), Lost(CURATOR)]
    for event in events:
        for effect in step(machine, event):
            attempt = getattr(effect, "attempt", attempt)
        record.append(trigger_of(event))
    phase = machine.phase
    ended = code(step(machine, TimerFired("abandon", attempt)))
    assert machine.phase == phase, "started again, it goes on"
    return Outcome([*(["lost"] if welcomed else []), "timer:abandon"], {}, f"others {ended}")


@case
def enrolment_curator_unreachable() -> Outcome:
    owner, consumer = (without_curator(role, welcomed=False) for role in ("owner", "consumer"))
    assert owner == consumer
    return owner


# -- target ----------------------------------------------------------------------------------------------


@case
def target_absent() -> Outcome:
    bench = enrolling().come(A, B)
    bench.fire("enrolment")
    return outcome(bench.play(), ["timer:enrolment"], CONSUMER, ends=False)


@case
def target_late() -> Outcome:
    bench = enrolling().come(A, B)
    bench.say(CONSUMER, bench.hello(CONSUMER))
    bench.fire("enrolment")
    return outcome(bench.play(), ["received:hello", "timer:enrolment"], CONSUMER)


@case
def target_consumer_returns() -> Outcome:
    bench = enrolling().come(A, B)
    bench.say(CONSUMER, bench.hello(CONSUMER))
    bench.lose(CONSUMER)
    return outcome(bench.come(CONSUMER).play(), ["lost", "received:hello", "received:target"], CONSUMER)


@case
def target_malformed() -> Outcome:
    bench = enrolling().come(A, B)
    bench.say(CONSUMER, bench.hello(CONSUMER))
    bench.say(CONSUMER, bench.target(maps=bytes(7)))
    bench.mute.add(CONSUMER)
    bench.fire("enrolment")
    return outcome(bench.play(), ["offended", "timer:enrolment"], CONSUMER)


# -- rounds ----------------------------------------------------------------------------------------------


@case
def rounds_owner_late() -> Outcome:
    bench = Recorded().begun()
    bench.say(A, bench.no_bid(1))
    bench.fire("round")
    bench.broadcast(W)
    bench.say(B, bench.no_bid(1))
    assert isinstance(bench.last(B), Broadcast), "it resumes with the current one"
    return outcome(bench.play(), ["timer:round", "received:bid"], B)


@case
def rounds_owner_late_for_the_clock() -> Outcome:
    bench = Recorded(fixed_cadence=2.0).begun()
    bench.say(A, bench.no_bid(1))
    bench.fire("round")
    bench.say(B, bench.no_bid(1))
    return outcome(bench.play(), ["timer:round", "received:bid", "timer:cadence"], B)


@case
def rounds_owner_gone() -> Outcome:
    bench = Recorded().begun()
    bench.lose(B)
    return outcome(bench.play(), ["lost", "timer:comeback"], B)


@case
def rounds_owner_returns_in_time() -> Outcome:
    bench = Recorded().begun()
    bench.lose(B)
    bench.say(A, bench.no_bid(1))
    assert bench.machine.phase == "bidding", "it is waited for"
    bench.returned(B)
    bench.mute.discard(B)
    return outcome(bench.play(), ["lost", "returned", "received:bid"], B)


@case
def rounds_owner_returns_later() -> Outcome:
    bench = Recorded().begun()
    bench.lose(B)
    bench.say(A, bench.no_bid(1))
    bench.fire("comeback")
    bench.broadcast(W)
    return outcome(bench.come(B).play(), ["lost", "timer:comeback", "received:hello"], B)


@case
def rounds_owner_restarted() -> Outcome:
    bench = Recorded().begun()
    bench.lose(B)
    bench.frames[B].clear()
    bench.mute.discard(B)
    bench.say(B, bench.hello(B, received=0))
    assert [kind for _, kind, _ in bench.frames[B]] == ["welcome", "broadcast"], "the same bytes again"
    return outcome(bench.play(), ["lost", "received:hello", "received:bid"], B)


@case
def rounds_owner_restarted_without_its_state() -> Outcome:
    bench = Recorded().begun()
    bench.say(B, bench.no_bid(1))
    bench.lose(B)
    bench.say(B, bench.hello(B, sent=0, received=0))
    return outcome(bench.play(), ["lost", "offended"], B)


@case
def rounds_owner_comes_for_the_first_time() -> Outcome:
    bench = enrolling().come(A, CONSUMER)
    bench.fire("enrolment")
    bench.broadcast(W)
    bench.say(A, bench.no_bid(1))
    bench.broadcast(W)
    return outcome(bench.come(B).play(), ["timer:enrolment", "received:hello", "received:bid"], B)


@case
def rounds_owner_twice() -> Outcome:
    bench = Recorded().begun()
    return outcome(bench.come(B).play(), ["received:hello", "received:bid"], B)


@case
def rounds_owner_misbehaves() -> Outcome:
    bench = Recorded().begun()
    bench.say(B, bench.no_bid(2))
    bench.mute.add(B)
    return outcome(bench.play(), ["offended"], B)


@case
def rounds_point_does_not_match() -> Outcome:
    bench = Recorded().begun()
    bench.say(B, bench.bid(1, CORNERS[BEST], 1, W, score=fixed(77)))
    return outcome(bench.play(), ["received:bid", "candidates-checked"], B)


@case
def rounds_too_few_owners() -> Outcome:
    bench = Recorded(min_owners=2).begun()
    bench.say(A, bench.no_bid(1))
    bench.fire("round")
    assert bench.machine.paused
    bench.say(B, bench.no_bid(1))
    assert not bench.machine.paused
    return outcome(bench.play(), ["timer:round", "received:bid"], B)


@case
def rounds_too_few_owners_for_too_long() -> Outcome:
    bench = Recorded(min_owners=2).begun()
    bench.lose(B)
    return outcome(bench.play(), ["lost", "timer:comeback", "timer:pause"], B)


@case
def rounds_consumer_gone() -> Outcome:
    bench = Recorded().begun()
    bench.lose(CONSUMER)
    bench.play(until="delivering")
    return outcome(bench.come(CONSUMER).play(), ["lost", "received:hello", "received:receipt"], CONSUMER)


@case
def rounds_consumer_misbehaves() -> Outcome:
    bench = Recorded().begun()
    bench.say(CONSUMER, Receipt(part=1, disputed=b""))
    bench.mute.add(CONSUMER)
    return outcome(bench.play(), ["offended"], CONSUMER)


@case
def rounds_curator_restarted() -> Outcome:
    bench = Recorded().begun()
    bench.say(A, bench.no_bid(1))
    bench.restart()
    assert bench.machine.phase == "bidding", "all are waited for"
    return outcome(bench.come(A, B, CONSUMER).play(), ["restarted", "received:hello"], CURATOR)


@case
def rounds_curator_gone() -> Outcome:
    owner, consumer = (without_curator(role, welcomed=True) for role in ("owner", "consumer"))
    assert owner == consumer
    return owner


# -- delivery --------------------------------------------------------------------------------------------


@case
def delivery_consumer_gone() -> Outcome:
    bench = Recorded().delivering()
    bench.lose(CONSUMER)
    bench.play()
    assert bench.finish is not None
    assert not bench.finish.final, "started again, it delivers"
    return outcome(bench, ["lost", "timer:delivery"], CONSUMER, ends=False)


@case
def delivery_consumer_comes_after_the_wait() -> Outcome:
    bench = Recorded().delivering()
    bench.lose(CONSUMER)
    bench.play()
    bench.finish = None
    bench.restart()
    bench.come(A, B)
    bench.mute.discard(CONSUMER)
    bench.say(CONSUMER, bench.hello(CONSUMER, received=0))
    return outcome(bench.play(), ["timer:delivery", "restarted", "received:receipt"], CONSUMER)


@case
def delivery_consumer_restarted() -> Outcome:
    bench = Recorded().delivering()
    bench.lose(CONSUMER)
    bench.frames[CONSUMER].clear()
    bench.mute.discard(CONSUMER)
    bench.say(CONSUMER, bench.hello(CONSUMER, received=0))
    assert [kind for _, kind, _ in bench.frames[CONSUMER]] == ["welcome", "delivery"], "the part again"
    return outcome(bench.play(), ["lost", "received:hello", "received:receipt"], CONSUMER)


@case
def delivery_consumer_misbehaves() -> Outcome:
    bench = Recorded().delivering()
    bench.say(CONSUMER, Receipt(part=9, disputed=b""))
    bench.mute.add(CONSUMER)
    return outcome(bench.play(), ["offended"], CONSUMER)


@case
def delivery_owner_gone() -> Outcome:
    bench = Recorded().delivering()
    bench.lose(B)
    return outcome(bench.play(), ["lost", "received:receipt"], B)


@case
def delivery_curator_restarted() -> Outcome:
    bench = Recorded().delivering()
    bench.restart()
    bench.say(CONSUMER, bench.hello(CONSUMER, received=0))
    return outcome(bench.come(A, B).play(), ["restarted", "received:hello", "received:receipt"], CURATOR)


# -- closing ---------------------------------------------------------------------------------------------


@case
def closing_farewell_does_not_come() -> Outcome:
    bench = Recorded().closing()
    bench.mute.add(B)
    return outcome(bench.play(), ["timer:closing"], B)


@case
def closing_owner_returns() -> Outcome:
    bench = Recorded().delivering()
    bench.lose(B)
    bench.play(until="closing")
    return outcome(bench.come(B).play(), ["lost", "received:hello", "received:farewell"], B)


@case
def closing_owner_does_not_return() -> Outcome:
    bench = Recorded().delivering()
    bench.lose(B)
    bench.play(until="closing")
    return outcome(bench.play(), ["lost", "timer:comeback"], B)


@case
def closing_owner_misbehaves() -> Outcome:
    bench = Recorded().closing()
    bench.say(B, bench.no_bid(9))
    bench.mute.add(B)
    return outcome(bench.play(), ["offended"], B)


@case
def closing_curator_restarted() -> Outcome:
    bench = Recorded().closing()
    bench.restart()
    return outcome(bench.come(A, B, CONSUMER).play(), ["restarted", "received:farewell"], CURATOR)


# -- the page --------------------------------------------------------------------------------------------

PAGE = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")


def rows() -> dict[str, list[str]]:
    """The page's rows, by the case that the last cell names."""
    text = PAGE.split("## When a party is late, gone, back, or wrong")[1].split("\n## ")[0]
    found = [line.strip("| ").split(" | ") for line in text.splitlines() if line.endswith("` |")]
    return {row[-1].strip("`"): row for row in found}


def test_the_page_has_every_case_and_no_other() -> None:
    assert list(rows()) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_what_a_fault_comes_to_is_what_the_page_says(name: str) -> None:
    came = CASES[name]()
    _, _, record, result, codes, _ = rows()[name]
    assert record == ", ".join(f"`{kind.replace(':', ' ')}`" for kind in came.record)
    assert re.findall(r"`(\w+)`", result) == list(came.result)
    assert codes == came.codes
