"""What each owner's points are worth to the consumer, by exact kernels; it never leaves the consumer.

Owners play the game v(C) = MMD²(D_init, D_v) - MMD²(C's points, D_v), with v(∅) = 0: the gain from a
coalition C if nobody else had sold. Without a seed set the first term is ‖mean of φ over D_v‖², and v(C) =
‖mean of φ over D_v‖² - MMD²(C's points, D_v). All values are functions of D_v without noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.space.mmd import Points, Vector, kernel_means

__all__ = [
    "MOST_EXACT",
    "OwnerValue",
    "PurchaseGame",
    "Valuation",
    "exact_shapley",
    "sampled_shapley",
    "value",
]

MOST_EXACT: Final = 12
"""Most owners for whom all coalitions are evaluated: 4,096 coalitions."""

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class OwnerValue:
    """What an owner's points are worth.

    Attributes:
        points: Number of points it sold.
        gain: Its part of v(all), independent of any order (`hushbid.protocol.session.statement`); the parts
            add up to v(all).
        left_out: v(all) - v(all but this owner): the loss without it. These have no meaningful sum.
        shapley: Its Shapley value: the average of v(C with it) - v(C) over all orders of owners. The values
            add up to v(all).
        shapley_error: Standard error of `shapley`; 0 if all coalitions were evaluated.
    """

    points: int
    gain: float
    left_out: float
    shapley: float
    shapley_error: float


@dataclass(frozen=True, slots=True)
class Valuation:
    """The value of a purchase, and each owner's part.

    Attributes:
        total: v(all).
        owners: Each owner that sold a point → its values, in the order of names.
        orders: Number of orders drawn for the Shapley values; 0 if all coalitions were evaluated.
    """

    total: float
    owners: Mapping[str, OwnerValue]
    orders: int


@dataclass(frozen=True, slots=True)
class PurchaseGame:
    """Everything that the game depends on, for K owners.

    Attributes:
        counts: Number of points of each owner, shape (K,).
        pairs: Sum of kernel values between the points of each pair of owners, shape (K, K).
        wanted: Sum over an owner's points of the mean kernel value to D_v, shape (K,).
        start: Value for the empty coalition: MMD²(D_init, D_v), or `spread`.
        spread: ‖mean of φ over D_v‖².
    """

    counts: Vector
    pairs: Matrix
    wanted: Vector
    start: float
    spread: float

    def worth(self, coalition: Sequence[int]) -> float:
        """v(C) of a coalition, given by owner indices."""
        if not len(coalition):
            return 0.0
        places = np.asarray(coalition)
        count = self.counts[places].sum()
        inside = self.pairs[np.ix_(places, places)].sum()
        return float(self.start - (inside / count**2 - 2.0 * self.wanted[places].sum() / count + self.spread))

    def marginals(self, order: npt.NDArray[np.intp]) -> Vector:
        """The marginal gain of each owner after those before it in an order, shape (K,), in that order."""
        pairs = self.pairs[np.ix_(order, order)]
        inside = np.cumsum(2.0 * np.tril(pairs, -1).sum(axis=1) + np.diagonal(pairs))
        count = np.cumsum(self.counts[order])
        cross = np.cumsum(self.wanted[order])
        worth = self.start - (inside / count**2 - 2.0 * cross / count + self.spread)
        return np.diff(worth, prepend=0.0)


def exact_shapley(worth: Callable[[Sequence[int]], float], owners: int) -> Vector:
    """Shapley values from v of all 2^K coalitions of owner indices (Shapley 1953); K must be small."""
    everybody = range(owners)
    values = np.zeros(owners)
    for size in everybody:
        weight = math.factorial(size) * math.factorial(owners - size - 1) / math.factorial(owners)
        for coalition in combinations(everybody, size):
            before = worth(coalition)
            for owner in set(everybody).difference(coalition):
                values[owner] += weight * (worth((*coalition, owner)) - before)
    return values


def sampled_shapley(
    marginals: Callable[[npt.NDArray[np.intp]], Vector],
    owners: int,
    *,
    pairs: int,
    generator: np.random.Generator,
) -> tuple[Vector, Vector]:
    """Shapley values and their standard errors, as means over drawn orders and their reverses.

    An order and its reverse are one draw: their errors partly cancel (Castro et al. 2009; Mitchell et al.
    2022, antithetic sampling). The marginals of each order add up to v(all), and so do the means.

    Args:
        marginals: Marginal gain of each owner after those before it, in the order's positions.
        owners: K.
        pairs: Number of drawn orders, at least 2.
    """
    total, squares = np.zeros(owners), np.zeros(owners)
    for _ in range(pairs):
        order = generator.permutation(owners)
        drawn = np.zeros(owners)
        for each in (order, order[::-1]):
            drawn[each] += marginals(each) / 2.0
        total += drawn
        squares += drawn**2
    mean = total / pairs
    variance = np.maximum(squares / pairs - mean**2, 0.0) * pairs / (pairs - 1)
    return mean, np.sqrt(variance / pairs)


def value(
    points: Points,
    sellers: Sequence[str],
    wanted: Points,
    seeds: Points | None,
    gamma: float,
    *,
    pairs: int,
    seed: int,
) -> Valuation:
    """Compute the value of each owner's points.

    The owners are put in an order that depends on their points, and on their names only where points are
    equal, so that renaming owners changes no value.

    Args:
        points: The bought points, scaled, shape (n, columns), n ≥ 1.
        sellers: The seller of each point.
        wanted: D_v, scaled.
        seeds: D_init, scaled; None if there is none.
        pairs: Number of drawn orders, each with its reverse, if more than `MOST_EXACT` owners sold.
    """
    owners = np.asarray(sellers)
    held = {name: points[owners == name] for name in set(sellers)}
    names = sorted(held, key=lambda name: (held[name].tobytes(), name))
    stacked = np.concatenate([held[name] for name in names])
    counts = np.array([len(held[name]) for name in names])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    # One column of sums for each owner's points: no kernel matrix of all points is held.
    columns = [kernel_means(stacked, held[name], gamma) * len(held[name]) for name in names]
    sums = np.add.reduceat(np.stack(columns, axis=1), starts, axis=0)
    cross = np.add.reduceat(kernel_means(stacked, wanted, gamma), starts)
    spread = float(kernel_means(wanted, wanted, gamma).mean())
    start, to_seeds, seeds_own, seeds_wanted = spread, np.zeros(len(names)), 0.0, 0.0
    if seeds is not None:
        to_seeds = np.add.reduceat(kernel_means(stacked, seeds, gamma), starts)
        seeds_own = float(kernel_means(seeds, seeds, gamma).mean())
        seeds_wanted = float(kernel_means(seeds, wanted, gamma).mean())
        start = seeds_own - 2.0 * seeds_wanted + spread
    purchase = PurchaseGame(counts.astype(np.float64), (sums + sums.T) / 2.0, cross, start, spread)
    everybody = list(range(len(names)))
    whole, count = purchase.worth(everybody), len(points)
    # J's slope halfway from the seed set's mean to the bought points', 2μ_V - μ_0 - μ_S, summed by owner.
    slope = 2.0 * cross - to_seeds - purchase.pairs.sum(axis=1) / count
    at_start = 2.0 * seeds_wanted - seeds_own - float(to_seeds.sum()) / count
    gains = (slope - counts * at_start) / count
    if len(names) <= MOST_EXACT:
        shapley, errors, orders = exact_shapley(purchase.worth, len(names)), np.zeros(len(names)), 0
    else:
        generator = np.random.default_rng(seed)
        shapley, errors = sampled_shapley(purchase.marginals, len(names), pairs=pairs, generator=generator)
        orders = 2 * pairs
    found = {}
    for place in sorted(everybody, key=names.__getitem__):
        others = [each for each in everybody if each != place]
        found[names[place]] = OwnerValue(
            int(counts[place]),
            float(gains[place]),
            whole - purchase.worth(others),
            float(shapley[place]),
            float(errors[place]),
        )
    return Valuation(whole, found, orders)
