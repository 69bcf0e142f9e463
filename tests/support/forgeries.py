"""Transcripts of whole sessions, and forgeries that keep the chain valid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.curator.machine import CuratorMachine
from hushbid.curator.party import curator_party
from hushbid.protocol.crypto.sealing import head_statement, sign
from hushbid.protocol.data import Dataset
from hushbid.protocol.machine.machine import HeadSigned, Send
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.protocol.runtime.driver import Numerics, Outgoing
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.journal import MemoryJournal
from hushbid.protocol.transcript.record import Header, Record, RecordedItem, encode_header, encode_record
from hushbid.protocol.wire.codec import decode_message, encode_message, said_to
from hushbid.protocol.wire.messages import Broadcast, Close, Farewell, Message
from hushbid.protocol.wire.values import Item
from hushbid.simulation.network import SteadyNetwork
from hushbid.simulation.simulator import Simulation
from tests.simulation.harness import names, session_file
from tests.support.transcripts import fixed_salts, read_transcript

__all__ = [
    "TWO_FACED_ROUND",
    "VICTIM",
    "Recording",
    "Stopped",
    "frame_in",
    "header_of",
    "recorded",
    "records_of",
    "rewritten",
    "session_of",
    "stopped",
    "two_faced",
    "with_frame",
    "written",
]

COLUMNS = 3
TWO_FACED_ROUND = 2
VICTIM = "owner-1"
"""Who is told another broadcast than the others, in that round."""

Change = Callable[[Record], Record | None]
"""What a forger makes of a record; None: it is left out."""


class Stopped(Exception):
    """The machines were switched off."""


@cache
def session_of(rule: str = "ask-all", points: int = 4, owners: int = 2, noise_seed: int = 0) -> Session:
    """A small session."""
    file = session_file(
        owners=names(owners),
        points=points,
        rule=rule,
        dimension=8,
        columns=COLUMNS,
        noise_seed=noise_seed,
    )
    return open_session(file)


def header_of(session: Session, role: str, party: str) -> Header:
    """The header of a party's transcript."""
    return Header(role, party, session.identifier.hex(), session.file.digest(), "test", {}, "simulated")


class Recording:
    """Runs a session and keeps every party's transcript."""

    def __init__(self, session: Session, **options: Any) -> None:
        self.journals: dict[str, MemoryJournal] = {}
        self._session = session
        rng = np.random.default_rng(0)
        self._simulation = Simulation(
            session,
            owners={
                name: Dataset.from_arrays(name, rng.random((12, COLUMNS))) for name in session.file.owners
            },
            validation=Dataset.from_arrays("validation", rng.random((20, COLUMNS))),
            seed_set=Dataset.from_arrays("seed-set", rng.random((12, COLUMNS))),
            journal=self._journal,
            **options,
        )

    def _journal(self, role: str, party: str) -> MemoryJournal:
        journal = MemoryJournal(header_of(self._session, role, party), salts=fixed_salts(party.encode()))
        self.journals[party] = journal
        return journal

    def run(self) -> dict[str, bytes]:
        """Run to the end; returns each party's transcript."""
        self._simulation.run()
        for journal in self.journals.values():
            journal.close()
        return self.images()

    def run_until_stopped(self) -> dict[str, bytes]:
        """Run until `Stopped`; returns what is durable then."""
        try:
            self._simulation.run()
        except Stopped:
            return self.images()
        raise AssertionError("the session ended first")

    def images(self) -> dict[str, bytes]:
        """Each party's transcript, as far as it is durable."""
        return {party: journal.image for party, journal in self.journals.items()}


@cache
def recorded(
    rule: str = "ask-all", points: int = 4, owners: int = 2, away: str = "", noise_seed: int = 0
) -> Mapping[str, bytes]:
    """The transcripts of a session that ends well.

    Args:
        rule: Its rule.
        points: Its rounds.
        owners: Number of owners.
        away: An owner without a connection in the second round.
        noise_seed: Seed of its noise.
    """
    gone = (lambda number: (away,) if number == 2 else ()) if away else None
    return Recording(session_of(rule, points, owners, noise_seed), network=SteadyNetwork(gone)).run()


def stopped(frames: int, rule: str = "ask-all") -> Mapping[str, bytes]:
    """The transcripts of a session whose machines all stop when that many frames have left."""
    left = 0

    def tap(_sender: str, _receiver: str, _frame: Outgoing) -> None:
        nonlocal left
        left += 1
        if left > frames:
            raise Stopped

    return Recording(session_of(rule), tap=tap).run_until_stopped()


