"""The consumer's requests to its numerics, and the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from consumer.seed_distance import SeedDistance
from protocol.machine.machine import Computation, Event
from protocol.space.grid import Totals
from protocol.wire.messages import Candidate, Purchase
from protocol.wire.values import Item

__all__ = [
    "CheckPurchases",
    "Delivered",
    "PurchasesChecked",
    "ReleaseTarget",
    "StorePurchases",
    "TargetReleased",
]


@dataclass(frozen=True, slots=True)
class ReleaseTarget(Computation):
    """Release the mean embedding of D_v, once; first draw the feature map if it is secret."""

    KIND: ClassVar[str] = "release-target"


@dataclass(frozen=True, slots=True)
class TargetReleased(Event):
    """The release, the noise that it used, and the starting point of the summary."""

    KIND: ClassVar[str] = "target-released"
    PUBLIC: ClassVar[tuple[str, ...]] = ("size", "seed_size", "noise_name")
    embedding: npt.NDArray[np.float64]
    size: int
    seed_total: Totals
    seed_size: int
    map_seed: bytes
    """Seed of the secret feature map; empty if the map is public."""
    maps: bytes
    """The seed, sealed to each owner."""
    noise_name: str
    noise: tuple[npt.NDArray[Any], ...]
    basis: npt.NDArray[np.int16] | None = None
    """Directions of the seed set (`Prior.basis`), int16 of shape (F, d); None if no release needs them."""

    def item(self) -> Item:
        item = Event.item(self)
        if self.basis is not None:
            return item
        # Left out if there is none, so that records from before the field existed keep their bytes.
        return item._replace(private={name: item.private[name] for name in item.private if name != "basis"})


@dataclass(frozen=True, slots=True)
class CheckPurchases(Computation):
    """Open the boxes of a part, recompute φ of its points, and compare."""

    KIND: ClassVar[str] = "check-purchases"
    purchases: tuple[Purchase, ...]
    last: bool
    """Whether this part ends the delivery: all of it is then compared with D_v."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A bought point.

    Attributes:
        owner: Its seller.
        chosen_round: The round of its choice.
        candidate: The point; None if its box does not open.
        dispute: Why it is disputed; empty if it is not.
    """

    owner: str
    chosen_round: int
    candidate: Candidate | None
    dispute: str


@dataclass(frozen=True, slots=True)
class PurchasesChecked(Event):
    """The results of the last `CheckPurchases`, in its order."""

    KIND: ClassVar[str] = "purchases-checked"
    delivered: tuple[Delivered, ...]
    mmd2: npt.NDArray[np.float64] | None
    """With the last part: MMD² of the first 1, 2, … readable points against D_v, by the exact kernel on
    scaled points. None before, and if it cannot be computed.
    """
    seed_distance: SeedDistance | None = None
    """With the last part: the distance of the seed set from D_v; None before, and in older transcripts."""

    def item(self) -> Item:
        delivered = [
            {
                "owner": entry.owner,
                "round": entry.chosen_round,
                "candidate": None if entry.candidate is None else dict(entry.candidate),
                "dispute": entry.dispute,
            }
            for entry in self.delivered
        ]
        apart = self.seed_distance
        # Left out if there is none, as in records from before the field existed.
        told = {} if apart is None else {"seed_distance": asdict(apart)}
        return Item(self.KIND, {}, {"delivered": delivered, "mmd2": self.mmd2, **told})

    @classmethod
    def restored(cls, fields: Mapping[str, Any]) -> Self:
        delivered = [
            Delivered(
                entry["owner"],
                entry["round"],
                entry["candidate"] and Candidate.model_construct(**entry["candidate"]),
                entry["dispute"],
            )
            for entry in fields["delivered"]
        ]
        apart = fields.get("seed_distance")
        return cls(
            tuple(delivered),
            fields["mmd2"],
            None if apart is None else SeedDistance(**apart),
        )


@dataclass(frozen=True, slots=True)
class StorePurchases(Computation):
    """Store the delivered points: the delivery is complete."""

    KIND: ClassVar[str] = "store-purchases"
    HAS_OUTCOME: ClassVar[bool] = False
    delivered: tuple[Delivered, ...]
