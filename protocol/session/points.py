"""Checks that a party makes of incoming data: weights, and the bounds, features and signatures of points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol import limits
from hushbid.protocol.crypto.sealing import (
    DIGEST_BYTES,
    batch_statement,
    batched_digest,
    batched_digests,
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
from hushbid.protocol.wire.bids import BroughtPoints
from hushbid.protocol.wire.merkle import NODE_BYTES, root_of
from hushbid.protocol.wire.messages import (
    BatchedCandidate,
    Commitment,
    SealedCandidate,
    SealedCandidates,
    SubmittedCandidate,
)

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


_Signed: TypeAlias = tuple[str, int, bytes, bytes]
"""The scope of one signature: owner, round of the bid, digests or root, and signature."""

_MOST_CHECKED: Final = 256
"""Batches whose signature is remembered: more than the owners whose points come in turn, as a rule."""


class _SignedBatch(NamedTuple):
    """Whether a signature holds, and the digests that it covers."""

    held: bool
    digests: frozenset[bytes]


class Signatures:
    """Checks that owners signed their sealed points, so that disputes can be attributed (DESIGN §3)."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._checked: dict[_Signed, _SignedBatch] = {}
        """The batches checked last: a purchase of a round is of several owners in turn."""

    def hold(self, owner: str, bid_round: int, handle: int, candidate: SealedCandidate) -> bool:
        """Whether an owner signed a sealed point under this number (`handle`) of its own."""
        box, features = candidate.box, candidate.features
        if isinstance(candidate, SubmittedCandidate):
            return self._submitted(owner, bid_round, handle, candidate)
        if not isinstance(candidate, BatchedCandidate):
            statement = candidate_statement(self._session.identifier, owner, bid_round, handle, box, features)
            return self._signed(owner, statement, candidate.signature)
        # One signature covers all points of a batch.
        batch = owner, bid_round, candidate.digests, candidate.signature
        if (checked := self._checked.get(batch)) is None:
            statement = batch_statement(self._session.identifier, owner, bid_round, candidate.digests)
            checked = self._remembered(batch, statement, frozenset(_digests(candidate.digests)))
        return checked.held and batched_digest(handle, box, features) in checked.digests

    def hold_all(
        self, owner: str, bid_round: int, handles: Sequence[int], brought: BroughtPoints
    ) -> Sequence[bool]:
        """Whether an owner signed each sealed point of one message.

        Args:
            handles: The owner's number of each, without padding, n of them.
            brought: The points, padding after them.

        Returns:
            Shape (n,).
        """
        held = brought.held
        if isinstance(held, SealedCandidate):
            return [self.hold(owner, bid_round, handle, held) for handle in handles]
        assert isinstance(held, SealedCandidates), "points in the open have no signature"
        place = self._session.identifier, owner, bid_round
        if (tree := brought.tree) is not None:
            statement = submission_statement(*place, tree.depth, tree.root)
        else:
            statement = batch_statement(*place, held.digests)
        if not self._signed(owner, statement, held.signature):
            return [False] * len(handles)
        # The place of a point of a batch is not signed, that of a submission's is.
        found = batched_digests(handles, brought.boxes, brought.features)
        if brought.tree is None:
            signed = frozenset(brought.digests)
            return [digest in signed for digest in found]
        return [digest == leaf for digest, leaf in zip(found, brought.digests, strict=False)]

    def _submitted(self, owner: str, bid_round: int, handle: int, candidate: SubmittedCandidate) -> bool:
        """Whether a submitted point leads to a root that its owner signed."""
        leaf = batched_digest(handle, candidate.box, candidate.features)
        root = root_of(leaf, candidate.place, candidate.path)
        of = owner, bid_round, root, candidate.signature
        if (checked := self._checked.get(of)) is None:
            depth = len(candidate.path) // NODE_BYTES
            statement = submission_statement(self._session.identifier, owner, bid_round, depth, root)
            checked = self._remembered(of, statement, frozenset())
        return checked.held

    def _remembered(self, of: _Signed, statement: bytes, digests: frozenset[bytes]) -> _SignedBatch:
        while len(self._checked) >= _MOST_CHECKED:
            del self._checked[next(iter(self._checked))]
        owner, *_, signature = of
        found = self._checked[of] = _SignedBatch(self._signed(owner, statement, signature), digests)
        return found

    def _signed(self, owner: str, statement: bytes, signature: bytes) -> bool:
        return verify_signature(statement, signature, self._session.public_identity(owner).verify)


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
