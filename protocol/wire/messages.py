"""Every message of a session: one frozen pydantic model each, one discriminated union per direction.

A model declares its fields in the order of encoding (`hushbid.protocol.wire.codec`). Numbers whose size must
not reveal anything (a score, a candidate's number) are one-element int64 arrays, since msgpack integers grow
with their value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

import numpy as np
from pydantic import (
    Discriminator,
    FailFast,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from hushbid.protocol import limits
from hushbid.protocol.wire import fields
from hushbid.protocol.wire.blind import (
    Account,
    Award,
    BlindBid,
    BlindCandidate,
    BlindPurchase,
    Maps,
    SealedBroadcast,
)
from hushbid.protocol.wire.committed import Commitment, Roots
from hushbid.protocol.wire.fields import Array, Message, Part, fixed, sizes, unfixed
from hushbid.protocol.wire.unlinked import Choice, Picked, Picks, RoundOpening

__all__ = [
    "BLIND_VERSION",
    "COMMITTED_VERSION",
    "CONTROL_SEQUENCE",
    "NUMBERED_VERSION",
    "PROTOCOL_VERSION",
    "VERSIONS",
    "Account",
    "Array",
    "Ask",
    "Award",
    "Batch",
    "BatchedCandidate",
    "Beat",
    "Bid",
    "BlindBid",
    "BlindCandidate",
    "BlindPurchase",
    "Broadcast",
    "Call",
    "Candidate",
    "Candidates",
    "Close",
    "Commitment",
    "ConsumerToCurator",
    "CuratorToConsumer",
    "CuratorToOwner",
    "Delivery",
    "Farewell",
    "Hello",
    "Maps",
    "Message",
    "NestedTarget",
    "Next",
    "Offer",
    "OwnerToCurator",
    "Purchase",
    "Ready",
    "Receipt",
    "Refused",
    "Roots",
    "SealedBroadcast",
    "SealedCandidate",
    "SealedCandidates",
    "SecretMap",
    "Submission",
    "SubmittedCandidate",
    "SubspaceTarget",
    "Target",
    "Welcome",
    "boxes_of",
    "candidate_of",
    "equal_parts",
    "fixed",
    "sizes",
    "unfixed",
    "with_boxes",
    "without_box",
]

PROTOCOL_VERSION = 2
"""The version of sessions to which no other applies. It is negotiated at Hello, and is of what messages mean;
frames have a version of their own.
"""

BLIND_VERSION = 3
"""The version of sessions with the rule `blind`, which add the messages of `hushbid.protocol.wire.blind`."""

COMMITTED_VERSION = 4
"""The version of sessions in which owners commit to their rows first (`acquisition.commitment_depth`)."""

NUMBERED_VERSION = 5
"""The version of other sessions whose boxes have numbers (`session.numbered`)."""

VERSIONS = (PROTOCOL_VERSION, BLIND_VERSION, COMMITTED_VERSION, NUMBERED_VERSION)
"""All that sessions speak (`Session.protocol_version`); transcripts of others cannot be replayed."""

CONTROL_SEQUENCE = 0
"""Sequence number of the messages that establish a link rather than travel on it."""


class Hello(Message):
    """A peer's first words on every connection; binds the connection to a roster name."""

    kind: Literal["hello"] = "hello"
    versions: Annotated[
        tuple[Annotated[int, Field(ge=1, le=2**16)], ...],
        Field(min_length=1, max_length=limits.MAX_VERSIONS),
        FailFast(),
    ]
    role: Literal["owner", "consumer"]
    name: fields.Name
    session: fields.Digest
    """SHA-256 of the session file's canonical form (`hushbid.protocol.config.session`)."""
    software: fields.Text
    sent: fields.Count
    """Sequence of the last frame that the peer sent in this session."""
    received: fields.Count
    """Sequence of the last frame that the peer received durably in this session."""


class Welcome(Message):
    """The curator's answer to a Hello that it accepts."""

    kind: Literal["welcome"] = "welcome"
    version: Annotated[int, Field(ge=1, le=2**16)]
    feature_map: fields.Digest | None
    """SHA-256 of the feature map's W and b, to compare with one's own; None if the curator has no map."""
    sent: fields.Count
    received: fields.Count


class Refused(Message):
    """The curator's last message to this peer, with the reason."""

    kind: Literal["refused"] = "refused"
    code: fields.Name
    detail: Annotated[str, StringConstraints(max_length=limits.MAX_ERROR_DETAIL)]
    advice: Annotated[str, StringConstraints(max_length=limits.MAX_ERROR_DETAIL)]


class Beat(Message):
    """A sign of life from a party's main loop; not sequenced and not recorded."""

    kind: Literal["beat"] = "beat"


