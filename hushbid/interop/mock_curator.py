"""A curator that plays a golden session to an owner under test, and names the first byte that differs.

It listens with CURVE like a curator, sends the recorded frames, and compares each answer with the recorded
one. Choices of an implementation are checked instead: the name of its software, the keys that seal its boxes,
and so their digests and the signature, the head of its transcript with its signature, and whether a frame
acknowledges the one that it answers. Beats are ignored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

import msgpack

from hushbid.interop.exchange import OWNER, Exchange, Step, key_of
from hushbid.protocol.crypto.blinding import blind_bid_statement, blind_digest
from hushbid.protocol.crypto.sealing import (
    DIGEST_BYTES,
    batch_statement,
    batched_digest,
    candidate_statement,
    head_statement,
    open_sealed,
    submission_statement,
    verify_signature,
)
from hushbid.protocol.errors import HushbidError, RemoteProtocolError, TimedOut, VectorMismatch
from hushbid.protocol.names import CONSUMER, CURATOR, an
from hushbid.protocol.runtime.network.router import Arrival, RouterEndpoint
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.bids import bids_of
from hushbid.protocol.wire.blind import BlindBid
from hushbid.protocol.wire.codec import (
    HEADER_BYTES,
    Direction,
    Frame,
    decode_frame,
    decode_message,
    encode_frame,
    encode_message,
)
from hushbid.protocol.wire.merkle import Tree
from hushbid.protocol.wire.messages import (
    Batch,
    Beat,
    Bid,
    Farewell,
    Hello,
    Message,
    SealedCandidate,
    SealedCandidates,
    Submission,
    boxes_of,
)

__all__ = ["FrameDifference", "difference", "play"]

_BEAT: Final = encode_message(Beat())
_BEAT_MS: Final = 500
_HEADER: Final = (("magic", 4), ("frame version", 5), ("session", 21), ("sequence", 29), ("acknowledged", 37))
"""Fields of a frame's header, and where they end."""


@dataclass(frozen=True)
class FrameDifference:
    """The first difference of an owner's frame from the recorded one.

    Attributes:
        frame: Its number among the owner's, from 1, without beats.
        kind: The recorded message.
        byte: The first byte that differs, from 0; None if a check failed instead.
        expected, actual: Up to 16 bytes from there as recorded and as received, in hexadecimal.
        why: The failed check, for people.
    """

    frame: int
    kind: str
    byte: int | None
    field: str
    expected: str = ""
    actual: str = ""
    why: str = ""

    def __str__(self) -> str:
        where = f"frame {self.frame}, {an(self.kind)}, field {self.field}"
        if self.byte is None:
            return f"{where}: {self.why}"
        due, came = self.expected or "the end", self.actual or "the end"
        return f"{where}, byte {self.byte}: due was {due}, came {came}"


def play(exchange: Exchange, *, listen: str | None = None, seconds: float, say: Callable[[str], None]) -> int:
    """Play a golden session to the party that connects with its owner's key.

    Args:
        exchange: The session.
        listen: The address; None: that of its session file.
        seconds: Time limit for each answer, in seconds.
        say: Gets a line for every frame as recorded.

    Returns:
        The number of the owner's frames.

    Raises:
        VectorMismatch: A frame differs; the error names the first byte.
        TimedOut: No answer came.
        ConnectionFailed: It cannot listen there.
    """
    session, key = exchange.session, key_of(CURATOR)
    address = listen or session.file.network.address
    compared = told = 0
    with RouterEndpoint(address, pair=key, roster={session.file.roster.owners[OWNER]: OWNER}) as endpoint:
        route = b""
        for step in exchange.steps:
            if step.sender == CURATOR:
                endpoint.send(route, step.data)
                told = max(told, decode_frame(step.data).sequence)
                continue
            arrival = _next(endpoint, route, encode_frame(Frame(session.identifier, 0, 0, _BEAT)), seconds)
            route = arrival.route
            compared += 1
            found = difference(session, step, arrival.frame, compared, told)
            if found is not None:
                raise VectorMismatch(
                    f"The owner's answer is not the recorded one: {found}.",
                    advice="docs/wire.md says what the field holds; docs/vectors has what it is made of.",
                )
            say(f"frame {compared}: {step.kind}, {len(arrival.frame)} bytes, as recorded")
    return compared


