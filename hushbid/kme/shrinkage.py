"""Weights of public points from noisy coordinates: shrinkage, and the constraint of Theorem 8.

All of it is post-processing of a release, by its known noise and public values.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import minimize, minimize_scalar

from hushbid.kme.l1_ball import L1Ball, within_norm
from hushbid.protocol.runtime.blas_threads import one_blas_thread

__all__ = ["Risk", "SpanDistance", "ball_weights", "shrunk_weights"]

Points: TypeAlias = npt.NDArray[np.float64]
Vector: TypeAlias = npt.NDArray[np.float64]

LARGE_RANK: Final = 3000
"""Largest rank for which eigenvectors are computed: they take 30 times as long as a Cholesky factor."""
PENALTIES: Final = 8.0 * 32.0 ** -np.arange(7.0)
"""λ to try beyond it, down to 7·10^-9; the eigenvalues sum to at most 1."""
PROBES: Final = 32
"""Random vectors to estimate traces with beyond it."""
ITERATIONS: Final = 500
"""Maximum optimiser steps."""
WORK: Final = 2**33
"""Maximum coordinates that all of its steps read, twice each; the `FEWEST` steps are always allowed."""
FEWEST: Final = 50
"""Number of steps allowed for any size of the span."""
ONE_THREAD: Final = 2**20
"""Maximum coordinates for single-threaded BLAS: several threads would mostly wait for each other."""
SEARCHED: Final = (-40.0, 15.0)
"""Interval of ln λ."""


@dataclass(frozen=True, slots=True)
class SpanDistance:
    """Mean distance of the records' kernel functions to a span (Algorithm 1), as released.

    Attributes:
        mean: With noise.
        deviation: Standard deviation of the noise.
    """

    mean: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Risk:
    """An estimate of a squared distance.

    Attributes:
        mean: The estimate, which may be negative.
        deviation: Standard deviation of the estimate about the true squared distance.
        excess: An exactly known amount that is added to the distance.
        beside: The distance to the span, if `mean` is a distance within a span; else None.
    """

    mean: float
    deviation: float
    excess: float = 0.0
    beside: SpanDistance | None = None

    def distance(self, quantile: float) -> float:
        """The distance exceeded with the probability that a normal variable exceeds `quantile`."""
        return math.sqrt(max(0.0, self.mean + quantile * self.deviation)) + self.excess


def shrunk_weights(coordinates: Points, noisy: Vector, sigma: float, norm: float) -> tuple[Vector, Risk]:
    """Weights w that minimise ‖Σ w_m φ_m - b‖² + λM‖w - 1/M‖², λ by Stein's estimate, then ‖w‖₁ ≤ C.

    φ_m are the public points' coordinates and b the noisy ones of the data's embedding. In the eigenbasis of
    Γ = (1/M)Σφφᵀ with eigenvalues e the estimate moves from the equal weights' embedding towards b by the
    factor e/(e + λ): a Wiener filter, for a prior with independent weights around 1/M. As the noise is known,
    λ minimises Stein's unbiased estimate of the squared error, which needs b alone. The weights have a closed
    form, and mostly are within the ball; otherwise the ball's nearest are taken. Up to `LARGE_RANK`
    coordinates λ is exact, beyond it one of `PENALTIES`.

    Args:
        coordinates: Shape (M, r).
        noisy: b, shape (r,).
        sigma: Standard deviation of the noise on each of its coordinates.
        norm: C; may be infinite.

    Returns:
        Weights, shape (M,), with `math.fsum` of their magnitudes at most C; and Stein's estimate of the
        squared distance between their embedding and the data's within the span.
    """
    count, rank = coordinates.shape
    off = noisy - coordinates.mean(axis=0)
    with _threads(coordinates):
        covariance = coordinates.T @ coordinates
        covariance /= count
        filtered = _by_eigenvectors if rank <= LARGE_RANK else _by_factors
        moved, estimate = filtered(covariance, off, sigma)
    weights = 1.0 / count + coordinates @ moved / count
    if float(np.abs(weights).sum()) <= norm:
        return within_norm(weights, norm), estimate
    shrunk = weights @ coordinates
    weights = ball_weights(coordinates, shrunk, norm, start=weights)
    excess = float(np.linalg.norm(weights @ coordinates - shrunk))
    return weights, Risk(estimate.mean, estimate.deviation, excess)


def _by_eigenvectors(covariance: Points, off: Vector, sigma: float) -> tuple[Vector, Risk]:
    """(Γ + λ)⁻¹ times `off`, with the λ of least estimated risk, and that estimate. Overwrites Γ."""
    values, vectors = eigh(covariance, overwrite_a=True, check_finite=False, driver="evd")
    spectrum = np.maximum(values, np.finfo(np.float64).tiny)
    off = vectors.T @ off

    def risk(log_penalty: float) -> float:
        kept = spectrum / (spectrum + math.exp(log_penalty))
        return float(np.sum(((1.0 - kept) * off) ** 2) + sigma**2 * (2.0 * kept.sum() - len(off)))

    # The estimate may have several minima: the best of a grid, then the minimum around it.
    grid = np.linspace(*SEARCHED, 111)
    best = float(grid[int(np.argmin([risk(point) for point in grid]))])
    step = float(grid[1] - grid[0])
    log_penalty = float(minimize_scalar(risk, bounds=(best - step, best + step), method="bounded").x)
    penalty = math.exp(log_penalty)
    # The estimate less the loss is Σ 2(1 - k)θz + (1 - 2k)(z² - σ²), z the noise and k = e/(e + λ).
    kept = spectrum / (spectrum + penalty)
    signal = np.maximum(off**2 - sigma**2, 0.0)
    terms = 4.0 * (1.0 - kept) ** 2 * sigma**2 * signal + 2.0 * (1.0 - 2.0 * kept) ** 2 * sigma**4
    deviation = math.sqrt(float(terms.sum()))
    return vectors @ (off / (spectrum + penalty)), Risk(risk(log_penalty), deviation)


def _by_factors(covariance: Points, off: Vector, sigma: float) -> tuple[Vector, Risk]:
    """The same with the best of `PENALTIES`, by a Cholesky factor of Γ + λ for each.

    With Q = λ(Γ + λ)⁻¹, which is 1 - k in each eigendirection, the sums over these are ‖Q·off‖², tr Q and
    tr Q² = ‖Q‖². The traces are means of vᵀQv and ‖Qv‖² over `PROBES` vectors v of random signs (Hutchinson
    1990): of 10,000 directions their standard deviation is 25 at most, and less the nearer Q is to 0 or 1.
    """
    rank = len(off)
    probes = np.random.default_rng(0).choice([-1.0, 1.0], (rank, PROBES))
    columns = np.column_stack([off, probes])

    def solved(penalty: float) -> tuple[Vector, Risk]:
        shifted = covariance.copy()
        shifted.flat[:: rank + 1] += penalty
        # It is symmetric: LAPACK may read it by columns, and overwrite it without another copy.
        factor = cho_factor(shifted.T, overwrite_a=True, check_finite=False)
        found = cho_solve(factor, columns, check_finite=False)
        rest, parts = penalty * found[:, 0], penalty * found[:, 1:]
        missed = float(rest @ rest)
        trace, squares = float(np.vdot(probes, parts)) / PROBES, float(np.vdot(parts, parts)) / PROBES
        signal = max(missed - sigma**2 * squares, 0.0)
        variance = 4.0 * sigma**2 * signal + 2.0 * sigma**4 * (4.0 * squares - 4.0 * trace + rank)
        mean = missed + sigma**2 * (rank - 2.0 * trace)
        return found[:, 0], Risk(mean, math.sqrt(max(variance, 0.0)))

    return min((solved(penalty) for penalty in PENALTIES), key=lambda found: found[1].mean)


def ball_weights(coordinates: Points, target: Vector, norm: float, *, start: Vector) -> Vector:
    """Weights with ‖w‖₁ ≤ C that minimise ‖Σ w_m φ_m - target‖ (KME Theorem 8), by L-BFGS-B.

    Args:
        coordinates: φ, shape (M, r).
        target: Shape (r,).
        norm: C.
        start: Weights to begin with, shape (M,), within the ball or not.

    Returns:
        Shape (M,).
    """
    ball = L1Ball(len(coordinates), norm)

    def objective(shares: Vector) -> tuple[float, Vector]:
        rest = ball.weights(shares) @ coordinates - target
        return float(rest @ rest), ball.pull_back(shares, 2.0 * (coordinates @ rest))

    steps = min(ITERATIONS, max(FEWEST, WORK // coordinates.size))
    with _threads(coordinates):
        found = minimize(
            objective,
            ball.shares(start),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, math.inf)] * ball.size,
            options={"maxiter": steps, "maxcor": 20, "ftol": 1e-14, "gtol": 0.0},
        ).x
    return within_norm(ball.weights(found), norm)


def _threads(coordinates: Points) -> AbstractContextManager[Any]:
    return one_blas_thread() if coordinates.size <= ONE_THREAD else nullcontext()