class Candidate(Part):
    """A point in the open: raw columns, features on the grid, packed label and identifier."""

    point: fields.Point
    features: fields.Features
    attributes: fields.Attributes


class SealedCandidate(Part):
    """A point that only the consumer may see."""

    features: fields.Features
    box: fields.Box
    """The point with its label and identifier, padded and sealed to the consumer
    (`hushbid.protocol.crypto.sealing`).
    """
    signature: fields.Signature
    """The owner's, over the session, the candidate's number and the digests of box and features."""


class BatchedCandidate(SealedCandidate):
    """A sealed point of a batch: one signature covers the digests of all its points."""

    digests: fields.Digests
    """Digests of all points of the batch, 32 bytes each
    (`hushbid.protocol.crypto.sealing.batched_digest`)."""


class SubmittedCandidate(SealedCandidate):
    """A sealed point of a submission: the signature covers the root that its digest leads to."""

    place: Annotated[int, Field(ge=0, lt=limits.MAX_BATCH)]
    """Its place in the message that brought it, from 0."""
    path: fields.Path
    """The nodes beside the way from its digest to the root (`hushbid.protocol.wire.merkle`)."""


class Candidates(Part):
    """The points of a batch in the open: the fields of `Candidate`, concatenated."""

    points: fields.ManyPoints
    """Shape (b·columns,)."""
    features: fields.ManyFeatures
    """Shape (b·d,)."""
    attributes: fields.ManyBytes
    """b times the same number of bytes."""


class SealedCandidates(Part):
    """The points of a batch that only the consumer may see: the fields of `SealedCandidate`, concatenated."""

    features: fields.ManyFeatures
    """Shape (b·d,)."""
    boxes: fields.ManyBytes
    """b boxes of one length."""
    digests: fields.Digests
    """Digests of the points (`hushbid.protocol.crypto.sealing.batched_digest`)."""
    signature: fields.Signature
    """The owner's, over the session, the round and these digests
    (`hushbid.protocol.crypto.sealing.batch_statement`).
    """


def _held(value: Any) -> Mapping[str, Any]:
    """The fields that decide a union's member; a value without fields is refused as an open one."""
    return value if isinstance(value, dict) else getattr(value, "__dict__", {})


def _bought_as(held: Mapping[str, Any]) -> str:
    """Which candidate these are the fields of, as `BoughtCandidate` tags it."""
    if "path" in held:
        return "submitted"
    return "batched" if "digests" in held else "sealed" if "box" in held else "open"


# A point either way. Its box decides, so that a refusal names the fault of the right one.
EitherCandidate: TypeAlias = Annotated[
    Annotated[Candidate, Tag("open")] | Annotated[SealedCandidate, Tag("sealed")],
    Discriminator(lambda point: "sealed" if "box" in _held(point) else "open"),
]
EitherCandidates: TypeAlias = Annotated[
    Annotated[Candidates, Tag("open")] | Annotated[SealedCandidates, Tag("sealed")],
    Discriminator(lambda points: "sealed" if "boxes" in _held(points) else "open"),
]
# A delivered point; one of a batch brings what its signature covers.
BoughtCandidate: TypeAlias = Annotated[
    Annotated[Candidate, Tag("open")]
    | Annotated[SealedCandidate, Tag("sealed")]
    | Annotated[BatchedCandidate, Tag("batched")]
    | Annotated[SubmittedCandidate, Tag("submitted")],
    Discriminator(lambda point: _bought_as(_held(point))),
]


class Target(Message):
    """The consumer's release of D_v's mean embedding, and the summary's start."""

    kind: Literal["target"] = "target"
    embedding: fields.Embedding
    """The released mean embedding g̃, shape (d,)."""
    size: Annotated[int, Field(ge=1, le=2**53)]
    """m = |D_v|."""
    seed_total: fields.Totals
    """Σφ over the public seed set D_init, in units of 2^-15, shape (d,)."""
    seed_size: Annotated[int, Field(ge=1, le=2**53)]
    maps: Annotated[bytes, Field(max_length=limits.MAP_BOX_BYTES * limits.MAX_OWNERS)]
    """The feature map's seed, sealed to each owner, in the order of their names; empty if it is public."""
    noise: fields.Name
    """The noise source's name; "none" for a release without noise."""


class SubspaceTarget(Target):
    """A target, and the directions of the seed set in which releases are made (`subspace`)."""

    kind: Literal["subspace-target"] = "subspace-target"  # type: ignore[assignment]
    basis: fields.Basis
    """Coordinates of the directions, in units of 2^-12, shape (F·d,), concatenated."""


