"""The table of docs/protocol.md, phase by fault: the record, the result, and each party's exit code.

Each case plays a session of two owners and three rounds to its end with one fault in it. The page's rows are
compared with the outcomes, so neither can say anything that the other does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest

from hushbid.consumer.party import consumer_machine
from hushbid.owner.machine import OwnerMachine
from hushbid.protocol.machine.machine import Connected, Event, Lost, Received, Started, TimerFired
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.wire.messages import PROTOCOL_VERSION, Broadcast, Receipt, Welcome, fixed
from tests.docs.pages import Page, names_in
from tests.simulation.harness import MAP
from tests.support.curator_rounds import BEST, CORNERS, A, B, W
from tests.support.fault_outcomes import Outcome, Recorded, code, outcome, step

CASES: dict[str, Callable[[], Outcome]] = {}


def case(play: Callable[[], Outcome]) -> Callable[[], Outcome]:
    CASES[play.__name__.replace("_", "-")] = play
    return play


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


def committing() -> Recorded:
    return enrolling(rule="sealed", commitment_depth=4).come(A, B, CONSUMER)


@case
def enrolment_commitment_late() -> Outcome:
    bench = committing().commit(A)
    bench.fire("enrolment")
    return outcome(bench.commit(B).play(), ["received:commitment"], B)


@case
def enrolment_commitment_wrong() -> Outcome:
    bench = committing().commit(A, B)
    return outcome(bench.commit(B).play(), ["offended"], B)


@case
def enrolment_owner_returns() -> Outcome:
    bench = enrolling().come(A, B)
    bench.lose(B)
    return outcome(bench.come(B, CONSUMER).play(), ["lost", "received:hello"], B)


@case
def enrolment_owner_twice() -> Outcome:
    """The loop tells the older process (tests/processes/test_fault_semantics.py)."""
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
    machine = consumer_machine(opened) if role == "consumer" else OwnerMachine(opened, name=A)
    record = []
    attempt = 0
    events: list[Event] = [Started()]
    if welcomed:
        welcome = Welcome(version=PROTOCOL_VERSION, feature_map=MAP.digest, sent=0, received=0)
        events += [Connected(), Received(CURATOR, 0, 0, b"", welcome), Lost(CURATOR)]
    for event in events:
        for effect in step(machine, event):
            attempt = getattr(effect, "attempt", attempt)
        record.append(event.trigger)
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
def rounds_owner_returns_where_points_are_bought_once() -> Outcome:
    bench = Recorded(distinct=True).begun()
    bench.lose(B)
    bench.say(A, bench.no_bid(1))
    bench.fire("comeback")
    bench.broadcast(W)
    bench.come(B).play()
    assert [absence.round for absence in bench.machine.ledger.absences if absence.owner == B] == [1, 2, 3]
    return outcome(bench, ["lost", "timer:comeback", "received:hello"], B)


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

PAGE = Page("docs/protocol.md")
ROWS = {row[-1].strip("`"): row for row in PAGE.rows("Faults by phase", below=True)}
"""The page's rows, by the case that the last cell names."""


def test_the_page_has_every_case_and_no_other() -> None:
    assert list(ROWS) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_what_a_fault_comes_to_is_what_the_page_says(name: str) -> None:
    came = CASES[name]()
    _, _, record, result, codes, _ = ROWS[name]
    assert record == ", ".join(f"`{kind.replace(':', ' ')}`" for kind in came.record)
    assert names_in(result) == list(came.result)
    assert codes == came.codes
