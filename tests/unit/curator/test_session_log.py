"""The curator's log of its machine: every absence with its reason, and never who was asked."""

from __future__ import annotations

from typing import Any

import pytest

from hushbid.curator.party import curator_party
from hushbid.curator.session_log import CuratorLog
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.machine.machine import Event, Finish
from hushbid.protocol.names import CURATOR
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.session.session import open_session
from hushbid.protocol.wire.messages import Ask, Broadcast, Offer, fixed
from tests.simulation.harness import CuratorBench, candidate_of, names, session_file
from tests.support.curator_rounds import BEST, CORNERS, SECOND, THIRD, A, B, C, W, bid

Told = tuple[str, dict[str, Any]]


class FollowedBench(CuratorBench):
    """A bench whose machine is logged after every step, as in the hub."""

    def __init__(self, rule: str, *, owners: int = 3, points: int = 9, **options: Any) -> None:
        super().__init__(session_file(owners=names(owners), points=points, rule=rule, **options))
        self.log = CuratorLog(self.opened, self.machine)

    def take(self, event: Event) -> Any:
        effects = super().take(event)
        self.log.follow()
        return effects

    def begin(self) -> None:
        self.enrol()
        self.broadcast(W)


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level("INFO")

    def events(*wanted: str) -> list[Told]:
        found = [(record.event, record.fields) for record in caplog.records]  # type: ignore[attr-defined]
        assert all(set(fields) >= {"phase"} for _, fields in found)
        return [(event, fields) for event, fields in found if event.startswith(wanted)]

    return events


def of(fields: dict[str, Any], *wanted: str) -> tuple[Any, ...]:
    return tuple(fields[name] for name in wanted)


def test_an_owner_that_is_late_is_named_once_and_again_when_it_is_back(told: Any) -> None:
    bench = FollowedBench("ask-all", owners=2)
    bench.begin()
    for number in (1, 2, 3):
        bid(bench, A, BEST, number)
        bench.fire("round")
        bench.verify()
        bench.broadcast(W)
    with bench.log.noting_late_bid(B):
        bid(bench, B, SECOND)
    with bench.log.noting_late_bid(B):
        bid(bench, B, THIRD, 2)
    bid(bench, A, BEST, 4)
    bench.verify()
    (absent, late, back) = told("owner", "bid")
    assert absent[0] == "owner.absent"
    assert of(absent[1], "peer", "round", "reason") == (B, 1, "late")
    assert (late[0], late[1]["peer"]) == ("bid.late", B)
    assert back[0] == "owner.takes-part"
    assert of(back[1], "peer", "reason", "rounds") == (B, "late", 3)
    assert bench.log.absences == 3


def test_an_owner_that_was_lost_is_unreachable(told: Any) -> None:
    bench = FollowedBench("ask-all", owners=2)
    bench.begin()
    bench.gone(B)
    bid(bench, A, BEST)
    bench.verify()
    ((_, fields),) = told("owner.absent")
    assert of(fields, "peer", "round", "reason") == (B, 1, "unreachable")


def test_an_owner_that_may_not_come_back_is_said_to_be_out(told: Any) -> None:
    bench = FollowedBench("ask-all", owners=2, distinct=True)
    bench.begin()
    bench.gone(B)
    for number in (1, 2, 3):
        bid(bench, A, BEST, number)
        bench.verify()
        bench.broadcast(W)
        if number == 1:
            bench.returned(B)
            bid(bench, B, SECOND)
    reasons = [of(fields, "peer", "round", "reason") for _, fields in told("owner")]
    assert reasons == [(B, 1, "unreachable"), (B, 2, "out of the session")]
    assert {win.owner for win in bench.machine.ledger.wins} == {A}


@pytest.mark.parametrize("late", [False, True])
def test_being_in_time_decides_alone_whether_an_owner_is_out(late: bool) -> None:
    bench = FollowedBench("ask-all", owners=2, distinct=True)
    bench.begin()
    if not late:
        bid(bench, B, SECOND, score=fixed(1))
    bid(bench, A, BEST)
    if late:
        bench.fire("round")
    bench.verify()
    bench.broadcast(W)
    if late:
        bid(bench, B, SECOND, score=fixed(1))
    else:
        bench.say(B, bench.no_bid(2))
    bid(bench, A, THIRD, 2)
    bench.verify()
    bench.broadcast(W)
    seat = bench.machine.seats[B]
    assert seat.faulty
    assert seat.out is late
    # Whose point does not match goes on as it would have: with broadcasts if it was in time, without if not.
    told = [message.round for message in bench.inbox[B] if isinstance(message, Broadcast)]
    assert max(told) == (1 if late else 3)


def asked_and_silent(trouble: str) -> tuple[FollowedBench, str]:
    """A session in which one owner was asked in round 1 and did not answer."""
    bench = FollowedBench("winner-only")
    bench.begin()
    for owner, row in ((A, BEST), (B, SECOND), (C, THIRD)):
        bid(bench, owner, row)
    asked = [owner for owner in names(3) if isinstance(bench.last(owner), Ask)]
    assert asked == [A]
    if trouble == "gone":
        bench.gone(A)
    elif trouble == "silent":
        bench.fire("round")
    else:
        bench.say(A, Offer(round=1, handle=fixed(1), candidate=candidate_of(CORNERS[THIRD])))
        bench.verify()
    while bench.machine.round == 1:
        asked = [o for o in (B, C) if bench.machine.seats[o].asked]
        for owner in asked:
            row = SECOND if owner == B else THIRD
            bench.say(owner, Offer(round=1, handle=fixed(1), candidate=candidate_of(CORNERS[row])))
        bench.verify()
    return bench, A


