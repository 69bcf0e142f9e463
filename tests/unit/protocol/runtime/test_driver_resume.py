"""A driver that resumes from a transcript continues as its writer would have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hushbid.curator.connections import REPLACED
from hushbid.curator.party import curator_party
from hushbid.owner.machine import OwnerMachine
from hushbid.protocol.errors import DataError, ExitCode, ReplayDivergence
from hushbid.protocol.machine.machine import Computation, Event, Lost
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.runtime.driver import Driver
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.journal import MemoryJournal
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import Header
from hushbid.protocol.transcript.replay import EventReader
from hushbid.protocol.transcript.session_file import started
from hushbid.protocol.wire.codec import Direction, decode_frame, decode_message, said_to
from hushbid.protocol.wire.messages import Bid, Broadcast, Close, Delivery, Message, Receipt, fixed
from tests.simulation.harness import MAP, candidate_of, farewell_of, names, session_file
from tests.simulation.snapshots import snapshot
from tests.support.transcripts import redact
from tests.unit.protocol.runtime.test_driver import Bench

OWNER = names(1)[0]
POINTS = 2


class NoNumerics:
    """The numerics of a party that computes nothing."""

    def perform(self, effect: Computation) -> Event | None:
        raise AssertionError(effect)

    def restore(self, effect: Computation, outcome: Event | None) -> None:
        raise AssertionError(effect)


class Curator:
    """A curator's driver that records in memory, and may begin with another one's record."""

    def __init__(self, session: Session, image: bytes = b"") -> None:
        self.session = session
        file = session.file
        header = Header("curator", CURATOR, session.identifier.hex(), file.digest(), "test", {}, "simulated")
        self.journal = MemoryJournal.reopen(image) if image else MemoryJournal(header)
        machine, numerics = curator_party(session, noise=SimulatedNoise(1, CURATOR))
        self.machine = machine
        self.driver = Driver(
            machine, numerics, self.journal, session=session.identifier, direction=said_to(CURATOR)
        )
        self.sent: list[tuple[str, Message]] = []
        if image:
            read = EventReader(machine.table.outcomes, said_to(CURATOR))
            self.driver.resume(TranscriptReader(Path("curator.transcript"), image), read)

    @property
    def image(self) -> bytes:
        """The whole record."""
        self.journal.commit()
        return self.journal.image

    def events(self) -> list[str]:
        """The kinds of the events on record."""
        return [record.event.kind for record in TranscriptReader(Path("curator.transcript"), self.image)]

    def told(self, peer: str) -> Message:
        """The last message to a peer."""
        for frame in self.driver.release():
            to = Direction.CURATOR_TO_CONSUMER if frame.peer == CONSUMER else Direction.CURATOR_TO_OWNER
            self.sent.append((frame.peer, decode_message(to, decode_frame(frame.data).body)))
        return next(message for to, message in reversed(self.sent) if to == peer)

    def again(self) -> Curator:
        """The same party after a crash."""
        return Curator(self.session, self.image)


class Course:
    """A session of one owner, step by step; after each step the transcript so far is checked."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.curator = Curator(self.bench.session)
        self.driver = self.curator.driver
        self.sequence = dict.fromkeys((OWNER, CONSUMER), 0)
        self.looks = 0

    def hear(self, peer: str, message: Message | None = None) -> None:
        """Let the curator receive a hello, or a message."""
        if message is None:
            data = self.bench.hello(peer)
        else:
            self.sequence[peer] += 1
            acknowledged = self.curator.machine.links[peer].sent
            data = self.bench.frame(message, sequence=self.sequence[peer], acknowledged=acknowledged)
        self.driver.receive(peer, data, 1.0)
        self.look()

    def look(self) -> None:
        """Check that a driver that starts from the record is where this one is."""
        resumed = self.curator.again()
        assert snapshot(resumed.machine) == snapshot(self.curator.machine)
        assert resumed.driver._timers == self.driver._timers
        assert resumed.driver.finished == self.driver.finished
        assert resumed.driver.release() == [], "peers say hello, and are sent what they lack"
        self.looks += 1

    def bid(self, number: int) -> None:
        weights = self.curator.told(OWNER)
        assert isinstance(weights, Broadcast)
        assert weights.round == number
        point = np.full(4, number - 1, dtype=np.int16)
        features = MAP.hash(point[None])[0]
        score = int(features.astype(np.int64) @ weights.weights.astype(np.int64))
        bid = Bid(
            round=number,
            exhausted=False,
            score=fixed(score),
            handle=fixed(number),
            candidate=candidate_of(features, point),
        )
        self.hear(OWNER, bid)

    def run(self, *, until_delivery: bool = False) -> None:
        self.driver.begin(started(self.bench.session.file), 0.0)
        self.look()
        self.hear(CONSUMER)
        target = decode_frame(self.bench.target()).body
        self.hear(CONSUMER, decode_message(Direction.CONSUMER_TO_CURATOR, target))
        self.hear(OWNER)
        for number in range(1, POINTS + 1):
            self.bid(number)
        delivery = self.curator.told(CONSUMER)
        assert isinstance(delivery, Delivery)
        if until_delivery:
            return
        self.hear(CONSUMER, Receipt(part=1, disputed=bytes((len(delivery.purchases) + 7) // 8)))
        assert isinstance(self.curator.told(OWNER), Close)
        self.driver.feed(Lost(OWNER), 2.0)
        self.look()
        self.hear(CONSUMER, farewell_of(self.curator.session, CONSUMER))
        self.driver.fire_due(1e6)
        self.look()


def test_after_every_step_a_resumed_driver_is_where_the_first_one_is() -> None:
    """Machine, timers that are still due, and the end."""
    course = Course()
    course.run()
    assert course.looks == 10
    assert course.driver.finished is not None
    assert course.driver.finished.reason == "The session is complete."


def enrolled() -> Curator:
    """A curator of two owners, one of whom is there when the enrolment time is over."""
    curator = Curator(open_session(session_file(owners=names(2), points=POINTS, dimension=4, columns=4)))
    bench = Bench()
    bench.session = curator.session
    driver = curator.driver
    driver.begin(started(curator.session.file), 5.0)
    for peer in (CONSUMER, OWNER):
        driver.receive(peer, bench.hello(peer), 6.0)
    driver.receive(CONSUMER, bench.target(), 7.0)
    return curator


def test_a_timer_that_was_set_is_due_when_it_was() -> None:
    curator = enrolled()
    assert curator.again().driver.next_due == curator.driver.next_due == 65.0


def test_a_timer_that_has_fired_is_not_due_any_more_and_what_it_set_is() -> None:
    curator = enrolled()
    curator.driver.fire_due(65.5)
    resumed = curator.again()
    assert resumed.machine.phase == "bidding"
    assert set(resumed.driver._timers) == {"round"}
    assert resumed.driver.next_due == 65.5 + curator.session.file.timeouts.round


def test_what_a_driver_does_after_its_transcript_is_on_record_as_restarted() -> None:
    curator = enrolled()
    resumed = curator.again()
    assert resumed.driver.clock == 7.0
    resumed.driver.begin(started(curator.session.file), 20.0)
    assert resumed.events() == [*curator.events(), "restarted"]
    assert resumed.driver.next_due == 30.0, "peers have time to come back"


def test_a_driver_without_records_begins() -> None:
    session = open_session(session_file(owners=names(1), points=POINTS, dimension=4, columns=4))
    curator = Curator(session)
    curator.driver.resume([], EventReader(curator.machine.table.outcomes, said_to(CURATOR)))
    curator.driver.begin(started(session.file), 0.0)
    assert curator.events() == ["started"]


def test_a_session_that_was_over_stays_so() -> None:
    curator = Curator(open_session(session_file(owners=names(1), points=POINTS, dimension=4, columns=4)))
    curator.driver.begin(started(curator.session.file), 0.0)
    curator.driver.fire_due(60.0)
    assert curator.driver.finished is not None
    resumed = curator.again()
    assert resumed.driver.finished == curator.driver.finished
    resumed.driver.begin(started(curator.session.file), 100.0)
    resumed.driver.fire_due(1e9)
    assert resumed.events() == curator.events() == ["started", "timer"]


def test_a_delivery_that_was_given_up_is_on_record_and_goes_on() -> None:
    course = Course()
    course.run(until_delivery=True)
    course.driver.fire_due(1e6)
    assert course.driver.finished is not None
    assert course.driver.finished.code is ExitCode.TIMEOUT
    assert course.curator.events()[-1] == "timer"
    resumed = course.curator.again()
    assert resumed.driver.finished is None
    assert resumed.machine.phase == "delivering"
    resumed.driver.begin(started(course.bench.session.file), 2e6)
    assert resumed.driver.next_due is not None
    assert resumed.driver.next_due > 2e6, "the receipt is waited for anew"


def test_a_frame_that_ends_the_process_and_not_the_session_is_not_on_record() -> None:
    """A refusal may come from another curator than the session's: recording it would blame the wrong one."""
    session = open_session(session_file(owners=names(1), points=POINTS, dimension=4, columns=4))
    journal = MemoryJournal(
        Header("owner", OWNER, session.identifier.hex(), session.file.digest(), "test", {}, "simulated")
    )
    driver = Driver(
        OwnerMachine(session, name=OWNER),
        NoNumerics(),
        journal,
        session=session.identifier,
        direction=said_to(OWNER),
    )
    driver.begin(started(session.file), 0.0)
    driver.receive(CURATOR, driver.unrecorded(REPLACED), 1.0)
    assert driver.finished is not None
    assert (driver.finished.code, driver.finished.final) == (ExitCode.USAGE, False)
    assert journal.count == 1


def test_a_transcript_of_another_session_is_not_gone_on_with() -> None:
    image = enrolled().image
    other = open_session(session_file(owners=names(1), points=POINTS, dimension=4, columns=4))
    with pytest.raises(ReplayDivergence, match=r"Record 1 \(received\)") as caught:
        Curator(other, image)
    assert caught.value.record == 1


def test_a_redacted_transcript_is_not_gone_on_with() -> None:
    curator = enrolled()
    with pytest.raises(DataError, match="redacted"):
        Curator(curator.session, redact(curator.image, lambda number, name: False))
