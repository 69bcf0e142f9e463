"""The owner's numerics: its points, their features, and the best of them under a weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from owner.events import MapOpened, MapRefused, OpenMap, Scored, ScorePoints, Withdraw
from protocol.crypto.identity import Identity, PublicIdentity
from protocol.crypto.sealing import (
    EPHEMERAL_BYTES,
    SEAL_BYTES,
    SIGNATURE_BYTES,
    batch_statement,
    batched_digest,
    candidate_statement,
    pack_content,
    seal,
    sign,
)
from protocol.data import Dataset
from protocol.errors import LocalProtocolError, RemoteProtocolError
from protocol.machine.machine import Computation, Event
from protocol.privacy.noise import NoiseSource
from protocol.session.secret_map import open_map
from protocol.session.session import Session
from protocol.space.features import FeatureMap
from protocol.space.grid import Features
from protocol.space.scoring import Points
from protocol.wire.messages import Array, Candidate, Candidates, SealedCandidate, SealedCandidates

__all__ = ["OwnerNumerics", "Sealer"]


@dataclass(frozen=True)
class Sealer:
    """The keys with which an owner seals points so that the curator cannot read them.

    Attributes:
        name: The owner's roster name.
        identity: Its own keys.
        consumer: The recipient of the boxes.
        noise: The source of ephemeral keys.
    """

    name: str
    identity: Identity
    consumer: PublicIdentity
    noise: NoiseSource


class OwnerNumerics:
    """Carries out the owner machine's `OpenMap`, `ScorePoints` and `Withdraw`.

    Args:
        dataset: The owner's points.
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
        self._blank_features = _read_only(np.zeros(session.space.dimension, dtype=np.int16))
        self._blank_point = np.zeros(dataset.features.shape[1], dtype=dataset.features.dtype)
        self._blank_attributes = bytes(dataset.attribute_length)
        self._blank_box = bytes(session.box_bytes + SEAL_BYTES)
        if session.public_map is not None:
            self._hash(session.public_map)

    def perform(self, effect: Computation) -> Event | None:
        """Return the effect's outcome as an event; None if it has none, or for an effect of another kind."""
        if type(effect) is ScorePoints:
            return self._score(effect)
        if type(effect) is Withdraw:
            self._points().withdraw(effect.row)
        elif type(effect) is OpenMap:
            return self._open_map(effect)
        return None

    def restore(self, effect: Computation, outcome: Event | None) -> None:
        """Restore the state computed before a restart: features, and which points were handed over."""
        if isinstance(outcome, MapOpened | MapRefused) or type(effect) is Withdraw:
            self.perform(effect)
        elif isinstance(outcome, Scored) and outcome.ephemeral:
            noise = self._require_sealer().noise
            if not noise.protects:
                noise.random_bytes(len(outcome.ephemeral))  # brings seeded noise to its earlier position

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

    def _score(self, effect: ScorePoints) -> Scored:
        table, batch = self._points(), self._session.batch
        found = table.first(effect.weights, batch)
        features = [table.features(best.entry) for best in found]
        points = [self._dataset.features[best.entry] for best in found]
        attributes = [self._dataset.attributes(best.entry) for best in found]
        rows, scores = tuple(best.entry for best in found), tuple(best.score for best in found)
        if self._sealer is None:
            if batch > 1:
                handed: Any = self._batch(features, points, attributes)
            else:
                handed = self._opened(features, points, attributes)
            return Scored(effect.round, rows, scores, handed, b"")
        contents = [
            pack_content(_read_only(point), packed, self._session.box_bytes)
            for point, packed in zip(points, attributes, strict=True)
        ]
        ephemeral = self._sealer.noise.random_bytes(EPHEMERAL_BYTES * len(found)) if found else b""
        boxes = [
            seal(content, self._sealer.consumer.sealing, ephemeral[at : at + EPHEMERAL_BYTES])
            for content, at in zip(contents, range(0, len(ephemeral), EPHEMERAL_BYTES), strict=True)
        ]
        sealed: Any
        if batch > 1:
            sealed = self._sealed_batch(self._sealer, effect, features, boxes)
        else:
            sealed = self._sealed(self._sealer, effect, features, boxes)
        return Scored(effect.round, rows, scores, sealed, ephemeral)

    def _opened(
        self, features: Sequence[Features], points: Sequence[Array], attributes: Sequence[bytes]
    ) -> Candidate:
        """The only point, or zeros of its size if there is none."""
        blank = self._blank_point, self._blank_features, self._blank_attributes
        point, own, packed = (points[0], features[0], attributes[0]) if points else blank
        return Candidate.model_construct(point=_read_only(point), features=own, attributes=packed)

    def _batch(
        self, features: Sequence[Features], points: Sequence[Array], attributes: Sequence[bytes]
    ) -> Candidates:
        missing = self._session.batch - len(points)
        return Candidates.model_construct(
            points=_read_only(np.concatenate([*points, *[self._blank_point] * missing])),
            features=_read_only(np.concatenate([*features, *[self._blank_features] * missing])),
            attributes=b"".join([*attributes, *[self._blank_attributes] * missing]),
        )

    def _sealed(
        self, sealer: Sealer, effect: ScorePoints, features: Sequence[Features], boxes: Sequence[bytes]
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
        self, sealer: Sealer, effect: ScorePoints, features: Sequence[Features], boxes: Sequence[bytes]
    ) -> SealedCandidates:
        missing = self._session.batch - len(boxes)
        handles = [*range(effect.handle, effect.handle + len(boxes)), *[0] * missing]
        boxes = [*boxes, *[self._blank_box] * missing]
        features = [*features, *[self._blank_features] * missing]
        digests = b"".join(map(batched_digest, handles, boxes, features))
        statement = batch_statement(self._session.identifier, sealer.name, effect.round, digests)
        return SealedCandidates.model_construct(
            features=_read_only(np.concatenate(features)),
            boxes=b"".join(boxes),
            digests=digests,
            signature=sign(statement, sealer.identity.signing),
        )

    def _points(self) -> Points:
        if self._table is None:
            raise LocalProtocolError("Points are to be scored before they were hashed.")
        return self._table

    def _require_sealer(self) -> Sealer:
        if self._sealer is None:
            raise LocalProtocolError("A secret map came to an owner that has no key to open it.")
        return self._sealer


def _read_only(array: Array) -> Array:
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view
