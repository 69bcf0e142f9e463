"""The curator's numerics: noise, releases of the summary, and features of points that were handed over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from curator.events import ComputeWeights, DrawNoise, HashPoints, NoiseDrawn, PointsHashed, WeightsComputed
from protocol.features import FeatureMap
from protocol.grid import Features, round_weights
from protocol.machine import Effect, Event
from protocol.noise import Draw, NoiseSource
from protocol.session import Session

__all__ = ["CuratorNumerics", "hash_points"]


class CuratorNumerics:
    """Carries out the curator machine's `DrawNoise`, `HashPoints` and `ComputeWeights`."""

    def __init__(self, session: Session, noise: NoiseSource) -> None:
        self._map = session.feature_map
        self._summary = session.summary()
        self._rule = session.rule
        self._noise = noise

    def perform(self, effect: Effect) -> Event | None:
        """The effect's outcome as an event; None for effects of other kinds."""
        if type(effect) is HashPoints:
            return PointsHashed(hash_points(self._map, effect.points))
        if type(effect) is ComputeWeights:
            return self._weights(effect)
        if type(effect) is DrawNoise:
            return self._draw(effect)
        return None

    def _weights(self, effect: ComputeWeights) -> WeightsComputed:
        """w = g̃ - q/(q+1)·g, the bid's weight (DESIGN §1, row 1), on the grid."""
        mean = self._summary.release(effect.round - 1, effect.total, effect.count, effect.noise)
        ratio = effect.count / (effect.count + 1)
        weights = round_weights(effect.target - ratio * mean)
        weights.flags.writeable = False
        return WeightsComputed(effect.round, weights)

    def _draw(self, effect: DrawNoise) -> NoiseDrawn:
        return NoiseDrawn(
            effect.first,
            tuple(
                (self._drawn(self._summary.draws(number - 1)), self._drawn(self._rule.draws()))
                for number in range(effect.first, effect.last + 1)
            ),
        )

    def _drawn(self, draws: Sequence[Draw]) -> tuple[npt.NDArray[Any], ...]:
        return tuple(self._noise.draw(draw) for draw in draws)


def hash_points(feature_map: FeatureMap, points: Sequence[npt.NDArray[Any]]) -> Features:
    """φ of points that may differ in number type, int16 of shape (n, d)."""
    if len({point.dtype for point in points}) == 1:
        return feature_map.hash(np.stack(points))
    return np.concatenate([feature_map.hash(point[None]) for point in points])
