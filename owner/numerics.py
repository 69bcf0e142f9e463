"""The owner's numerics: its points, their features, and the best of them under a weight."""

from __future__ import annotations

import numpy as np

from owner.events import Scored, ScorePoints, Withdraw
from protocol.data import Dataset
from protocol.grid import Features
from protocol.machine import Computation, Event
from protocol.messages import Candidate
from protocol.scoring import Points

__all__ = ["OwnerNumerics"]


class OwnerNumerics:
    """Carries out the owner machine's `ScorePoints` and `Withdraw`.

    Args:
        dataset: The owner's points.
        features: φ of every point, int16 of shape (n, d).
        norm_bound: The feature map's.
    """

    def __init__(self, dataset: Dataset, features: Features, *, norm_bound: float) -> None:
        self._dataset = dataset
        self._table = Points(features, norm_bound=norm_bound)
        blank_point = np.zeros(dataset.features.shape[1], dtype=dataset.features.dtype)
        blank_features = np.zeros(features.shape[1], dtype=np.int16)
        blank_point.flags.writeable = blank_features.flags.writeable = False
        self._blank = Candidate(
            point=blank_point, features=blank_features, attributes=bytes(dataset.attribute_length)
        )

    def perform(self, effect: Computation) -> Event | None:
        """The effect's outcome as an event, if it has one; None for effects of other kinds too."""
        if type(effect) is ScorePoints:
            return self._score(effect)
        if type(effect) is Withdraw:
            self._table.withdraw(effect.row)
        return None

    def _score(self, effect: ScorePoints) -> Scored:
        best = self._table.best(effect.weights)
        if best is None:
            return Scored(effect.round, -1, 0, self._blank)
        point = np.ascontiguousarray(self._dataset.features[best.entry])
        point.flags.writeable = False
        candidate = Candidate.model_construct(
            point=point,
            features=self._table.features(best.entry),
            attributes=self._dataset.attributes(best.entry),
        )
        return Scored(effect.round, best.entry, best.score, candidate)
