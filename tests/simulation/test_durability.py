"""Whatever leaves a party is on record first: its noise, its charge, and the release itself (DESIGN §2).

A curator or consumer that stops at any moment, losing its memory, has on disk everything behind any release
that anybody can have seen. So a release is never made twice. This test inspects a whole session whenever a
frame leaves; a driver that lets frames leave too soon must be caught.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.releases import RELEASES
from hushbid.protocol.runtime.driver import Driver, Outgoing
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.journal import JournalLike, MemoryJournal
from hushbid.protocol.transcript.record import Header
from hushbid.protocol.wire.codec import Direction, decode_frame, decode_message
from hushbid.protocol.wire.messages import Broadcast, Target
from hushbid.simulation import simulator
from hushbid.simulation.simulator import Simulation
from tests.simulation.harness import names, session_file
from tests.support.transcripts import read_transcript

COLUMNS = 3
ROUNDS = 20
EPSILON = 3.0
Recorded = tuple[str, dict[str, Any]]
"""An event's or effect's kind, and its fields."""
NOISY = sorted(RELEASES.keys() & {"gaussian", "filtered-gaussian"})


class EagerDriver(Driver):
    """A broken control: every other time frames leave before their step is durable."""

    late = True

    def release(self) -> list[Outgoing]:
        if not self._outgoing:
            return []
        self.late = not self.late
        if not self.late:
            self.settle()
        outgoing, self._outgoing = self._outgoing, []
        return outgoing


class ForgetfulDriver(Driver):
    """A broken control: frames leave, and nothing is made durable until the end."""

    def release(self) -> list[Outgoing]:
        outgoing, self._outgoing = self._outgoing, []
        return outgoing


class Onlooker:
    """Reads a party's durable image whenever a frame leaves.

    Attributes:
        looks: How often it looked.
        missing: What had left without being on record, in words.
    """

    def __init__(self, session: Session, place: Path) -> None:
        self.session = session
        self.place = place
        self.journals: dict[str, MemoryJournal] = {}
        self.released: dict[int, bytes] = {}
        """The broadcast of each round that has left."""
        self.target: bytes | None = None
        self.looks = 0
        self.missing: list[str] = []

    def journal(self, role: str, party: str) -> JournalLike:
        header = Header(role, party, self.session.identifier.hex(), bytes(32), "test", {}, "simulated")
        self.journals[party] = MemoryJournal(header)
        return self.journals[party]

    def tap(self, sender: str, _receiver: str, frame: Outgoing) -> None:
        if sender not in (CURATOR, CONSUMER):
            return
        body = decode_frame(frame.data).body
        if frame.kind == "broadcast":
            message = decode_message(Direction.CURATOR_TO_OWNER, body)
            assert isinstance(message, Broadcast)
            assert self.released.setdefault(message.round, body) == body, "one value per release"
        elif frame.kind == "target":
            self.target = body
        self.looks += 1
        if sender == CURATOR:
            self._look_at_curator()
        else:
            self._look_at_consumer()

    def _items(self, party: str) -> list[Recorded]:
        path = self.place / f"{party}.transcript"
        path.write_bytes(self.journals[party].image)
        records = read_transcript(path).records
        return [(item.kind, {**item.public, **item.private}) for record in records for item in record.items]

    def _look_at_curator(self) -> None:
        items = self._items(CURATOR)
        sent = {fields["frame"]["body"] for kind, fields in items if kind == "send"}
        for number, body in self.released.items():
            broadcast = decode_message(Direction.CURATOR_TO_OWNER, body)
            assert isinstance(broadcast, Broadcast)
            self._require(body in sent, f"the broadcast of round {number}")
            stored = [
                place
                for place, (kind, fields) in enumerate(items)
                if kind == "weights-computed" and fields["round"] == number
            ]
            self._require(len(stored) == 1, f"the release of round {number}")
            charged = [
                place
                for place, (kind, fields) in enumerate(items)
                if kind == "charge" and fields["first"] <= number <= fields["last"]
            ]
            self._require(len(charged) == 1, f"the charge of round {number}")
            noise = self._noise_of(items, number)
            wanted = [draw.size for draw in self.session.summary.draws(number - 1)]
            self._require([len(drawn) for drawn in noise] == wanted, f"the noise of round {number}")
            if stored and charged:
                assert np.array_equal(items[stored[0]][1]["weights"], broadcast.weights)

    def _noise_of(self, items: list[Recorded], number: int) -> tuple[Any, ...]:
        for kind, fields in items:
            if kind == "noise-drawn" and 0 <= number - fields["first"] < len(fields["rounds"]):
                release, _rule = fields["rounds"][number - fields["first"]]
                return tuple(release)
        return ()

    def _look_at_consumer(self) -> None:
        if self.target is None:
            return
        items = self._items(CONSUMER)
        target = decode_message(Direction.CONSUMER_TO_CURATOR, self.target)
        assert isinstance(target, Target)
        kinds = [kind for kind, _ in items]
        self._require(kinds.count("charge") == 1, "the charge of the target")
        self._require(kinds.count("target-released") == 1, "the release of the target")
        sent = {fields["frame"]["body"] for kind, fields in items if kind == "send"}
        self._require(self.target in sent, "the target")
        wanted = [draw.size for draw in self.session.target.draws(0)]
        for kind, fields in items:
            if kind == "target-released":
                assert [len(drawn) for drawn in fields["noise"]] == wanted
                assert np.array_equal(fields["embedding"], target.embedding)
                assert kinds.index("charge") < kinds.index("target-released")

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            self.missing.append(what)


def watched(place: Path, rule: str, release: str) -> tuple[Onlooker, dict[str, ExitCode]]:
    """Simulate K = 2, p = 20, and inspect the records of curator and consumer whenever a frame leaves."""
    session = open_session(
        session_file(
            owners=names(2),
            points=ROUNDS,
            rule=rule,
            target={"mechanism": release, "epsilon": EPSILON, "neighbours": "substitute-one"},
            summary={"mechanism": release, "epsilon": EPSILON, "neighbours": "add-remove-one"},
            dimension=8,
            columns=COLUMNS,
        )
    )
    onlooker = Onlooker(session, place)
    rng = np.random.default_rng(0)
    outcome = Simulation(
        session,
        owners={name: Dataset.from_arrays(name, rng.random((15, COLUMNS))) for name in names(2)},
        validation=Dataset.from_arrays("validation", rng.random((30, COLUMNS))),
        seed_set=Dataset.from_arrays("seed-set", rng.random((12, COLUMNS))),
        journal=onlooker.journal,
        tap=onlooker.tap,
    ).run()
    return onlooker, {name: finish.code for name, finish in outcome.finishes.items()}


@pytest.mark.parametrize("release", NOISY)
@pytest.mark.parametrize("rule", ["ask-all", "sealed"])
def test_noise_charge_and_release_are_durable_before_anything_made_of_them_leaves(
    tmp_path: Path, rule: str, release: str
) -> None:
    onlooker, codes = watched(tmp_path, rule, release)
    assert set(codes.values()) == {ExitCode.DONE}
    assert onlooker.missing == []
    assert sorted(onlooker.released) == list(range(1, ROUNDS + 1))
    assert onlooker.target is not None
    assert onlooker.looks > 2 * ROUNDS


@pytest.mark.parametrize("broken", [EagerDriver, ForgetfulDriver])
def test_a_driver_that_lets_frames_leave_before_they_are_on_record_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: type[Driver]
) -> None:
    monkeypatch.setattr(simulator, "Driver", broken)
    onlooker, codes = watched(tmp_path, "ask-all", "gaussian")
    assert set(codes.values()) == {ExitCode.DONE}, "nobody else would notice"
    missing = set(onlooker.missing)
    assert {"the target", "the charge of the target", "the release of the target"} <= missing
    for what in ("broadcast", "release", "charge"):
        assert any(text.startswith(f"the {what} of round ") for text in missing)