class NestedTarget(Target):
    """A target, and a finer release that the curator does not pass on (`target.epsilon_curator`)."""

    kind: Literal["nested-target"] = "nested-target"  # type: ignore[assignment]
    finer: fields.Embedding
    """The released mean embedding by which the curator chooses, shape (d,)."""


class SecretMap(Message):
    """The feature map's seed, from the consumer to one owner, forwarded unopened."""

    kind: Literal["secret-map"] = "secret-map"
    box: fields.MapBox


class Ready(Message):
    """The owner has hashed its points by the secret map and can bid."""

    kind: Literal["ready"] = "ready"


class Broadcast(Message):
    """The weight that owners score their points by in one round (DESIGN §1, corrected bid)."""

    kind: Literal["broadcast"] = "broadcast"
    round: fields.Round
    weights: fields.Weights
    """w = g̃ - q/(q+b)·g in units of 2^-22, shape (d,)."""
    noise: fields.Name


class Call(Broadcast):
    """The only broadcast under `tender`: with it an owner chooses what to submit, by running sums.

    It follows from the session and the consumer's release: no owner's data are in it.
    """

    kind: Literal["call"] = "call"  # type: ignore[assignment]
    embedding: fields.Embedding
    """g̃, as the target has it, shape (d,)."""
    seed_total: fields.Totals
    """Σφ over D_init, likewise."""
    seed_size: Annotated[int, Field(ge=1, le=2**53)]


class Bid(Message):
    """An owner's best available point under a broadcast; rules that ask everybody add the point."""

    kind: Literal["bid"] = "bid"
    round: fields.Round
    exhausted: bool
    """No point is left; the other fields are zeros of their usual size."""
    score: fields.FixedSize
    """wᵀφ in units of 2^-37."""
    handle: fields.FixedSize
    """The owner's number of the candidate, counted from 1 in the order of first bids."""
    candidate: EitherCandidate | None


class Batch(Message):
    """An owner's best available points under a broadcast, if rounds buy several: a bid for each.

    The best is first. With fewer than b points left, the rest is padding: zeros of the usual size, numbered
    0.
    """

    kind: Literal["batch"] = "batch"
    round: fields.Round
    scores: fields.FixedSizes
    """wᵀφ of each in units of 2^-37, shape (b,)."""
    handles: fields.FixedSizes
    """The owner's number of each, as in a bid, shape (b,)."""
    candidates: EitherCandidates

    @model_validator(mode="after")
    def _has_one_of_each_for_every_point(self) -> Self:
        rows, parts = len(self.handles), vars(self.candidates)
        uneven = [name for name, part in parts.items() if len(part) % rows and name != "signature"]
        if len(self.scores) != rows or uneven or len(parts.get("digests", b"")) not in (0, 32 * rows):
            raise PydanticCustomError("batch_parts", "the parts of a batch are not of one number of points")
        return self


class Submission(Batch):
    """An owner's own choice of points for a call, or one message of several that bring it.

    It has the fields of a batch. Points are in the order of their choice. The digests are the leaves of a
    tree (`hushbid.protocol.wire.merkle`), and the signature is over its root
    (`hushbid.protocol.crypto.sealing.submission_statement`).
    """

    kind: Literal["submission"] = "submission"  # type: ignore[assignment]


class Next(Message):
    """The curator has a message of a submission, durably: the next one may come."""

    kind: Literal["next"] = "next"
    round: fields.Round


class Ask(Message):
    """The curator requests the point of a bid."""

    kind: Literal["ask"] = "ask"
    round: fields.Round
    handle: fields.FixedSize


class Offer(Message):
    """The requested point."""

    kind: Literal["offer"] = "offer"
    round: fields.Round
    handle: fields.FixedSize
    candidate: Candidate


class Purchase(Part):
    """A chosen point on its way to the consumer."""

    owner: fields.Name
    round: fields.Round
    """The round of its choice."""
    bid_round: fields.Round
    """The round of its bid. The owner's signature covers this field and the next."""
    handle: fields.FixedSize
    """The owner's number of the candidate."""
    candidate: BoughtCandidate


class Delivery(Message):
    """One part of the chosen points; the next follows the receipt."""

    kind: Literal["delivery"] = "delivery"
    part: Annotated[int, Field(ge=1, le=2**31)]
    parts: Annotated[int, Field(ge=1, le=2**31)]
    purchases: Annotated[tuple[Purchase, ...], Field(max_length=limits.MAX_PURCHASES), FailFast()]


