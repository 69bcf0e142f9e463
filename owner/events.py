"""The owner's requests to its numerics, and the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from protocol.machine.machine import Computation, Event
from protocol.space.grid import Weights
from protocol.wire.messages import Candidate, Candidates, SealedCandidate, SealedCandidates, candidate_of
from protocol.wire.values import Item

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


@dataclass(frozen=True, slots=True)
class MapRefused(Event):
    """The map cannot be used: its box does not open, or it gives other features here than at the consumer."""

    KIND: ClassVar[str] = "map-refused"
    what: str
    advice: str


@dataclass(frozen=True, slots=True)
class ScorePoints(Computation):
    """Find the best points that are not withdrawn: one, or a whole batch."""

    KIND: ClassVar[str] = "score-points"
    round: int
    weights: Weights
    handle: int
    """The number given to a point that was not bid before; the signature of a sealed point covers it. In a
    batch, it is the first such point's number, and the others' numbers follow.
    """


@dataclass(frozen=True, slots=True)
class Scored(Event):
    """The best points under a round's weights, best first, with blanks where too few remain."""

    KIND: ClassVar[str] = "scored"
    round: int
    rows: tuple[int, ...]
    """Rows of the remaining points; at most as many as fit in a bid."""
    scores: tuple[int, ...]
    """wᵀφ of each in units of 2^-37."""
    handed: Candidate | SealedCandidate | Candidates | SealedCandidates
    """One point where a round buys one, otherwise the whole padded batch."""
    ephemeral: bytes
    """The ephemeral secrets of the boxes, one per box, recorded as noise is; empty without boxes."""

    def item(self) -> Item:
        if isinstance(self.handed, Candidate | SealedCandidate):
            row, score = (self.rows[0], self.scores[0]) if self.rows else (-1, 0)
            found: dict[str, Any] = {"row": row, "score": score, "candidate": dict(self.handed)}
        else:
            found = {"rows": self.rows, "scores": self.scores, "candidates": dict(self.handed)}
        return Item(self.KIND, {"round": self.round}, {**found, "ephemeral": self.ephemeral})

    @classmethod
    def restored(cls, fields: Mapping[str, Any]) -> Self:
        if "candidate" in fields:
            there = fields["row"] >= 0
            return cls(
                fields["round"],
                (fields["row"],) if there else (),
                (fields["score"],) if there else (),
                candidate_of(fields["candidate"]),
                fields["ephemeral"],
            )
        kind = SealedCandidates if "boxes" in fields["candidates"] else Candidates
        return cls(
            fields["round"],
            tuple(fields["rows"]),
            tuple(fields["scores"]),
            kind.model_construct(**fields["candidates"]),
            fields["ephemeral"],
        )


@dataclass(frozen=True, slots=True)
class Withdraw(Computation):
    """Stop bidding a row: it has been handed over (DPDS, Algorithm 3, line 16)."""

    KIND: ClassVar[str] = "withdraw"
    HAS_OUTCOME: ClassVar[bool] = False
    row: int
