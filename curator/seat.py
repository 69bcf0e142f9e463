"""What the curator knows of one owner during a session."""

from __future__ import annotations

from dataclasses import dataclass, field

from hushbid.protocol.space.grid import Weights
from hushbid.protocol.wire.bids import PointBid
from hushbid.protocol.wire.messages import Commitment

__all__ = ["Seat"]


@dataclass(slots=True)
class Seat:
    """The state of one owner."""

    rank: int
    """Its position among the sorted names, which breaks the last ties of the total order."""
    enrolled: bool = False
    """Whether it has enrolled, and has hashed its points if the feature map is secret."""
    committed: bool = False
    """Whether it committed to its rows, in time or too late."""
    commitment: Commitment | None = None
    """What it committed to in time, where owners have to."""
    mapped: bool = False
    """Whether it was sent the secret map."""
    connected: bool = False
    broadcast: int = 0
    """Round of the broadcast that it has not answered; 0 if none."""
    parts: int = 0
    """Messages of its answer that came so far (`Session.messages`)."""
    weights: Weights | None = None
    """The weight of that broadcast, or of its last bid."""
    bid: PointBid | None = None
    """Its last bid."""
    late: bool = False
    """Whether its last bid came after bidding had closed."""
    asked: int = 0
    """Number of the candidate that it was asked for and has not sent; 0 if none."""
    faulty: bool = False
    """Whether one of its points did not match: it then counts as absent, and is not told."""
    out: bool = False
    """Whether it missed a round of a session that buys a point once: it then counts as absent."""
    times: dict[int, int] = field(default_factory=dict)
    """Candidate number → number of rounds in which it was bid."""
    handed_over: set[int] = field(default_factory=set)
    """Numbers of the candidates that it handed over; it bids none of them again."""

    @property
    def busy(self) -> bool:
        """Whether it owes an answer, and so is sent nothing further."""
        return bool(self.broadcast or self.asked)

    @property
    def free(self) -> bool:
        """Whether it can be sent a broadcast."""
        return self.enrolled and self.connected and not self.busy and not self.out

    def has_bid(self, round_number: int) -> bool:
        """Whether its bid for that round came while bidding was open."""
        return self.bid is not None and self.bid.round == round_number and not self.late