class Receipt(Message):
    """A part of the delivery is durable at the consumer, which has checked its points."""

    kind: Literal["receipt"] = "receipt"
    part: Annotated[int, Field(ge=1, le=2**31)]
    disputed: Annotated[bytes, Field(max_length=(limits.MAX_PURCHASES + 7) // 8)]
    """One bit for each point of the part, in order, from the highest bit of the first byte: whether it is
    disputed (DESIGN §3). Remaining bits are 0.
    """


class Close(Message):
    """The session is over.

    It does not reveal who won (DESIGN §3, "No feedback"): salts hide the records from the head.
    """

    kind: Literal["close"] = "close"
    outcome: Literal["complete", "abandoned"]
    head: fields.Digest
    """Head of the curator's transcript, before the record in which it closes the session."""
    signature: fields.HeadSignature
    """The curator's, of `hushbid.protocol.crypto.sealing.head_statement`."""


class Farewell(Message):
    """The peer has durably received the Close and leaves."""

    kind: Literal["farewell"] = "farewell"
    head: fields.Digest
    """Head of the peer's transcript, before the record in which it leaves."""
    signature: fields.HeadSignature
    """The peer's, of `hushbid.protocol.crypto.sealing.head_statement`."""


def candidate_of(recorded: Mapping[str, Any]) -> Candidate | SealedCandidate:
    """The point of recorded fields, which were checked on arrival."""
    return _KINDS[_bought_as(recorded)].model_construct(**recorded)


_KINDS: Final[Mapping[str, type[Candidate | SealedCandidate]]] = {
    "open": Candidate,
    "sealed": SealedCandidate,
    "batched": BatchedCandidate,
    "submitted": SubmittedCandidate,
}


def equal_parts(whole: Any, rows: int) -> list[Any]:
    """`rows` equal parts of an array or of bytes; copies, so that none keeps the rest alive."""
    length = len(whole) // rows
    parts = [whole[at : at + length] for at in range(0, length * rows, length)] if length else [whole] * rows
    if isinstance(whole, np.ndarray):
        parts = [part.copy() for part in parts]
        for part in parts:
            part.flags.writeable = False
    return parts


def boxes_of(message: Message) -> tuple[bytes, ...]:
    """The sealed boxes in an owner's message, if any."""
    if isinstance(message, Bid) and isinstance(message.candidate, SealedCandidate):
        return (message.candidate.box,)
    if isinstance(message, Batch) and isinstance(message.candidates, SealedCandidates):
        return tuple(equal_parts(message.candidates.boxes, len(message.handles)))
    if isinstance(message, BlindBid):
        return tuple(equal_parts(message.boxes, len(message.digests) // 32 - 1))
    return ()


def with_boxes(message: Message, box: Callable[[bytes], bytes]) -> Message:
    """An owner's message with its boxes replaced.

    Args:
        message: With at least one box (`boxes_of`).
        box: Returns the replacement of each.

    Raises:
        TypeError: The message has no box.
    """
    changed = _with_boxes(message, boxes_of(message), box)
    if changed is None:
        raise TypeError(f"a {message.kind} has no box")
    return changed


def without_box(message: Message) -> Message | None:
    """A bid with each sealed box replaced by its SHA-256; None for messages without one."""
    return _with_boxes(message, boxes_of(message), lambda box: hashlib.sha256(box).digest())


def _with_boxes(message: Message, boxes: Sequence[bytes], box: Callable[[bytes], bytes]) -> Message | None:
    if not boxes:
        return None
    changed = b"".join(map(box, boxes))
    if isinstance(message, Bid):
        candidate = SealedCandidate.model_construct(**{**vars(message.candidate), "box": changed})
        return Bid.model_construct(**{**vars(message), "candidate": candidate})
    if isinstance(message, BlindBid):
        return BlindBid.model_construct(**{**vars(message), "boxes": changed})
    assert isinstance(message, Batch), "nothing else has boxes"
    candidates = SealedCandidates.model_construct(**{**vars(message.candidates), "boxes": changed})
    return type(message).model_construct(**{**vars(message), "candidates": candidates})


OwnerToCurator: TypeAlias = Annotated[
    Hello | Beat | Commitment | Ready | Bid | Batch | Submission | BlindBid | Offer | Farewell,
    Field(discriminator="kind"),
]
ConsumerToCurator: TypeAlias = Annotated[
    Hello
    | Beat
    | Target
    | SubspaceTarget
    | NestedTarget
    | Maps
    | SealedBroadcast
    | RoundOpening
    | Picks
    | Receipt
    | Account
    | Farewell,
    Field(discriminator="kind"),
]
CuratorToOwner: TypeAlias = Annotated[
    Welcome | Refused | Beat | SecretMap | Broadcast | Call | SealedBroadcast | Next | Ask | Close,
    Field(discriminator="kind"),
]
CuratorToConsumer: TypeAlias = Annotated[
    Welcome | Refused | Beat | Roots | Delivery | Award | Choice | Picked | Close, Field(discriminator="kind")
]
