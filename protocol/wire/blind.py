"""The messages of the rule `blind`, in which the curator forwards what it cannot read."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import FailFast, Field

from hushbid.protocol import limits
from hushbid.protocol.wire import fields
from hushbid.protocol.wire.fields import Message, Part

__all__ = ["Account", "Award", "BlindBid", "BlindCandidate", "BlindPurchase", "Maps", "SealedBroadcast"]


class Maps(Message):
    """The consumer's message in place of a target if the curator is blind: only the map."""

    kind: Literal["maps"] = "maps"
    maps: Annotated[bytes, Field(min_length=1, max_length=limits.MAP_BOX_BYTES * limits.MAX_OWNERS)]
    """The feature map's seed, sealed to each owner, in the order of their names."""


class SealedBroadcast(Message):
    """A round's weight from the consumer to all owners, forwarded by a curator that cannot read it."""

    kind: Literal["sealed-broadcast"] = "sealed-broadcast"
    round: fields.Round
    box: Annotated[bytes, Field(min_length=1, max_length=limits.MAX_MESSAGE_BYTES)]
    """The weight (`Broadcast.weights`) under the session's key
    (`hushbid.protocol.crypto.blinding.BlindKeys`)."""
    signature: fields.Signature
    """The consumer's, of `hushbid.protocol.crypto.blinding.broadcast_statement`."""


class BlindBid(Message):
    """An owner's answer to a sealed broadcast: b new boxes, and a masked score for each box it ever sent.

    An owner numbers its boxes from 1 in the order of sending. With fewer points left than boxes, the rest are
    empty.
    """

    kind: Literal["blind-bid"] = "blind-bid"
    round: fields.Round
    boxes: Annotated[bytes, Field(min_length=1, max_length=limits.MAX_MESSAGE_BYTES)]
    """b boxes of one length, sealed to the consumer."""
    scores: Annotated[bytes, Field(min_length=16, max_length=limits.MAX_MESSAGE_BYTES)]
    """Masked scores of every box sent so far, including these, in order: 16 bytes each
    (`hushbid.protocol.crypto.blinding.Mask`).
    """
    digests: Annotated[bytes, Field(min_length=64, max_length=32 * (limits.MAX_BATCH + 1))]
    """Digests of these boxes (`hushbid.protocol.crypto.blinding.blind_digest`), then SHA-256 of the
    scores."""
    signature: fields.Signature
    """The owner's, of `hushbid.protocol.crypto.blinding.blind_bid_statement`."""


class BlindCandidate(Part):
    """A box as a blind curator forwards it, with what its owner signed."""

    box: fields.Box
    digests: Annotated[bytes, Field(min_length=64, max_length=32 * (limits.MAX_BATCH + 1))]
    """Digests of its bid."""
    signature: fields.Signature


class BlindPurchase(Part):
    """A box that was chosen in a round."""

    owner: fields.Name
    bid_round: fields.Round
    """The round in which it was sent. The owner's signature covers this field and the next."""
    handle: fields.FixedSize
    """The owner's number of the box."""
    score: Annotated[bytes, Field(min_length=16, max_length=16)]
    """As masked by its owner in this round."""
    candidate: BlindCandidate


class Award(Message):
    """The boxes that a blind curator has chosen in a round, best first."""

    kind: Literal["award"] = "award"
    round: fields.Round
    purchases: Annotated[tuple[BlindPurchase, ...], Field(max_length=limits.MAX_BATCH), FailFast()]


class Account(Message):
    """The consumer's account of a session with a blind curator: the numbers that owners are to be paid by.

    Arrays have one value for each owner, in the order of names. If the session settles privately, only
    `settlement` counts, and the others are 0.
    """

    kind: Literal["account"] = "account"
    settlement: fields.PerOwner
    """The settlement of each owner (`hushbid.protocol.session.settling`), float64 of shape (K,)."""
    errors: fields.PerOwner
    """Their standard errors; negative: unknown."""
    gains: fields.PerOwner
    """The purchase's gain, shared out without an order (`hushbid.protocol.session.statement`)."""
    gain_errors: fields.PerOwner
    """Their standard errors; negative: unknown."""
    signal: Annotated[int, Field(ge=-1, le=1)]
    """Whether the released target stands out from noise: 1, 0, or -1 if unknown."""
    sold: fields.OwnerCounts
    """Sold points of each owner that hold what they should, int64 of shape (K,)."""
    void: fields.OwnerCounts
    """Chosen boxes of each owner that do not."""
    signature: fields.Signature
    """The consumer's, of `hushbid.protocol.crypto.blinding.account_statement`."""
