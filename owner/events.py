"""What the owner's machine asks of its numerics, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from protocol.grid import Weights
from protocol.machine import Computation, Event
from protocol.messages import Candidate
from protocol.transcript.item import Item

__all__ = ["ScorePoints", "Scored", "Withdraw"]


@dataclass(frozen=True, slots=True)
class ScorePoints(Computation):
    """Find the best point that is not withdrawn."""

    KIND: ClassVar[str] = "score-points"
    round: int
    weights: Weights


@dataclass(frozen=True, slots=True)
class Scored(Event):
    """The best point under a round's weights; `row` is -1 if none is left, with a blank candidate."""

    KIND: ClassVar[str] = "scored"
    round: int
    row: int
    score: int
    """wᵀφ in units of 2^-37."""
    candidate: Candidate

    def item(self) -> Item:
        candidate = self.candidate
        return Item(
            self.KIND,
            {"round": self.round},
            {
                "row": self.row,
                "score": self.score,
                "candidate": {
                    "point": candidate.point,
                    "features": candidate.features,
                    "attributes": candidate.attributes,
                },
            },
        )


@dataclass(frozen=True, slots=True)
class Withdraw(Computation):
    """Bid a row no more: it has been handed over (DPDS, Algorithm 3, line 16)."""

    KIND: ClassVar[str] = "withdraw"
    row: int
