"""Plans of sessions whose curator is blind."""

from __future__ import annotations

import pytest

from hushbid.plan.result import make_plan
from hushbid.plan.traffic import traffic
from hushbid.protocol.session.session import Session
from tests.unit.hushbid.plan.test_plan import SPEED, setting


def test_bytes_of_a_blind_session_are_those_of_frames() -> None:
    planned = setting(points=100, batch=10, rule="blind")
    found = traffic(planned, 0.0)
    box = planned.session().box_bytes + 48
    # Ten rounds of ten boxes; with each its digest, and on average 55 scores of 16 bytes.
    bids = 10 * (10 * (box + 32) + 55 * 16 + 32 + 64)
    assert bids < found.owner_sent < bids + 10 * 200
    assert 10 * 4 * 140 < found.owner_received < 10 * (4 * 140 + 300) + 200
    # An award brings each box with the digests of its bid; the weights come from the consumer.
    awards = 10 * 10 * (box + 11 * 32 + 64 + 16)
    received = 5 * found.owner_received
    assert awards < found.curator_sent - received < awards + 10 * 10 * 200
    weights = 10 * 4 * 140
    assert weights < found.curator_received - 5 * found.owner_sent < weights + 10 * 300 + 5 * 136 + 500


def test_a_blind_curator_waits_for_two_round_trips() -> None:
    plan = make_plan(setting(rule="blind"), SPEED, cores=2, round_trip=0.1)
    row = next(row for row in plan["batches"] if row["batch"] == 20)
    assert row["seconds_with_network"] == pytest.approx(row["seconds"] + 50 * 2 * 0.1)


def test_a_curator_that_cannot_link_asks_once_more_in_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    linked = traffic(setting(points=100, batch=10, rule="blind"), 0.0)
    monkeypatch.setattr(Session, "unlinked", True)
    found = traffic(setting(points=100, batch=10, rule="blind"), 0.0)
    assert (found.owner_sent, found.owner_received) == (linked.owner_sent, linked.owner_received)
    # Ten rounds of ten places with names, and of the same boxes; ten numbers back, and 45 places of 4 bytes.
    assert 10 * 10 * 8 < found.curator_sent - linked.curator_sent < 10 * (10 * 80 + 200)
    numbers = 10 * (10 * 8 + 45 * 4)
    assert numbers < found.curator_received - linked.curator_received < numbers + 10 * 200
    plan = make_plan(setting(rule="blind"), SPEED, cores=2, round_trip=0.1)
    row = next(row for row in plan["batches"] if row["batch"] == 20)
    assert row["seconds_with_network"] == pytest.approx(row["seconds"] + 50 * 3 * 0.1)
