"""Weights that make bought points resemble D_v: kernel mean matching (Huang et al. 2007, eq. 3).

The consumer alone computes them, from D_v and its purchase. Nobody else learns them, so they cost no privacy
(docs/privacy.md, "Weights").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.consumer.balance import Group
from hushbid.consumer.label_part import LabelPart
from hushbid.protocol.config.party import RIDGE
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.space.mmd import Points, Vector, kernel_matrix, kernel_means

__all__ = ["MOST_POINTS", "TOLERANCE", "Matching", "check_ridge", "effective_points", "match"]

TOLERANCE: Final = 1e-7
"""Largest accepted distance of the objective from its minimum."""
MOST_POINTS: Final = 16_000
"""Most points that are weighed; the kernel values of more take over 2 GB."""
_MOST_STEPS: Final = 5_000


@dataclass(frozen=True, slots=True, eq=False)
class Matching:
    """Weights of points, and their quality.

    Attributes:
        weights: Non-negative with sum 1; float64, shape (n,).
        ridge: λ.
        square: Σ wᵢwⱼ·k(xᵢ, xⱼ).
        mmd2: Biased MMD² of the weighted points against D_v.
        gap: Upper bound on the distance of the objective from its minimum (`match`).
        label_weight: Strength of labels beside features (`hushbid.consumer.label_part`); 0: there were none.
    """

    weights: Vector
    ridge: float
    square: float
    mmd2: float
    gap: float
    label_weight: float = 0.0

    @property
    def effective_points(self) -> float:
        return effective_points(self.weights)


def effective_points(weights: Vector) -> float:
    """1/Σw² of weights with sum 1: how many equal ones have the same variance (Kish 1965)."""
    return float(1.0 / (weights @ weights))


def check_ridge(ridge: float) -> None:
    """Raise `ConfigError` if λ is negative or not finite."""
    if not (math.isfinite(ridge) and ridge >= 0.0):
        raise ConfigError(
            f"The ridge of the weights is {ridge}.",
            advice="Set 0 or more: 1 takes validation points for a sample, 0 fits its noise too.",
        )


def match(
    points: Points,
    wanted: Points,
    gamma: float,
    *,
    ridge: float = RIDGE,
    groups: Sequence[Group] = (),
    labels: LabelPart | None = None,
) -> Matching:
    """Minimise ‖Σ wᵢφ(xᵢ) - mean of φ over `wanted`‖² + λ‖w‖² over w ≥ 0 with Σw = 1.

    φ is the exact kernel's, with labels that of both kernels together. The objective is convex, so every w
    comes with a bound on its distance from the
    minimum: ∇f(w)ᵀw - minᵢ ∇f(w)ᵢ; with groups, the minimum is the sum of the groups' minima times their
    shares (Frank and Wolfe 1956; Jaggi 2013, eq. 2). The steps are projected gradient steps with momentum
    (Beck and Teboulle 2009), which restarts when it leads uphill (O'Donoghue and Candès 2015). They end when
    the bound is `TOLERANCE`. The bound holds whatever the steps do.

    Args:
        points: Scaled, shape (n, columns), n at most `MOST_POINTS`.
        wanted: Scaled, shape (m, columns).
        ridge: λ.
        groups: Sets of points whose weights have a fixed sum; empty: all points together, with sum 1, less
            those that `labels` take for unwanted.
        labels: What labels add to the objective; None: nothing.

    Raises:
        ConfigError: λ is negative or not finite.
        DataError: A set is empty, the numbers of columns differ, there are too many points, or points are so
            far apart that their distances are not finite.
    """
    check_ridge(ridge)
    if len(points) > MOST_POINTS:
        raise DataError(
            f"{len(points)} points are too many to be weighed: at most {MOST_POINTS} are.",
            advice="Weigh a part of them (`hushbid weigh`).",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        cross = kernel_means(points, wanted, gamma)
        kernel = kernel_matrix(points, gamma)
    if not (np.isfinite(cross).all() and np.isfinite(kernel).all()):
        raise DataError(
            "The points cannot be weighed: some point lies too far from the others.",
            advice="Leave out points that are not within the session's public bounds.",
        )
    objective = cross
    if labels is not None:
        labels.add_to(kernel)
        objective = (1.0 - labels.strength) * cross + labels.strength * labels.cross
        groups = groups or labels.groups()
    parts = groups or (Group(np.arange(len(points)), 1.0),)
    weights, within, gap = _least(kernel, objective, ridge, parts)
    constant = float(kernel_means(wanted, wanted, gamma).mean())
    square = float(weights @ within)
    if labels is not None:  # MMD² is of features alone
        square = (square - labels.strength * labels.square(weights)) / (1.0 - labels.strength)
    distance = square - 2.0 * float(weights @ cross) + constant
    strength = 0.0 if labels is None else labels.strength
    return Matching(weights, ridge, square, max(0.0, distance), gap, strength)


def _least(
    kernel: npt.NDArray[np.float64], cross: Vector, ridge: float, groups: Sequence[Group]
) -> tuple[Vector, Vector, float]:
    """Minimise wᵀKw - 2·crossᵀw + λ‖w‖² over w ≥ 0 with each group's share; return w, K·w and the gap."""
    # No eigenvalue exceeds the largest row sum (Gershgorin), as kernel values are not negative.
    most = float(kernel.sum(axis=1).max()) + ridge
    curvature = min(most, _curvature(kernel) + ridge)
    weights = np.zeros(len(kernel))
    for rows, share in groups:
        weights[rows] = share / len(rows)
    within = kernel @ weights
    ahead, ahead_within, momentum, gap = weights, within, 1.0, math.inf
    for _ in range(_MOST_STEPS):
        slope = ahead_within - cross + ridge * ahead
        while True:
            found = _in_shares(ahead - slope / curvature, groups)
            found_within = kernel @ found
            step = found - ahead
            bend = step @ (found_within - ahead_within) + ridge * (step @ step)
            if curvature >= most or bend <= curvature * (step @ step):
                break
            curvature = min(most, 2.0 * curvature)
        gradient = 2.0 * (found_within - cross + ridge * found)
        least = math.fsum(share * gradient[rows].min() for rows, share in groups)
        gap = max(0.0, float(gradient @ found - least))
        if gap <= TOLERANCE:
            return found, found_within, gap
        if (ahead - found) @ (found - weights) > 0.0:
            momentum, ahead, ahead_within = 1.0, found, found_within
        else:
            later = (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
            share = (momentum - 1.0) / later
            ahead = found + share * (found - weights)
            ahead_within = found_within + share * (found_within - within)
            momentum = later
        weights, within = found, found_within
    return weights, within, gap


def _curvature(kernel: npt.NDArray[np.float64]) -> float:
    """Estimate the largest eigenvalue of K among vectors of sum 0, like steps; steps correct it."""
    vector = np.cos(np.arange(len(kernel), dtype=np.float64))
    largest = 0.0
    for _ in range(8):
        vector = vector - vector.mean()
        length = float(np.linalg.norm(vector))
        if length == 0.0:
            break
        vector = vector / length
        image = kernel @ vector
        largest = float(vector @ image)
        vector = image
    return max(1.1 * largest, 1e-12)


def _in_shares(values: Vector, groups: Sequence[Group]) -> Vector:
    """The nearest w ≥ 0 that has each group's share."""
    nearest = np.zeros_like(values)
    for rows, share in groups:
        if share > 0.0:
            nearest[rows] = _on_simplex(values[rows], share)
    return nearest


def _on_simplex(values: Vector, share: float) -> Vector:
    """The nearest w ≥ 0 with this sum (Held, Wolfe and Crowder 1974)."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - share) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    nearest = np.maximum(values - excess[last], 0.0)
    return np.asarray(share * (nearest / nearest.sum()))
