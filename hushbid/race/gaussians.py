"""Gaussian classes from the counts of a sketch of each: post-processing, which costs no privacy.

A row of an `L2Family` is a histogram of the points' projections on a public direction. For Gaussian points
these are Gaussian too, with the mean a·μ and the variance aᵀΣa, so the share of each cell has a closed form.
Means and covariances are fitted to all noisy counts at once, weighted by the noise of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular
from scipy.special import ndtr

from hushbid.protocol.space.lsh import Points, StableFamily, squared_lengths
from hushbid.protocol.space.lsh.projection import ExactProjection

__all__ = ["FULL_COLUMNS", "GaussianPrior", "Gaussians", "Scores", "fit_own", "fit_shared", "parameter_count"]

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

FULL_COLUMNS: Final = 16
"""Maximum columns with fitted covariances; with more, only variances are fitted."""
_MISFIT: Final = 0.1
"""Points are not Gaussian: the expected error of a cell's share p is this times √p."""
_OWN_DEVIATION: Final = 0.3
"""Prior standard deviation of a class's own mean and factor about the shared ones, in deviations."""
_LEAST_VARIANCE: Final = 1e-4
"""Added to each variance before densities are computed, in the points' unit squared."""
_STEPS: Final = 40
_TRIES: Final = 8
_ENOUGH: Final = 1e-4
"""A fit ends at a step that lowers its objective by less than this share."""


def parameter_count(columns: int) -> int:
    """The number of parameters of a mean and a covariance."""
    return columns * (columns + 3) // 2 if columns <= FULL_COLUMNS else 2 * columns


@dataclass(frozen=True, eq=False)
class Gaussians:
    """A normal law for each of K classes.

    Attributes:
        means: float64 of shape (K, columns).
        factors: Lower triangular L with the covariance LLᵀ, shape (K, columns, columns).
    """

    means: Reals
    factors: Reals


@dataclass(frozen=True, eq=False)
class GaussianPrior:
    """The prior of a fit: public, or released before.

    Attributes:
        means: Means of the classes, shape (K, columns).
        mean_deviation: Standard deviation of each of their coordinates.
        factor: Factor of the shared covariance, shape (columns, columns).
        factor_deviation: Standard deviation of each of its entries.
    """

    means: Reals
    mean_deviation: float
    factor: Reals
    factor_deviation: float


def fit_shared(
    family: StableFamily,
    counts: Sequence[Whole],
    sizes: Sequence[float],
    variance: float,
    prior: GaussianPrior,
) -> tuple[Gaussians, Reals]:
    """Fit classes of one covariance to sketches of the same hash functions, by weighted least squares.

    Args:
        family: The hash functions, of power 1, whose rows do not spread codes.
        counts: Counts of each class, as `Sketch.counts`.
        sizes: Size of each class, positive.
        variance: Variance of the noise on a cell.
        prior: As above.

    Returns:
        The classes, and E[EEᵀ] of the error E of their factor L, shape (columns, columns).
    """
    model = _Projected(family)
    columns, classes = family.columns, len(sizes)

    def problem(parameters: Reals, weights: Reals | None) -> _Problem:
        means, entries = np.split(parameters, [classes * columns])
        given = [None] * classes if weights is None else np.split(weights, classes)
        terms = [
            model.problem(mean, entries, table, size, variance, weight)
            for mean, table, size, weight in zip(
                means.reshape(classes, columns), counts, sizes, given, strict=True
            )
        ]
        return _joined(terms, columns, len(parameters))

    entries = model.entries(prior.factor)
    start = np.concatenate([prior.means.ravel(), entries])
    deviations = np.full(len(start), prior.factor_deviation)
    deviations[: classes * columns] = prior.mean_deviation
    found, curvature = _minimise(problem, start, deviations)
    means, entries = np.split(found, [classes * columns])
    factor = np.broadcast_to(model.factor(entries), (classes, columns, columns))
    known = np.asarray(np.linalg.inv(curvature)[classes * columns :, classes * columns :])
    return Gaussians(means.reshape(classes, columns), factor), model.factor_error(known)


