"""The curator's books of a session: what was acquired from whom, and what went wrong.

The ledger is the curator's own. Nothing of it is sent to an owner: how much an owner won depends on the
other owners' data (DESIGN §3, "No feedback").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from protocol.errors import Offence
from protocol.privacy.settlement import UNITS, worths
from protocol.space.grid import Features, Totals, Weights, features_to_float
from protocol.space.mmd import embedding_gain
from protocol.wire.messages import Candidate, SealedCandidate

__all__ = ["Absence", "Dispute", "Fault", "HandedOver", "Ledger", "Refusal", "settle", "settle_privately"]


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
    """In which it was chosen."""
    owner: str
    handle: int
    """Its owner's number of it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A breach of the protocol, for which a peer was refused."""

    round: int
    """The round that was under way; 0: none yet."""
    peer: str
    offence: Offence


@dataclass(slots=True)
class Ledger:
    """What happened, in order."""

    wins: list[HandedOver] = field(default_factory=list)
    """The chosen points, in the order in which they were chosen."""
    absences: list[Absence] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    disputes: list[Dispute] = field(default_factory=list)
    points_accessed: int = 0
    """Distinct raw points that the curator was handed."""
    candidates: int = 0
    """Points that were handed over, raw or sealed."""

    def sold(self) -> Mapping[str, int]:
        """How many points of each owner were bought, but for those that are disputed."""
        counts = Counter(win.owner for win in self.wins)
        counts.subtract(dispute.owner for dispute in self.disputes)
        return counts

    def by_round(self) -> Mapping[int, Sequence[HandedOver]]:
        """What was chosen, by the round that it was chosen in."""
        found: dict[int, list[HandedOver]] = {}
        for win in self.wins:
            found.setdefault(win.chosen_round, []).append(win)
        return found


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
