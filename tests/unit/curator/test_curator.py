"""A curator's rounds when owners are late, gone, wrong or silent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hushbid.protocol.config.session import TimeoutSection
from hushbid.protocol.errors import ExitCode, Offence
from hushbid.protocol.session.points import NO_FEATURES
from hushbid.protocol.wire.messages import (
    Ask,
    Broadcast,
    Close,
    Offer,
    fixed,
)
from tests.simulation.harness import candidate_of, names
from tests.support.curator_rounds import (
    BEST,
    CORNERS,
    SECOND,
    THIRD,
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

# -- late, lost and returned -------------------------------------------------------------------------


def test_a_late_point_is_pooled_and_its_owner_resumes_with_the_current_broadcast() -> None:
    bench = bidding(owners=2)
    bid(bench, A, THIRD)
    bench.fire("round")
    bench.verify()
    assert absences(bench) == [(1, B)]
    bench.broadcast(W)
    assert told(bench, B) == ["welcome", "broadcast"], "nothing is sent while an answer is due"
    bid(bench, B, BEST)
    last = bench.last(B)
    assert isinstance(last, Broadcast)
    assert last.round == 2
    bench.say(B, bench.no_bid(2))
    bid(bench, A, SECOND, 2)
    bench.verify()
    assert bench.chosen[1] == CORNERS[BEST].tobytes()
    assert absences(bench) == [(1, B)]


@pytest.mark.parametrize("rule", ["winner-only", "published"])
def test_a_bid_that_comes_while_points_are_asked_for_does_not_count_in_its_round(rule: str) -> None:
    bench = bidding(rule, owners=2)
    bid(bench, A, SECOND)
    bench.fire("round")
    assert bench.machine.phase == "asking"
    bid(bench, B, BEST)
    bench.say(A, Offer(round=1, handle=fixed(1), candidate=candidate_of(CORNERS[SECOND])))
    bench.verify()
    assert absences(bench) == [(1, B)]
    assert winners(bench) == [A]
    bench.broadcast(W)
    assert told(bench, B)[-1] == "broadcast"


def test_a_point_that_comes_while_others_are_verified_does_not_make_its_owner_present_unverified() -> None:
    bench = bidding(owners=2)
    bid(bench, A, SECOND)
    bench.fire("round")
    assert bench.machine.phase == "verifying"
    bid(bench, B, BEST)
    bench.verify()
    assert bench.machine.phase == "verifying", "B's point is verified too"
    bench.verify()
    assert (absences(bench), winners(bench)) == ([(1, B)], [A])


def test_an_absent_owners_pool_is_withheld_and_comes_back_with_it() -> None:
    bench = bidding(owners=2)
    bid(bench, A, SECOND)
    bid(bench, B, BEST)
    bench.verify()
    bench.gone(A)
    bench.broadcast(W)
    bid(bench, B, THIRD, 2)
    bench.verify()
    assert winners(bench) == [B, B], "A's point is better, and A is not there"
    bench.returned(A)
    bench.broadcast(W)
    bench.say(A, bench.no_bid(3))
    bench.say(B, bench.no_bid(3))
    assert winners(bench) == [B, B, A]
    assert absences(bench) == [(2, A)]


def test_an_owner_that_is_lost_is_waited_for_a_short_while() -> None:
    """It may have crashed and may resume: without it the round would be another one."""
    bench = bidding(owners=2)
    bid(bench, A, BEST)
    before = bench.now
    bench.lost(B)
    assert bench.machine.phase == "bidding"
    comeback = bench.timers["comeback"].due - before
    assert comeback == pytest.approx(bench.session.timeouts.comeback, abs=0.01)
    bench.fire("comeback")
    assert bench.machine.phase == "verifying"
    bench.verify()
    assert absences(bench) == [(1, B)]


@pytest.mark.parametrize("how", ["returns", "reconnects"])
def test_an_owner_that_is_back_in_time_takes_part_in_its_round(how: str) -> None:
    bench = bidding(owners=2)
    bid(bench, A, SECOND)
    bench.lost(B)
    if how == "returns":
        bench.returned(B)
    else:
        bench.say(B, bench.hello(B))
    bench.fire("comeback")
    assert bench.machine.phase == "bidding", "it is there, and has the time of the round"
    bid(bench, B, BEST)
    bench.verify()
    assert (winners(bench), absences(bench)) == ([B], [])


def test_an_owner_whose_bid_is_in_is_not_waited_for() -> None:
    bench = bidding(owners=2)
    bid(bench, B, BEST)
    bench.lost(B)
    bid(bench, A, SECOND)
    assert bench.machine.phase == "verifying"


def test_the_time_of_a_round_ends_the_wait_for_a_lost_owner_too() -> None:
    bench = bidding(owners=2)
    bid(bench, A, BEST)
    bench.lost(B)
    bench.fire("round")
    assert bench.machine.phase == "verifying"


def test_an_owner_that_was_refused_is_not_waited_for() -> None:
    """A new connection does not undo its breach."""
    bench = bidding(owners=2)
    bid(bench, A, BEST)
    bench.offend(B, bench.no_bid(3))
    assert bench.machine.phase == "verifying"
    bench.verify()
    bench.broadcast(W)
    bench.lost(B)
    bid(bench, A, SECOND, 2)
    assert bench.machine.phase == "verifying"


def test_an_owner_that_never_came_is_not_waited_for() -> None:
    bench = bench_of(owners=2)
    bench.enrol([A])
    bench.fire("enrolment")
    bench.broadcast(W)
    bench.lost(B)
    bid(bench, A, BEST)
    assert bench.machine.phase == "verifying"


def test_an_owner_that_reconnects_is_sent_again_what_it_lacks() -> None:
    bench = bidding(owners=2)
    bench.lost(A)
    bench.frames[A].clear()
    bench.say(A, bench.hello(A, received=0))
    (_, first, _), (sequence, second, _) = bench.frames[A]
    assert (first, second, sequence) == ("welcome", "broadcast", 1)
    bid(bench, A, BEST)
    assert bench.machine.seats[A].has_bid(1)


def test_an_owner_that_returns_while_nothing_is_asked_waits_for_the_next_broadcast() -> None:
    bench = bench_of(owners=2, timeouts=TimeoutSection())
    bench.enrol([A])
    bench.fire("enrolment")
    assert bench.machine.phase == "weighing"
    bench.say(B, bench.hello(B))
    assert told(bench, B) == ["welcome"]
    bench.broadcast(W)
    assert told(bench, B) == ["welcome", "broadcast"]


# -- too few owners ----------------------------------------------------------------------------------


def test_fewer_owners_than_needed_pause_the_session_until_one_comes_back() -> None:
    bench = bidding(owners=2, min_owners=2)
    bid(bench, A, SECOND)
    bench.gone(B)
    assert bench.machine.phase == "bidding"
    assert "pause" in bench.timers
    bench.fire("round")
    assert bench.machine.phase == "bidding", "nothing is decided with too few"
    bench.returned(B)
    bid(bench, B, BEST)
    bench.verify()
    assert winners(bench) == [B]
    pause = bench.timers["pause"]
    phase = bench.machine.phase
    bench.fire("pause")
    assert (bench.machine.phase, bench.finish) == (phase, None), f"{pause} is over"


def test_a_pause_that_lasts_too_long_ends_the_session() -> None:
    bench = bidding(owners=2, min_owners=2)
    bid(bench, A, SECOND)
    bench.gone(B)
    bench.fire("pause")
    bench.see_out()
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.TIMEOUT
    assert "In round 1 only 1 owners" in bench.finish.reason
    close = bench.last(A)
    assert isinstance(close, Close)
    assert close.outcome == "abandoned"


def test_nobody_there_pauses_as_well() -> None:
    bench = bidding(owners=1)
    bench.lost(A)
    bench.fire("round")
    assert "pause" in bench.timers
    bench.returned(A)
    bid(bench, A, BEST)
    bench.verify()
    assert winners(bench) == [A]


# -- points that do not match ------------------------------------------------------------------------

OUTSIDE = np.full(4, NO_FEATURES, dtype=np.int16)
"""What the numerics make of a point outside of the bounds; in these sessions a point is its own φ."""
FORGED = np.array([30000, 0, 0, 0], dtype=np.int16)
OFF_BY_TWO = CORNERS[BEST] + np.array([2, 0, 0, 0], dtype=np.int16)

MISMATCHES: dict[str, dict[str, Any]] = {
    "the point is outside the public bounds": {"candidate": candidate_of(CORNERS[BEST], OUTSIDE)},
    "the features are no output of the feature map": {"candidate": candidate_of(FORGED)},
    "the features are not those of the point": {"candidate": candidate_of(CORNERS[BEST], OFF_BY_TWO)},
    "the bid is not the score of the features": {"score": fixed(10**9)},
}


@pytest.mark.parametrize("what", MISMATCHES)
def test_a_mismatch_is_a_fault_in_the_ledger_and_nowhere_else(what: str) -> None:
    bench = bidding(points=4)
    bid(bench, A, BEST)
    bid(bench, B, SECOND)
    bid(bench, C, THIRD)
    bench.verify()
    assert winners(bench) == [A]
    bench.broadcast(W)
    changes = MISMATCHES[what]
    bid(bench, B, BEST, 2, **changes)
    bid(bench, A, THIRD, 2)
    bid(bench, C, THIRD, 2)
    bench.verify()
    (fault,) = bench.machine.ledger.faults
    assert (fault.bid_round, fault.owner, fault.what) == (2, B, what)
    assert winners(bench) == [A, A], "what B had in the pool is withheld too: SECOND is better than THIRD"
    for number in (3, 4):
        bench.broadcast(W)
        assert told(bench, B)[-1] == "broadcast", "B goes on as before, and is not told"
        for owner in names(3):
            bench.say(owner, bench.no_bid(number))
    assert absences(bench) == [(2, B), (3, B), (4, B)]
    assert B not in winners(bench)
    assert set(told(bench, B)) == {"welcome", "broadcast"}


def test_one_unit_of_difference_is_a_fault_as_arithmetic_is_the_same_on_every_machine() -> None:
    bench = bidding(owners=2)
    moved = CORNERS[BEST] + np.array([1, -1, 0, 1], dtype=np.int16)
    bid(bench, A, BEST, candidate=candidate_of(CORNERS[BEST], moved))
    bid(bench, B, SECOND)
    bench.verify()
    assert [fault.owner for fault in bench.machine.ledger.faults] == [A]
    assert winners(bench) == [B]


def test_a_mismatch_behind_a_late_bid_counts_too() -> None:
    bench = bidding(owners=2)
    bid(bench, A, BEST)
    bench.fire("round")
    bench.verify()
    bench.broadcast(W)
    bid(bench, B, SECOND, score=fixed(1))
    bid(bench, B, THIRD, 2)
    bid(bench, A, THIRD, 2)
    bench.verify()
    assert [(fault.bid_round, fault.owner) for fault in bench.machine.ledger.faults] == [(1, B)]
    assert winners(bench) == [A, A]


# -- asking ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["winner-only", "published"])
@pytest.mark.parametrize("trouble", ["mismatch", "lost", "silent"])
def test_when_the_best_bidder_fails_the_next_one_is_asked(rule: str, trouble: str) -> None:
    bench = bench_of(rule, points=1)
    # No coin asks anybody but the first.
    bench.coins = _Coins()  # type: ignore[assignment]
    bench.enrol()
    bench.broadcast(W)
    bid(bench, A, BEST)
    bid(bench, B, SECOND)
    bid(bench, C, THIRD)
    assert isinstance(bench.last(A), Ask)
    assert [told(bench, owner)[-1] for owner in (B, C)] == ["broadcast", "broadcast"]
    if trouble == "mismatch":
        bench.say(A, Offer(round=1, handle=fixed(1), candidate=candidate_of(CORNERS[THIRD])))
        bench.verify()
    elif trouble == "lost":
        bench.gone(A)
    else:
        bench.fire("round")
    assert isinstance(bench.last(B), Ask)
    assert told(bench, C)[-1] == "broadcast"
    bench.say(B, Offer(round=1, handle=fixed(1), candidate=candidate_of(CORNERS[SECOND])))
    bench.verify()
    assert winners(bench) == [B]
    assert absences(bench) == [(1, A)]


class _Coins:
    """Coins that never ask, unless the probability is 1."""

    def random(self, size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.full(size, 1.0 - 2.0**-53)


def test_bids_of_one_score_are_asked_together() -> None:
    bench = bidding("winner-only")
    bid(bench, A, SECOND)
    bid(bench, B, BEST)
    bid(bench, C, BEST)
    assert [told(bench, owner)[-1] for owner in (A, B, C)] == ["broadcast", "ask", "ask"]
    for owner in (C, B):
        bench.say(owner, Offer(round=1, handle=fixed(1), candidate=candidate_of(CORNERS[BEST])))
    bench.verify()
    assert winners(bench) == [B], "of one point, the first owner's: not the one that came first"


def test_a_point_that_was_bid_tau_times_is_asked_for() -> None:
    bench = bench_of("published", owners=2, tau=2)
    bench.coins = _Coins()  # type: ignore[assignment]
    bench.enrol()
    for number in (1, 2):
        bench.broadcast(W)
        bid(bench, A, SECOND if number == 1 else THIRD, number)
        bid(bench, B, 15, 1)
        asked = [owner for owner in (A, B) if bench.machine.seats[owner].asked]
        assert asked == ([A] if number == 1 else [A, B])
        for owner, row in ((A, SECOND if number == 1 else THIRD), (B, 15)):
            if owner in asked:
                handle = fixed(bench.machine.seats[owner].asked)
                bench.say(owner, Offer(round=number, handle=handle, candidate=candidate_of(CORNERS[row])))
        bench.verify()
    assert bench.machine.ledger.points_accessed == 3


@pytest.mark.parametrize("rule", ["ask-all", "winner-only"])
def test_a_number_that_was_handed_over_is_not_bid_again(rule: str) -> None:
    bench = bidding(rule, owners=1)
    bid(bench, A, BEST, 1)
    if rule == "winner-only":
        bench.say(A, Offer(round=1, handle=fixed(1), candidate=candidate_of(CORNERS[BEST])))
    bench.verify()
    bench.broadcast(W)
    error = bench.offend(A, bench.bid(2, CORNERS[SECOND], 1, W))
    assert error.offence is Offence.OUT_OF_TURN
    assert "handed over before" in error.what
    assert len(bench.machine.ledger.wins) == 1


def test_a_number_that_was_bid_and_not_handed_over_is_bid_again() -> None:
    bench = bidding("winner-only", owners=2)
    for number in (1, 2):
        if number == 2:
            bench.broadcast(W)
        bid(bench, A, BEST if number == 1 else THIRD, number)
        bid(bench, B, SECOND, 1)
        asked, row = (A, BEST) if number == 1 else (B, SECOND)
        handle = number if asked == A else 1
        bench.say(asked, Offer(round=number, handle=fixed(handle), candidate=candidate_of(CORNERS[row])))
        bench.verify()
    assert winners(bench) == [A, B]


def test_a_late_offer_is_pooled_and_its_owner_resumes() -> None:
    bench = bidding("winner-only", owners=2)
    bid(bench, A, BEST)
    bid(bench, B, SECOND)
    bench.fire("round")
    bench.say(B, Offer(round=1, handle=fixed(1), candidate=candidate_of(CORNERS[SECOND])))
    bench.verify()
    assert winners(bench) == [B]
    bench.broadcast(W)
    assert told(bench, A)[-1] == "ask", "it still has to answer"
    bench.say(A, Offer(round=1, handle=fixed(1), candidate=candidate_of(CORNERS[BEST])))
    assert told(bench, A)[-1] == "broadcast"
    bench.say(A, bench.no_bid(2))
    bench.say(B, bench.no_bid(2))
    bench.verify()
    assert winners(bench) == [B, A]
