"""The owner's numerics: its points, their features, and the best of them under a weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from owner.events import MapOpened, MapRefused, OpenMap, Scored, ScorePoints, Withdraw
from protocol.data import Dataset
from protocol.errors import LocalProtocolError, RemoteProtocolError
from protocol.features import FeatureMap
from protocol.grid import Features
from protocol.identity import Identity, PublicIdentity
from protocol.machine import Computation, Event
from protocol.messages import Candidate, SealedCandidate
from protocol.noise import NoiseSource
from protocol.scoring import Points
from protocol.sealing import (
    EPHEMERAL_BYTES,
    SEAL_BYTES,
    SIGNATURE_BYTES,
    candidate_statement,
    pack_content,
    seal,
    sign,
)
from protocol.secret_map import open_map
from protocol.session import Session

__all__ = ["OwnerNumerics", "Sealer"]


@dataclass(frozen=True)
class Sealer:
    """What an owner needs to hand points over that the curator cannot read.

    Attributes:
        name: The owner's roster name.
        identity: Its own keys.
        consumer: Whom boxes are sealed to.
        noise: Where ephemeral keys come from.
    """

    name: str
    identity: Identity
    consumer: PublicIdentity
    noise: NoiseSource


class OwnerNumerics:
    """Carries out the owner machine's `OpenMap`, `ScorePoints` and `Withdraw`.

    Args:
        session: The session.
        dataset: The owner's points.
        hashed: φ of every point under a map, int16 of shape (n, d).
        sealer: Where points are sealed; else None.
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
        self._blank = self._blank_candidate()
        if session.public_map is not None:
            self._hash(session.public_map)

    def perform(self, effect: Computation) -> Event | None:
        """The effect's outcome as an event, if it has one; None for effects of other kinds too."""
        if type(effect) is ScorePoints:
            return self._score(effect)
        if type(effect) is Withdraw:
            self._points().withdraw(effect.row)
        elif type(effect) is OpenMap:
            return self._open_map(effect)
        return None

    def restore(self, effect: Computation, outcome: Event | None) -> None:
        """Take up what was computed before a restart: the features, and which points were handed over."""
        if isinstance(outcome, MapOpened | MapRefused) or type(effect) is Withdraw:
            self.perform(effect)
        elif isinstance(outcome, Scored) and outcome.ephemeral:
            noise = self._require_sealer().noise
            if not noise.protects:
                noise.random_bytes(EPHEMERAL_BYTES)  # seeded noise is as far as it was

    def _open_map(self, effect: OpenMap) -> MapOpened | MapRefused:
        sealer = self._require_sealer()
        try:
            feature_map = open_map(effect.box, self._session, sealer.consumer, sealer.identity)
        except RemoteProtocolError as error:
            return MapRefused(error.what, error.advice)
        self._hash(feature_map)
        return MapOpened()

    def _hash(self, feature_map: FeatureMap) -> None:
        self._table = Points(self._hashed(feature_map), norm_bound=feature_map.space.norm_bound)

    def _score(self, effect: ScorePoints) -> Scored:
        table = self._points()
        best = table.best(effect.weights)
        if best is None:
            return Scored(effect.round, -1, 0, self._blank, b"")
        point = np.ascontiguousarray(self._dataset.features[best.entry])
        point.flags.writeable = False
        features, attributes = table.features(best.entry), self._dataset.attributes(best.entry)
        if self._sealer is None:
            candidate = Candidate.model_construct(point=point, features=features, attributes=attributes)
            return Scored(effect.round, best.entry, best.score, candidate, b"")
        sealer = self._sealer
        ephemeral = sealer.noise.random_bytes(EPHEMERAL_BYTES)
        content = pack_content(point, attributes, self._session.box_bytes)
        box = seal(content, sealer.consumer.sealing, ephemeral)
        statement = candidate_statement(
            self._session.identifier, sealer.name, effect.round, effect.handle, box, features
        )
        sealed = SealedCandidate.model_construct(
            features=features, box=box, signature=sign(statement, sealer.identity.signing)
        )
        return Scored(effect.round, best.entry, best.score, sealed, ephemeral)

    def _blank_candidate(self) -> Candidate | SealedCandidate:
        """What an exhausted owner bids: zeros of the usual size."""
        features = np.zeros(self._session.space.dimension, dtype=np.int16)
        features.flags.writeable = False
        if self._sealer is not None:
            return SealedCandidate(
                features=features,
                box=bytes(self._session.box_bytes + SEAL_BYTES),
                signature=bytes(SIGNATURE_BYTES),
            )
        point = np.zeros(self._dataset.features.shape[1], dtype=self._dataset.features.dtype)
        point.flags.writeable = False
        return Candidate(point=point, features=features, attributes=bytes(self._dataset.attribute_length))

    def _points(self) -> Points:
        if self._table is None:
            raise LocalProtocolError("Points are to be scored before they were hashed.")
        return self._table

    def _require_sealer(self) -> Sealer:
        if self._sealer is None:
            raise LocalProtocolError("A secret map came to an owner that has no key to open it.")
        return self._sealer
