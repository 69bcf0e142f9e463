"""What the curator's machine asks of its numerics, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt

from curator.verification import Unverified
from protocol.machine.machine import Computation, Event
from protocol.space.grid import Features, Totals, Weights
from protocol.wire.messages import Target
from protocol.wire.values import Item

__all__ = [
    "CandidatesChecked",
    "CheckCandidates",
    "ComputeWeights",
    "DestroyBoxes",
    "DrawNoise",
    "NoiseDrawn",
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
class CheckCandidates(Computation):
    """Recompute φ of points that were handed over, or check who signed those that are sealed."""

    KIND: ClassVar[str] = "check-candidates"
    entries: tuple[Unverified, ...]


@dataclass(frozen=True, slots=True)
class CandidatesChecked(Event):
    """What came of the last `CheckCandidates`, in its order."""

    KIND: ClassVar[str] = "candidates-checked"
    features: Features | None
    """φ of the points as computed here, int16 of shape (n, d); None where they are sealed."""
    signed: tuple[bool, ...]
    """Whether its owner signed each; True throughout where points are not sealed."""

    def item(self) -> Item:
        return Item(self.KIND, {}, {"features": self.features, "signed": self.signed})


@dataclass(frozen=True, slots=True)
class DestroyBoxes(Computation):
    """Forget all boxes: the consumer has the chosen ones, or there will be no delivery."""

    KIND: ClassVar[str] = "destroy-boxes"
    HAS_OUTCOME: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class ComputeWeights(Computation):
    """Release the summary's mean embedding and make the round's broadcast weight of it."""

    KIND: ClassVar[str] = "compute-weights"
    round: int
    target: Target
    """g̃, and what is public of the seed set."""
    total: Totals
    """Sum of the won points' statistic (`ReleaseMechanism.statistic`)."""
    count: float
    """q = s·|D_init| + b·(round - 1) (DESIGN §1), never an actual count."""
    noise: tuple[npt.NDArray[Any], ...]


@dataclass(frozen=True, slots=True)
class WeightsComputed(Event):
    """The weight to broadcast: a floating-point result, so it is recorded rather than recomputed."""

    KIND: ClassVar[str] = "weights-computed"
    round: int
    weights: Weights

    def item(self) -> Item:
        return Item(self.KIND, {"round": self.round}, {"weights": self.weights})