def difference(session: Session, step: Step, actual: bytes, number: int, told: int) -> FrameDifference | None:
    """The first difference of an owner's frame from the recorded one; None: there is none.

    Args:
        session: The golden session.
        step: The recorded frame.
        actual: The received frame.
        number: Its number among the owner's.
        told: The last frame sent to the owner, which may acknowledge it already.
    """
    expected, kind = step.data, step.kind
    try:
        frame = decode_frame(actual)
        recorded = decode_frame(expected)
        if recorded.acknowledged <= frame.acknowledged <= told:
            expected = encode_frame(recorded._replace(acknowledged=frame.acknowledged))
        said = decode_message(Direction.OWNER_TO_CURATOR, frame.body)
    except RemoteProtocolError as error:
        found = _first_byte(expected, actual, number, kind)
        return found or FrameDifference(number, kind, None, "body", why=error.what)
    due = decode_message(Direction.OWNER_TO_CURATOR, expected[HEADER_BYTES:])
    if type(said) is type(due):
        if (wrong := _check_free(session, due, said)) is not None:
            field, why = wrong
            return FrameDifference(number, kind, None, field, why=why)
        expected = expected[:HEADER_BYTES] + encode_message(_with_free(due, said))
    return _first_byte(expected, actual, number, kind)


def _next(endpoint: RouterEndpoint, route: bytes, beat: bytes, seconds: float) -> Arrival:
    """The owner's next frame other than a beat; the curator sends its own beat meanwhile."""
    over = monotonic() + seconds
    while monotonic() < over:
        for arrival in endpoint.receive(1, wait_ms=_BEAT_MS):
            if not _is_beat(arrival.frame):
                return arrival
        if route:
            endpoint.send(route, beat)
    raise TimedOut(
        f"No answer came within {seconds:g} s.",
        advice="See that the owner connects with its golden key, and says hello on every connection.",
    )


def _is_beat(data: bytes) -> bool:
    try:
        return isinstance(decode_message(Direction.OWNER_TO_CURATOR, decode_frame(data).body), Beat)
    except RemoteProtocolError:
        return False


def _with_free(due: Any, said: Any) -> Message:
    """The recorded message with the owner's own choices."""
    message: Message = due
    if isinstance(due, Hello):
        message = due.model_copy(update={"software": said.software})
    elif isinstance(due, Farewell):
        message = due.model_copy(update={"head": said.head, "signature": said.signature})
    elif isinstance(due, Bid) and isinstance(due.candidate, SealedCandidate) and not due.exhausted:
        chosen = said.candidate
        if isinstance(chosen, SealedCandidate):
            candidate = due.candidate.model_copy(update={"box": chosen.box, "signature": chosen.signature})
            message = due.model_copy(update={"candidate": candidate})
    elif isinstance(due, Batch) and len(said.handles) == len(due.handles):
        message = _with_free_batch(due, said)
    elif isinstance(due, BlindBid) and len(said.boxes) == len(due.boxes):
        chosen = {"boxes": said.boxes, "digests": said.digests, "signature": said.signature}
        message = due.model_copy(update=chosen)
    return message


def _with_free_batch(due: Batch, said: Batch) -> Batch:
    """The recorded batch with the owner's own boxes, except padding."""
    ours, theirs = due.candidates, said.candidates
    if not (isinstance(ours, SealedCandidates) and isinstance(theirs, SealedCandidates)):
        return due
    there = due.handles.tolist()
    boxes = zip(there, boxes_of(due), boxes_of(said), strict=True)
    digests = zip(there, _digests(ours), _digests(theirs), strict=True)
    chosen = {
        "boxes": b"".join(their if handle else our for handle, our, their in boxes),
        "digests": b"".join(their if handle else our for handle, our, their in digests),
        "signature": theirs.signature,
    }
    return due.model_copy(update={"candidates": ours.model_copy(update=chosen)})


def _digests(candidates: SealedCandidates) -> list[bytes]:
    whole = candidates.digests
    return [whole[at : at + DIGEST_BYTES] for at in range(0, len(whole), DIGEST_BYTES)]


def _check_free(session: Session, due: Any, said: Any) -> tuple[str, str] | None:
    """A field with an invalid choice of the owner, and why it is invalid."""
    verify = key_of(OWNER).public.verify
    if isinstance(due, Farewell):
        statement = head_statement(session.identifier, OWNER, said.head)
        holds = verify_signature(statement, said.signature, verify)
        return None if holds else ("signature", "it is not the owner's over the head in the farewell")
    if isinstance(due, Batch):
        return _check_batch(session, due, said)
    if isinstance(due, BlindBid):
        return _check_blind(session, due, said)
    if not (isinstance(due, Bid) and isinstance(due.candidate, SealedCandidate)) or due.exhausted:
        return None
    if not isinstance(said.candidate, SealedCandidate):
        return "candidate", "a sealed candidate was due"
    if (said.round, said.handle.tobytes()) != (due.round, due.handle.tobytes()):
        return None  # the bytes tell where
    box, features = said.candidate.box, said.candidate.features
    if features.tobytes() == due.candidate.features.tobytes():
        if (wrong := _check_box(session, due.candidate.box, box, int(due.handle[0]))) is not None:
            return "box", wrong
        statement = candidate_statement(
            session.identifier, OWNER, due.round, int(due.handle[0]), box, features
        )
        if not verify_signature(statement, said.candidate.signature, verify):
            return "signature", "it is not the owner's over what it hands over"
    return None