def fit_own(
    family: StableFamily,
    counts: Sequence[Whole],
    sizes: Sequence[float],
    variance: float,
    shared: Gaussians,
) -> Gaussians:
    """Fit classes with a covariance each, about the shared one; arguments and classes as of `fit_shared`."""
    model, columns = _Projected(family), family.columns
    means, factors = [], []
    for number, (table, size) in enumerate(zip(counts, sizes, strict=True)):

        def problem(
            parameters: Reals, weights: Reals | None, table: Whole = table, size: float = size
        ) -> _Problem:
            return model.problem(parameters[:columns], parameters[columns:], table, size, variance, weights)

        factor = shared.factors[number]
        lengths = np.sqrt(np.square(factor).sum(axis=1))
        spread = np.concatenate([lengths, lengths[model.index[0]]]) * _OWN_DEVIATION
        start = np.concatenate([shared.means[number], model.entries(factor)])
        found, _ = _minimise(problem, start, spread)
        means.append(found[:columns])
        factors.append(model.factor(found[columns:]))
    return Gaussians(np.array(means), np.array(factors))


@dataclass(frozen=True, slots=True)
class _Problem:
    """Weighted squares of residuals at some parameters, and half of their downward gradient and curvature."""

    weights: Reals
    squares: float
    slope: Reals
    curvature: Reals


class _Projected:
    """Shares of a normal law in the cells of each row, and their derivatives.

    Derivatives of all cells of a row are combinations of two, by the mean and by the standard deviation of
    its projection. So sums over cells are taken first, and products are of rows alone.
    """

    def __init__(self, family: StableFamily) -> None:
        self.columns = family.columns
        self.directions = family.directions[:, 0]
        self.starts = np.concatenate([[0], np.cumsum(family.cells)])[:-1]
        self.row = np.repeat(np.arange(family.rows), family.cells)
        code = np.arange(len(self.row)) - self.starts[self.row]
        self.lower = family.edges[self.row, 0] + code
        self.first, self.last = code == 0, code == family.cells[self.row] - 1
        full = family.columns <= FULL_COLUMNS
        self.index = np.tril_indices(family.columns) if full else np.diag_indices(family.columns)

    def entries(self, factor: Reals) -> Reals:
        return np.asarray(factor[self.index])

    def factor(self, entries: Reals) -> Reals:
        factor = np.zeros((self.columns, self.columns))
        factor[self.index] = entries
        return factor

    def factor_error(self, covariance: Reals) -> Reals:
        """E[EEᵀ] of an error E of a factor, from the covariance of its entries."""
        rows, columns = self.index
        error = np.zeros((self.columns, self.columns))
        first, second = np.nonzero(columns[:, None] == columns)
        np.add.at(error, (rows[first], rows[second]), covariance[first, second])
        return error

    def problem(
        self,
        mean: Reals,
        entries: Reals,
        counts: Whole,
        size: float,
        variance: float,
        weight: Reals | None,
    ) -> _Problem:
        turned = self.directions @ self.factor(entries)
        deviations = np.sqrt(np.square(turned).sum(axis=1) + 1e-6)
        deviation = deviations[self.row]
        low = (self.lower - (self.directions @ mean)[self.row]) / deviation
        high = low + 1.0 / deviation
        # The bounds enclose all points: the outermost cells have the tails.
        below, above = np.where(self.first, 0.0, ndtr(low)), np.where(self.last, 1.0, ndtr(high))
        height_low = np.where(self.first, 0.0, np.exp(-0.5 * low**2) / math.sqrt(2.0 * math.pi))
        height_high = np.where(self.last, 0.0, np.exp(-0.5 * high**2) / math.sqrt(2.0 * math.pi))
        share = above - below
        by_mean = (height_low - height_high) / deviation * size
        by_deviation = (low * height_low - high * height_high) / deviation * size

        residual = counts - size * share
        if weight is None:
            weight = 1.0 / (variance + size * share + (_MISFIT * size) ** 2 * share + 1.0)
        stretch = self.directions[:, self.index[0]] * turned[:, self.index[1]] / deviations[:, None]
        weighted = weight * residual
        slope = np.concatenate(
            [self._sums(weighted * by_mean) @ self.directions, self._sums(weighted * by_deviation) @ stretch]
        )
        across = self.directions.T @ (self._sums(weight * by_mean * by_deviation)[:, None] * stretch)
        curvature = np.block(
            [
                [self.directions.T @ (self._sums(weight * by_mean**2)[:, None] * self.directions), across],
                [across.T, stretch.T @ (self._sums(weight * by_deviation**2)[:, None] * stretch)],
            ]
        )
        return _Problem(weight, float(weighted @ residual), slope, curvature)

    def _sums(self, values: Reals) -> Reals:
        """Sums over each row's cells."""
        return np.asarray(np.add.reduceat(values, self.starts))


