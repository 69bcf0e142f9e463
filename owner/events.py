"""What the owner's machine asks of its numerics, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from protocol.grid import Weights
from protocol.machine import Computation, Event
from protocol.messages import Candidate, SealedCandidate, candidate_of
from protocol.transcript.item import Item

__all__ = ["MapOpened", "MapRefused", "OpenMap", "ScorePoints", "Scored", "Withdraw"]


@dataclass(frozen=True, slots=True)
class OpenMap(Computation):
    """Open the secret feature map and hash all points by it."""

    KIND: ClassVar[str] = "open-map"
    LONG: ClassVar[bool] = True
    box: bytes


@dataclass(frozen=True, slots=True)
class MapOpened(Event):
    """The points are hashed."""

    KIND: ClassVar[str] = "map-opened"

    def item(self) -> Item:
        return Item(self.KIND, {}, {})


@dataclass(frozen=True, slots=True)
class MapRefused(Event):
    """The map cannot be used: its box does not open, or makes another map here than at the consumer."""

    KIND: ClassVar[str] = "map-refused"
    what: str
    advice: str

    def item(self) -> Item:
        return Item(self.KIND, {}, {"what": self.what, "advice": self.advice})


@dataclass(frozen=True, slots=True)
class ScorePoints(Computation):
    """Find the best point that is not withdrawn."""

    KIND: ClassVar[str] = "score-points"
    round: int
    weights: Weights
    handle: int
    """The number that a point gets which was not bid before: a sealed one is signed with it."""


@dataclass(frozen=True, slots=True)
class Scored(Event):
    """The best point under a round's weights; `row` is -1 if none is left, with a blank candidate."""

    KIND: ClassVar[str] = "scored"
    round: int
    row: int
    score: int
    """wᵀφ in units of 2^-37."""
    candidate: Candidate | SealedCandidate
    ephemeral: bytes
    """The secret that the box was sealed with, drawn for it alone, as noise is; empty without a box."""

    def item(self) -> Item:
        return Item(
            self.KIND,
            {"round": self.round},
            {
                "row": self.row,
                "score": self.score,
                "candidate": dict(self.candidate),
                "ephemeral": self.ephemeral,
            },
        )

    @classmethod
    def restored(cls, fields: Mapping[str, Any]) -> Self:
        return cls(**{**fields, "candidate": candidate_of(fields["candidate"])})


@dataclass(frozen=True, slots=True)
class Withdraw(Computation):
    """Bid a row no more: it has been handed over (DPDS, Algorithm 3, line 16)."""

    KIND: ClassVar[str] = "withdraw"
    HAS_OUTCOME: ClassVar[bool] = False
    row: int
