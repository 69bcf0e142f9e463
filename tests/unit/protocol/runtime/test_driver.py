"""The driver's core: every step recorded, nothing sent before it is durable, no error by a peer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hushbid.curator.machine import CuratorMachine
from hushbid.curator.party import curator_party
from hushbid.protocol import limits
from hushbid.protocol.errors import LocalProtocolError, Offence, TranscriptUnwritable
from hushbid.protocol.machine.machine import Effect, Event, Finish, Lost, Received, Started
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.runtime.driver import Driver
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.journal import NullJournal
from hushbid.protocol.wire.codec import (
    Direction,
    Frame,
    decode_frame,
    decode_message,
    encode_frame,
    encode_message,
    said_to,
)
from hushbid.protocol.wire.messages import (
    Bid,
    Hello,
    Message,
    Ready,
    Refused,
    SealedCandidate,
    Target,
    fixed,
)
from hushbid.protocol.wire.values import Item, pack_value
from tests.simulation.harness import FAREWELL, candidate_of, names, sealed_candidate_of, session_file

OWNER = names(1)[0]


class Journal(NullJournal):
    """A journal in memory, which notes the order of events."""

    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self.log = log
        self.records: list[tuple[Item, Sequence[Item]]] = []

    def append(self, now: float, event: Item, effects: Sequence[Item]) -> None:
        self.records.append((event, effects))
        self.log.append(f"record {event.kind}")

    def commit(self) -> None:
        self.log.append("commit")

    def close(self) -> None:
        self.log.append("close")


class Bench:
    """A curator's driver for one owner and the consumer."""

    def __init__(self, rule: str = "ask-all", **options: Any) -> None:
        self.session: Session = open_session(
            session_file(owners=[OWNER], points=2, rule=rule, dimension=4, columns=4, **options)
        )
        machine, numerics = curator_party(self.session, noise=SimulatedNoise(1, CURATOR))
        self.machine: CuratorMachine = machine
        self.log: list[str] = []
        self.journal = Journal(self.log)
        self.driver = Driver(
            machine,
            numerics,
            self.journal,
            session=self.session.identifier,
            direction=said_to(CURATOR),
        )
        self.sent: dict[str, int] = {}
        self.driver.feed(Started(), 0.0)

    def frame(self, message: Message, *, sequence: int = 0, **changes: Any) -> bytes:
        values: dict[str, Any] = {
            "session": self.session.identifier,
            "sequence": sequence,
            "acknowledged": 0,
            "body": encode_message(message),
        }
        return encode_frame(Frame(**(values | changes)))

    def hello(self, peer: str) -> bytes:
        return self.frame(self.greeting(peer, self.session.file.digest()))

    def greeting(self, peer: str, session: bytes) -> Hello:
        return Hello(
            versions=(self.session.protocol_version,),
            role="consumer" if peer == CONSUMER else "owner",
            name=peer,
            session=session,
            software="test",
            sent=0,
            received=0,
        )

    def target(self) -> bytes:
        zeros = np.zeros(4)
        return self.frame(
            Target(
                embedding=zeros,
                size=1,
                seed_total=zeros.astype(np.int64),
                seed_size=1,
                maps=bytes(limits.MAP_BOX_BYTES) if self.session.rule.sealed else b"",
                noise="none",
            ),
            sequence=1,
        )

    def begin(self) -> None:
        """Reach the state in which round 1's broadcast was sent."""
        self.driver.receive(CONSUMER, self.hello(CONSUMER), 0.0)
        self.driver.receive(CONSUMER, self.target(), 0.0)
        self.driver.receive(OWNER, self.hello(OWNER), 0.0)

    def events(self) -> list[str]:
        return [event.kind for event, _ in self.journal.records]


