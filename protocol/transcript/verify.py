"""Checking one transcript alone: its chain, its commitments, and the signed heads in it.

At the end a party signs the head of its chain, and the two sides of every link exchange these signatures
(docs/transcript-format.md). Memory holds nothing but `Verification`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from hushbid.protocol.errors import ConfigError, DataError, HushbidError, RemoteProtocolError
from hushbid.protocol.machine.machine import HeadSigned, Received, Send
from hushbid.protocol.names import CONSUMER, CURATOR, an
from hushbid.protocol.session.points import signs_head
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import Header, MalformedRecord, Record, RecordedItem
from hushbid.protocol.transcript.session_file import recorded_digest, recorded_session
from hushbid.protocol.wire.codec import decode_message, said_to
from hushbid.protocol.wire.messages import Close, Farewell

__all__ = ["Contradiction", "RecordedFrame", "Signature", "SignedHead", "Verification", "frame_of", "verify"]

_HEADER_RECORD: Final = -1
_FRAMES: Final = (Send.KIND, Received.KIND)
_CLOSING: Final = ("close", "farewell")
"""Messages in which a party sends its signed head."""
_MALFORMED: Final = (AttributeError, LookupError, TypeError, ValueError)
"""Errors that a forged session file may cause."""
_SESSION_BYTES: Final = 16


class Signature(StrEnum):
    """The state of a signature check."""

    HOLDS = "holds"
    FAILS = "fails"
    ABSENT = "absent"
    """The party has not signed its head: its session has not ended, or the file lacks the end."""
    NO_KEYS = "no-keys"
    """Nobody has a key in an insecure session with secure noise: a signed head is the head alone."""
    UNCHECKED = "unchecked"
    """The keys of a session with simulated noise follow from a seed, which this copy lacks."""


class SignedHead(NamedTuple):
    """A head that a party signed, in its own transcript or as received.

    Args:
        head: Digest of the chain of the party's transcript.
        outcome: How the session ended, by the curator's message; otherwise empty.
    """

    party: str
    record: int
    head: bytes
    signature: Signature
    outcome: str = ""


class Contradiction(NamedTuple):
    """A contradiction in a transcript whose chain holds.

    Args:
        record: Number of the record; -1 for the header.
        what: The problem, in a sentence.
    """

    record: int
    what: str


class RecordedFrame(NamedTuple):
    """A recorded frame.

    Args:
        sequence: Its number; 0 for messages that establish a link.
        acknowledged: The peer's last frame that the sender had.
        body: The message; a received sealed bid has digests in place of its boxes.
        digest: SHA-256 of the body as it came, if that differs.
    """

    peer: str
    sequence: int
    acknowledged: int
    message: str
    body: bytes
    digest: bytes | None = None


class Verification(NamedTuple):
    """The result of checking a transcript without damage.

    Args:
        records: Number of whole records, all of which hold.
        head: The chain's final digest: copies with the same head have the same public parts, redacted or not.
        torn_bytes: Bytes at the end that are no whole record.
        private_fields: Number of private fields.
        redacted_fields: Number of those without a value.
        signed: Signed heads: the party's own, and the received ones.
        faults: Contradictions, above all wrong signatures.
    """

    header: Header
    records: int
    head: bytes
    torn_bytes: int
    private_fields: int
    redacted_fields: int
    signed: tuple[SignedHead, ...] = ()
    faults: tuple[Contradiction, ...] = ()

    @property
    def signature(self) -> Signature:
        """The state of the party's signature of its own head; failed, if any of several fails."""
        own = {signed.signature for signed in self.signed if signed.party == self.header.party}
        if Signature.FAILS in own:
            return Signature.FAILS
        return next(iter(own), Signature.ABSENT)


def verify(path: Path, observe: Callable[[Record], None] | None = None) -> Verification:
    """Check every digest of a transcript, every commitment with a value, and every signed head.

    Raises:
        DataError: No transcript, or of a newer version.
        TranscriptDamaged: A digest or commitment does not hold; it names the record.
    """
    private = redacted = 0
    with TranscriptReader(path) as reader:
        heads = _Heads(reader.header)
        before = reader.head
        for record in reader:
            for item in record.items:
                private += len(item.commitments)
                redacted += len(item.commitments) - len(item.private)
            heads.take(record, before)
            before = record.digest
            if observe is not None:
                observe(record)
        return Verification(
            reader.header,
            reader.count,
            reader.head,
            reader.torn_bytes,
            private,
            redacted,
            tuple(heads.signed),
            tuple(heads.faults),
        )


def frame_of(item: RecordedItem) -> RecordedFrame | None:
    """The sent or received frame; None for other items, and if it was removed.

    Raises:
        MalformedRecord: The item is of a frame's kind, but has no frame.
    """
    if item.kind not in _FRAMES or "frame" in item.redacted:
        return None
    fields = item.private.get("frame")
    try:
        frame = RecordedFrame(**fields)  # type: ignore[arg-type]  # anything else is a TypeError, too
    except TypeError:
        raise MalformedRecord(f"{an(item.kind)} has no frame") from None
    texts, numbers = (frame.peer, frame.message), (frame.sequence, frame.acknowledged)
    if not (
        all(type(text) is str for text in texts)
        and all(type(number) is int and number >= 0 for number in numbers)
        and type(frame.body) is bytes
        and type(frame.digest) in (bytes, type(None))
    ):
        raise MalformedRecord(f"{an(item.kind)} has a frame with a field of another type")
    return frame


