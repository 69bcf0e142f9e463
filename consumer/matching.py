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
from hushbid.consumer.matching_solvers import TOLERANCE, Matrix, by_gradients, by_landmarks
from hushbid.protocol import ranges
from hushbid.protocol.config.party import RIDGE
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.intervals import within
from hushbid.protocol.space.mmd import Points, Vector, kernel_block, kernel_matrix, kernel_means

__all__ = ["MOST_POINTS", "TOLERANCE", "Matching", "check_ridge", "effective_points", "match"]

MOST_POINTS: Final = 50_000
"""Most points that are weighed: time and memory grow with their number, and time with its square."""
_FEW: Final = 2_000
"""Most points that are weighed by gradients alone."""
_HELD: Final = 6_000
"""Most points whose kernel values are held, at 8 bytes a pair: 288 MB."""


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
    if not within(ranges.Ridge, ridge):
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
    comes with a bound on its distance from the minimum (`hushbid.consumer.matching_solvers`). Up to 6,000
    points the kernel's values are held; of more they are computed in blocks wherever they are needed.

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
        widest = 4.0 * np.square(points - points.mean(axis=0)).sum(axis=1).max()
    if not (np.isfinite(cross).all() and math.isfinite(widest)):
        raise DataError(
            "The points cannot be weighed: some point lies too far from the others.",
            advice="Leave out points that are not within the session's public bounds.",
        )
    objective = cross
    if labels is not None:
        objective = (1.0 - labels.strength) * cross + labels.strength * labels.cross
        groups = groups or labels.groups()
    parts = groups or (Group(np.arange(len(points)), 1.0),)
    if len(points) > _HELD:
        weights, within, gap = by_landmarks(_Blocks(points, gamma, labels), objective, ridge, parts)
    else:
        kernel = kernel_matrix(points, gamma)
        if labels is not None:
            labels.add_to(kernel)
        if len(points) > _FEW:
            weights, within, gap = by_landmarks(_Held(kernel), objective, ridge, parts)
        else:
            weights, within, gap = by_gradients(kernel, objective, ridge, parts)
    constant = float(kernel_means(wanted, wanted, gamma).mean())
    square = float(weights @ within)
    if labels is not None:  # MMD² is of features alone
        square = (square - labels.strength * labels.square(weights)) / (1.0 - labels.strength)
    distance = square - 2.0 * float(weights @ cross) + constant
    strength = 0.0 if labels is None else labels.strength
    return Matching(weights, ridge, square, max(0.0, distance), gap, strength)


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """K in memory."""

    values: Matrix

    def times(self, weights: Vector) -> Vector:
        return np.asarray(self.values @ weights)

    def columns(self, rows: npt.NDArray[np.intp]) -> Matrix:
        return self.values[:, rows]


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """K computed where it is needed: a product takes the columns of points that have weight."""

    points: Points
    gamma: float
    labels: LabelPart | None

    def times(self, weights: Vector) -> Vector:
        rows = np.flatnonzero(weights)
        found = kernel_means(self.points, self.points[rows], self.gamma, weights=weights[rows])
        return found if self.labels is None else self.labels.mixed(found, self.labels.times(weights))

    def columns(self, rows: npt.NDArray[np.intp]) -> Matrix:
        found = kernel_block(self.points, self.points[rows], self.gamma)
        if self.labels is None:
            return found
        return self.labels.mixed(found, self.labels.similar(np.arange(len(self.points)), rows))
