"""Checks that a point handed over is valid and agrees with its features and its bid (DESIGN §3)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushbid.protocol import limits
from hushbid.protocol.crypto.blinding import blind_bid_statement, blind_digest_of
from hushbid.protocol.crypto.sealing import verify_signature
from hushbid.protocol.errors import Offence, RemoteProtocolError
from hushbid.protocol.session.points import NOT_SIGNED, mapped, matching, what_is_outside
from hushbid.protocol.session.session import Session
from hushbid.protocol.session.settling import HandedOver
from hushbid.protocol.space.features import FeatureSpace
from hushbid.protocol.space.grid import Features, Weights
from hushbid.protocol.space.jitter import Jitter, scores_of
from hushbid.protocol.wire.blind import BlindBid
from hushbid.protocol.wire.messages import Batch, Bid, Candidate, SealedCandidate, Submission

__all__ = ["UncheckedBid", "Unverified", "bid_holds", "check_batch", "check_shape", "faults_of"]


@dataclass(frozen=True, slots=True)
class Unverified:
    """A point that was handed over and not yet compared with its bid."""

    point: HandedOver
    weights: Weights
    """The weight under which it was bid."""


@dataclass(frozen=True, slots=True)
class UncheckedBid:
    """A bid whose signature was not yet checked."""

    owner: str
    bid: BlindBid
    first: int
    """Number of its first box."""


def check_batch(message: Bid | Batch, session: Session) -> None:
    """Raise `RemoteProtocolError` (`MALFORMED`) unless a bid has the required number of places."""
    points = len(message.handles) if isinstance(message, Batch) else 1
    if session.rule.herds is not isinstance(message, Submission):
        raise RemoteProtocolError(
            Offence.MALFORMED, f"A {message.kind} came: the rule {session.rule.name} has other answers."
        )
    alone = session.batch == 1 and not session.rule.herds
    if isinstance(message, Batch) is alone or points != session.batch:
        raise RemoteProtocolError(
            Offence.MALFORMED,
            f"A bid in this session has room for {session.batch} points, not {points}.",
            advice="Compare session.batch in both session files.",
        )


def check_shape(candidate: Candidate | SealedCandidate, session: Session) -> None:
    """Raise `RemoteProtocolError` (`MALFORMED`) unless a point has the session's shape, open or sealed."""
    columns, dimension = session.space.columns, session.space.dimension
    advice = "Check that the data file is the one for this session."
    if isinstance(candidate, SealedCandidate) is not session.rule.sealed:
        raise RemoteProtocolError(
            Offence.MALFORMED,
            f"The rule {session.rule.name} has points handed over the other way: sealed, or open.",
        )
    if candidate.features.shape != (dimension,):
        raise RemoteProtocolError(Offence.MALFORMED, f"A point needs {dimension} features.", advice=advice)
    if isinstance(candidate, SealedCandidate):
        length = session.box_length
        if len(candidate.box) != length:
            raise RemoteProtocolError(Offence.MALFORMED, f"A box has {length} bytes in this session.")
        return
    if candidate.point.shape != (columns,):
        raise RemoteProtocolError(Offence.MALFORMED, f"A point needs {columns} columns.", advice=advice)
    if len(candidate.attributes) > limits.MAX_ATTRIBUTES:
        # The type of a single bid sets this limit, and so does the delivery, which would fail otherwise.
        raise RemoteProtocolError(
            Offence.MALFORMED, f"A point's label and identifier take over {limits.MAX_ATTRIBUTES} bytes."
        )


def faults_of(
    entries: Sequence[Unverified],
    recomputed: Features | None,
    signed: Sequence[bool],
    space: FeatureSpace,
    jitter: Jitter | None,
) -> tuple[Features, list[str]]:
    """Find the fault of each point.

    One forged φ would void the sensitivity. So a point enters the pool only if its φ is one that the map can
    give, is the point's own where the curator sees the point, and scores exactly as bid. A point outside the
    public bounds may have a valid φ, but would spoil whatever the consumer makes of its purchases.

    Args:
        entries: At least one.
        recomputed: φ of the points as `hash_points` computed it here, shape (n, d); None if they are sealed.
        signed: Whether the owner signed each point, if points are sealed.

    Returns:
        The claimed features, int16 of shape (n, d), and for each point its fault, or nothing.
    """
    claimed = np.stack([entry.point.candidate.features for entry in entries])
    everything = np.ones(len(entries), dtype=np.bool_)
    inside = everything if recomputed is None else mapped(recomputed)
    matches = everything if recomputed is None else matching(recomputed, claimed)
    admitted = space.admits(claimed)
    together = all(entry.weights is entries[0].weights for entry in entries)
    scores = scores_of(claimed, entries[0].weights, jitter) if together else None
    faults = []
    for row, entry in enumerate(entries):
        one = claimed[row : row + 1]
        score = scores_of(one, entry.weights, jitter)[0] if scores is None else scores[row]
        if not inside[row]:
            faults.append(what_is_outside(space))
        elif not admitted[row]:
            faults.append("the features are no output of the feature map")
        elif not matches[row]:
            faults.append("the features are not those of the point")
        elif int(score) != entry.point.score:
            faults.append("the bid is not the score of the features")
        elif not signed[row]:
            faults.append(NOT_SIGNED)
        else:
            faults.append("")
    return claimed, faults


def bid_holds(session: Session, entry: UncheckedBid, boxes: Sequence[bytes]) -> bool:
    """Whether an owner signed a bid, given SHA-256 of each of its boxes."""
    bid = entry.bid
    digests = [blind_digest_of(handle, box) for handle, box in enumerate(boxes, start=entry.first)]
    digests.append(hashlib.sha256(bid.scores).digest())
    statement = blind_bid_statement(session.identifier, entry.owner, bid.round, digests)
    key = session.public_identity(entry.owner).verify
    return b"".join(digests) == bid.digests and verify_signature(statement, bid.signature, key)
