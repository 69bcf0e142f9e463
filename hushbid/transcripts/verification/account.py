"""A transcript's account of sent and received frames: a digest of each, without bodies."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from hushbid.protocol.errors import DataError, RemoteProtocolError
from hushbid.protocol.machine.machine import Received, Send
from hushbid.protocol.names import CONSUMER, CURATOR, an
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import MalformedRecord, Record
from hushbid.protocol.transcript.verify import Contradiction, RecordedFrame, Verification, frame_of, verify
from hushbid.protocol.wire.blind import Award, BlindBid, SealedBroadcast
from hushbid.protocol.wire.codec import Direction, decode_message, encode_message, read_message
from hushbid.protocol.wire.messages import CONTROL_SEQUENCE, Broadcast, without_box
from hushbid.protocol.wire.unlinked import Choice, Picked, RoundOpening
from hushbid.transcripts.replay import opened_session
from hushbid.transcripts.verification.awards import Awards, VoidBoxes
from hushbid.transcripts.verification.charges import Charges
from hushbid.transcripts.verification.choices import ChoiceFollower
from hushbid.transcripts.verification.commitments import KINDS as COMMITTING
from hushbid.transcripts.verification.commitments import Commitments

__all__ = ["FrameAccount", "Noted", "RecordAccount", "Told", "account_of"]

_HEADER_RECORD = -1
_COMPARED = {
    "blind-bid": Direction.OWNER_TO_CURATOR,
    "award": Direction.CURATOR_TO_CONSUMER,
    "round-opening": Direction.CONSUMER_TO_CURATOR,
    "choice": Direction.CURATOR_TO_CONSUMER,
    "picked": Direction.CURATOR_TO_CONSUMER,
}
"""Messages compared at a blind curator, and their direction."""


class Noted(NamedTuple):
    """A frame: its record, its message's kind, and SHA-256 of its body as sent.

    `kept` is SHA-256 of the body as the receiver records it: without the box of a sealed bid.
    """

    record: int
    message: str
    digest: bytes
    kept: bytes

    def same(self, other: Noted) -> bool:
        return (self.message, self.digest, self.kept) == (other.message, other.digest, other.kept)


@dataclass
class FrameAccount:
    """A party's account of the frames between it and one peer, in one direction.

    Attributes:
        numbered: Each numbered frame as it was first sent or received; `last` is the highest number.
        unnumbered: The messages that make a link, by digest.
        acknowledged: The highest number of the other direction that these frames acknowledge.
    """

    numbered: dict[int, Noted] = field(default_factory=dict)
    unnumbered: dict[bytes, Noted] = field(default_factory=dict)
    last: int = 0
    acknowledged: int = 0


class Told(NamedTuple):
    """The first record of a broadcast in a file, and its recipients: none in an owner's own file."""

    record: int
    owners: list[str]