def test_a_frame_after_one_that_is_missing_is_told_from_all_others() -> None:
    bench = Bench()
    bench.driver.receive(OWNER, bench.hello(OWNER), 0.0)
    after = {number: bench.frame(FAREWELL, sequence=number) for number in range(4)}
    assert {number: bench.driver.lacks(OWNER, data) for number, data in after.items()} == {
        0: False,
        1: False,
        2: True,
        3: True,
    }
    elsewhere = bench.frame(FAREWELL, sequence=2, session=bytes(16))
    for other in (elsewhere, b"no frame", after[2][:20]):
        assert not bench.driver.lacks(OWNER, other), "it is told as the offence that it is"
    assert not bench.driver.lacks(CONSUMER, after[2]), "who has not said hello has no link"


def test_every_step_is_recorded_with_the_computations_that_it_gave_rise_to() -> None:
    bench = Bench()
    bench.begin()
    assert bench.events() == ["started", "received", "received", "received"]
    event, steps = bench.journal.records[3]
    assert event.kind == "received"
    assert [item.kind for item in steps] == ["send", "weights-computed", "send", "set-timer"]


def test_nothing_is_handed_out_before_the_journal_has_it() -> None:
    bench = Bench()
    bench.begin()
    assert "commit" not in bench.log
    out = bench.driver.release()
    assert bench.log[-1] == "commit"
    assert [(frame.peer, frame.kind, frame.sequence) for frame in out] == [
        (CONSUMER, "welcome", 0),
        (OWNER, "welcome", 0),
        (OWNER, "broadcast", 1),
    ]
    for frame in out:
        assert decode_frame(frame.data).session == bench.session.identifier
    assert bench.driver.release() == []


def test_a_journal_that_fails_lets_nothing_out() -> None:
    bench = Bench()
    bench.begin()

    def fail() -> None:
        raise OSError("disk full")

    commit, bench.journal.commit = bench.journal.commit, fail  # type: ignore[method-assign]
    with pytest.raises(OSError, match="disk full"):
        bench.driver.release()
    bench.journal.commit = commit  # type: ignore[method-assign]
    assert len(bench.driver.release()) == 3, "what was held back leaves once it is durable"


BAD_FRAMES = {
    Offence.MAGIC: b"GET / HTTP/1.1\r\n\r\n" + bytes(64),
    Offence.MALFORMED: b"HBID\x01",
    Offence.VERSION: b"HBID\x09" + bytes(64),
}


@pytest.mark.parametrize("offence", BAD_FRAMES)
def test_a_frame_that_cannot_be_read_is_an_offence_on_record(offence: Offence) -> None:
    bench = Bench()
    bench.begin()
    bench.driver.receive(OWNER, BAD_FRAMES[offence], 1.0)
    event, _ = bench.journal.records[-1]
    assert (event.kind, event.private["offence"]) == ("offended", offence.value)
    last = bench.driver.release()[-1]
    message = decode_message(Direction.CURATOR_TO_OWNER, decode_frame(last.data).body)
    assert isinstance(message, Refused)
    assert message.code == offence.value


def test_a_numbered_frame_of_another_session_is_an_offence() -> None:
    bench = Bench()
    bench.begin()
    bench.driver.receive(OWNER, bench.frame(FAREWELL, sequence=1, session=bytes(16)), 0.0)
    assert bench.journal.records[-1][0].private["offence"] == "session"


def test_a_hello_for_another_session_is_an_offence_for_what_it_says() -> None:
    bench = Bench()
    other = bytes(32)
    bench.driver.receive(OWNER, bench.frame(bench.greeting(OWNER, other), session=other[:16]), 0.0)
    assert bench.journal.records[-1][0].private["offence"] == "configuration"


def test_a_message_of_another_direction_is_an_offence() -> None:
    bench = Bench()
    bench.begin()
    bench.driver.receive(OWNER, bench.target(), 0.0)
    assert bench.journal.records[-1][0].private["offence"] == "malformed"


def test_a_breach_that_the_machine_finds_is_recorded_as_an_offence_and_not_as_received() -> None:
    bench = Bench()
    bench.begin()
    bid = Bid(
        round=2,
        exhausted=False,
        score=fixed(0),
        handle=fixed(1),
        candidate=candidate_of(np.zeros(4, dtype=np.int16)),
    )
    bench.driver.receive(OWNER, bench.frame(bid, sequence=1), 0.0)
    assert bench.events()[-1] == "offended"
    assert bench.journal.records[-1][0].private["offence"] == "out-of-turn"


