"""The consumer's numerics: the single release of its target, and checks of delivered points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from consumer.events import (
    CheckPurchases,
    Delivered,
    PurchasesChecked,
    ReleaseTarget,
    StorePurchases,
    TargetReleased,
)
from consumer.seed_distance import SeedDistance, seed_distance
from consumer.target import KeptTarget, TargetRelease, release_target
from protocol.crypto.identity import Identity
from protocol.crypto.sealing import (
    NONCE_BYTES,
    open_sealed,
    unpack_content,
)
from protocol.data import Dataset
from protocol.errors import DataError, LocalProtocolError, RemoteProtocolError
from protocol.machine.machine import Computation, Event
from protocol.privacy.noise import NoiseSource
from protocol.privacy.releases import Prior
from protocol.privacy.releases.prior import check_directions
from protocol.session.points import Signatures, hash_points, mapped, matching
from protocol.session.secret_map import seal_map
from protocol.session.session import Session
from protocol.space.features import SEED_BYTES, FeatureMap
from protocol.space.mmd import MOST_COMPARED, at_even_distances, mmd2_curve
from protocol.wire.messages import Candidate, Purchase, unfixed

__all__ = ["ConsumerNumerics"]


class ConsumerNumerics:
    """Carries out the consumer machine's computations.

    Args:
        noise: The consumer's own source of noise, which also supplies the secret map.
        identity: Its keys; None if nothing is sealed.
        validation: D_v.
        seed_set: D_init.
        store: Stores the delivered points; called once.
        target: An earlier release of D_v to use instead of a new one (`consumer.target.check_kept`).

    Raises:
        DataError: The seed set has too few points for the directions of the releases.
    """

    def __init__(
        self,
        session: Session,
        noise: NoiseSource,
        *,
        identity: Identity | None,
        validation: Dataset,
        seed_set: Dataset,
        store: Callable[[StorePurchases], None],
        target: KeptTarget | None = None,
    ) -> None:
        check_directions(len(seed_set), session.directions)
        self._session = session
        self._kept = target
        self._noise = noise
        self._identity = identity
        self._map = session.public_map
        self._validation = validation
        self._seed_set = seed_set
        self._store = store
        self._signatures = Signatures(session)
        self._points: list[npt.NDArray[Any]] = []
        """The readable points, in order."""

    def perform(self, effect: Computation) -> Event | None:
        """Return the effect's outcome as an event; None if it has none, or for an effect of another kind."""
        if type(effect) is ReleaseTarget:
            return self._release()
        if type(effect) is CheckPurchases:
            return self._check(effect)
        if type(effect) is StorePurchases:
            self._store(effect)
        return None

    def _release(self) -> TargetReleased:
        map_seed, maps = self._draw_map()
        feature_map = self._require_map()
        seeds = feature_map.hash(self._seed_set.features)
        seed_total = _read_only(seeds.sum(axis=0, dtype=np.int64))
        prior = Prior.of_features(seeds, self._session.directions)
        released = self._kept.release if self._kept is not None else self._draw(feature_map, prior)
        return TargetReleased(
            embedding=released.embedding,
            size=released.size,
            seed_total=seed_total,
            seed_size=len(seeds),
            map_seed=map_seed,
            maps=maps,
            noise_name=released.noise_name,
            noise=released.noise,
            basis=prior.basis,
        )

    def _draw(self, feature_map: FeatureMap, prior: Prior) -> TargetRelease:
        mechanism = self._session.target
        name = self._session.noise_name(mechanism)
        stream = mechanism.stream(prior=prior)
        return release_target(stream, feature_map, self._validation, self._noise, noise_name=name)

    def _draw_map(self) -> tuple[bytes, bytes]:
        """Draw a secret map's seed, and seal it to each owner; empty if the map is public."""
        session = self._session
        if not session.rule.sealed:
            return b"", b""
        seed = self._noise.random_bytes(SEED_BYTES)
        self._map = session.space.map(seed)
        identity = self._require_identity()
        nonces = self._noise.random_bytes(NONCE_BYTES * len(session.file.owners))
        boxes = [
            seal_map(
                seed,
                self._map.digest,
                session,
                session.public_identity(owner),
                identity,
                nonces[rank * NONCE_BYTES : (rank + 1) * NONCE_BYTES],
            )
            for rank, owner in enumerate(session.file.owners)
        ]
        return seed, b"".join(boxes)

    def restore(self, effect: Computation, outcome: Event | None) -> None:
        """Restore the state computed before a restart: the map and the deliveries."""
        if isinstance(outcome, TargetReleased):
            if outcome.map_seed:
                self._map = self._session.space.map(outcome.map_seed)
            if not self._noise.protects:
                self._release()  # brings seeded noise to its earlier position
        elif type(effect) is CheckPurchases:
            self._check(effect)
        elif type(effect) is StorePurchases:
            self._store(effect)

    def _check(self, effect: CheckPurchases) -> PurchasesChecked:
        delivered = self._appraised(effect.purchases)
        self._points += [entry.candidate.point for entry in delivered if entry.candidate is not None]
        if not effect.last:
            return PurchasesChecked(delivered, None)
        return PurchasesChecked(delivered, self._distances(), self.seed_distance())

    def seed_distance(self, *, most: int = MOST_COMPARED) -> SeedDistance:
        """Distance of the seed set from D_v, by at most `most` rows of each."""
        space = self._session.space
        validation, seed_set = (
            space.scale(at_even_distances(each.features, most)) for each in (self._validation, self._seed_set)
        )
        return seed_distance(validation, seed_set, space.gamma, most=most)

    def _distances(self) -> npt.NDArray[np.float64] | None:
        """MMD² of the first 1, 2, … delivered points against D_v."""
        if not self._points:
            return None
        space = self._session.space
        # Owners may hold the same columns in different number types.
        points = np.stack([np.asarray(point, dtype=np.float64) for point in self._points])
        try:
            with np.errstate(over="ignore"):
                return _read_only(
                    mmd2_curve(space.scale(points), space.scale(self._validation.features), space.gamma)
                )
        except DataError:
            return None  # a point lies too far out for any comparison

    def _appraised(self, purchases: Sequence[Purchase]) -> tuple[Delivered, ...]:
        opened = [self._open(purchase) for purchase in purchases]
        points = [candidate.point for candidate, _ in opened if candidate is not None]
        recomputed = iter(hash_points(self._require_map(), points, schema=self._session.file.rows))
        delivered = []
        for purchase, (candidate, dispute) in zip(purchases, opened, strict=True):
            if candidate is not None:
                own = next(recomputed)[None]
                if not mapped(own)[0]:
                    dispute = dispute or "the point is outside the public bounds"
                elif not matching(own, candidate.features[None])[0]:
                    dispute = dispute or "the features are not those of the point"
            delivered.append(Delivered(purchase.owner, purchase.round, candidate, dispute))
        return tuple(delivered)

    def _open(self, purchase: Purchase) -> tuple[Candidate | None, str]:
        """A purchase's point, if it is readable, and what is wrong with it.

        Both depend only on what the owner handed over, not on other purchases or their order: the sensitivity
        of a private settlement requires it (`protocol.privacy.settlement`).
        """
        candidate = purchase.candidate
        if isinstance(candidate, Candidate):
            return candidate, ""
        try:
            content = open_sealed(candidate.box, self._require_identity().sealing)
        except RemoteProtocolError:
            return None, "the box does not open"
        try:
            point, attributes = unpack_content(content)
        except RemoteProtocolError:
            return None, "the box holds no point"
        if point.shape != (self._session.space.columns,):
            return None, "the point has other columns than the session"
        held = Candidate.model_construct(point=point, features=candidate.features, attributes=attributes)
        handle = unfixed(purchase.handle)
        if not self._signatures.hold(purchase.owner, purchase.bid_round, handle, candidate):
            return held, "the owner's signature does not hold"
        return held, ""

    def _require_map(self) -> FeatureMap:
        if self._map is None:
            raise LocalProtocolError("Features are to be computed before the map was drawn.")
        return self._map

    def _require_identity(self) -> Identity:
        if self._identity is None:
            raise LocalProtocolError("A box is to be opened or sealed without a key.")
        return self._identity


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
