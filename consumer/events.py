"""The consumer's requests to its numerics, and the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from hushbid.consumer.seed_distance import SeedDistance
from hushbid.protocol.machine.machine import Computation, Event
from hushbid.protocol.session.settling import HandedOver
from hushbid.protocol.space.grid import Totals, Weights
from hushbid.protocol.wire.blind import Account, Award
from hushbid.protocol.wire.messages import Candidate, Purchase, Roots, Target
from hushbid.protocol.wire.unlinked import Choice
from hushbid.protocol.wire.values import Item

__all__ = [
    "NOT_COMMITTED",
    "WRONG_SCORE",
    "AccountMade",
    "CheckAward",
    "CheckPurchases",
    "ChoicePlaced",
    "Delivered",
    "MakeAccount",
    "OpenRound",
    "PlaceChoice",
    "PurchasesChecked",
    "ReleaseTarget",
    "RoundOpened",
    "SealWeight",
    "StorePurchases",
    "TargetReleased",
    "WeightSealed",
]

NOT_COMMITTED: Final = "the point is none that its owner committed to"
"""The dispute of a point whose path does not lead to its owner's root."""

WRONG_SCORE: Final = "the score is not the point's"
"""The dispute of a point that a wrong score was sent for."""


@dataclass(frozen=True, slots=True)
class ReleaseTarget(Computation):
    """Release the mean embedding of D_v, once; first draw the feature map if it is secret."""

    KIND: ClassVar[str] = "release-target"
    roots: Roots | None = None
    """What owners committed to, where they have to: who did not gets no map."""


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
    finer: npt.NDArray[np.float64] | None = None
    """The curator's release, if it has one of its own (`hushbid.protocol.privacy.releases.nested`)."""

    def item(self) -> Item:
        item = Event.item(self)
        # Left out if there is none, so that records from before the fields existed keep their bytes.
        absent = {name for name in ("basis", "finer") if getattr(self, name) is None}
        return item._replace(
            private={name: item.private[name] for name in item.private if name not in absent}
        )


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


@dataclass(frozen=True, slots=True)
class SealWeight(Computation):
    """Encrypt a round's weight for the owners, and sign it."""

    KIND: ClassVar[str] = "seal-weight"
    round: int
    weights: Weights


@dataclass(frozen=True, slots=True)
class WeightSealed(Event):
    """A round's broadcast, encrypted and signed."""

    KIND: ClassVar[str] = "weight-sealed"
    PUBLIC: ClassVar[tuple[str, ...]] = ("round",)
    round: int
    box: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class OpenRound(Computation):
    """Encrypt and sign a round's weight, and find the places of boxes that were bought."""

    KIND: ClassVar[str] = "open-round"
    round: int
    weights: Weights
    taken: tuple[tuple[str, int], ...]
    """Owner and number of each box that was bought, in order."""


@dataclass(frozen=True, slots=True)
class RoundOpened(Event):
    """A round's broadcast, and the places that are not to be chosen from."""

    KIND: ClassVar[str] = "round-opened"
    PUBLIC: ClassVar[tuple[str, ...]] = ("round",)
    round: int
    box: bytes
    signature: bytes
    taken: bytes
    """As `hushbid.protocol.wire.unlinked.RoundOpening` has them."""


@dataclass(frozen=True, slots=True)
class PlaceChoice(Computation):
    """Find the boxes behind chosen places."""

    KIND: ClassVar[str] = "place-choice"
    choice: Choice


@dataclass(frozen=True, slots=True)
class ChoicePlaced(Event):
    """The numbers of these boxes, in the order of the choice."""

    KIND: ClassVar[str] = "choice-placed"
    PUBLIC: ClassVar[tuple[str, ...]] = ("round",)
    round: int
    handles: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CheckAward(Computation):
    """Open the boxes of an award, compute φ of their points, and compare scores."""

    KIND: ClassVar[str] = "check-award"
    award: Award
    weights: Weights
    """The weight under which they were chosen."""
    last: bool
    """Whether this is the last round: all purchases are then compared with D_v."""


@dataclass(frozen=True, slots=True)
class MakeAccount(Computation):
    """Compute the numbers that owners are paid by, and sign them."""

    KIND: ClassVar[str] = "make-account"
    target: Target
    wins: tuple[HandedOver, ...]
    """The points that count, including wrongly scored ones if the settlement is private."""
    sold: Mapping[str, int]
    void: Mapping[str, int]
    first_weights: Weights | None
    noise: tuple[Any, ...]
    """The noise of a private settlement; empty if the settlement is exact."""


@dataclass(frozen=True, slots=True)
class AccountMade(Event):
    """The consumer's account, signed."""

    KIND: ClassVar[str] = "account-made"
    account: Account

    def item(self) -> Item:
        return Item(self.KIND, {}, {"account": dict(self.account)})

    @classmethod
    def restored(cls, fields: Mapping[str, Any]) -> AccountMade:
        return cls(Account.model_construct(**fields["account"]))