def test_a_sign_of_life_is_neither_a_step_nor_recorded() -> None:
    bench = Bench()
    before = list(bench.log)
    bench.driver.receive(OWNER, bench.driver.beat(), 0.0)
    assert bench.log == before


def test_a_bug_is_no_peers_fault() -> None:
    bench = Bench()
    with pytest.raises(LocalProtocolError):
        bench.driver.feed(Nonsense(), 0.0)


class Nonsense(Event):
    KIND = "nonsense"


def test_timers_fire_in_the_order_of_their_time_and_once() -> None:
    bench = Bench()
    driver = bench.driver
    assert driver.next_due == bench.session.file.timeouts.enrolment
    driver.fire_due(59.9)
    assert driver.finished is None
    driver.fire_due(60.0)
    assert isinstance(driver.finished, Finish)
    assert bench.events()[-1] == "timer"
    assert driver.next_due is None


def test_after_the_end_nothing_is_taken_any_more() -> None:
    bench = Bench()
    bench.driver.fire_due(60.0)
    before = len(bench.journal.records)
    bench.driver.receive(OWNER, bench.hello(OWNER), 61.0)
    bench.driver.feed(Lost(OWNER), 61.0)
    bench.driver.fire_due(1e9)
    assert len(bench.journal.records) == before


def test_computations_are_the_numerics_business_alone() -> None:
    seen: list[Effect] = []

    class Watching:
        def perform(self, effect: Effect) -> Event | None:
            seen.append(effect)
            return None

        def restore(self, effect: Effect, outcome: Event | None) -> None:
            raise AssertionError("nothing starts again")

    bench = Bench()
    bench.driver._numerics = Watching()
    bench.begin()
    assert [effect.KIND for effect in seen] == ["compute-weights"]


def test_what_a_driver_receives_is_decoded_by_the_peers_direction() -> None:
    assert said_to(CURATOR)(CONSUMER) is Direction.CONSUMER_TO_CURATOR
    assert said_to(CURATOR)(OWNER) is Direction.OWNER_TO_CURATOR
    bench = Bench()
    bench.driver.receive(OWNER, bench.hello(OWNER), 0.0)
    event, _ = bench.journal.records[-1]
    assert event.kind == Received.KIND


def test_a_frame_that_was_had_before_leaves_no_record() -> None:
    bench = Bench()
    bench.begin()
    records = len(bench.journal.records)
    for _ in range(3):
        bench.driver.receive(CONSUMER, bench.target(), 1.0)
    assert len(bench.journal.records) == records


class Failing:
    """Numerics that cannot do what they are asked."""

    def perform(self, effect: Effect) -> Event | None:
        raise TranscriptUnwritable("No space left.", advice="Make room.")

    def restore(self, effect: Effect, outcome: Event | None) -> None:
        raise AssertionError("nothing starts again")


def test_a_step_whose_outcome_cannot_be_computed_is_not_on_record() -> None:
    """After a restart the party is as before, and the peer resends what was not acknowledged."""
    bench = Bench()
    bench.driver._numerics = Failing()
    with pytest.raises(TranscriptUnwritable, match="No space left"):
        bench.begin()
    assert bench.events() == ["started", "received", "received"]
    assert [(frame.peer, frame.kind) for frame in bench.driver.release()] == [(CONSUMER, "welcome")]


def test_a_step_that_is_computed_but_cannot_be_kept_is_on_record_before_the_failure_is_told() -> None:
    """What was to be kept follows from the record, and is kept at the next start."""
    bench = Bench("sealed")
    bench.driver._numerics = Failing()
    with pytest.raises(TranscriptUnwritable, match="No space left"):
        bench.driver.fire_due(60.0)
    event, steps = bench.journal.records[-1]
    assert (event.kind, event.public["name"]) == ("timer", "enrolment")
    assert [item.kind for item in steps] == ["head-signed", "finish"]
    assert bench.log[-1] == "commit"
    assert isinstance(bench.driver.finished, Finish)


