"""The curator's record of a session: what was acquired from whom, and what went wrong.

It is private to the curator, and owners learn nothing of it: how much an owner won depends on the other
owners' data (DESIGN §3, "No feedback").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import Field
from pydantic.dataclasses import dataclass as figures

from hushbid.protocol.errors import Offence
from hushbid.protocol.figures import Figures
from hushbid.protocol.session.settling import HandedOver

__all__ = ["NOT_TOLD", "Absence", "Dispute", "Ledger", "PointFault", "Refusal"]


NOT_TOLD: Final = 0
"""Stands for a round or a number that the curator is not told."""


@dataclass(frozen=True, slots=True)
class Absence:
    """An owner that did not take part in a round."""

    round: int
    owner: str


@figures(frozen=True, slots=True)
class PointFault(Figures):
    """Points that did not match their features or their bid; their owner then counts as absent."""

    bid_round: Annotated[int, Field(alias="round")]
    """The round of the bid."""
    owner: str
    what: str
    points: int = 1
    """Number of points that it concerns: more than one where a signature of several does not hold."""

    @property
    def text(self) -> str:
        return self.what if self.points == 1 else f"{self.what} ({self.points} points)"


@dataclass(frozen=True, slots=True)
class Dispute:
    """A chosen point that the consumer disputes; only the consumer knows what is wrong with it."""

    chosen_round: int
    """The round of the choice; `NOT_TOLD` if the curator is blind."""
    owner: str
    handle: int
    """The owner's number for the point; also `NOT_TOLD` if the curator is blind."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A breach of the protocol for which the curator refused a peer."""

    round: int
    """The current round; 0 before the first."""
    peer: str
    offence: Offence


@dataclass(slots=True)
class Ledger:
    """The events of a session, in order."""

    wins: list[HandedOver] = field(default_factory=list)
    """The chosen points, in order of choice."""
    absences: list[Absence] = field(default_factory=list)
    faults: list[PointFault] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    disputes: list[Dispute] = field(default_factory=list)
    empty: Counter[str] = field(default_factory=Counter)
    """Chosen boxes of each owner that were empty; a blind curator learns this at the end."""
    points_accessed: int = 0
    """Distinct raw points handed to the curator."""
    candidates: int = 0
    """Points handed over, raw or sealed."""

    @property
    def chosen(self) -> int:
        """Number of points chosen, including disputed ones."""
        return len(self.wins) - self.empty.total()

    def sold(self) -> Mapping[str, int]:
        """Number of points bought from each owner, without disputed ones."""
        counts = Counter(win.owner for win in self.wins)
        counts.subtract(dispute.owner for dispute in self.disputes)
        counts.subtract(self.empty)
        return counts

    def by_round(self) -> Mapping[int, Sequence[HandedOver]]:
        found: dict[int, list[HandedOver]] = {}
        for win in self.wins:
            found.setdefault(win.chosen_round, []).append(win)
        return found
