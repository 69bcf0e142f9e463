"""A curator restarted in the middle of a session waits for those who were there, and loses nothing."""

from __future__ import annotations

import pytest

from hushbid.protocol.errors import ExitCode
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.wire.messages import Broadcast
from tests.simulation.harness import CuratorBench
from tests.support.curator_rounds import (
    BEST,
    SECOND,
    A,
    B,
    C,
    W,
    absences,
    bench_of,
    bid,
    bidding,
    told,
    winners,
)


def back(bench: CuratorBench, *peers: str) -> None:
    """Let peers say hello on a new connection."""
    for peer in peers:
        bench.say(peer, bench.hello(peer))


def test_a_round_goes_on_with_all_who_were_there() -> None:
    bench = bidding(owners=2)
    bid(bench, A, SECOND)
    bench.restart()
    assert bench.machine.phase == "bidding", "nobody is there, and all are waited for"
    back(bench, CONSUMER, B)
    bid(bench, B, BEST)
    assert bench.machine.phase == "verifying", "A's bid is in"
    bench.verify()
    assert (winners(bench), absences(bench)) == ([B], [])


def test_who_does_not_come_back_is_absent() -> None:
    bench = bidding(owners=2)
    bid(bench, A, SECOND)
    bench.restart()
    back(bench, CONSUMER, A)
    bench.fire("comeback")
    bench.verify()
    assert (winners(bench), absences(bench)) == ([A], [(1, B)])


def test_who_was_away_before_is_not_waited_for_again() -> None:
    bench = bidding(owners=2)
    bid(bench, A, SECOND)
    bench.gone(B)
    bench.verify()
    bench.broadcast(W)
    bench.restart()
    back(bench, CONSUMER, A)
    bid(bench, A, BEST, 2)
    assert bench.machine.phase == "verifying"


def test_an_owner_that_lacks_a_broadcast_is_sent_the_same_bytes_again() -> None:
    bench = bidding(owners=2)
    before = bench.frames[B][-1]
    bench.restart()
    bench.say(B, bench.hello(B, received=0))
    assert bench.frames[B][-1] == before
    assert isinstance(bench.last(B), Broadcast)


def test_who_comes_late_to_a_round_is_sent_its_broadcast() -> None:
    bench = bidding(owners=2)
    bid(bench, A, SECOND)
    bench.gone(B)
    bench.verify()
    bench.broadcast(W)
    bench.restart()
    back(bench, A, B)
    bid(bench, B, BEST)  # the one of round 1, which is late
    last = bench.last(B)
    assert isinstance(last, Broadcast)
    assert last.round == bench.machine.round == 2


@pytest.mark.parametrize("rule", ["winner-only", "published"])
def test_a_point_that_was_asked_for_is_waited_for(rule: str) -> None:
    bench = bidding(rule, owners=1, points=1)
    bid(bench, A, BEST)
    assert bench.machine.phase == "asking"
    bench.restart()
    assert bench.machine.phase == "asking"
    back(bench, CONSUMER)
    bench.fire("comeback")
    assert absences(bench) == [(1, A)]


TIMERS = {
    "enrolling": "enrolment",
    "bidding": "round",
    "paused": "pause",
    "asking": "round",
    "delivering": "delivery",
    "closing": "closing",
}


def in_phase(phase: str) -> CuratorBench:
    """A session brought to that phase."""
    if phase == "enrolling":
        bench = bench_of(owners=2)
        bench.enrol([A])
        return bench
    bench = bidding("winner-only", owners=2, points=1, min_owners=2 if phase == "paused" else 1)
    bid(bench, A, BEST)
    if phase == "paused":
        bench.gone(B)
    if phase in ("bidding", "paused"):
        return bench
    bid(bench, B, SECOND)
    if phase != "asking":
        bench.fire("round")
        bench.fire("round")
        assert bench.machine.phase == "delivering"
    if phase == "closing":
        bench.say(CONSUMER, bench.receipt(1))
    return bench


@pytest.mark.parametrize("phase", TIMERS)
def test_what_is_due_gets_its_time_anew(phase: str) -> None:
    bench = in_phase(phase)
    assert bench.machine.phase == ("bidding" if phase == "paused" else phase)
    name = TIMERS[phase]
    earlier = bench.timers[name]
    bench.now += 100.0
    bench.restart()
    timer = bench.timers[name]
    assert timer.due == pytest.approx(bench.now + getattr(bench.session.timeouts, name), abs=0.01)
    assert timer.attempt == earlier.attempt + 1
    assert "comeback" in bench.timers


def test_a_pause_is_over_with_the_session() -> None:
    """Given up for want of owners, and restarted while it closes: it has paused, and no longer is."""
    bench = in_phase("paused")
    bench.fire("pause")
    assert bench.machine.phase == "closing"
    pause = bench.timers["pause"]
    bench.restart()
    assert bench.timers["pause"] is pause


# -- closing -----------------------------------------------------------------------------------------


def test_whoever_was_told_that_it_is_over_can_still_say_farewell() -> None:
    bench = in_phase("closing")
    bench.say_farewell(A)
    bench.restart()
    back(bench, CONSUMER, B)
    assert told(bench, B).count("close") == 1, "a Close that was had is not said again"
    bench.say_farewell(CONSUMER)
    assert bench.finish is None
    bench.say_farewell(B)
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.DONE


def test_a_peer_lost_shortly_before_the_close_is_waited_for_and_told() -> None:
    bench = in_phase("delivering")
    bench.lost(B)
    bench.say(CONSUMER, bench.receipt(1))
    for peer in (A, CONSUMER):
        bench.say_farewell(peer)
    assert bench.finish is None
    back(bench, B)
    assert told(bench, B)[-1] == "close"
    bench.say_farewell(B)
    assert bench.finish is not None


def test_a_peer_that_does_not_come_to_be_told_is_not_waited_for_longer() -> None:
    bench = in_phase("delivering")
    bench.lost(B)
    bench.say(CONSUMER, bench.receipt(1))
    for peer in (A, CONSUMER):
        bench.say_farewell(peer)
    bench.fire("comeback")
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.DONE


def test_a_peer_that_has_said_farewell_is_not_expected_back() -> None:
    bench = in_phase("closing")
    bench.say_farewell(A)
    bench.lost(A)
    bench.say_farewell(CONSUMER)
    bench.say_farewell(B)
    assert bench.finish is not None


# -- whom to wait for, and until when ----------------------------------------------------------------


def test_each_lost_peer_is_waited_for_its_own_time() -> None:
    """The loss of another gives nobody more time."""
    bench = bidding(owners=3)
    bid(bench, C, BEST)
    bench.lost(A)
    began = bench.now
    bench.now += 6.0
    bench.lost(B)
    assert bench.timers["comeback"].due == pytest.approx(began + bench.session.timeouts.comeback, abs=0.01)
    bench.fire("comeback")
    assert bench.machine.phase == "bidding", "B has time left"
    assert set(bench.machine.expected_back) == {B}
    assert bench.timers["comeback"].due == pytest.approx(began + 6.0 + 10.0, abs=0.01)
    bench.fire("comeback")
    bench.verify_all()
    assert absences(bench) == [(1, A), (1, B)]


def test_nobody_is_waited_for_who_is_back_when_the_time_is_over() -> None:
    bench = bidding(owners=2)
    bench.lost(A)
    back(bench, A)
    attempt = bench.timers["comeback"].attempt
    bench.fire("comeback")
    assert bench.timers["comeback"].attempt == attempt, "it is not set again"
    assert bench.machine.phase == "bidding"