class _Heads:
    """Collects signed heads, and what is wrong with them."""

    def __init__(self, header: Header) -> None:
        self.signed: list[SignedHead] = []
        self.faults: list[Contradiction] = []
        self._header = header
        self._session: Session | None = None
        self._has_seeds = True
        self._own: tuple[int, bytes] | None = None
        """The record and head of the party's first signature."""
        self._told: Close | Farewell | None = None
        """The message in which the party sent its head."""

    def take(self, record: Record, before: bytes) -> None:
        """Take in one record; `before` is the chain's head before it."""
        if record.number == 0:
            self._take_session(record.event)
        for item in record.items:
            if item.kind == HeadSigned.KIND:
                self._take_own(record.number, item, before)
            elif item.kind in _FRAMES:
                self._take_frame(record.number, item)

    def _take_session(self, event: RecordedItem) -> None:
        if "configuration" not in event.public:
            return
        self._has_seeds = not event.redacted
        header = self._header
        try:
            session = replace(open_session(recorded_session(event)), recorded_digest=header.config_digest)
            digest = recorded_digest(event, header.protocol) if self._has_seeds else header.config_digest
        except (ConfigError, DataError, *_MALFORMED) as error:
            why = error.what if isinstance(error, HushbidError) else type(error).__name__
            self._fault(0, f"its session file cannot be used: {why}")
            return
        if (digest, digest[:_SESSION_BYTES].hex()) != (header.config_digest, header.session):
            self._fault(0, "its session file belongs to another session than its header names")
            return
        role = header.party if header.party in (CURATOR, CONSUMER) else "owner"
        if header.role != role or header.party not in (CURATOR, CONSUMER, *session.file.owners):
            self._fault(_HEADER_RECORD, "its header names a party that its session file does not have")
            return
        self._session = session

    def _take_own(self, record: int, item: RecordedItem, before: bytes) -> None:
        head, signature = item.public.get("head"), item.public.get("signature")
        if type(head) is not bytes or type(signature) is not bytes:
            self._fault(record, "a head was signed that is not a digest")
            return
        if head != before:
            self._fault(record, "the head that was signed is not the chain's before this record")
        if self._own is not None:
            self._fault(record, f"a party signs its head once, and this one did in record {self._own[0]}")
        else:
            self._own = (record, head)
        self._note(record, self._header.party, head, signature)

    def _take_frame(self, record: int, item: RecordedItem) -> None:
        try:
            frame = frame_of(item)
        except MalformedRecord as error:
            self._fault(record, f"{error}")
            return
        if frame is None or frame.message not in _CLOSING:
            return
        sent = item.kind == Send.KIND
        sender, receiver = (self._header.party, frame.peer) if sent else (frame.peer, self._header.party)
        try:
            message = decode_message(said_to(receiver)(sender), frame.body)
        except RemoteProtocolError:
            message = None
        if not isinstance(message, Close | Farewell):
            self._fault(record, f"{an(frame.message)} was {'sent' if sent else 'received'} that is none")
        elif sent:
            self._take_told(record, message)
        else:
            outcome = message.outcome if isinstance(message, Close) else ""
            self._note(record, frame.peer, message.head, message.signature, outcome)

    def _take_told(self, record: int, message: Close | Farewell) -> None:
        """Check that the party sent its peers the head that it signed, and all the same."""
        if self._own is None or self._own[1] != message.head:
            self._fault(record, f"the head in the {message.kind} is not the one that the party signed before")
        elif self._check(self._header.party, message.head, message.signature) is Signature.FAILS:
            self._fault(record, f"the signature in the {message.kind} is not that of {self._header.party}")
        elif self._told not in (None, message):
            self._fault(record, f"the {message.kind} is not the same as the one that was sent before")
        else:
            self._told = message

    def _note(self, record: int, party: str, head: bytes, signature: bytes, outcome: str = "") -> None:
        found = self._check(party, head, signature)
        self.signed.append(SignedHead(party, record, head, found, outcome))
        if found is Signature.FAILS:
            self._fault(record, f"the signature of the head is not that of {party}")

    def _check(self, party: str, head: bytes, signature: bytes) -> Signature:
        session = self._session
        if session is None or party not in (CURATOR, CONSUMER, *session.file.owners):
            return Signature.FAILS
        if session.keyless and not signature:
            return Signature.NO_KEYS
        if not session.noise_protects and not self._has_seeds:
            return Signature.UNCHECKED
        return Signature.HOLDS if signs_head(session, party, head, signature) else Signature.FAILS

    def _fault(self, record: int, what: str) -> None:
        self.faults.append(Contradiction(record, what))
