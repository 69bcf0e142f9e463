"""Checks that a party makes of incoming data: weights, and the bounds, features and signatures of points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hushbid.protocol import limits
from hushbid.protocol.crypto.identity import PublicIdentity
from hushbid.protocol.crypto.sealing import (
    DIGEST_BYTES,
    batch_statement,
    batched_digest,
    candidate_statement,
    head_statement,
    rows_statement,
    submission_statement,
    verify_signature,
)
from hushbid.protocol.data.attributes import read_attributes
from hushbid.protocol.data.dataset import Dataset
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError, DataError, Offence, RemoteProtocolError
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FeatureMap, FeatureSpace
from hushbid.protocol.space.grid import WEIGHT_BITS, Features
from hushbid.protocol.space.labels import Labels, one_each
from hushbid.protocol.wire.merkle import NODE_BYTES, root_of
from hushbid.protocol.wire.messages import BatchedCandidate, Commitment, SealedCandidate, SubmittedCandidate

__all__ = [
    "NOT_SIGNED",
    "NO_FEATURES",
    "Signatures",
    "check_weights",
    "hash_dataset",
    "hash_points",
    "hash_seed_set",
    "labels_of",
    "mapped",
    "matching",
    "signs_head",
    "signs_rows",
    "what_is_outside",
    "within_bounds",
]

NO_FEATURES: Final = -(2**15)
"""Every coordinate of a point outside the public bounds, which has no φ. No map has such a coordinate."""

NOT_SIGNED: Final = "the owner's signature does not hold"
"""What is wrong with each point of a batch, or of a submission's message, that its owner has not signed."""

_FLOAT32_ROUNDING: Final = 2.0**-23
"""Twice the relative error of rounding to float32; the scaling accounts for half of it."""


def hash_dataset(feature_map: FeatureMap, dataset: Dataset) -> Features:
    """φ of a party's own rows: int16 of shape (n, d). Raises as `FeatureMap.hash`."""
    return feature_map.hash(dataset.features, labels_of(dataset))


def labels_of(dataset: Dataset) -> Labels:
    """A dataset's labels as a map takes them; None where a row has none."""
    return one_each(dataset.known, len(dataset))


def hash_seed_set(feature_map: FeatureMap, points: npt.NDArray[Any]) -> Features:
    """φ of seed rows, int16 of shape (n, d). Their labels have no part: most seed sets have none."""
    return feature_map.hash(points, one_each(None, len(points)))


def hash_points(
    feature_map: FeatureMap,
    points: Sequence[npt.NDArray[Any]],
    attributes: Sequence[bytes],
    *,
    schema: Schema | None,
) -> Features:
    """φ of points from other parties, which may differ in number type or be invalid.

    Args:
        points: Each of shape (columns,).
        attributes: The packed label and identifier of each.
        schema: The schema of the session's columns, if it has any; valid points are rows of it.

    Returns:
        int16 of shape (n, d), read-only; `NO_FEATURES` throughout for a point outside the public bounds, or
        one that is not a row of the schema, or has no label, or none of the session's, where labels have a
        part in the choice.
    """
    labels: list[Any] = [None] * len(points)
    if feature_map.space.labels is not None:
        labels = [read_attributes(packed).label for packed in attributes]
    hashed = _hash_together(feature_map, points, labels, schema)
    if hashed is None:
        hashed = np.full((len(points), feature_map.space.dimension), NO_FEATURES, dtype=np.int16)
        for row, (point, label) in enumerate(zip(points, labels, strict=True)):
            alone = _hash_together(feature_map, (point,), (label,), schema)
            if alone is not None:
                hashed[row] = alone[0]
    hashed.flags.writeable = False
    return hashed


def what_is_outside(space: FeatureSpace) -> str:
    """What is wrong with a point that has no φ."""
    label = "" if space.labels is None else ", or its label is none of the session's"
    return f"the point is outside the public bounds{label}"


class _SignedBatch(NamedTuple):
    """The scope of one signature, and whether it holds."""

    of: tuple[str, int, bytes, bytes]
    """Owner, round of the bid, digests or root, and signature."""
    held: bool
    digests: frozenset[bytes]


