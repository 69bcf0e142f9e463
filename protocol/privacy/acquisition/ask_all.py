"""`ask-all`: every owner hands over its best new point every round."""

from __future__ import annotations

from collections.abc import Sequence

from hushbid.protocol.privacy.acquisition.base import AcquisitionRule, BidStanding, Noise

__all__ = ["AskAll"]


class AskAll(AcquisitionRule):
    """The point comes with the bid, so nobody is asked and no owner learns anything (DPDS §3, way b).

    The curator sees up to K·p raw points, each once. This suits a few owners who trust the curator.
    """

    name = "ask-all"
    private = True
    candidate_with_bid = True
    exact = True
    learns = "nothing"

    def ask(
        self, stage: int, standings: Sequence[BidStanding], obtained: frozenset[str], noise: Noise
    ) -> tuple[str, ...]:
        """Ask nobody: the points have arrived with the bids."""
        return ()