@pytest.mark.parametrize("trouble", ["silent", "gone", "mismatch"])
def test_no_line_names_an_owner_that_was_asked(told: Any, trouble: str) -> None:
    bench, asked = asked_and_silent(trouble)
    assert [absence.owner for absence in bench.machine.ledger.absences] == [asked], "the books have it"
    lines = told("owner", "point", "bid", "rounds", "delivery")
    assert [event for event, _ in lines] == {
        "silent": ["owners.silent-when-asked"],
        "gone": [],  # its connection's end is logged where connections are; here a line would tell more
        "mismatch": ["point.refused"],
    }[trouble]
    assert not any(asked in map(str, fields.values()) for _, fields in lines)
    assert bench.log.absences == 0, "nor does a metric tell in which round it was"


def test_an_asked_owner_that_is_gone_is_unreachable_from_the_next_round_on_as_any_other(told: Any) -> None:
    bench, asked = asked_and_silent("gone")
    bench.broadcast(W)
    for owner in (B, C):
        bench.say(owner, bench.no_bid(2))
    for owner in (B, C):
        if bench.machine.seats[owner].asked:
            bench.say(owner, Offer(round=2, handle=fixed(1), candidate=candidate_of(CORNERS[SECOND])))
    ((_, fields),) = told("owner.absent")
    assert of(fields, "peer", "round", "reason") == (asked, 2, "unreachable")


def test_an_owner_whose_point_is_wrong_is_named_where_all_hand_points_over(told: Any) -> None:
    bench = FollowedBench("ask-all", owners=2)
    bench.begin()
    bid(bench, A, BEST)
    bid(bench, B, SECOND, score=fixed(1))
    bench.verify()
    (wrong, absent) = told("owner")
    assert wrong[0] == "owner.misbehaved"
    assert of(wrong[1], "peer", "what") == (B, "the bid is not the score of the features")
    assert of(absent[1], "peer", "reason") == (B, "misbehaving")


def test_enrolment_pause_and_end_are_told(told: Any) -> None:
    bench = FollowedBench("ask-all", owners=2, min_owners=2)
    bench.begin()
    bench.gone(B)
    bid(bench, A, BEST)
    bench.returned(B)
    bid(bench, B, SECOND)
    bench.verify()
    bench.log.over(Finish(ExitCode.TIMEOUT, "Nobody came.", ""))
    assert [event for event, _ in told("enrolment", "rounds", "session")] == [
        "enrolment.over", "session.phase", "rounds.paused", "rounds.go-on", "session.given-up",
    ]  # fmt: skip
    ((_, paused), _) = told("rounds")
    assert of(paused, "least", "connected", "owners", "missing") == (2, 1, 2, [B])
    ((_, enrolled),) = told("enrolment")
    assert of(enrolled, "enrolled", "owners", "missing") == (2, 2, [])
    ((_, end),) = told("session.given-up")
    assert end["reason"] == "Nobody came."


@pytest.mark.parametrize("rule", ["winner-only", "published", "ask-all"])
def test_a_connection_s_line_has_no_round_where_that_would_tell_who_was_asked(told: Any, rule: str) -> None:
    bench = FollowedBench(rule)
    bench.begin()
    bench.log.say(LogEvent.PEER_GONE, peer=A, seconds=10.0)
    bench.log.say(LogEvent.ROUNDS_PAUSED, least=3, seconds=10.0, connected=2, owners=3, missing=[A])
    lines = told("peer", "rounds")
    assert [event for event, _ in lines] == ["peer.gone", "rounds.paused"]
    assert [fields.get("round") for _, fields in lines] == ([1, 1] if rule == "ask-all" else [None, None])


def test_rounds_that_wait_for_the_consumer_are_told_as_such(told: Any) -> None:
    session = open_session(session_file(owners=names(2), points=9, rule="blind"))
    machine, _ = curator_party(session, noise=SimulatedNoise(0, CURATOR))
    machine.phase, machine.consumer_connected = "bidding", True
    log = CuratorLog(session, machine)
    for phase, here in (("weighing", True), ("weighing", False), ("weighing", True), ("bidding", False)):
        machine.phase, machine.consumer_connected = phase, here
        log.follow()
    lines = told("rounds")
    assert [event for event, _ in lines] == ["rounds.consumer-awaited", "rounds.consumer-back"]
    assert of(lines[0][1], "seconds") == (session.file.timeouts.pause,)


def test_who_has_submitted_to_a_tender_is_told_and_is_not_missing_when_it_is_gone(told: Any) -> None:
    bench = FollowedBench("tender", owners=3, points=2, batch=2, min_owners=2)
    bench.begin()
    bench.say(A, bench.batch(1, [(CORNERS[BEST], 1), (CORNERS[SECOND], 2)], W))
    bench.gone(A)
    bench.fire("round")
    ((_, submitted),) = told("owner.submitted")
    assert of(submitted, "peer", "submitted", "owners") == (A, 1, 3)
    bench.gone(B)
    ((_, paused),) = told("rounds.paused")
    assert of(paused, "missing") == ([],)
    bench.say(C, bench.batch(1, [(CORNERS[THIRD], 1), (CORNERS[SECOND], 2)], W))
    bench.verify_all()
    ((_, over),) = told("enrolment.over")
    assert of(over, "enrolled", "owners", "missing") == (2, 3, [B])
