"""The curator's requests to its numerics, and the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hushbid.curator.parcels import Parcel
from hushbid.curator.verification import UncheckedBid
from hushbid.protocol.machine.machine import Computation, Event
from hushbid.protocol.space.grid import Features

__all__ = [
    "BidsChecked",
    "CandidatesChecked",
    "CheckBids",
    "CheckCandidates",
    "DestroyBoxes",
]


@dataclass(frozen=True, slots=True)
class CheckCandidates(Computation):
    """Recompute φ of points handed over, or check the signatures of sealed ones."""

    KIND: ClassVar[str] = "check-candidates"
    parcels: tuple[Parcel, ...]


@dataclass(frozen=True, slots=True)
class CandidatesChecked(Event):
    """The results of the last `CheckCandidates`, point by point in its order."""

    KIND: ClassVar[str] = "candidates-checked"
    features: Features | None
    """φ of the points as computed here, int16 of shape (n, d); None if they are sealed."""
    signed: tuple[bool, ...]
    """Whether its owner signed each point; all True if points are not sealed."""


@dataclass(frozen=True, slots=True)
class CheckBids(Computation):
    """Check that owners signed their boxes and scores."""

    KIND: ClassVar[str] = "check-bids"
    entries: tuple[UncheckedBid, ...]


@dataclass(frozen=True, slots=True)
class BidsChecked(Event):
    """The results of the last `CheckBids`, in its order."""

    KIND: ClassVar[str] = "bids-checked"
    PUBLIC: ClassVar[tuple[str, ...]] = ("round",)
    held: tuple[bool, ...]
    round: int = 0
    """The last round of any bid checked; it tells rounds apart in a redacted transcript."""


@dataclass(frozen=True, slots=True)
class DestroyBoxes(Computation):
    """Destroy all boxes: the consumer has the chosen ones, or there will be no delivery."""

    KIND: ClassVar[str] = "destroy-boxes"
    HAS_OUTCOME: ClassVar[bool] = False
