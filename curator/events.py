"""What the curator's machine asks of its numerics, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from protocol.grid import Features, Totals, Weights
from protocol.machine import Computation, Event
from protocol.transcript.item import Item

__all__ = [
    "ComputeWeights",
    "DrawNoise",
    "HashPoints",
    "NoiseDrawn",
    "PointsHashed",
    "RoundNoise",
    "WeightsComputed",
]

RoundNoise = tuple[tuple[npt.NDArray[Any], ...], tuple[npt.NDArray[Any], ...]]
"""One round's noise: the release's draws, then the acquisition rule's."""


@dataclass(frozen=True, slots=True)
class DrawNoise(Computation):
    """Draw the noise of the rounds `first` … `last`, which does not depend on data."""

    KIND: ClassVar[str] = "draw-noise"
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class NoiseDrawn(Event):
    """The noise of the rounds from `first` on, drawn once and for these releases only."""

    KIND: ClassVar[str] = "noise-drawn"
    first: int
    rounds: tuple[RoundNoise, ...]

    def item(self) -> Item:
        return Item(self.KIND, {"first": self.first}, {"rounds": self.rounds})


@dataclass(frozen=True, slots=True)
class HashPoints(Computation):
    """Recompute φ of points that were handed over, in this order."""

    KIND: ClassVar[str] = "hash-points"
    points: tuple[npt.NDArray[Any], ...]


@dataclass(frozen=True, slots=True)
class PointsHashed(Event):
    """φ of the points of the last `HashPoints`, int16 of shape (n, d)."""

    KIND: ClassVar[str] = "points-hashed"
    features: Features

    def item(self) -> Item:
        return Item(self.KIND, {}, {"features": self.features})


@dataclass(frozen=True, slots=True)
class ComputeWeights(Computation):
    """Release the summary's mean embedding and make the round's broadcast weight of it."""

    KIND: ClassVar[str] = "compute-weights"
    round: int
    target: npt.NDArray[np.float64]
    """g̃, shape (d,)."""
    total: Totals
    """Σφ(S), shape (d,), in units of 2^-15."""
    count: int
    """q = |D_init| + round - 1 (DESIGN §1), never an actual count."""
    noise: tuple[npt.NDArray[Any], ...]


@dataclass(frozen=True, slots=True)
class WeightsComputed(Event):
    """The weight to broadcast: a floating-point result, so it is recorded rather than recomputed."""

    KIND: ClassVar[str] = "weights-computed"
    round: int
    weights: Weights

    def item(self) -> Item:
        return Item(self.KIND, {"round": self.round, "weights": self.weights}, {})
