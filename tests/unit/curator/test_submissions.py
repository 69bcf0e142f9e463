"""Submissions to a tender: what the curator accepts, refuses, and counts, message by message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hushbid.curator.ledger import PointFault
from hushbid.protocol.errors import ExitCode, Offence
from hushbid.protocol.machine.machine import Started
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.points import NOT_SIGNED
from hushbid.protocol.wire.messages import Batch, Bid, Ready
from tests.simulation.harness import FORGED, CuratorBench
from tests.support.curator_rounds import (
    BEST,
    CORNERS,
    SECOND,
    THIRD,
    A,
    B,
    C,
    W,
    bench_of,
    bidding,
    doubled,
    halved,
    winners,
)


def tender(**options: Any) -> CuratorBench:
    return bidding("tender", **{"owners": 2, "points": 4, "batch": 2, **options})


def part(bench: CuratorBench, *rows: int, first: int = 1, round_number: int = 1) -> Batch:
    return bench.batch(round_number, [(CORNERS[row], first + place) for place, row in enumerate(rows)], W)


def test_a_submission_is_whole_with_its_last_message() -> None:
    bench = tender()
    assert bench.opened.messages == 2
    bench.say(A, part(bench, BEST, SECOND))
    bench.say(B, part(bench, THIRD))
    bench.say(B, part(bench, first=2))
    assert bench.machine.phase == "bidding"
    assert not bench.machine.seats[A].has_bid(1)
    bench.say(A, part(bench, 7, 8, first=3))
    bench.verify()
    assert bench.machine.phase == "delivering"
    assert len(winners(bench)) == 4
    assert bench.machine.ledger.candidates == 5


def test_who_sent_a_part_is_absent_and_its_points_are_withheld() -> None:
    bench = tender()
    bench.say(A, part(bench, BEST, SECOND))
    bench.say(B, part(bench, THIRD, 7))
    bench.say(B, part(bench, 8, 9, first=3))
    bench.fire("round")
    bench.verify()
    assert set(winners(bench)) == {B}
    assert [absence.owner for absence in bench.machine.ledger.absences] == [A]


def test_a_message_of_a_submission_that_is_not_signed_is_one_fault_of_its_points() -> None:
    bench = tender()
    for rows, first in (((BEST, SECOND), 1), ((7, 8), 3)):
        whole = part(bench, *rows, first=first)
        candidates = whole.candidates.model_copy(update={"signature": bytes([first + 10]) * len(FORGED)})
        bench.say(A, whole.model_copy(update={"candidates": candidates}))
    bench.say(B, part(bench, THIRD, 9))
    bench.say(B, part(bench, first=3))
    bench.verify_all()
    assert bench.machine.ledger.faults == 2 * [PointFault(1, A, NOT_SIGNED, points=2)]
    assert set(winners(bench)) == {B}


def after_the_last(bench: CuratorBench) -> Batch:
    bench.say(A, part(bench, BEST, SECOND))
    bench.say(A, part(bench, THIRD, 7, first=3))
    return part(bench, 8, 9, first=5)


def the_same_again(bench: CuratorBench) -> Batch:
    bench.say(A, part(bench, BEST, SECOND))
    return part(bench, BEST, SECOND)


def of_another_round(bench: CuratorBench) -> Batch:
    return part(bench, BEST, SECOND, round_number=2)


def short(bench: CuratorBench) -> Batch:
    return halved(part(bench, BEST))


def long(bench: CuratorBench) -> Batch:
    return doubled(part(bench, BEST, SECOND))


def a_batch(bench: CuratorBench) -> Batch:
    return Batch.model_construct(**{**dict(part(bench, BEST, SECOND)), "kind": "batch"})


def a_bid(bench: CuratorBench) -> Bid:
    return bench.bid(1, CORNERS[BEST], 1, W)


@pytest.mark.parametrize(
    ("made", "offence", "what"),
    [
        (after_the_last, Offence.OUT_OF_TURN, "A bid for round 1; due was one for 0"),
        (the_same_again, Offence.OUT_OF_TURN, "handed over before"),
        (of_another_round, Offence.OUT_OF_TURN, "due was one for 1"),
        (short, Offence.MALFORMED, "room for 2 points, not 1"),
        (long, Offence.MALFORMED, "room for 2 points, not 4"),
        (a_batch, Offence.MALFORMED, "A batch came: the rule tender has other answers"),
        (a_bid, Offence.MALFORMED, "A bid came: the rule tender has other answers"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_is_no_part_of_a_submission_is_refused_and_nothing_is_lost(
    made: Callable[[CuratorBench], Any], offence: Offence, what: str
) -> None:
    bench = tender()
    message = made(bench)
    before = bench.machine.ledger.candidates
    error = bench.offend(A, message)
    assert error.offence is offence
    assert what in error.what
    assert bench.machine.ledger.candidates == before


def test_a_submission_after_the_time_is_taken_in_and_not_chosen_of() -> None:
    bench = tender()
    bench.say(B, part(bench, THIRD, 7))
    bench.say(B, part(bench, 8, 9, first=3))
    bench.fire("round")
    bench.say(A, part(bench, BEST, SECOND))
    bench.verify()
    bench.verify()
    assert set(winners(bench)) == {B}
    assert len(winners(bench)) == 4


# -- who comes when -----------------------------------------------------------------------------------------


def submit(bench: CuratorBench, owner: str, *rows: int) -> None:
    for place, row in enumerate(rows):
        bench.say(owner, part(bench, row, row + 1, first=2 * place + 1))


def kinds(bench: CuratorBench, owner: str) -> list[str]:
    return [message.kind for message in bench.inbox.get(owner, [])]


def test_who_came_in_time_and_is_still_at_its_rows_has_the_time_for_a_submission_too() -> None:
    bench = bench_of("tender", owners=2, points=4, batch=2)
    bench.step(Started())
    for owner in (A, B, CONSUMER):
        bench.say(owner, bench.hello(owner))
    bench.say(CONSUMER, bench.target())
    bench.broadcast(W)
    bench.say(A, Ready())
    bench.fire("enrolment")
    submit(bench, A, BEST, SECOND)
    bench.verify_all()
    assert bench.machine.phase == "bidding"
    bench.say(B, Ready())
    assert kinds(bench, B)[-1] == "call"
    submit(bench, B, THIRD, 7)
    bench.verify_all()
    assert bench.machine.phase == "delivering"
    assert bench.machine.ledger.absences == []


@pytest.mark.parametrize("others", [0, 1, 2])
def test_who_comes_too_late_is_sent_the_same_whatever_the_others_did(others: int) -> None:
    bench = bench_of("tender", owners=3, points=4, batch=2, min_owners=2)
    bench.enrol([A, B])
    bench.broadcast(W)
    for owner in (A, B)[:others]:
        submit(bench, owner, BEST, SECOND)
    bench.fire("enrolment")
    bench.verify_all()
    assert bench.machine.phase == ("delivering" if others == 2 else "bidding")
    bench.say(C, bench.hello(C))
    assert kinds(bench, C) == ["welcome"]


@pytest.mark.parametrize("submitted", [False, True])
def test_the_session_is_over_where_too_few_came_in_time(submitted: bool) -> None:
    bench = bench_of("tender", owners=3, points=4, batch=2, min_owners=2)
    bench.enrol([A])
    bench.broadcast(W)
    if submitted:
        submit(bench, A, BEST, SECOND)
    bench.fire("enrolment")
    assert bench.machine.phase == "closing"
    ending = bench.machine.ending.finish
    assert ending.code is ExitCode.TIMEOUT
    assert ending.reason.startswith("Of the owners, 1 came within the enrolment time; the session needs 2.")
    assert ending.reason.endswith(f"Missing: {B}, {C}.")
