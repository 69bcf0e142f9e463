"""The curator's knowledge of one owner while a session runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from protocol.space.grid import Weights
from protocol.wire.messages import PointBid

__all__ = ["Seat"]


@dataclass(slots=True)
class Seat:
    """One owner's standing."""

    rank: int
    """Its position among the sorted names: the last resort of the total order."""
    enrolled: bool = False
    """Whether it has come, and, where the feature map is secret, has hashed its points."""
    mapped: bool = False
    """Whether it was sent the secret map."""
    connected: bool = False
    broadcast: int = 0
    """Round of the broadcast that it has not answered, 0: none."""
    weights: Weights | None = None
    """The weight of that broadcast, or of its last bid."""
    bid: PointBid | None = None
    """Its last bid."""
    late: bool = False
    """Its last bid came after its round's bidding had closed."""
    asked: int = 0
    """Number of the candidate that it was asked for and has not sent, 0: none."""
    faulty: bool = False
    """One of its points did not match: it counts as absent from then on, and is not told."""
    out: bool = False
    """It missed a round of a session that buys a point once: it counts as absent from then on."""
    times: dict[int, int] = field(default_factory=dict)
    """Per candidate number, in how many rounds it was bid."""
    handed_over: set[int] = field(default_factory=set)
    """Numbers of the candidates that it has handed over: none of them is bid again."""

    @property
    def busy(self) -> bool:
        """Whether an answer is due from it, so that it is sent nothing further."""
        return bool(self.broadcast or self.asked)

    @property
    def free(self) -> bool:
        """Whether it can be sent a broadcast."""
        return self.enrolled and self.connected and not self.busy and not self.out

    def has_bid(self, round_number: int) -> bool:
        """Whether its bid for that round came while bids were taken."""
        return self.bid is not None and self.bid.round == round_number and not self.late
