"""The curator's books of a session: what was acquired from whom, and what went wrong.

The ledger is the curator's own. Nothing of it is sent to an owner: how much an owner won depends on the
other owners' data (DESIGN §3, "No feedback").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from protocol.errors import Offence
from protocol.session.settling import HandedOver

__all__ = ["NOT_TOLD", "Absence", "Dispute", "Fault", "Ledger", "Refusal"]


NOT_TOLD: Final = 0
"""In the place of a round or a number that nobody tells."""


@dataclass(frozen=True, slots=True)
class Absence:
    """An owner that did not take part in a round."""

    round: int
    owner: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A point that did not match its features or its bid; its owner counts as absent from then on."""

    bid_round: int
    """In which it was bid."""
    owner: str
    what: str


@dataclass(frozen=True, slots=True)
class Dispute:
    """A chosen point that the consumer disputes: what is wrong with it, the consumer knows."""

    chosen_round: int
    """In which it was chosen; `NOT_TOLD` where the curator is blind."""
    owner: str
    handle: int
    """Its owner's number of it, likewise."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A breach of the protocol, for which a peer was refused."""

    round: int
    """The round that was under way; 0: none yet."""
    peer: str
    offence: Offence


@dataclass(slots=True)
class Ledger:
    """The events of a session, in order."""

    wins: list[HandedOver] = field(default_factory=list)
    """The chosen points, in the order in which they were chosen."""
    absences: list[Absence] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    disputes: list[Dispute] = field(default_factory=list)
    empty: Counter[str] = field(default_factory=Counter)
    """Chosen boxes of each owner that hold nothing: a blind curator is told at the end."""
    points_accessed: int = 0
    """Distinct raw points that the curator was handed."""
    candidates: int = 0
    """Points that were handed over, raw or sealed."""

    @property
    def chosen(self) -> int:
        """How many points were chosen, with those that are disputed."""
        return len(self.wins) - self.empty.total()

    def sold(self) -> Mapping[str, int]:
        """How many points of each owner were bought, without disputed ones."""
        counts = Counter(win.owner for win in self.wins)
        counts.subtract(dispute.owner for dispute in self.disputes)
        counts.subtract(self.empty)
        return counts

    def by_round(self) -> Mapping[int, Sequence[HandedOver]]:
        """The chosen points, by the round in which they were chosen."""
        found: dict[int, list[HandedOver]] = {}
        for win in self.wins:
            found.setdefault(win.chosen_round, []).append(win)
        return found
