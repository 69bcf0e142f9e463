"""The owner's numerics: its points, their features, and the best of them under a weight."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np

from hushbid.owner.events import (
    NOTHING,
    BlindScored,
    BroadcastRefused,
    CommitRows,
    MapOpened,
    MapRefused,
    OpenMap,
    RowsCommitted,
    ScoreBlind,
    Scored,
    ScorePoints,
    Withdraw,
)
from hushbid.protocol.crypto.blinding import (
    NOT_SENT,
    BlindKeys,
    Mask,
    blind_bid_statement,
    blind_digest,
    broadcast_statement,
)
from hushbid.protocol.crypto.commitment import RowTree, root_name, rows_key
from hushbid.protocol.crypto.identity import Identity, PublicIdentity
from hushbid.protocol.crypto.sealing import (
    EPHEMERAL_BYTES,
    SIGNATURE_BYTES,
    batch_statement,
    batched_digests,
    candidate_statement,
    pack_contents,
    rows_statement,
    seal,
    seal_numbered,
    sign,
    submission_statement,
    verify_signature,
)
from hushbid.protocol.data import Dataset, dataset_digest
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.machine import Computation, Event
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.protocol.session.points import check_weights
from hushbid.protocol.session.secret_map import open_map
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FeatureMap
from hushbid.protocol.space.grid import Features, Weights
from hushbid.protocol.space.herding import MOST_WEIGHED
from hushbid.protocol.space.scoring import Points, score_bound
from hushbid.protocol.wire.merkle import Tree
from hushbid.protocol.wire.messages import Array, Candidate, Candidates, SealedCandidate, SealedCandidates

__all__ = ["BlindOwnerNumerics", "OwnerNumerics", "Sealer"]


@dataclass(frozen=True)
class Sealer:
    """The keys with which an owner seals points so that the curator cannot read them.

    Attributes:
        name: The owner's roster name.
        consumer: The recipient of the boxes.
        noise: The source of ephemeral keys.
    """

    name: str
    identity: Identity
    consumer: PublicIdentity
    noise: NoiseSource


class OwnerNumerics:
    """Carries out the owner machine's computations.

    Args:
        hashed: φ of every point under a map, int16 of shape (n, d).
        sealer: Seals points; None where they are not sealed.
    """

    def __init__(
        self,
        session: Session,
        dataset: Dataset,
        hashed: Callable[[FeatureMap], Features],
        *,
        sealer: Sealer | None,
    ) -> None:
        self._session = session
        self._dataset = dataset
        self._hashed = hashed
        self._sealer = sealer
        self._table: Points | None = None
        self._upcoming: deque[int] = deque()
        """Rows of the submission whose message is still to come, in the order of their choice."""
        self._blank_features = _read_only(np.zeros(session.space.dimension, dtype=np.int16))
        self._blank_point = np.zeros(dataset.features.shape[1], dtype=dataset.features.dtype)
        self._blank_attributes = bytes(dataset.attribute_length)
        self._blank_box = bytes(session.box_length)
        if session.public_map is not None:
            self._hash(session.public_map)

    def perform(self, effect: Computation) -> Event | None:
        if type(effect) is ScorePoints:
            return self._score(effect)
        if type(effect) is CommitRows:
            return self._commit()
        if type(effect) is Withdraw:
            for row in effect.rows:
                self._points().withdraw(row)
        elif type(effect) is OpenMap:
            return self._open_map(effect)
        return None

    def ahead(self) -> None:
        """Compute what the next answer needs and no message changes: a loop calls it before it waits."""

    def restore(self, effect: Computation, outcome: Event | None) -> None:
        if isinstance(outcome, MapOpened | MapRefused) or type(effect) is Withdraw:
            self.perform(effect)
        elif isinstance(outcome, Scored | BlindScored) and outcome.ephemeral:
            noise = self._require_sealer().noise
            if not noise.protects:
                noise.random_bytes(len(outcome.ephemeral))  # brings seeded noise to its earlier position

    @cached_property
    def _tree(self) -> RowTree:
        """The tree over the rows that the owner commits to."""
        key = rows_key(self._require_sealer().identity.seed, dataset_digest(self._dataset))
        return RowTree(
            self._dataset.features,
            self._dataset.each_own_attributes(),
            key=key,
            depth=self._session.commitment_depth,
        )

    @property
    def root(self) -> str:
        """What the owner's rows are called (`root_name`); empty where it does not commit to them."""
        depth = self._session.commitment_depth
        return root_name(self._tree.root, depth) if depth else ""

    def _commit(self) -> RowsCommitted:
        session, sealer = self._session, self._require_sealer()
        root = self._tree.root
        statement = rows_statement(session.identifier, sealer.name, session.commitment_depth, root)
        return RowsCommitted(root, sign(statement, sealer.identity.signing))

    def _open_map(self, effect: OpenMap) -> MapOpened | MapRefused:
        sealer = self._require_sealer()
        try:
            feature_map, seed = open_map(effect.box, self._session, sealer.consumer, sealer.identity)
        except RemoteProtocolError as error:
            return MapRefused(error.what, error.advice)
        self._keep_seed(seed)
        self._hash(feature_map)
        return MapOpened()

    def _keep_seed(self, seed: bytes) -> None:
        """Keep the secret map's seed; a rule may derive more from it."""

    def _hash(self, feature_map: FeatureMap) -> None:
        self._table = Points(
            self._hashed(feature_map), norm_bound=feature_map.space.norm_bound, jitter=self._session.jitter
        )
        if not self._session.rule.herds:
            self._table.prepare()  # before a broadcast is here, and time counts

    def _score(self, effect: ScorePoints) -> Scored:
        table, batch = self._points(), self._session.batch
        rows, scores = self._best(effect, batch)
        features = _read_only(table.rows(np.array(rows, dtype=np.intp)))
        if self._sealer is None:
            points = [self._dataset.features[row] for row in rows]
            attributes = self._dataset.attributes_of(rows)
            if batch > 1:
                handed: Any = self._batch(features, points, attributes)
            else:
                handed = self._opened(features, points, attributes)
            return Scored(effect.round, rows, scores, handed, b"")
        boxes, ephemeral = self._boxes(self._sealer, rows, effect.handle)
        sealed: Any
        if batch > 1 or self._session.rule.herds:
            sealed = self._sealed_batch(self._sealer, effect, features, boxes)
        else:
            sealed = self._sealed(self._sealer, effect, features, boxes)
        return Scored(effect.round, rows, scores, sealed, ephemeral)

    def _best(self, effect: ScorePoints, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The rows to bid, best first or in the order of their choice, and their scores."""
        table, aim = self._points(), effect.aim
        if aim is None:
            found = table.first(effect.weights, count)
            return tuple(best.entry for best in found), tuple(best.score for best in found)
        if not self._upcoming:
            # The rows of later messages follow from the same running sums. Of more rows than are weighed at
            # once, each message's are chosen among others.
            messages = self._session.messages if len(table) <= MOST_WEIGHED else 1
            self._upcoming.extend(table.herd(aim.statistic.of, aim.mean, count * messages))
        rows = tuple(self._upcoming.popleft() for _ in range(min(count, len(self._upcoming))))
        scores = table.scores(np.array(rows, dtype=np.intp), effect.weights)
        return rows, tuple(scores.tolist())

    def _boxes(self, sealer: Sealer, rows: Sequence[int], first: int) -> tuple[list[bytes], bytes]:
        """The points of these rows, sealed to the consumer, and the ephemeral secrets of their boxes."""
        return self._sealed_contents(sealer, self._contents(rows), first)

    def _contents(self, rows: Sequence[int]) -> list[bytes]:
        dataset, size = self._dataset, self._session.box_bytes
        points = np.asarray(dataset.features[np.array(rows, dtype=np.intp)])
        if not self._session.commitment_depth:
            # Labels and identifiers are padded to the longest of all rows, as ever: that tells the consumer.
            return pack_contents(points, dataset.attributes_of(rows), size)
        contents = pack_contents(points, dataset.own_attributes_of(rows), size)
        openings = self._tree.packed_openings(rows)
        return [opening + content for opening, content in zip(openings, contents, strict=True)]

    def _sealed_contents(
        self, sealer: Sealer, contents: Sequence[bytes], first: int
    ) -> tuple[list[bytes], bytes]:
        """Contents in boxes whose numbers go on from `first`, and the ephemeral secrets of these."""
        if not contents:
            return [], b""
        recipient = sealer.consumer.sealing
        if self._session.numbered_boxes:
            ephemeral = sealer.noise.random_bytes(EPHEMERAL_BYTES)
            return seal_numbered(dict(enumerate(contents, start=first)), recipient, ephemeral), ephemeral
        ephemeral = sealer.noise.random_bytes(EPHEMERAL_BYTES * len(contents))
        secrets = (ephemeral[at : at + EPHEMERAL_BYTES] for at in range(0, len(ephemeral), EPHEMERAL_BYTES))
        return list(map(seal, contents, repeat(recipient), secrets)), ephemeral

    def _opened(self, features: Features, points: Sequence[Array], attributes: Sequence[bytes]) -> Candidate:
        """The only point, or zeros of its size if there is none."""
        blank = self._blank_point, self._blank_features, self._blank_attributes
        point, own, packed = (points[0], features[0], attributes[0]) if points else blank
        return Candidate.model_construct(point=_read_only(point), features=own, attributes=packed)

    def _batch(self, features: Features, points: Sequence[Array], attributes: Sequence[bytes]) -> Candidates:
        missing = self._session.batch - len(points)
        return Candidates.model_construct(
            points=_read_only(np.concatenate([*points, *[self._blank_point] * missing])),
            features=self._padded(features).reshape(-1),
            attributes=b"".join([*attributes, *[self._blank_attributes] * missing]),
        )

    def _sealed(
        self, sealer: Sealer, effect: ScorePoints, features: Features, boxes: Sequence[bytes]
    ) -> SealedCandidate:
        if not boxes:
            return SealedCandidate.model_construct(
                features=self._blank_features, box=self._blank_box, signature=bytes(SIGNATURE_BYTES)
            )
        statement = candidate_statement(
            self._session.identifier, sealer.name, effect.round, effect.handle, boxes[0], features[0]
        )
        return SealedCandidate.model_construct(
            features=features[0], box=boxes[0], signature=sign(statement, sealer.identity.signing)
        )

    def _sealed_batch(
        self, sealer: Sealer, effect: ScorePoints, features: Features, boxes: Sequence[bytes]
    ) -> SealedCandidates:
        missing = self._session.batch - len(boxes)
        handles = [*range(effect.handle, effect.handle + len(boxes)), *[0] * missing]
        boxes = [*boxes, *[self._blank_box] * missing]
        features = self._padded(features)
        leaves = batched_digests(handles, boxes, features)
        digests = b"".join(leaves)
        place = self._session.identifier, sealer.name, effect.round
        if self._session.rule.herds:
            tree = Tree(leaves)
            statement = submission_statement(*place, tree.depth, tree.root)
        else:
            statement = batch_statement(*place, digests)
        return SealedCandidates.model_construct(
            features=features.reshape(-1),
            boxes=b"".join(boxes),
            digests=digests,
            signature=sign(statement, sealer.identity.signing),
        )

    def _padded(self, features: Features) -> Features:
        """Rows of features, with rows of zeros up to a batch: read-only, shape (b, d)."""
        missing = self._session.batch - len(features)
        blank = np.zeros((missing, self._session.space.dimension), dtype=np.int16)
        return _read_only(np.concatenate([features, blank])) if missing else features

    def _points(self) -> Points:
        if self._table is None:
            raise LocalProtocolError("Points are to be scored before they were hashed.")
        return self._table

    def _require_sealer(self) -> Sealer:
        if self._sealer is None:
            raise LocalProtocolError("A secret map came to an owner that has no key to open it.")
        return self._sealer


class BlindOwnerNumerics(OwnerNumerics):
    """Carries out the blind owner's computations; its arguments are those of `OwnerNumerics`."""

    _keys: BlindKeys | None = None
    _sent: tuple[int, ...] = ()
    """The row in each box so far, or -1."""

    def perform(self, effect: Computation) -> Event | None:
        if type(effect) is ScoreBlind:
            try:
                return self._bid(effect)
            except RemoteProtocolError as error:
                return BroadcastRefused(error.what, error.advice)
        return super().perform(effect)

    def restore(self, effect: Computation, outcome: Event | None) -> None:
        if isinstance(outcome, BlindScored):
            self._sent += tuple(outcome.rows)
        super().restore(effect, outcome)

    def _keep_seed(self, seed: bytes) -> None:
        self._keys = BlindKeys(seed, self._session.identifier)

    def _bid(self, effect: ScoreBlind) -> BlindScored:
        session, sealer, table = self._session, self._require_sealer(), self._points()
        keys = self._require_keys()
        statement = broadcast_statement(session.identifier, effect.round, effect.box)
        if not verify_signature(statement, effect.signature, sealer.consumer.verify):
            raise RemoteProtocolError(
                Offence.MISMATCH,
                "A broadcast is not signed by the consumer.",
                advice="Compare the consumer's key with the roster's, by fingerprint.",
            )
        weights = keys.decrypt(effect.box, effect.round)
        check_weights(weights, session)
        mask = self._own_mask(effect.round, weights)
        # Points of equal score are in the same order as at the curator.
        best = table.first(weights, session.batch, tie=lambda row: -mask.tie(row))
        missing = session.batch - len(best)
        rows = self._in_order(mask, (*(each.entry for each in best), *[NOTHING] * missing))
        boxes, ephemeral = self._new_boxes(sealer, rows, effect.handle)
        self._sent += rows
        scores = self._masked(mask, weights)
        digests = [blind_digest(effect.handle + place, box) for place, box in enumerate(boxes)]
        digests.append(hashlib.sha256(scores).digest())
        signed = sign(
            blind_bid_statement(session.identifier, sealer.name, effect.round, digests),
            sealer.identity.signing,
        )
        return BlindScored(
            effect.round, weights, rows, b"".join(boxes), scores, b"".join(digests), signed, ephemeral
        )

    def _require_keys(self) -> BlindKeys:
        if self._keys is None:
            raise LocalProtocolError("A broadcast is to be opened before the map was.")
        return self._keys

    def _own_mask(self, number: int, weights: Weights) -> Any:
        """The mask of round 1, 2, … for this owner's scores, as `_masked` takes it."""
        bound = score_bound(weights, self._session.space.coordinate_bound, self._session.jitter)
        return self._require_keys().mask(number, bound)

    def _in_order(self, mask: Any, rows: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002 - likewise
        """The rows of new boxes, best first, in the order in which the boxes are numbered."""
        return rows

    def _new_boxes(self, sealer: Sealer, rows: Sequence[int], first: int) -> tuple[list[bytes], bytes]:
        """The new boxes, and the ephemeral secrets of those that are sealed."""
        found = [row for row in rows if row != NOTHING]
        boxes, ephemeral = self._boxes(sealer, found, first)
        return [*boxes, *[self._blank_box] * (len(rows) - len(found))], ephemeral

    def _masked(self, mask: Mask, weights: Weights) -> bytes:
        """The masked scores of all boxes so far, without those below every new score."""
        session, table = self._session, self._points()
        sent = np.array(self._sent, dtype=np.intp)
        points = np.flatnonzero(sent != NOTHING)
        scores = table.scores(sent[points], weights)
        masked = [NOT_SENT if row != NOTHING else mask.of_nothing for row in self._sent]
        new = points >= len(sent) - session.batch
        if new.sum() == session.batch:
            # Lower scores are not among the b best, and neither are empty boxes.
            masked = [NOT_SENT] * len(sent)
            needed = scores >= scores[new].min()
            points, scores = points[needed], scores[needed]
        features = table.rows(sent[points])
        for place, score in zip(points.tolist(), mask.of(scores.tolist(), features), strict=True):
            masked[place] = score
        return b"".join(masked)


def _read_only(array: Array) -> Array:
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view