# -- sealed boxes ------------------------------------------------------------------------------------


class Boxes:
    """A keeper of boxes in memory, which notes when it commits."""

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.kept: list[bytes] = []

    def add(self, box: bytes) -> None:
        self.kept.append(box)

    def commit(self) -> None:
        self.log.append("commit boxes")

    def sweep(self) -> None:
        self.log.append("sweep boxes")


def sealed_bench() -> tuple[Bench, Boxes, Bid]:
    """A sealed session whose owner's first bid is due."""
    bench = Bench("sealed")
    boxes = Boxes(bench.log)
    bench.driver._boxes = boxes
    bench.begin()
    bench.driver.receive(OWNER, bench.frame(Ready(), sequence=1), 0.0)
    candidate = sealed_candidate_of(np.zeros(4, dtype=np.int16), bench.session)
    candidate = candidate.model_copy(update={"box": b"\7" * len(candidate.box)})
    bid = Bid(round=1, exhausted=False, score=fixed(0), handle=fixed(1), candidate=candidate)
    return bench, boxes, bid


def test_a_sealed_bid_is_on_record_with_the_digest_of_its_box_and_the_box_is_kept_apart() -> None:
    bench, boxes, bid = sealed_bench()
    bench.driver.receive(OWNER, bench.frame(bid, sequence=2), 0.0)
    assert isinstance(bid.candidate, SealedCandidate)
    assert boxes.kept == [bid.candidate.box]
    event, _ = bench.journal.records[-1]
    assert event.kind == "received"
    frame = event.private["frame"]
    assert isinstance(frame, dict)
    body = frame["body"]
    assert isinstance(body, bytes)
    assert bid.candidate.box not in body
    kept = decode_message(Direction.OWNER_TO_CURATOR, body)
    assert isinstance(kept, Bid)
    assert isinstance(kept.candidate, SealedCandidate)
    assert kept.candidate.box == hashlib.sha256(bid.candidate.box).digest()
    assert kept.candidate.signature == bid.candidate.signature
    assert frame["digest"] == hashlib.sha256(encode_message(bid)).digest(), "of what came, whole"


def test_no_record_of_a_session_holds_a_box() -> None:
    bench, _, bid = sealed_bench()
    bench.driver.receive(OWNER, bench.frame(bid, sequence=2), 0.0)
    assert isinstance(bid.candidate, SealedCandidate)
    for event, effects in bench.journal.records:
        for item in (event, *effects):
            assert bid.candidate.box not in pack_value([item.public, item.private])


def test_boxes_are_durable_before_the_record_that_has_their_digests() -> None:
    bench, _, bid = sealed_bench()
    bench.driver.receive(OWNER, bench.frame(bid, sequence=2), 0.0)
    bench.driver.settle()
    assert bench.log[-3:] == ["commit boxes", "commit", "sweep boxes"]


def test_a_sealed_bid_that_is_refused_is_not_kept() -> None:
    bench, boxes, bid = sealed_bench()
    bench.driver.receive(OWNER, bench.frame(bid.model_copy(update={"round": 2}), sequence=2), 0.0)
    assert bench.events()[-1] == "offended"
    assert boxes.kept == []


# -- charges -----------------------------------------------------------------------------------------


def test_a_charge_is_on_record_before_what_it_is_for_leaves() -> None:
    gaussian = {"mechanism": "gaussian", "neighbours": "add-remove-one", "epsilon": 1.0}
    bench = Bench(summary=gaussian)
    bench.begin()
    _, steps = bench.journal.records[-1]
    kinds = [item.kind for item in steps]
    assert kinds.index("weights-computed") < kinds.index("charge") < kinds.index("send", 1)
    charge = steps[kinds.index("charge")]
    assert charge.public["neighbours"] == "add-remove-one"
    assert charge.private == {}