class Signatures:
    """Checks that owners signed their sealed points, so that disputes can be attributed (DESIGN §3)."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._owners: dict[str, PublicIdentity] = {}
        self._last: _SignedBatch | None = None
        """The batch checked last."""

    def hold(self, owner: str, bid_round: int, handle: int, candidate: SealedCandidate) -> bool:
        """Whether an owner signed a sealed point under this number (`handle`) of its own."""
        box, features = candidate.box, candidate.features
        if isinstance(candidate, SubmittedCandidate):
            return self._submitted(owner, bid_round, handle, candidate)
        if not isinstance(candidate, BatchedCandidate):
            statement = candidate_statement(self._session.identifier, owner, bid_round, handle, box, features)
            return self._signed(owner, statement, candidate.signature)
        # Points of a batch come one after the other, and one signature covers them all.
        batch = owner, bid_round, candidate.digests, candidate.signature
        if self._last is None or self._last.of != batch:
            statement = batch_statement(self._session.identifier, owner, bid_round, candidate.digests)
            held = self._signed(owner, statement, candidate.signature)
            self._last = _SignedBatch(batch, held, frozenset(_digests(candidate.digests)))
        return self._last.held and batched_digest(handle, box, features) in self._last.digests

    def _submitted(self, owner: str, bid_round: int, handle: int, candidate: SubmittedCandidate) -> bool:
        """Whether a submitted point leads to a root that its owner signed."""
        leaf = batched_digest(handle, candidate.box, candidate.features)
        root = root_of(leaf, candidate.place, candidate.path)
        of = owner, bid_round, root, candidate.signature
        if self._last is None or self._last.of != of:
            depth = len(candidate.path) // NODE_BYTES
            statement = submission_statement(self._session.identifier, owner, bid_round, depth, root)
            held = self._signed(owner, statement, candidate.signature)
            self._last = _SignedBatch(of, held, frozenset())
        return self._last.held

    def _signed(self, owner: str, statement: bytes, signature: bytes) -> bool:
        identity = self._owners.get(owner)
        if identity is None:
            identity = self._owners[owner] = self._session.public_identity(owner)
        return verify_signature(statement, signature, identity.verify)


def _digests(joined: bytes) -> Iterator[bytes]:
    return (joined[at : at + DIGEST_BYTES] for at in range(0, len(joined), DIGEST_BYTES))


def signs_head(session: Session, party: str, head: bytes, signature: bytes) -> bool:
    """Whether a party signed the head of its transcript; if nobody has keys, whether the signature is empty.

    Args:
        party: "curator", "consumer", or an owner's name.
        head: The head that it claims, 32 bytes.
        signature: The signature that it claims.
    """
    if session.keyless:
        return not signature
    try:
        key = session.public_identity(party).verify
    except ConfigError:
        return False
    return verify_signature(head_statement(session.identifier, party, head), signature, key)


def signs_rows(session: Session, owner: str, commitment: Commitment) -> bool:
    """Whether an owner signed the root of its rows."""
    statement = rows_statement(session.identifier, owner, session.commitment_depth, commitment.root)
    try:
        key = session.public_identity(owner).verify
    except ConfigError:
        return False
    return verify_signature(statement, commitment.signature, key)


def check_weights(weights: npt.NDArray[Any], session: Session) -> None:
    """Refuse a broadcast weight that is impossible in this session.

    Raises:
        RemoteProtocolError: `MALFORMED`: another number of coordinates or type; `OVERSIZED`: a coordinate is
            over the limit.
    """
    coordinates = session.weight_coordinates
    if weights.shape != (coordinates,) or weights.dtype != np.int32:
        raise RemoteProtocolError(
            Offence.MALFORMED, f"The broadcast's weights do not have {coordinates} coordinates."
        )
    if int(np.abs(weights.astype(np.int64)).max()) > limits.MAX_WEIGHT * 2**WEIGHT_BITS:
        raise RemoteProtocolError(
            Offence.OVERSIZED, f"A broadcast weight is over the limit of {limits.MAX_WEIGHT:.0f}."
        )


def matching(recomputed: Features, claimed: Features) -> npt.NDArray[np.bool_]:
    """Whether each row of claimed features is the one that `hash_points` recomputed: (n, d) twice to (n,)."""
    matches: npt.NDArray[np.bool_] = (recomputed == claimed).all(axis=1) & mapped(recomputed)
    return matches


def mapped(recomputed: Features) -> npt.NDArray[np.bool_]:
    """Whether each row of `hash_points` is a valid point's: within the bounds, and a row of the schema.

    Takes features of shape (n, d), returns shape (n,).
    """
    found: npt.NDArray[np.bool_] = recomputed[:, 0] != NO_FEATURES
    return found


def within_bounds(space: FeatureSpace, points: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether each point lies within the public bounds, by the rule of `hushbid.protocol.data.check_dataset`.

    A float32 point is compared with bounds rounded to float32, as a bound saved in that type was.

    Args:
        points: Raw, shape (n, columns).

    Returns:
        Shape (n,); False for a point with a value that is not finite.

    Raises:
        DataError: Another shape, or a dtype that is not real.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = space.scale(points)
        # Scaling rounds monotonically and maps the bounds to 0 and 1 exactly, so no slack is needed.
        if points.size and scaled.min() >= 0.0 and scaled.max() <= 1.0:  # NaN is neither
            return np.ones(len(points), dtype=np.bool_)
        slack: Any = 0.0
        if points.dtype == np.float32:
            lowest = space.scale(np.zeros((1, space.columns)))[0]
            slack = _FLOAT32_ROUNDING * np.maximum(np.abs(lowest), np.abs(1.0 - lowest))
        inside: npt.NDArray[np.bool_] = ((scaled >= -slack) & (scaled <= 1.0 + slack)).all(axis=1)
    return inside


def _hash_together(
    feature_map: FeatureMap, points: Sequence[npt.NDArray[Any]], labels: Labels, schema: Schema | None
) -> Features | None:
    """φ of all points in one product; None if their types differ, or if one of them is not valid."""
    if not points:
        return np.zeros((0, feature_map.space.dimension), dtype=np.int16)
    if len({point.dtype for point in points}) > 1:
        return None
    if feature_map.space.labels is not None and None in labels:
        return None
    stacked = np.stack(points)
    try:
        if not within_bounds(feature_map.space, stacked).all():
            return None
        return feature_map.hash(stacked, labels) if schema is None or schema.holds(stacked).all() else None
    except DataError:
        return None
