"""Points on their way into the pool: in the arrays of the messages that brought them, until one is bought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hushbid.protocol.session.settling import HandedOver
from hushbid.protocol.space.grid import Features, Weights
from hushbid.protocol.wire.bids import BroughtPoints

__all__ = ["Parcel"]


@dataclass(frozen=True, slots=True, eq=False)
class Parcel:
    """What one message of an owner handed over: n points, to be compared with their bids."""

    owner: str
    rank: int
    """The owner's, among the sorted names."""
    bid_round: int
    """The round of the bids."""
    handles: Sequence[int]
    """The owner's number of each point, shape (n,)."""
    scores: Sequence[int]
    """The bid for each, in units of 2^-37."""
    weights: Weights
    """The weight under which they were bid."""
    brought: BroughtPoints
    """The points, padding after them."""

    def __len__(self) -> int:
        return len(self.handles)

    @property
    def features(self) -> Features:
        """φ of the points as it is claimed, int16 of shape (n, d)."""
        return self.brought.features[: len(self.handles)]

    def bought(self, place: int, score: int, number: int) -> HandedOver:
        """One of the points, by its place from 0, which was bought in a round for its score then."""
        return HandedOver(
            self.owner, self.bid_round, self.handles[place], score, self.brought.at(place), number
        )
