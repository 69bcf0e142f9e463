"""Rounds at a fixed cadence: the clock ends them, not the last answer."""

from __future__ import annotations

from typing import Any

import pytest

from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.errors import ConfigError, ExitCode
from hushbid.protocol.session.session import open_session
from hushbid.protocol.transcript.session_file import started
from hushbid.protocol.wire.messages import Offer, fixed
from tests.simulation.harness import CuratorBench, candidate_of, names, session_file
from tests.simulation.test_simulator import bought, simulate
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
    bid,
    bidding,
    told,
    winners,
)
from tests.support.session_files import load

CADENCE = 2.0
HALF = pytest.approx(CADENCE / 2, abs=0.1)
"""The bench's clock goes on by a millisecond with every step."""


def paced(rule: str = "ask-all", **options: Any) -> CuratorBench:
    """A session in which round 1's weight was broadcast, and a round takes two seconds."""
    return bidding(rule, fixed_cadence=CADENCE, **options)


def offer(bench: CuratorBench, owner: str, row: int = BEST) -> None:
    """Let an owner send the point that it was asked for."""
    bench.say(owner, Offer(round=1, handle=fixed(1), candidate=candidate_of(CORNERS[row])))


def ends_bidding(bench: CuratorBench) -> None:
    """End the first half of the round."""
    bench.fire("round")
    bench.verify_all()


# -- bids ------------------------------------------------------------------------------------------------


def test_bidding_goes_on_though_all_bids_are_in() -> None:
    bench = paced()
    began = bench.now
    for owner, row in ((A, BEST), (B, SECOND), (C, THIRD)):
        bid(bench, owner, row)
    assert bench.machine.phase == "bidding"
    assert bench.timers["round"].due - began == HALF
    bench.fire("round")
    assert bench.machine.phase == "verifying"


def test_a_round_that_is_decided_waits_for_the_clock() -> None:
    bench = paced(points=2)
    began = bench.now
    for owner, row in ((A, BEST), (B, SECOND), (C, THIRD)):
        bid(bench, owner, row)
    ends_bidding(bench)
    assert bench.machine.phase == "pacing"
    assert winners(bench) == [A]
    assert not bench.jobs, "the next weight is not even computed"
    bench.fire("cadence")
    assert bench.now - began == pytest.approx(CADENCE, abs=0.1)
    assert bench.machine.phase == "weighing"
    assert bench.machine.round == 2


def test_the_delivery_waits_for_the_clock_too() -> None:
    bench = paced(points=1)
    bid(bench, A, BEST)
    ends_bidding(bench)
    assert "delivery" not in told(bench, "consumer")
    bench.fire("cadence")
    assert bench.machine.phase == "delivering"


def test_who_bids_late_is_absent_and_resumes_with_the_next_round() -> None:
    bench = paced(points=2)
    bid(bench, A, BEST)
    ends_bidding(bench)
    bid(bench, B, SECOND)
    assert bench.machine.phase == "pacing"
    assert absences(bench) == [(1, B), (1, C)]
    bench.fire("cadence")
    bench.broadcast(W)
    assert told(bench, B).count("broadcast") == 2
    assert told(bench, C).count("broadcast") == 1, "it has one to answer still"


def test_a_lost_owner_is_not_waited_for() -> None:
    bench = paced()
    bid(bench, A, BEST)
    bid(bench, B, SECOND)
    bench.lost(C)
    ends_bidding(bench)
    assert bench.machine.phase == "pacing"
    assert absences(bench) == [(1, C)]


def test_an_owner_that_is_back_in_the_first_half_is_present() -> None:
    bench = paced()
    bench.lost(C)
    bid(bench, A, BEST)
    bench.returned(C)
    bid(bench, C, SECOND)
    ends_bidding(bench)
    assert absences(bench) == [(1, B)]


# -- asks ------------------------------------------------------------------------------------------------


def test_asks_fit_into_the_second_half() -> None:
    bench = paced("winner-only", points=2)
    bid(bench, A, BEST)
    bid(bench, B, SECOND)
    ends_bidding(bench)
    assert bench.machine.phase == "asking"
    offer(bench, A)
    bench.verify_all()
    assert bench.machine.phase == "pacing"
    assert winners(bench) == [A]


