"""Recompute a session from its parties' transcripts: ``python -m tests.interop.minimal.verifier FILES``.

It checks each file's chain, commitments, session digest, numbered frames and signed heads. For the curator's
file under `sealed`, `ask-all` and `tender` it also checks owners' signatures, scores, and which points were
due. For several files it checks that each received frame was sent. It was written from
docs/transcript-format.md, docs/wire.md and docs/protocol.md. Exit codes: 0 all holds, 1 something does not.
"""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tests.interop.minimal import formats
from tests.interop.minimal.checks import is_signed
from tests.interop.minimal.formats import Session, parts
from tests.interop.minimal.purchase import Choice, Entry
from tests.interop.minimal.transcript import Record, Transcript, Wrong

BEFORE = {"batch": 1, "seed_weight": 1.0, "jitter": 0.0, "distinct": False, "numbered": False}
"""What transcripts of older versions mean."""
Purchase = tuple[int, str, int]
"""Round, owner and number of a bought point."""


class Frame(NamedTuple):
    """A frame on record."""

    record: Record
    sent: bool
    peer: str
    sequence: int
    kind: str
    message: Mapping[str, Any]
    digest: bytes
    """SHA-256 of its body as it travelled."""


def frames_of(transcript: Transcript) -> Iterator[Frame]:
    """All frames that were sent or received."""
    for record in transcript.records:
        for item in record.items:
            if item.kind in ("send", "received") and "frame" in item.private:
                frame = item.private["frame"]
                digest = frame.get("digest") or hashlib.sha256(frame["body"]).digest()
                said = formats.message_of(frame["body"])
                place = frame["peer"], frame["sequence"], frame["message"]
                yield Frame(record, item.kind == "send", *place, said, digest)


def session_of(transcript: Transcript) -> Session:
    """The session of the first event, whose digest must be the header's."""
    started = transcript.records[0].items[0]
    tables = {name: dict(table) for name, table in started.public["configuration"].items()}
    for name, seed in started.private["seeds"].items():
        tables[name] |= {} if seed is None else {"seed": seed}
    tables["session"] = BEFORE | tables["session"]
    session = Session.of(tables)
    if session.digest != transcript.header["config_digest"]:
        raise Wrong(f"{transcript.path}: the session file is not the one that the header names")
    return session


def check_links(transcript: Transcript) -> None:
    """Check that numbered frames follow one another, and that resent ones are the same."""
    last: Counter[tuple[bool, str]] = Counter()
    sent: dict[tuple[str, int], bytes] = {}
    for frame in frames_of(transcript):
        if not frame.sequence:
            continue
        link = frame.sent, frame.peer
        again = frame.sent and frame.sequence <= last[link]
        if again and sent[frame.peer, frame.sequence] != frame.digest:
            raise Wrong(f"{_where(transcript, frame)}: other bytes are sent again")
        if not again and frame.sequence != last[link] + 1:
            raise Wrong(f"{_where(transcript, frame)}: frame {frame.sequence} after {last[link]}")
        last[link] = max(last[link], frame.sequence)
        if frame.sent:
            sent[frame.peer, frame.sequence] = frame.digest


def check_heads(transcript: Transcript, session: Session) -> dict[str, bytes]:
    """The signed heads by party: the file's own, and received ones."""
    found = {}
    for record in transcript.records:
        for item in record.items:
            if item.kind == "head-signed":
                if item.public["head"] != record.before:
                    raise Wrong(f"{transcript.path}: record {record.number}: another head was signed")
                _check_head(transcript, session, record, transcript.party, item.public)
                found[transcript.party] = record.before
    for frame in frames_of(transcript):
        if frame.kind in ("close", "farewell") and not frame.sent:
            _check_head(transcript, session, frame.record, frame.peer, frame.message)
            found[frame.peer] = frame.message["head"]
        elif frame.kind in ("close", "farewell") and frame.message["head"] != found.get(transcript.party):
            raise Wrong(f"{_where(transcript, frame)}: another head than was signed is sent")
    return found


