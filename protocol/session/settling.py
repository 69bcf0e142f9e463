"""The numbers that owners are paid by: exact, by the released target, or private, by a release of its own.

The party that sees the features of the bought points computes it: the curator, and under the rule `blind` the
consumer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from protocol.privacy.settlement import UNITS, worths
from protocol.space.grid import Features, Totals, Weights, features_to_float
from protocol.space.mmd import embedding_gain
from protocol.wire.messages import Candidate, SealedCandidate

__all__ = ["HandedOver", "settle", "settle_privately"]


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A point that an owner handed over, from its coming to its delivery."""

    owner: str
    bid_round: int
    """In which it was bid."""
    handle: int
    """Its owner's number of it."""
    score: int
    """In units of 2^-37, under the weight of `bid_round`: what was bid. Once it is chosen, under that of
    `chosen_round`."""
    candidate: Candidate | SealedCandidate
    chosen_round: int = 0
    """In which it was chosen; 0: in none yet."""


def settle(
    wins: list[HandedOver],
    disputed: Collection[tuple[int, str, int]],
    owners: tuple[str, ...],
    target: np.ndarray[tuple[int], np.dtype[np.float64]],
    seed_total: Totals,
    seed_size: int,
    seed_weight: float = 1.0,
) -> Mapping[str, float]:
    """Each owner's share: the sum of its points' marginal gains in the released g̃ (DPDS §2, incentives).

    Gains are of J with the *released* target: exact ones are linear in φ(D_v) and would give it away.

    Args:
        wins: In the order of the rounds.
        disputed: (round, owner, its number) of points that the consumer disputes: they stand in S, unpaid.
        owners: All owners, winners or not.
        target: g̃, shape (d,).
        seed_total: Σφ(D_init) in units of 2^-15.
        seed_size: |D_init|.
        seed_weight: s, what a point of the seed set counts for beside one that was bought.

    Returns:
        Per owner, the sum of J(S+x) - J(S) over its points; no unit (J is a squared kernel distance).
    """
    values = dict.fromkeys(owners, 0.0)
    total = seed_weight * features_to_float(seed_total)
    size = seed_weight * seed_size
    for win in wins:
        features = _value(win.candidate.features)
        if (win.chosen_round, win.owner, win.handle) not in disputed:
            values[win.owner] += embedding_gain(target, total / size, size, features)
        total = total + features
        size += 1
    return values


def settle_privately(
    wins: list[HandedOver],
    disputed: Collection[tuple[int, str, int]],
    owners: tuple[str, ...],
    weights: Weights | None,
    noise: npt.NDArray[np.int64],
) -> Mapping[str, float]:
    """Each owner's points by worth, with noise: `protocol.privacy.settlement`, which has the proof.

    Whole numbers up to the division by 2^15, which is exact.

    Args:
        wins: In any order.
        disputed: As in `settle`. The consumer disputes a point for what it is, never for what came before it.
        owners: All owners, winners or not.
        weights: The first broadcast's, shape (d,); None: there was none, and so no wins.
        noise: A value for each owner, in their order, int64 of shape (len(owners),).

    Returns:
        Per owner, in points. May be negative.
    """
    totals = dict(zip(owners, noise.tolist(), strict=True))
    if weights is not None:
        paid = [win for win in wins if (win.chosen_round, win.owner, win.handle) not in disputed]
        for win, worth in zip(paid, worths([win.candidate.features for win in paid], weights), strict=True):
            totals[win.owner] += worth
    return {owner: total / UNITS for owner, total in totals.items()}


def _value(features: Features) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return features_to_float(features)
