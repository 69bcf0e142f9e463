"""The current round of a curator's session."""

from __future__ import annotations

from dataclasses import dataclass, field

from hushbid.protocol.space.grid import Weights
from hushbid.protocol.wire.messages import Broadcast, SealedBroadcast

__all__ = ["Round"]


@dataclass(slots=True)
class Round:
    """The current round, made anew each time. Whatever outlives a round is in a `Seat` or the ledger."""

    number: int
    """Counted from 1; 0 before the first round."""
    weights: Weights | None = None
    """The broadcast weight; None until it is computed, and always at a blind curator."""
    message: Broadcast | SealedBroadcast | None = None
    """The broadcast; None until it exists."""
    awaited: set[str] = field(default_factory=set)
    """Connected owners that have this round's broadcast and have not answered it."""
    overdue: bool = False
    """Whether the time for bids is over: nobody waits for missing bids any more."""
    paused: bool = False
    """Whether the round is paused until enough owners are here."""
    time_over: bool = False
    """Whether the clock has ended the round: no owner is asked any more."""
    stage: int = 0
    """Number of times that the rule has chosen whom to ask."""
    asked: tuple[str, ...] = ()
    """Owners asked in the last stage."""
    obtained: set[str] = field(default_factory=set)
    """Owners whose point of this round is in the pool."""