def _joined(terms: Sequence[_Problem], columns: int, parameters: int) -> _Problem:
    """The problem of all classes, with own means and one factor."""
    slope, curvature = np.zeros(parameters), np.zeros((parameters, parameters))
    for number, term in enumerate(terms):
        places = np.r_[number * columns : (number + 1) * columns, len(terms) * columns : parameters]
        slope[places] += term.slope
        curvature[np.ix_(places, places)] += term.curvature
    weights = np.concatenate([term.weights for term in terms])
    return _Problem(weights, math.fsum(term.squares for term in terms), slope, curvature)


def _minimise(
    problem: Callable[[Reals, Reals | None], _Problem], start: Reals, deviations: Reals
) -> tuple[Reals, Reals]:
    """Parameters by Levenberg and Marquardt's method from the prior's mean, and the curvature there.

    Weights follow from the parameters, but stay during a step, or a fit could gain by making them small.
    """
    precision = 1.0 / deviations**2
    place, damping = start.copy(), 1e-3
    here = problem(place, None)
    for _ in range(_STEPS):
        off = place - start
        slope = here.slope - precision * off
        curvature = here.curvature + np.diag(precision)
        value = here.squares + float(precision @ off**2)
        for _ in range(_TRIES):
            step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), slope)
            there = problem(place + step, here.weights)
            gained = value - there.squares - float(precision @ (off + step) ** 2)
            if gained > 0.0:
                damping = max(damping / 5.0, 1e-9)
                break
            damping *= 5.0
        else:
            break
        place = place + step
        here = problem(place, None)
        if gained < _ENOUGH * value:
            break
    return place, here.curvature + np.diag(precision)


class Scores:
    """Log densities of points under Gaussian classes, up to a constant.

    They are the same to the last bit whichever points are scored together: projections are exact, and squares
    are added sequentially. So a record changes no other record's class in the ballot.

    Args:
        classes: The laws.
        reach: Largest |coordinate| of a point.
    """

    def __init__(self, classes: Gaussians, reach: float) -> None:
        identity = np.eye(classes.means.shape[1])
        self._projections, self._centres, self._logs = [], [], []
        for mean, factor in zip(classes.means, classes.factors, strict=True):
            factor = cholesky(factor @ factor.T + _LEAST_VARIANCE * identity, lower=True)
            inverse = solve_triangular(factor, identity, lower=True)
            self._projections.append(ExactProjection(inverse, reach=reach))
            self._centres.append(inverse @ mean)
            self._logs.append(float(np.log(np.diag(factor)).sum()))

    def __call__(self, points: Points) -> Reals:
        """Log densities, shape (n, K), of points of shape (n, columns)."""
        return np.stack(
            [
                -0.5 * squared_lengths(projection.of(points) - centre) - log
                for projection, centre, log in zip(self._projections, self._centres, self._logs, strict=True)
            ],
            axis=1,
        )
