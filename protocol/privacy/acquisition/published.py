"""`published`: the private auction of DPDS, Algorithm 3, as printed. Not differentially private."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from hushbid.protocol import ranges
from hushbid.protocol.privacy.acquisition.base import AcquisitionRule, BidStanding, Noise
from hushbid.protocol.privacy.noise import Draw
from hushbid.protocol.privacy.registry import Parameters

__all__ = ["Published", "PublishedParameters"]


class PublishedParameters(Parameters):
    """Keys of the published auction."""

    epsilon: ranges.Epsilon = 0.5
    """ε_auc of Algorithm 3, line 13."""
    tau: ranges.Count | None = None
    """A point that was its owner's best τ times is asked for (line 14); None: ⌈K^(2/3)⌉ (Theorem 6)."""

    def tau_among(self, owners: int) -> int:
        """τ for K owners."""
        return self.tau if self.tau is not None else math.ceil(owners ** (2 / 3) - 1e-9)

    def in_force(self, *, columns: int, owners: int) -> Self:
        """The keys with τ filled in; see `Parameters.in_force`."""
        return self.model_copy(update={"tau": self.tau_among(owners)})


class Published(AcquisitionRule):
    """Rank i is asked with probability exp(-ε_auc·(i-1)), and every point that was bid τ times is asked for.

    **Not differentially private at any ε**: the probability of not being asked is 0 at rank 1 and
    1-exp(-ε_auc) at rank 2, an infinite ratio (docs/errata.md). The rule exists for reproduction, and as a
    control that an audit must reject. The curator sees about p/ε_auc + pK/τ raw points.
    """

    name = "published"
    Parameters = PublishedParameters
    private = False
    candidate_with_bid = False
    one_at_a_time = "Algorithm 3 ranks one bid of each owner, and its figures are of one point a round"
    even_owners = "Algorithm 3 ranks bids by their scores, and every owner has one in every round"
    exact = True
    learns = "whether it was asked, which tells its rank: not differentially private at any ε"

    def __init__(self, parameters: PublishedParameters, *, owners: int, rounds: int, delta: float) -> None:
        super().__init__(parameters, owners=owners, rounds=rounds, delta=delta)
        self.epsilon = parameters.epsilon
        self.tau = parameters.tau_among(owners)

    @property
    def expected_points(self) -> float:
        """p/ε_auc + p·K/τ."""
        return self.rounds / self.epsilon + self.rounds * self.owners / self.tau

    def draws(self) -> tuple[Draw, ...]:
        """A coin per rank."""
        return (Draw("uniform", 1.0, self.owners),)

    def ask(
        self, stage: int, standings: Sequence[BidStanding], obtained: frozenset[str], noise: Noise
    ) -> tuple[str, ...]:
        """Lines 13 and 14, once a round. Equal bids have equal ranks, so the best is always asked for.

        The printed algorithm assumes that every owner answers. If the best bidder is gone, the next one has
        the best bid and is asked, so that the best available point is obtained in every round.
        """
        if stage > 0:
            best = standings[0].score if standings else 0
            return tuple(s.owner for s in standings if s.score == best and s.owner not in obtained)
        (coins,) = noise
        asked = []
        rank = 0
        for place, standing in enumerate(standings):
            if place and standing.score < standings[place - 1].score:
                rank = place
            if standing.times >= self.tau or coins[place] < math.exp(-self.epsilon * rank):
                asked.append(standing.owner)
        return tuple(asked)