def test_nobody_is_asked_any_more_when_the_time_is_over() -> None:
    """Without a cadence the second best would be asked next."""
    bench = paced("winner-only", points=2)
    bid(bench, A, BEST)
    bid(bench, B, SECOND)
    ends_bidding(bench)
    bench.fire("cadence")
    assert told(bench, B).count("ask") == 0
    assert bench.machine.phase == "weighing"
    assert winners(bench) == []
    assert absences(bench) == [(1, A), (1, C)]


def test_points_that_came_in_time_are_verified_when_the_time_is_over() -> None:
    bench = paced("winner-only", points=2)
    bid(bench, A, BEST)
    bid(bench, B, BEST)
    ends_bidding(bench)
    assert told(bench, A)[-1] == told(bench, B)[-1] == "ask", "equal bids are asked together"
    offer(bench, A)
    bench.fire("cadence")
    assert bench.machine.phase == "verifying"
    bench.verify_all()
    assert bench.machine.phase == "weighing"
    assert winners(bench) == [A]


def test_the_time_can_be_over_while_points_are_verified() -> None:
    bench = paced(points=2)
    bid(bench, A, BEST)
    bench.fire("round")
    bench.fire("cadence")
    assert bench.machine.phase == "verifying"
    bench.verify_all()
    assert bench.machine.phase == "weighing"
    assert winners(bench) == [A]


# -- pauses and restarts ---------------------------------------------------------------------------------


def test_a_pause_stops_the_clock_until_enough_owners_have_bid() -> None:
    bench = paced(min_owners=2, points=2)
    bid(bench, A, BEST)
    bench.fire("round")
    assert bench.machine.paused
    assert "cadence" not in bench.timers
    bench.now += 100.0
    bid(bench, B, SECOND)
    assert not bench.machine.paused
    assert bench.timers["cadence"].due - bench.now == HALF, "the second half has its whole time"


@pytest.mark.parametrize("phase", ["bidding", "asking", "pacing"])
def test_a_restarted_curator_gives_what_is_under_way_its_half_anew(phase: str) -> None:
    bench = paced("winner-only", points=2)
    bid(bench, A, BEST)
    if phase != "bidding":
        ends_bidding(bench)
    if phase == "pacing":
        offer(bench, A)
        bench.verify_all()
    assert bench.machine.phase == phase
    bench.now += 100.0
    bench.restart()
    timer = bench.timers["round" if phase == "bidding" else "cadence"]
    assert timer.due - bench.now == HALF


# -- whole sessions --------------------------------------------------------------------------------------

ROUNDS = 4


def file_of(rule: str, cadence: float | None) -> SessionFile:
    return session_file(
        owners=names(3), points=ROUNDS, rule=rule, dimension=8, columns=3, fixed_cadence=cadence
    )


@pytest.mark.parametrize("rule", ["ask-all", "sealed", "winner-only", "published"])
def test_simulated_rounds_last_exactly_so_and_buy_the_same(rule: str) -> None:
    plain, paced = (simulate(open_session(file_of(rule, cadence)))[1] for cadence in (None, CADENCE))
    assert bought(paced) == bought(plain)
    assert paced.curator.ledger.absences == []
    assert all(finish.code is ExitCode.DONE for finish in paced.finishes.values())
    assert plain.seconds < CADENCE
    assert paced.seconds == pytest.approx(ROUNDS * CADENCE, abs=0.1)


# -- the session file ------------------------------------------------------------------------------------


def test_a_transcript_says_nothing_of_a_cadence_that_is_not_set() -> None:
    assert "fixed_cadence" not in started(load({})).configuration["session"]
    cadence = started(load({"session.fixed_cadence": 1.5})).configuration["session"]["fixed_cadence"]
    assert cadence == 1.5


@pytest.mark.parametrize("cadence", [0.0, 0.01, -1.0, 1e6, float("inf"), float("nan"), "1"])
def test_a_cadence_that_cannot_be_kept_is_refused(cadence: object) -> None:
    with pytest.raises(ConfigError, match=r"session\.fixed_cadence"):
        load({"session.fixed_cadence": cadence})
