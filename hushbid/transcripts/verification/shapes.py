"""The JSON objects that `verify_all` returns, and their fields."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

__all__ = [
    "AwardFile",
    "BroadcastEvidence",
    "BroadcastVariant",
    "Disagreement",
    "Equivocation",
    "OtherBox",
    "Pair",
    "RecordPlace",
    "Related",
    "Several",
    "ToldHead",
    "TranscriptFile",
    "Verified",
    "VoidBox",
    "VoidFault",
]


class TranscriptFile(TypedDict):
    """A single file; an unreadable one has only the first five fields.

    ``record`` is the number of the first bad one: -1 for the header, None for a file that is no transcript.
    """

    path: str
    ok: bool
    record: NotRequired[int | None]
    error: NotRequired[str]
    advice: NotRequired[str]
    role: NotRequired[str]
    party: NotRequired[str]
    session: NotRequired[str]
    records: NotRequired[int]
    head: NotRequired[str]
    torn_bytes: NotRequired[int]
    private_fields: NotRequired[int]
    redacted_fields: NotRequired[int]
    signature: NotRequired[str]
    """Signature of its own head (`hushbid.protocol.transcript.verify.Signature`)."""
    signed_heads: NotRequired[list[dict[str, Any]]]


class RecordPlace(TypedDict):
    """A record of a file, and the item in question: SHA-256 of a frame's body, or a head."""

    path: str
    record: int
    digest: str


class Disagreement(TypedDict):
    """A disagreement between two files.

    ``what``: "never-sent", "never-received", "other-bytes"; "acknowledged": the receiver acknowledged the
    frame, but its file lacks it; "other-head": the signed head is not the one in the signer's file or, if
    that file is incomplete, not in its chain.
    """

    what: str
    sender: str
    """The party that sent the frame or signed the head."""
    sequence: int
    """The frame's number; 0 for messages that make a link, and for heads."""
    message: str
    """The kind of the frame's message; empty if no record of it is left."""
    sent: RecordPlace | None
    received: RecordPlace | None


class Pair(TypedDict):
    """The curator's file and a peer's."""

    curator: str
    peer: str
    party: str
    ok: bool | None
    """None if frames were not compared and nothing else contradicts."""
    compared: bool
    why: str
    """Why frames were not compared, for example because a file is redacted."""
    frames: int
    """Number of numbered frames that both have with the same bytes."""
    under_way: int
    """Number of frames sent at the end but not received before the other file ends."""
    count: int
    disagreements: list[Disagreement]
    """The first disagreements."""


class OtherBox(TypedDict):
    """A box in an award that differs from the bid; ``handle`` is the owner's number for it."""

    record: int
    round: int
    owner: str
    handle: int
    what: str


class VoidBox(TypedDict):
    """A box that the consumer found void, and why; `by` is responsible: the owner, or the curator."""

    round: int
    owner: str
    handle: int
    what: str
    by: str


class VoidFault(VoidBox):
    """The cause of void boxes, at the first of them."""

    bid_round: int
    boxes: int


class AwardFile(TypedDict):
    """The awards of a blind curator's file; the last two are None without the consumer's."""

    path: str
    checked: int
    others: list[OtherBox]
    void: list[VoidBox] | None
    faults: list[VoidFault] | None


class BroadcastEvidence(TypedDict):
    """A broadcast's first record in a file; ``owners`` got it, none in an owner's own file."""

    path: str
    party: str
    record: int
    owners: tuple[str, ...]


class BroadcastVariant(TypedDict):
    """One of several broadcasts of a round, by SHA-256 of its body."""

    digest: str
    records: list[BroadcastEvidence]


class Equivocation(TypedDict):
    """A round with more than one broadcast."""

    round: int
    broadcasts: list[BroadcastVariant]


class ToldHead(TypedDict):
    """A signed head, the outcome reported with it, and the records that contain it."""

    head: str
    outcome: str
    records: list[dict[str, Any]]


class Several(TypedDict):
    """A party that signed several heads, or reported several outcomes."""

    party: str
    heads: list[ToldHead]


class Related(TypedDict):
    """Two files of one party.

    ``relation``: "same" chain, redacted or not; the first is the "beginning" of the second; or "different",
    which one party cannot have recorded. ``record`` is the first in which they differ; None if the same.
    """

    party: str
    paths: list[str]
    ok: bool
    relation: Literal["same", "beginning", "different"]
    record: int | None


class Verified(TypedDict):
    """The transcripts of one session, checked each alone and all together."""

    ok: bool
    """Whether everything holds and nothing contradicts anything."""
    transcripts: list[TranscriptFile]
    awards: list[AwardFile]
    """The awards of each unredacted file of a blind curator."""
    pairs: list[Pair]
    """The curator's file with each of its peers'."""
    equivocations: list[Equivocation]
    heads: list[Several]
    versions: list[Related]
    missing: list[str]
    """Parties of the roster without a file here."""