class RecordAccount:
    """Takes a transcript's records, in order.

    Attributes:
        sent, received: Frames, by peer.
        chain: Every digest of the chain, the header's first, with the number of its record.
        broadcasts: Round → the file's broadcasts, by digest.
        awards: At a blind curator, awards compared with bids.
        void: At a consumer with a blind curator, the boxes it found void.
        faults: Frames that are impossible, whatever the other side says.
    """

    def __init__(self, path: Path, party: str) -> None:
        self.path = path
        self.party = party
        self.sent: dict[str, FrameAccount] = defaultdict(FrameAccount)
        self.received: dict[str, FrameAccount] = defaultdict(FrameAccount)
        self.chain: dict[bytes, int] = {}
        self.broadcasts: dict[int, dict[bytes, Told]] = defaultdict(dict)
        self.awards: Awards | None = None
        self._charges: Charges | None = None
        self._commitments: Commitments | None = None
        self.void = VoidBoxes() if party == CONSUMER else None
        self.redacted = 0
        self.faults: list[Contradiction] = []
        self._rounds: dict[bytes, int] = {}

    def knows(self, session: Session | None) -> None:
        """From here on, also compare with what follows from the session."""
        if session is not None:
            self._charges = Charges(session, self.party, self._fault)
            if session.commitment_depth:
                self._commitments = Commitments(session, self.party, self._fault)
            if self.party == CURATOR and not session.curator_reads:
                self.awards = ChoiceFollower(session) if session.unlinked else Awards(session)

    def take(self, record: Record) -> None:
        self.chain[record.digest] = record.number
        if self._charges is not None:
            self._charges.take(record)
        for item in record.items:
            if item.kind not in (Send.KIND, Received.KIND):
                if self.void is not None:
                    self.void.take(item)
                continue
            try:
                frame = frame_of(item)
            except MalformedRecord:
                continue  # `verify` says so
            if frame is None:
                self.redacted += 1
            elif item.kind == Send.KIND:
                self._take_sent(record.number, frame)
            else:
                self._take_received(record.number, frame)

    def _take_sent(self, record: int, frame: RecordedFrame) -> None:
        traffic = self.sent[frame.peer]
        noted = _noted(record, frame)
        if frame.acknowledged > self.received[frame.peer].last:
            self._fault(record, f"{_named(frame)} acknowledges frame {frame.acknowledged}, which never came")
        known = traffic.numbered.get(frame.sequence)
        if known is None:
            self._take_new(record, frame, noted, traffic, sent=True)
        elif not noted.same(known):
            self._fault(record, f"{_named(frame)} has other bytes than when it was sent in {known.record}")

    def _take_received(self, record: int, frame: RecordedFrame) -> None:
        traffic = self.received[frame.peer]
        if frame.sequence in traffic.numbered:
            self._fault(record, f"{_named(frame)} had come before")
            return
        self._take_new(record, frame, _noted(record, frame), traffic, sent=False)

    def _take_new(
        self, record: int, frame: RecordedFrame, noted: Noted, traffic: FrameAccount, *, sent: bool
    ) -> None:
        if frame.sequence == CONTROL_SEQUENCE:
            traffic.unnumbered.setdefault(noted.digest, noted)
            return
        if frame.sequence != traffic.last + 1:
            self._fault(record, f"{_named(frame)} stands next to frame {traffic.last}")
        traffic.numbered[frame.sequence] = noted
        traffic.last = max(traffic.last, frame.sequence)
        traffic.acknowledged = max(traffic.acknowledged, frame.acknowledged)
        if frame.message in ("broadcast", "call", "sealed-broadcast"):
            self._take_broadcast(frame, noted, sent=sent)
        elif frame.message == "round-opening":
            self._take_opening(frame, noted)
        if sent and self._charges is not None:
            self._charges.left(record, frame.message, self._rounds.get(noted.digest, 0))
        if self._commitments is not None and frame.message in COMMITTING:
            self._commitments.take(record, frame)
        if self.awards is not None and frame.message in _COMPARED:
            self._compare_award(record, frame, self.awards)

    def _take_broadcast(self, frame: RecordedFrame, noted: Noted, *, sent: bool) -> None:
        round_number = self._rounds.get(noted.digest)
        if round_number is None:
            round_number = _round_of(frame.body)
            if round_number is None:
                self._fault(noted.record, f"{_named(frame)} is called a broadcast but is not one")
                return
            self._rounds[noted.digest] = round_number
        told = self.broadcasts[round_number].setdefault(noted.digest, Told(noted.record, []))
        if self.party == CURATOR and sent:
            told.owners.append(frame.peer)

    def _take_opening(self, frame: RecordedFrame, noted: Noted) -> None:
        """Note the broadcast that opens a round, as owners get it."""
        try:
            opening = decode_message(Direction.CONSUMER_TO_CURATOR, frame.body)
        except RemoteProtocolError:
            opening = None
        if not isinstance(opening, RoundOpening):
            self._fault(noted.record, f"{_named(frame)} is called a broadcast but is not one")
            return
        self._rounds[noted.digest] = opening.round
        digest = hashlib.sha256(encode_message(opening.broadcast())).digest()
        self.broadcasts[opening.round].setdefault(digest, Told(noted.record, []))

    def _compare_award(self, record: int, frame: RecordedFrame, awards: Awards) -> None:
        try:
            message = read_message(_COMPARED[frame.message], frame.body)
            if isinstance(message, Award):
                awards.take_award(record, message)
            elif isinstance(message, BlindBid):
                awards.take_bid(frame.peer, message)
            elif isinstance(awards, ChoiceFollower) and isinstance(message, RoundOpening):
                awards.take_opening(message)
            elif isinstance(awards, ChoiceFollower) and isinstance(message, Choice):
                awards.take_choice(record, message)
            elif isinstance(awards, ChoiceFollower) and isinstance(message, Picked):
                awards.take_picked(record, message)
            else:
                self._fault(record, f"{_named(frame)} is called {an(frame.message)} but is not one")
        except (RemoteProtocolError, LookupError, ValueError):
            self._fault(record, f"{_named(frame)} is called {an(frame.message)} but is not one")

    def _fault(self, record: int, what: str) -> None:
        self.faults.append(Contradiction(record, what))


def account_of(path: Path) -> tuple[Verification, RecordAccount]:
    """Verify a transcript, and collect its account in the same pass.

    Raises:
        DataError: It is not a transcript, or has a newer version.
        TranscriptDamaged: A digest or commitment does not hold; it names the record.
    """
    with TranscriptReader(path) as reader:
        account = RecordAccount(path, reader.header.party)
        account.chain[reader.head] = _HEADER_RECORD
        account.knows(_session_of(path, reader))
    verification = verify(path, account.take)
    return verification, account


def _session_of(path: Path, reader: TranscriptReader) -> Session | None:
    """The session at a file's beginning; None if it is redacted or unusable."""
    first = next(reader, None)
    if first is None or first.event.redacted:
        return None
    try:
        return opened_session(path, reader.header, first)
    except DataError:
        return None  # `verify` says so


def _noted(record: int, frame: RecordedFrame) -> Noted:
    kept = hashlib.sha256(frame.body).digest()
    if frame.digest is not None:
        return Noted(record, frame.message, frame.digest, kept)
    return Noted(record, frame.message, kept, _without_box(frame) or kept)


def _without_box(frame: RecordedFrame) -> bytes | None:
    """SHA-256 of a bid as the curator records it; None if it is recorded as sent."""
    if frame.message not in ("bid", "batch", "submission", "blind-bid"):
        return None
    try:
        kept = without_box(decode_message(Direction.OWNER_TO_CURATOR, frame.body))
    except RemoteProtocolError:
        return None
    return None if kept is None else hashlib.sha256(encode_message(kept)).digest()


def _round_of(body: bytes) -> int | None:
    try:
        message = decode_message(Direction.CURATOR_TO_OWNER, body)
    except RemoteProtocolError:
        return None
    return message.round if isinstance(message, Broadcast | SealedBroadcast) else None


def _named(frame: RecordedFrame) -> str:
    return f"frame {frame.sequence} between this party and {frame.peer}"
