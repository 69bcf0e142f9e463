"""The curator's numerics: noise, releases of the summary, and features of points that were handed over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from curator.events import ComputeWeights, DrawNoise, HashPoints, NoiseDrawn, PointsHashed, WeightsComputed
from protocol.grid import round_weights
from protocol.machine import Computation, Event
from protocol.noise import Draw, NoiseSource
from protocol.session import Session
from protocol.verification import hash_points

__all__ = ["CuratorNumerics"]


class CuratorNumerics:
    """Carries out the curator machine's `DrawNoise`, `HashPoints` and `ComputeWeights`."""

    def __init__(self, session: Session, noise: NoiseSource) -> None:
        self._map = session.feature_map
        self._summary = session.summary()
        self._rule = session.rule
        self._noise = noise

    def perform(self, effect: Computation) -> Event | None:
        """The effect's outcome as an event; None for effects of other kinds."""
        if type(effect) is HashPoints:
            return PointsHashed(hash_points(self._map, effect.points))
        if type(effect) is ComputeWeights:
            return self._weights(effect)
        if type(effect) is DrawNoise:
            return self._draw(effect)
        return None

    def _weights(self, effect: ComputeWeights) -> WeightsComputed:
        """The bid's weight w = g̃ - q/(q+1)·g (DESIGN §1, row 1), on the grid."""
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
        drawn = tuple(self._noise.draw(draw) for draw in draws)
        for noise in drawn:
            noise.flags.writeable = False
        return drawn
