"""`winner-only`: only the owner of the best bid is asked. Not private."""

from __future__ import annotations

from collections.abc import Sequence

from hushbid.protocol.privacy.acquisition.base import AcquisitionRule, BidStanding, Noise

__all__ = ["WinnerOnly"]


class WinnerOnly(AcquisitionRule):
    """The winner is asked for its point, and so learns that it won (DPDS §3, way a).

    The curator sees p raw points. **Not private**: who wins depends on everybody's data.
    """

    name = "winner-only"
    private = False
    candidate_with_bid = False
    one_at_a_time = "who is asked follows from its owner's best bid alone"
    exact = True
    learns = "in every round, whether its own bid was the best: not private"

    @property
    def expected_points(self) -> float:
        """p, plus the bids of equal score."""
        return float(self.rounds)

    def ask(
        self, stage: int, standings: Sequence[BidStanding], obtained: frozenset[str], noise: Noise
    ) -> tuple[str, ...]:
        """The best bidder; if its point does not arrive or does not match its bid, the next one.

        Bids of equal score are asked for together: only the points show which is first in the total order.
        """
        if obtained or not standings:
            return ()
        best = standings[0].score
        return tuple(standing.owner for standing in standings if standing.score == best)
