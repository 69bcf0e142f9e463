"""An acquisition rule from outside the package: every bidder is asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hushbid.protocol.privacy.acquisition import AcquisitionRule, BidStanding, register_rule


@register_rule
class EveryBidder(AcquisitionRule):
    """All bidders are asked at once, whatever others bid: an ask tells an owner only that it has bid."""

    name = "every-bidder"
    private = True
    candidate_with_bid = False
    one_at_a_time = "an ask is for the one point that was bid"
    exact = True
    learns = "nothing"

    def ask(
        self,
        stage: int,
        standings: Sequence[BidStanding],
        obtained: frozenset[str],
        noise: tuple[npt.NDArray[np.float64], ...],
    ) -> tuple[str, ...]:
        return tuple(standing.owner for standing in standings) if stage == 0 else ()