def _check_head(
    transcript: Transcript, session: Session, record: Record, party: str, said: Mapping[str, Any]
) -> None:
    if session.tables["network"]["insecure"] and session.tables["noise"]["source"] == "secure":
        return  # nobody has a key
    statement = formats.head_statement(session.identifier, party, said["head"])
    if not is_signed(session.verify_key(party), statement, said["signature"]):
        raise Wrong(f"{transcript.path}: record {record.number}: {party} has not signed that head")


def compare(one: Transcript, other: Transcript) -> int:
    """Check that each of two files sent what the other received; returns the number of such frames."""
    count = 0
    for receiver, sender in ((one, other), (other, one)):
        sent = {
            frame.sequence: frame.digest
            for frame in frames_of(sender)
            if frame.sent and frame.peer == receiver.party
        }
        for frame in frames_of(receiver):
            if not frame.sent and frame.peer == sender.party and frame.sequence:
                if sent.get(frame.sequence) != frame.digest:
                    raise Wrong(f"{_where(receiver, frame)}: {sender.party} has not sent these bytes")
                count += 1
    return count


class Books:
    """The points that a curator must buy, by its own record."""

    def __init__(self, transcript: Transcript, session: Session) -> None:
        self.transcript, self.session = transcript, session
        self._table = session.tables["session"]
        self.owners = sorted(session.tables["roster"]["owners"])
        self._weights: dict[int, npt.NDArray[np.int64]] = {}
        self._pool: list[Entry] = []
        self._held: Counter[tuple[str, bytes]] = Counter()
        self._bids: dict[str, list[int]] = {owner: [] for owner in self.owners}
        self.faulty: set[str] = set()
        self._target: Mapping[str, Any] = {}
        self.due: list[Purchase] = []
        self.delivered: list[Purchase] = []

    def check(self) -> None:
        """Raise `Wrong` unless the delivery is what was due."""
        decided = 0
        for frame in frames_of(self.transcript):
            if not frame.sent:
                self._take(frame)
                continue
            # A round is decided before the next one's broadcast leaves, and the last before the delivery.
            now = max(self._weights, default=0)
            over = frame.kind == "delivery" or (frame.kind == "broadcast" and frame.message["round"] > now)
            if over and decided < now:
                decided = now
                self.due += self._decided(decided)
            self._give(frame)
        if self.delivered and self.due != self.delivered:
            pairs = enumerate(zip_longest(self.due, self.delivered))
            number, (due, had) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
            raise Wrong(f"{self.transcript.path}: purchase {number} is {had}, and {due} was due")

    def _give(self, frame: Frame) -> None:
        said = frame.message
        if frame.kind in ("broadcast", "call"):
            known = self._weights.setdefault(said["round"], said["weights"].astype(np.int64))
            if not np.array_equal(known, said["weights"]):
                raise Wrong(f"{_where(self.transcript, frame)}: round {said['round']} has two broadcasts")
        elif frame.kind == "delivery":
            self.delivered += [
                (each["round"], each["owner"], int(each["handle"][0])) for each in said["purchases"]
            ]

    def _take(self, frame: Frame) -> None:
        if frame.kind in ("target", "nested-target"):
            self._target = frame.message
        if frame.kind not in ("bid", "batch", "submission"):
            return
        said, owner = frame.message, frame.peer
        self._bids[owner].append(said["round"])
        candidates = said.get("candidates") or said["candidate"]
        handles, scores = (said.get(name, said.get(name[:-1])) for name in ("handles", "scores"))
        rows = candidates["features"].reshape(len(handles), -1)
        signed = self._signed(owner, said, candidates, handles, rows)
        for handle, score, features in zip(handles.tolist(), scores.tolist(), rows, strict=True):
            if not handle or said.get("exhausted"):
                continue
            if not signed or score != self._score(features, said["round"]):
                self.faulty.add(owner)
                continue
            phi = features.astype("<i2").tobytes()
            copy = self._held[owner, phi]
            self._held[owner, phi] += self._table["distinct"]
            self._pool.append(Entry(owner, handle, features, copy))

    def _score(self, features: npt.NDArray[np.int16], round_: int) -> int:
        row = features.astype(np.int64)
        if self._table["jitter"]:
            row = np.append(row, formats.jitter_of(self.session.identifier, features))
        return int(row @ self._weights[round_])

    def _signed(
        self, owner: str, said: Mapping[str, Any], candidates: Mapping[str, Any], handles: Any, rows: Any
    ) -> bool:
        """Whether an owner signed its points; the record has SHA-256 of each box."""
        if self.session.rule not in formats.SEALED or said.get("exhausted"):
            return True
        place, key = (self.session.identifier, owner, said["round"]), self.session.verify_key(owner)
        hashed = [hashlib.sha256(formats.packed_array(row)).digest() for row in rows]
        if "box" in candidates:
            content = formats.candidate_statement(*place, int(handles[0]), candidates["box"] + hashed[0])
            return is_signed(key, content, candidates["signature"])
        digests, boxes = candidates["digests"], parts(candidates["boxes"])
        for digest, handle, box, features in zip(parts(digests), handles, boxes, hashed, strict=True):
            if formats.batched_digest(int(handle), box + features) != digest:
                return False
        herds = self.session.rule == "tender"
        statement = formats.submission_statement if herds else formats.batch_statement
        return is_signed(key, statement(*place, digests), candidates["signature"])

    def _decided(self, number: int) -> list[Purchase]:
        """The points due, of owners that answered in full and handed over nothing wrong."""
        table = self._table
        due = -(-table["submission"] // table["batch"]) if self.session.rule == "tender" else 1
        there = {owner for owner in self.owners if self._bids[owner].count(number) == due} - self.faulty
        choice = Choice(self.session, [entry for entry in self._pool if entry.owner in there])
        if self.session.rule == "tender":
            bought = choice.together(self._target)
        else:
            room = min(table["batch"], table["points"] - table["batch"] * (number - 1))
            bought = choice.best({entry: self._score(entry.features, number) for entry in choice.left}, room)
        gone = {choice.name(entry) for entry in bought}
        self._pool = [entry for entry in self._pool if choice.name(entry) not in gone]
        return [(number, entry.owner, entry.handle) for entry in bought]


def _where(transcript: Transcript, frame: Frame) -> str:
    return f"{transcript.path}: record {frame.record.number}, a {frame.kind} of {frame.peer}'s link"


def verify(paths: list[Path]) -> list[str]:
    """What holds, a line for each thing; raises `Wrong` at the first that does not."""
    said, files = [], [Transcript.read(path) for path in paths]
    heads: dict[str, bytes] = {}
    sessions = {session_of(file).digest for file in files}
    if len(sessions) != 1:
        raise Wrong("the files are of several sessions")
    for file in files:
        session = session_of(file)
        check_links(file)
        for party, head in check_heads(file, session).items():
            if heads.setdefault(party, head) != head:
                raise Wrong(f"{file.path}: {party} has signed another head, too")
        said.append(f"{file.path}: {len(file.records)} records hold, head {file.head.hex()}")
        if file.party == "curator" and session.rule in formats.WITH_POINTS:
            books = Books(file, session)
            books.check()
            said.append(f"{file.path}: {len(books.delivered)} points were bought, and all were due")
    curators = [file for file in files if file.party == "curator"]
    for other in (file for file in files if curators and file.party != "curator"):
        said.append(f"curator and {other.party} agree: {compare(curators[0], other)} frames")
    return said


def main() -> int:
    try:
        print("\n".join(verify([Path(name) for name in sys.argv[1:]])))
    except Wrong as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
