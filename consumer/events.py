"""What the consumer's machine asks of its numerics, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from protocol.grid import Features, Totals
from protocol.machine import Computation, Event
from protocol.messages import Purchase
from protocol.transcript.item import Item

__all__ = ["CheckPurchases", "PurchasesHashed", "ReleaseTarget", "StorePurchases", "TargetReleased"]


@dataclass(frozen=True, slots=True)
class ReleaseTarget(Computation):
    """Release the mean embedding of D_v, once."""

    KIND: ClassVar[str] = "release-target"


@dataclass(frozen=True, slots=True)
class TargetReleased(Event):
    """The release, the noise that it took, and what the summary starts from."""

    KIND: ClassVar[str] = "target-released"
    embedding: npt.NDArray[np.float64]
    size: int
    seed_total: Totals
    seed_size: int
    noise_name: str
    noise: tuple[npt.NDArray[Any], ...]

    def item(self) -> Item:
        return Item(
            self.KIND,
            {"size": self.size, "seed_size": self.seed_size, "noise_name": self.noise_name},
            {"embedding": self.embedding, "seed_total": self.seed_total, "noise": self.noise},
        )


@dataclass(frozen=True, slots=True)
class CheckPurchases(Computation):
    """Recompute φ of a part's points."""

    KIND: ClassVar[str] = "check-purchases"
    purchases: tuple[Purchase, ...]


@dataclass(frozen=True, slots=True)
class PurchasesHashed(Event):
    """φ of the points of the last `CheckPurchases`, int16 of shape (n, d)."""

    KIND: ClassVar[str] = "purchases-hashed"
    features: Features

    def item(self) -> Item:
        return Item(self.KIND, {}, {"features": self.features})


@dataclass(frozen=True, slots=True)
class StorePurchases(Computation):
    """Keep the delivered points: the delivery is whole."""

    KIND: ClassVar[str] = "store-purchases"
    purchases: tuple[Purchase, ...]
    disputed: tuple[int, ...]
    """Positions of purchases whose point is out of bounds, or whose features are not those of their point."""