class TwoFaced(CuratorMachine):
    """A curator that sends one owner another broadcast than the others."""

    def send(self, peer: str, message: Message, body: bytes | None = None) -> None:
        if isinstance(message, Broadcast) and (peer, message.round) == (VICTIM, TWO_FACED_ROUND):
            weights = message.weights + np.int32(1)
            message, body = message.model_copy(update={"weights": weights}), None
        super().send(peer, message, body)


@cache
def two_faced(owners: int = 3) -> Mapping[str, bytes]:
    """The transcripts of a session with a two-faced curator, which records what it does."""

    def party(session: Session, *, noise: NoiseSource) -> tuple[CuratorMachine, Numerics]:
        _, numerics = curator_party(session, noise=noise)
        return TwoFaced(session), numerics

    return Recording(session_of(owners=owners), curator=party).run()


def written(images: Mapping[str, bytes], directory: Path, *parties: str) -> list[Path]:
    """Files of the transcripts, of all parties or of the named ones."""
    paths = []
    for party in parties or sorted(images):
        paths.append(directory / f"{party}.transcript")
        paths[-1].write_bytes(images[party])
    return paths


def records_of(image: bytes, directory: Path) -> tuple[Header, tuple[Record, ...]]:
    """The records of a transcript."""
    path = directory / "being-read"
    path.write_bytes(image)
    found = read_transcript(path)
    path.unlink()
    return found.header, found.records


def rewritten(image: bytes, directory: Path, change: Change, *, session: Session | None = None) -> bytes:
    """The transcript with its records changed, in a valid chain.

    Args:
        directory: A place for files.
        change: Changes each record; its number and digest are recomputed.
        session: If given, the forger has the party's key: its own head is signed anew, also where others are
            told it.
    """
    header, records = records_of(image, directory)
    written, head = encode_header(header)
    salts = fixed_salts(b"forger")
    signer = _Signer(header.party, session) if session is not None else None
    for number, record in enumerate(_kept(map(change, records))):
        items = [_item(item) if signer is None else signer.signed(item, head) for item in record.items]
        encoded, head = encode_record(number, record.now, items[0], items[1:], previous=head, salts=salts)
        written += encoded
    return written


def _kept(records: Iterable[Record | None]) -> Iterator[Record]:
    return (record for record in records if record is not None)


def _item(item: RecordedItem) -> Item:
    return Item(item.kind, item.public, item.private)


class _Signer:
    """Signs the head of a party's chain anew, and puts it where the party told it to others."""

    def __init__(self, party: str, session: Session) -> None:
        self._party, self._session = party, session
        self._signed: dict[str, bytes] = {}

    def signed(self, item: RecordedItem, head: bytes) -> Item:
        frame = frame_in(item)
        if item.kind == HeadSigned.KIND:
            key = self._session.simulated_identity(self._party).signing
            statement = head_statement(self._session.identifier, self._party, head)
            self._signed = {"head": head, "signature": sign(statement, key)}
            return Item(item.kind, self._signed, {})
        if item.kind == Send.KIND and frame.get("message") in ("close", "farewell"):
            message = decode_message(said_to(frame["peer"])(self._party), frame["body"])
            assert isinstance(message, Close | Farewell)
            body = encode_message(message.model_copy(update=self._signed))
            return Item(item.kind, item.public, {"frame": {**frame, "body": body}})
        return _item(item)


def frame_in(item: RecordedItem) -> dict[str, Any]:
    """The frame of an event or effect; empty if it has none."""
    frame = item.private.get("frame")
    return dict(frame) if isinstance(frame, Mapping) else {}


def with_frame(record: Record, wanted: Callable[[str, dict[str, Any]], bool], **changes: Any) -> Record:
    """The record with changed fields in the wanted frames.

    Args:
        wanted: Whether a frame is, by its item's kind ("send", "received") and its fields.
        changes: The new values, or functions of the frame that give them.
    """

    def changed(item: RecordedItem) -> RecordedItem:
        frame = frame_in(item)
        if not frame or not wanted(item.kind, frame):
            return item
        values = {name: value(frame) if callable(value) else value for name, value in changes.items()}
        return item._replace(private={"frame": {**frame, **values}})

    return record._replace(event=changed(record.event), effects=tuple(map(changed, record.effects)))
