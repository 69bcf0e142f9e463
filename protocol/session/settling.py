"""The numbers that owners are paid by: exact, by the released target; or private, by a separate release.

The party that sees the features of the bought points computes them: the curator, or the consumer under the
rule `blind`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol.privacy.settlement import UNITS, worths
from hushbid.protocol.space.grid import Totals, Weights, features_to_float
from hushbid.protocol.space.mmd import Vector, embedding_gain
from hushbid.protocol.wire.messages import Candidate, SealedCandidate

__all__ = ["Disputed", "HandedOver", "additions", "settle", "settle_privately"]


Disputed: TypeAlias = Collection[tuple[int, str, int]]
"""Points that the consumer disputes: round of the choice, owner, its number. They count in S, unpaid."""


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A point that an owner handed over, from its arrival to its delivery."""

    owner: str
    bid_round: int
    """The round of its bid."""
    handle: int
    """Its owner's number for it."""
    score: int
    """In units of 2^-37: the bid, under the weight of `bid_round`. After the choice, under the weight of
    `chosen_round`.
    """
    candidate: Candidate | SealedCandidate
    chosen_round: int = 0
    """The round of its choice; 0 if it was not chosen yet."""

    def is_in(self, disputed: Disputed) -> bool:
        """Whether the consumer disputes it."""
        return (self.chosen_round, self.owner, self.handle) in disputed


def additions(
    wins: Sequence[HandedOver], seed_total: Totals, seed_size: int, seed_weight: float
) -> Iterator[tuple[HandedOver, Vector, Vector, float]]:
    """Each point in the order of the rounds: its φ, and the mean and the size of the summary before it."""
    total = seed_weight * features_to_float(seed_total)
    size = seed_weight * seed_size
    for win in wins:
        features = features_to_float(win.candidate.features)
        yield win, features, total / size, size
        total = total + features
        size += 1


def settle(
    wins: Sequence[HandedOver],
    disputed: Disputed,
    owners: tuple[str, ...],
    target: np.ndarray[tuple[int], np.dtype[np.float64]],
    seed_total: Totals,
    seed_size: int,
    seed_weight: float = 1.0,
) -> Mapping[str, float]:
    """Each owner's share: the sum of its points' marginal gains in the released g̃ (DPDS §2, incentives).

    Gains use the *released* target in J: exact ones are linear in φ(D_v) and would reveal it.

    Args:
        wins: In the order of the rounds.
        owners: All owners, winners or not.
        target: g̃, shape (d,).
        seed_total: Σφ(D_init) in units of 2^-15.
        seed_size: |D_init|.
        seed_weight: s, the weight of a seed point relative to a bought one.

    Returns:
        Per owner, the sum of J(S+x) - J(S) over its points; without unit (J is a squared kernel distance).
    """
    values = dict.fromkeys(owners, 0.0)
    for win, features, mean, size in additions(wins, seed_total, seed_size, seed_weight):
        if not win.is_in(disputed):
            values[win.owner] += embedding_gain(target, mean, size, features)
    return values


def settle_privately(
    wins: Sequence[HandedOver],
    disputed: Disputed,
    owners: tuple[str, ...],
    weights: Weights | None,
    noise: npt.NDArray[np.int64],
) -> Mapping[str, float]:
    """The worth of each owner's points, with noise; `hushbid.protocol.privacy.settlement` has the proof.

    Integer arithmetic up to the division by 2^15, which is exact. The arguments are those of `settle`, in any
    order of the wins, and a dispute depends on the point only, never on earlier ones.

    Args:
        weights: The first broadcast's, shape (d,); None if there was none, and so no wins.
        noise: A value for each owner, in order, int64 of shape (len(owners),).

    Returns:
        Per owner, in points. May be negative.
    """
    totals = dict(zip(owners, noise.tolist(), strict=True))
    if weights is not None:
        paid = [win for win in wins if not win.is_in(disputed)]
        for win, worth in zip(paid, worths([win.candidate.features for win in paid], weights), strict=True):
            totals[win.owner] += worth
    return {owner: total / UNITS for owner, total in totals.items()}
