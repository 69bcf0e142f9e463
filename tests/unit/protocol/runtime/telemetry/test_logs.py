"""A party's log: one line per event, with the same fields as text and as JSON, and few about one peer."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

import pytest

from hushbid.protocol.runtime.telemetry.log_events import LOG_EVENTS, LogEvent
from hushbid.protocol.runtime.telemetry.logs import (
    LINES_PER_MINUTE,
    LogFormat,
    LogLevel,
    SessionLog,
    log,
    set_up_logging,
)

Captured = pytest.CaptureFixture[str]
HOSTILE = "alpha\x1b[2J\n2026-01-01T00:00:00.000Z curator INFO peer.here eve is here\u202e"


@pytest.fixture(autouse=True)
def root_logger() -> None:
    logging.getLogger().handlers = []


def test_a_text_line_has_time_party_level_event_place_and_text(capsys: Captured) -> None:
    set_up_logging("curator")
    log(LogEvent.PEER_GONE, peer="alpha", seconds=10.0, phase="rounds", round=7)
    time, *rest = capsys.readouterr().err.split(" ", 1)
    assert rest == ["curator WARNING peer.gone [rounds 7] alpha is gone; waiting 10 s for it\n"]
    when = datetime.fromisoformat(time)
    assert when.tzinfo == UTC
    assert abs((datetime.now(UTC) - when).total_seconds()) < 60
    assert len(time.partition(".")[2]) == len("123Z")


@pytest.mark.parametrize(("level", "told"), [("info", 2), ("warning", 1), ("error", 0)])
def test_a_level_leaves_out_what_is_less(capsys: Captured, level: str, told: int) -> None:
    set_up_logging("curator", level=LogLevel(level))
    log(LogEvent.PEER_GONE, peer="alpha", seconds=10.0)
    log(LogEvent.CURATOR_LISTENING, address="tcp://127.0.0.1:5790")
    assert len(capsys.readouterr().err.splitlines()) == told


def test_a_json_line_has_the_same_as_fields(capsys: Captured) -> None:
    set_up_logging("curator", LogFormat.JSON)
    log(LogEvent.PEER_GONE, peer="alpha", seconds=10.0, phase="rounds", round=7)
    line = json.loads(capsys.readouterr().err)
    assert datetime.fromisoformat(line.pop("time")).tzinfo == UTC
    assert line == {
        "party": "curator", "level": "warning", "event": "peer.gone", "phase": "rounds", "round": 7,
        "peer": "alpha", "seconds": 10.0, "message": "alpha is gone; waiting 10 s for it",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ([], "missing: none"),
        (["a", "b"], "missing: a, b"),
        ([*"abcdefghij"], "missing: a, b, c, d, e, f, g, h and 2 more"),
    ],
)
def test_a_list_is_a_list_for_machines_and_its_first_items_for_people(
    capsys: Captured, missing: list[str], said: str
) -> None:
    set_up_logging("curator", LogFormat.JSON)
    log(LogEvent.ENROLMENT_OVER, enrolled=3, owners=13, missing=missing)
    line = json.loads(capsys.readouterr().err)
    assert line["missing"] == missing
    assert line["message"].endswith(f"; {said}")


@pytest.mark.parametrize("form", LogFormat)
def test_a_peer_s_text_begins_no_line(capsys: Captured, form: LogFormat) -> None:
    set_up_logging("curator", form)
    log(LogEvent.PEER_REFUSED, peer=HOSTILE, offence="magic", said="magic")
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.rstrip("\n").isprintable()
    assert "eve is here" in said


def test_a_line_that_is_not_of_the_list_has_its_loggers_name(capsys: Captured) -> None:
    set_up_logging("owner", LogFormat.JSON)
    logging.getLogger("elsewhere").warning("%d of %d", 1, 2)
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["message"]) == ("elsewhere", "1 of 2")


@pytest.mark.parametrize("name", LOG_EVENTS)
def test_no_field_hides_what_every_line_has(name: str) -> None:
    assert not set(LOG_EVENTS[name].fields) & {"time", "party", "level", "event", "message", "error"}


class TestLimit:
    @pytest.fixture
    def clock(self) -> list[float]:
        return [0.0]

    def limited(self, clock: list[float]) -> SessionLog:
        set_up_logging("curator", LogFormat.JSON)
        return SessionLog(lambda: {"phase": "rounds", "round": 3}, clock=lambda: clock[0])

    def lines(self, capsys: Captured) -> list[tuple[str, str]]:
        found = map(json.loads, capsys.readouterr().err.splitlines())
        return [(line["event"], line.get("peer", "")) for line in found]

    def test_a_peer_cannot_fill_the_disk(self, clock: list[float], capsys: Captured) -> None:
        say = self.limited(clock)
        for _ in range(5000):
            say(LogEvent.PEER_RECONNECTED, peer="alpha")
        say(LogEvent.PEER_RECONNECTED, peer="beta")
        say(LogEvent.PEER_SILENT, peer="alpha", seconds=1.0)
        lines = self.lines(capsys)
        assert lines.count(("peer.reconnected", "alpha")) == LINES_PER_MINUTE
        assert lines[LINES_PER_MINUTE:] == [("peer.reconnected", "beta"), ("peer.silent", "alpha")]

    def test_what_was_not_written_is_told_at_the_end(self, clock: list[float], capsys: Captured) -> None:
        say = self.limited(clock)
        for _ in range(LINES_PER_MINUTE + 5):
            say(LogEvent.PEER_RECONNECTED, peer="alpha")
        capsys.readouterr()
        say.close()
        line = json.loads(capsys.readouterr().err)
        assert (line["event"], line["kind"], line["peer"]) == ("log.suppressed", "peer.reconnected", "alpha")
        assert line["count"] == 5
        say.close()
        assert capsys.readouterr().err == ""

    def test_a_minute_later_there_is_room_again(self, clock: list[float], capsys: Captured) -> None:
        say = self.limited(clock)
        for _ in range(LINES_PER_MINUTE + 1):
            say(LogEvent.PEER_RECONNECTED, peer="alpha")
        capsys.readouterr()
        clock[0] = 60.0
        say(LogEvent.PEER_RECONNECTED, peer="alpha")
        assert self.lines(capsys) == [("log.suppressed", "alpha"), ("peer.reconnected", "alpha")]

    def test_lines_of_no_peer_are_not_limited(self, clock: list[float], capsys: Captured) -> None:
        say = self.limited(clock)
        for _ in range(LINES_PER_MINUTE + 1):
            say(LogEvent.ROUNDS_GO_ON)
        assert len(self.lines(capsys)) == LINES_PER_MINUTE + 1
