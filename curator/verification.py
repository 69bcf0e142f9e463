"""Checks that a point handed over is valid and agrees with its features and its bid (DESIGN §3)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushbid.curator.parcels import Parcel
from hushbid.protocol import limits
from hushbid.protocol.crypto.blinding import blind_bid_statement, blind_digest_of
from hushbid.protocol.crypto.sealing import verify_signature
from hushbid.protocol.errors import Offence, RemoteProtocolError
from hushbid.protocol.session.points import NOT_SIGNED, mapped, matching, what_is_outside
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FeatureSpace
from hushbid.protocol.space.grid import Features
from hushbid.protocol.space.jitter import Jitters, scores_with
from hushbid.protocol.wire.bids import BroughtPoints
from hushbid.protocol.wire.blind import BlindBid
from hushbid.protocol.wire.messages import Batch, Bid, Submission

__all__ = ["UncheckedBid", "bid_holds", "check_batch", "check_shape", "faults_of"]


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


def check_shape(brought: BroughtPoints, session: Session) -> None:
    """Raise `RemoteProtocolError` (`MALFORMED`) unless points have the session's shape, open or sealed."""
    columns, dimension = session.space.columns, session.space.dimension
    advice = "Check that the data file is the one for this session."
    if brought.sealed is not session.rule.sealed:
        raise RemoteProtocolError(
            Offence.MALFORMED,
            f"The rule {session.rule.name} has points handed over the other way: sealed, or open.",
        )
    if brought.features.shape[1] != dimension:
        raise RemoteProtocolError(Offence.MALFORMED, f"A point needs {dimension} features.", advice=advice)
    if brought.sealed:
        length = session.box_length
        if len(brought.box(0)) != length:
            raise RemoteProtocolError(Offence.MALFORMED, f"A box has {length} bytes in this session.")
        return
    if brought.points.shape[1] != columns:
        raise RemoteProtocolError(Offence.MALFORMED, f"A point needs {columns} columns.", advice=advice)
    if len(brought.attributes[0]) > limits.MAX_ATTRIBUTES:
        # The type of a single bid sets this limit, and so does the delivery, which would fail otherwise.
        raise RemoteProtocolError(
            Offence.MALFORMED, f"A point's label and identifier take over {limits.MAX_ATTRIBUTES} bytes."
        )


def faults_of(
    parcels: Sequence[Parcel],
    claimed: Features,
    jitters: Jitters | None,
    recomputed: Features | None,
    signed: Sequence[bool],
    space: FeatureSpace,
) -> Mapping[int, str]:
    """Find the points with a fault.

    One forged φ would void the sensitivity. So a point enters the pool only if its φ is one that the map can
    give, is the point's own where the curator sees the point, and scores exactly as bid. A point outside the
    public bounds may have a valid φ, but would spoil whatever the consumer makes of its purchases.

    Args:
        parcels: At least one; n points in all.
        claimed: Their features, int16 of shape (n, d).
        jitters: Jitter of these, shape (n,); None if the session has none.
        recomputed: φ of the points as `hash_points` computed it here, shape (n, d); None if they are sealed.
        signed: Whether the owner signed each point, if points are sealed.

    Returns:
        What is wrong, by the number of the point from 0.
    """
    checks = [
        (space.admits(claimed), "the features are no output of the feature map"),
        (_agree(parcels, claimed, jitters), "the bid is not the score of the features"),
        (np.array(signed, dtype=np.bool_), NOT_SIGNED),
    ]
    if recomputed is not None:
        checks.insert(0, (mapped(recomputed), what_is_outside(space)))
        checks.insert(2, (matching(recomputed, claimed), "the features are not those of the point"))
    faults: dict[int, str] = {}
    for holds, what in checks:
        for row in np.flatnonzero(~holds).tolist():
            faults.setdefault(row, what)  # the first one is named
    return dict(sorted(faults.items()))


def _agree(parcels: Sequence[Parcel], claimed: Features, jitters: Jitters | None) -> npt.NDArray[np.bool_]:
    """Whether points score exactly as bid, shape (n,)."""
    bids = np.array([score for parcel in parcels for score in parcel.scores], dtype=np.int64)
    if all(parcel.weights is parcels[0].weights for parcel in parcels):  # else some came late
        together: npt.NDArray[np.bool_] = scores_with(claimed, parcels[0].weights, jitters) == bids
        return together
    found, before = [], 0
    for parcel in parcels:
        rows = slice(before, before := before + len(parcel))
        own = None if jitters is None else jitters[rows]
        found.append(scores_with(claimed[rows], parcel.weights, own))
    apart: npt.NDArray[np.bool_] = np.concatenate(found) == bids
    return apart


def bid_holds(session: Session, entry: UncheckedBid, boxes: Sequence[bytes]) -> bool:
    """Whether an owner signed a bid, given SHA-256 of each of its boxes."""
    bid = entry.bid
    digests = [blind_digest_of(handle, box) for handle, box in enumerate(boxes, start=entry.first)]
    digests.append(hashlib.sha256(bid.scores).digest())
    statement = blind_bid_statement(session.identifier, entry.owner, bid.round, digests)
    key = session.public_identity(entry.owner).verify
    return b"".join(digests) == bid.digests and verify_signature(statement, bid.signature, key)
