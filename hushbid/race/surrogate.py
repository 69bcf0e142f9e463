"""The model of a regression sketch: the slope with the smallest surrogate loss (RACE §4); post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from hushbid.protocol.space.lsh import AsymmetricFamily, Points
from hushbid.race.marginals import Marginals
from hushbid.race.reference import fit_reference, in_ball, parameter_count
from hushbid.race.sketch import Sketch

__all__ = ["CELLS", "SurrogateLine", "SurrogateLoss", "fit_surrogate"]

CELLS: Final = 4
"""Cells of a row: the signs of two projections."""
_LARGEST_SLOPE: Final = 4.0
"""Largest slope of a standardised column on another in the search."""


@dataclass(frozen=True, eq=False)
class SurrogateLine:
    """A linear model of standardised columns, from a sketch.

    Attributes:
        slope: Shape (features,).
        means: Means of the scaled columns, the target last: shape (features + 1,).
        loss: The least loss found, in the target's deviations squared.
        trust: The share of the rows' departures from the reference that noise does not explain; 1 without a
            reference.
    """

    slope: npt.NDArray[np.float64]
    means: npt.NDArray[np.float64]
    loss: float
    trust: float


def fit_surrogate(
    marginals: Marginals, family: AsymmetricFamily, sketch: Sketch, *, scale: float, assisted: bool
) -> SurrogateLine:
    """Minimise the surrogate of a sketch over slopes, without derivatives (COBYQA).

    Args:
        marginals: Of features and target, by which columns were standardised.
        family: The sketch's hash functions.
        sketch: Of the standardised columns times `scale`, in the unit ball.
        scale: Factor of the standardised columns.
        assisted: Whether a reference is fitted, so that rows estimate only how the data differ from it.
    """
    shares = sketch.table.reshape(family.rows, CELLS) / sketch.points
    means, start, points = marginals.means, np.zeros(family.columns - 1), None
    trust, beyond = 1.0, shares
    if assisted:
        # A contrast ½·(±c₁ ± c₂ ± c₃ ± c₄)/N: the noise of a cell, and a sampling error of at most ½/√N.
        noise = 0.0 if sketch.privacy is None else sketch.privacy.cell_variance
        variance = noise / sketch.points**2 + 0.25 / sketch.points
        reference = fit_reference(marginals, family, shares, scale=scale, deviation=math.sqrt(variance))
        beyond = shares - reference.shares
        # A fit absorbs one share of the noise for each parameter.
        left = 1.0 - parameter_count(family.columns - 1) / (3 * family.rows)
        agreement = beyond[:, 0] + beyond[:, -1]
        trust = max(0.0, 1.0 - max(left, 0.0) * variance / float(np.mean(agreement**2)))
        centre = reference.points.mean(axis=0)
        means = means + marginals.deviations * centre
        # About their mean: an intercept takes that part of the residuals away.
        points = in_ball((reference.points - centre) * scale)
        start = reference.slope
    loss = SurrogateLoss(family, trust * beyond, points, scale)
    found = minimize(
        loss,
        np.clip(start, -_LARGEST_SLOPE, _LARGEST_SLOPE),
        method="COBYQA",
        bounds=[(-_LARGEST_SLOPE, _LARGEST_SLOPE)] * len(start),
        options={"initial_tr_radius": 0.1, "final_tr_radius": 1e-3},
    )
    return SurrogateLine(found.x, means, float(found.fun), trust)


@dataclass(frozen=True, eq=False)
class SurrogateLoss:
    """Estimated mean squared residual of a slope, in the target's deviations.

    Calling it gives that of one slope, shape (features,).

    Attributes:
        family: The hash functions.
        table: The data's share of each cell of each row, less that of the reference points if there are any:
            shape (rows, 4).
        points: Reference points in the unit ball, or None.
        scale: Factor of the standardised columns.
    """

    family: AsymmetricFamily
    table: npt.NDArray[np.float64]
    points: Points | None
    scale: float

    def __call__(self, slope: npt.NDArray[np.float64]) -> float:
        query = np.append(slope, -1.0)
        cells = self.family.hash_queries(np.stack([query, -query]))
        collisions = self.table[np.arange(self.family.rows), cells].sum(axis=0).mean()
        length = float(np.linalg.norm(query))
        if self.points is None:
            excess = collisions - 0.5
        else:
            angles = np.arcsin(np.clip(self.points @ query / length, -1.0, 1.0))
            excess = collisions + 2.0 * float(np.mean(angles**2)) / math.pi**2
        return float(excess) * (length / self.scale) ** 2 * math.pi**2 / 2.0
