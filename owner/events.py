"""The owner's requests to its numerics, and the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from hushbid.protocol.machine.machine import Computation, Event
from hushbid.protocol.privacy.releases.aim import Aim
from hushbid.protocol.space.grid import Weights
from hushbid.protocol.wire.messages import (
    Candidate,
    Candidates,
    SealedCandidate,
    SealedCandidates,
    candidate_of,
)
from hushbid.protocol.wire.values import Item

__all__ = [
    "NOTHING",
    "BlindScored",
    "BroadcastRefused",
    "CommitRows",
    "MapOpened",
    "MapRefused",
    "OpenMap",
    "RowsCommitted",
    "ScoreBlind",
    "ScorePoints",
    "Scored",
    "Withdraw",
]

NOTHING: Final = -1
"""Stands for a row where a box is empty."""


@dataclass(frozen=True, slots=True)
class CommitRows(Computation):
    """Make the tree over all rows, and sign its root."""

    KIND: ClassVar[str] = "commit-rows"
    LONG: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class RowsCommitted(Event):
    """What the owner commits to (`hushbid.protocol.wire.committed.Commitment`)."""

    KIND: ClassVar[str] = "rows-committed"
    PUBLIC: ClassVar[tuple[str, ...]] = ("root", "signature")
    root: bytes
    signature: bytes


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
    aim: Aim | None = None
    """What a submission is to come to; None: the best points are to be found."""


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
    """The ephemeral secrets of the boxes, recorded as noise is: one for all if they are numbered, else one
    each; empty without boxes.
    """

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
    """Stop bidding rows: they have been handed over (DPDS, Algorithm 3, line 16)."""

    KIND: ClassVar[str] = "withdraw"
    HAS_OUTCOME: ClassVar[bool] = False
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ScoreBlind(Computation):
    """Open a broadcast, seal the best remaining points, and score every point sent so far."""

    KIND: ClassVar[str] = "score-blind"
    round: int
    box: bytes
    signature: bytes
    handle: int
    """The number of the first new box."""


@dataclass(frozen=True, slots=True)
class BlindScored(Event):
    """The bid made under a broadcast."""

    KIND: ClassVar[str] = "blind-scored"
    PUBLIC: ClassVar[tuple[str, ...]] = ("round",)
    round: int
    weights: Weights
    """The content of the broadcast."""
    rows: tuple[int, ...]
    """Rows of the points in the new boxes, best first; -1 for an empty box."""
    boxes: bytes
    scores: bytes
    """Masked scores of all boxes so far."""
    digests: bytes
    signature: bytes
    ephemeral: bytes
    """The ephemeral secrets of the boxes, as in `Scored`; the transcript records them as it records noise."""


@dataclass(frozen=True, slots=True)
class BroadcastRefused(Event):
    """A broadcast is not the consumer's, or holds no weight of this session."""

    KIND: ClassVar[str] = "broadcast-refused"
    what: str
    advice: str
