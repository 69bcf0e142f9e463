"""The consumer's numerics: the one release of its target, and features of delivered points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from consumer.events import CheckPurchases, PurchasesHashed, ReleaseTarget, StorePurchases, TargetReleased
from protocol.data import Dataset
from protocol.grid import Totals
from protocol.machine import Computation, Event
from protocol.noise import NoiseSource
from protocol.session import Session
from protocol.verification import hash_points

__all__ = ["ConsumerNumerics"]


class ConsumerNumerics:
    """Carries out the consumer machine's `ReleaseTarget`, `CheckPurchases` and `StorePurchases`.

    Args:
        session: The session.
        noise: The consumer's own source of noise.
        validation: D_v.
        seed_set: D_init.
        store: Keeps the delivered points; called once.
    """

    def __init__(
        self,
        session: Session,
        noise: NoiseSource,
        *,
        validation: Dataset,
        seed_set: Dataset,
        store: Callable[[StorePurchases], None],
    ) -> None:
        self._session = session
        self._noise = noise
        self._map = session.feature_map
        self._validation = self._total(validation)
        self._size = len(validation)
        self._seed_total = self._total(seed_set)
        self._seed_size = len(seed_set)
        self._store = store

    def perform(self, effect: Computation) -> Event | None:
        """The effect's outcome as an event, if it has one; None for effects of other kinds too."""
        if type(effect) is ReleaseTarget:
            return self._release()
        if type(effect) is CheckPurchases:
            points = [purchase.candidate.point for purchase in effect.purchases]
            return PurchasesHashed(hash_points(self._map, points))
        if type(effect) is StorePurchases:
            self._store(effect)
        return None

    def _release(self) -> TargetReleased:
        mechanism = self._session.target()
        noise = tuple(self._noise.draw(draw) for draw in mechanism.draws(0))
        for drawn in noise:
            drawn.flags.writeable = False
        return TargetReleased(
            embedding=mechanism.release(0, self._validation, self._size, noise),
            size=self._size,
            seed_total=self._seed_total,
            seed_size=self._seed_size,
            noise_name=self._session.noise_name(mechanism),
            noise=noise,
        )

    def _total(self, dataset: Dataset) -> Totals:
        total: Totals = self._map.hash(dataset.features).sum(axis=0, dtype=np.int64)
        total.flags.writeable = False
        return total