def _check_batch(session: Session, due: Batch, said: Batch) -> tuple[str, str] | None:
    ours, theirs = due.candidates, said.candidates
    if not isinstance(ours, SealedCandidates):
        return None
    if not isinstance(theirs, SealedCandidates):
        return "candidates", "sealed candidates were due"
    if (said.round, said.handles.tobytes(), theirs.features.tobytes()) != (
        due.round,
        due.handles.tobytes(),
        ours.features.tobytes(),
    ):
        return None  # the bytes tell where
    numbered = isinstance(due, Submission)
    points = zip(due.handles.tolist(), boxes_of(due), bids_of(said), _digests(theirs), strict=True)
    for number, (handle, expected, bid, digest) in enumerate(points, start=1):
        candidate = bid.candidate
        assert isinstance(candidate, SealedCandidate), "a sealed batch is of such"
        wrong = _check_box(session, expected, candidate.box, handle) if handle else None
        if wrong is not None:
            return "boxes", f"of point {number}: {wrong}"
        if digest != batched_digest(handle, candidate.box, candidate.features):
            return "digests", f"of point {number}: it is not that of its number, its box and its features"
    what = "root of the digests' tree" if numbered else "digests"
    holds = verify_signature(_signed(session, due, theirs), theirs.signature, key_of(OWNER).public.verify)
    return None if holds else ("signature", f"it is not the owner's over the {what}")


def _check_blind(session: Session, due: BlindBid, said: BlindBid) -> tuple[str, str] | None:
    if (said.round, said.scores, len(said.boxes)) != (due.round, due.scores, len(due.boxes)):
        return None  # the bytes tell where
    first = (due.round - 1) * session.batch + 1
    digests = [said.digests[at : at + DIGEST_BYTES] for at in range(0, len(said.digests), DIGEST_BYTES)]
    if len(digests) != session.batch + 1:
        return "digests", f"{session.batch + 1} were due, and {len(digests)} came"
    for number, (expected, box) in enumerate(zip(boxes_of(due), boxes_of(said), strict=True)):
        if any(expected):
            wrong = _check_box(session, expected, box, first + number)
        else:
            wrong = "a box of nothing is zeros" if any(box) else None
        if wrong is not None:
            return "boxes", f"of box {first + number}: {wrong}"
        if digests[number] != blind_digest(first + number, box):
            return "digests", f"of box {first + number}: it is not that of its number and the box"
    if digests[-1] != hashlib.sha256(said.scores).digest():
        return "digests", "the last one is not that of the scores"
    statement = blind_bid_statement(session.identifier, OWNER, due.round, digests)
    holds = verify_signature(statement, said.signature, key_of(OWNER).public.verify)
    return None if holds else ("signature", "it is not the owner's over the digests")


def _signed(session: Session, due: Batch, theirs: SealedCandidates) -> bytes:
    """The bytes that the owner should have signed."""
    if isinstance(due, Submission):
        tree = Tree(_digests(theirs))
        return submission_statement(session.identifier, OWNER, due.round, tree.depth, tree.root)
    return batch_statement(session.identifier, OWNER, due.round, theirs.digests)


def _check_box(session: Session, due: bytes, box: bytes, handle: int) -> str | None:
    key, number = key_of(CONSUMER).sealing, handle if session.numbered_boxes else None
    if len(box) != len(due):
        return f"it has {len(box)} bytes, and {len(due)} were due"
    try:
        expected, actual = (open_sealed(each, key, number=number) for each in (due, box))
    except HushbidError as error:
        return error.what
    if expected != actual:
        place = next(i for i, (one, other) in enumerate(zip(expected, actual, strict=True)) if one != other)
        return f"byte {place} of its content is {actual[place]:02x}, and {expected[place]:02x} was due"
    return None


def _first_byte(expected: bytes, actual: bytes, number: int, kind: str) -> FrameDifference | None:
    if expected == actual:
        return None
    pairs = zip(expected, actual, strict=False)
    place = next((i for i, (one, other) in enumerate(pairs) if one != other), min(len(expected), len(actual)))
    due, came = expected[place : place + 16].hex(), actual[place : place + 16].hex()
    return FrameDifference(number, kind, place, _field_at(expected, place), due, came, "")


def _field_at(frame: bytes, place: int) -> str:
    """The field of a frame that a byte belongs to."""
    for name, end in _HEADER:
        if place < end:
            return name
    message: Mapping[str, Any] = decode_message(Direction.OWNER_TO_CURATOR, frame[HEADER_BYTES:]).__dict__
    unpacker = msgpack.Unpacker()
    unpacker.feed(frame[HEADER_BYTES:])
    unpacker.read_map_header()
    for name in message:
        unpacker.skip()
        unpacker.skip()
        if place < HEADER_BYTES + unpacker.tell():
            return name
    return "end"
