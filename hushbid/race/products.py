"""Noisy sums of products, and the linear model that they give (Wang 2018, Algorithm 2: AdaSSP).

Each record is a vector z of D numbers: standardised features, 1 and the standardised target. All of it is
multiplied by c = min(1, √(B/‖z‖²)), with B = `reach(D)`: a weight of the record in the least squares, which
moves no line. What remains is cut to whole multiples of 2^-BITS, towards 0, which shortens it: q. The release
is the sum over the records of

    u(q) = (DIAGONAL·q_i² for each i, OFF_DIAGONAL·q_i·q_j for each i < j),  D(D + 1)/2 whole numbers,

with discrete noise on each.

*Claim.* With b = 4^BITS·B·(1 + 2^-40), `sensitivity` bounds what a record changes:

| neighbours | L1 | L2 |
|---|---|---|
| `add-remove-one` | b·(3.5·D + 1.5) | 5·b |
| `substitute-one` | twice that | √2 times that |

*Proof.* Scaling by c has a relative error of (D + 8)·2^-52 at most, so that ‖q‖² ≤ b for D up to 4,000. Let
s = ‖q‖² and f = Σq_i⁴ ≤ s². As ‖q‖₁² ≤ D·s,

    ‖u‖₁ = 5s + 7(‖q‖₁² - s)/2 ≤ (3.5·D + 1.5)·s,  ‖u‖₂² = 25f + 49(s² - f)/2 = 24.5s² + 0.5f ≤ 25s².

A substitution changes u(q) to u(r): ‖u(q) - u(r)‖₁ is at most the sum of both. In squares it is ‖u(q)‖² +
‖u(r)‖² - 2u(q)·u(r), and u(q)·u(r) = 24.5(q·r)² + 0.5Σq_i²r_i² is not negative. ∎

7/5 is just below √2: with it the squares are as noisy, beside the products, as in a symmetric matrix whose
noise is the same in all directions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.privacy.accounting import ApproximateCost, Cost, DiscreteGaussianCost, gaussian_sigma
from hushbid.protocol.privacy.noise import Draw, NoiseSource
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.space.lsh import Points, squared_lengths
from hushbid.race.release import RaceCalibration, SketchPrivacy, check_noise

__all__ = [
    "Line",
    "Products",
    "calibrate_products",
    "fewest_points",
    "fit_line",
    "measure_products",
    "reach",
    "sensitivity",
    "whole_vectors",
]

Whole = npt.NDArray[np.int64]

BITS: Final = 12
"""Bits of a coordinate behind the binary point."""
DIAGONAL: Final = 5
OFF_DIAGONAL: Final = 7
LEAST_REACH: Final = 4.0
"""Smallest B: with few columns a smaller one would move most records, whose weights also depend on the
target."""

LARGEST_NOISE: Final = 0.125
"""Noise of a covariance, times √features, over the number of points, up to which a line is worth it. With 14
features models at 0.12 had 0.4 to 0.9 of the mean's error, and models at 0.3 had 0.9 to 1.2 of it
(docs/race.md)."""
_FLOOR: Final = 2.0
"""Smallest eigenvalue used as a divisor, in noise·√features: about the largest one of the noise."""
_CAUTION: Final = 1.0
"""Number of standard errors subtracted from an estimated gain."""
_PENALTIES: Final = np.geomspace(1e-4, 1e2, 61)
_CHUNK: Final = 2**15
"""Records whose products are summed at a time, exactly in float64: see `_sums`."""


def reach(coordinates: int) -> float:
    """B, the largest squared length of a record's vector of that dimension: about half of the mean."""
    return max(LEAST_REACH, coordinates / 2.0)


def sensitivity(coordinates: int, neighbours: Neighbours) -> tuple[float, float]:
    """The largest change of the sum by one record: L1 and L2, in units of the whole numbers (above).

    Args:
        coordinates: D.
        neighbours: The datasets that are compared.
    """
    square = 4.0**BITS * reach(coordinates) * (1.0 + 2.0**-40)
    twice = Neighbours(neighbours) is Neighbours.SUBSTITUTE_ONE
    return (
        (2.0 if twice else 1.0) * square * (3.5 * coordinates + 1.5),
        (math.sqrt(2.0) if twice else 1.0) * square * DIAGONAL * (1.0 + 2.0**-40),
    )


def calibrate_products(
    coordinates: int, *, neighbours: Neighbours, epsilon: float, delta: float = 0.0
) -> RaceCalibration:
    """The noise with which the sums are (ε, δ)-differentially private.

    With δ = 0 it is discrete Laplace noise for the L1 sensitivity; with δ > 0 that or discrete Gaussian noise
    for the L2 sensitivity, whichever has the smaller variance.

    Args:
        coordinates: D.
        neighbours: The datasets that the guarantee compares.
        epsilon: Positive.
        delta: In [0, 1).

    Raises:
        ConfigError: A value out of its range, or noise that does not fit into 64 bits.
    """
    one, two = sensitivity(coordinates, neighbours)
    values = coordinates * (coordinates + 1) // 2
    scale = one / epsilon
    while one / scale > epsilon:
        scale = math.nextafter(scale, math.inf)
    draw = Draw("discrete-laplace", scale, values)
    cost: Cost = ApproximateCost(epsilon=one / scale, delta=0.0, count=1)
    if delta > 0.0:
        sigma = gaussian_sigma(epsilon, delta, two, 1, values)
        gaussian = Draw("discrete-gaussian", sigma, values)
        if gaussian.variance < draw.variance:
            draw = gaussian
            cost = DiscreteGaussianCost(sensitivity=two, sigma=sigma, width=values, count=1)
    return RaceCalibration(neighbours, delta, draw, None, (cost,))


def fewest_points(features: int, calibration: RaceCalibration) -> int:
    """Number of points below which a line is likely no better than the mean, from public values only.

    The noise of a covariance is that of a sum of products over the number of points. Of a matrix of them the
    largest eigenvalue grows with √features: where that is more than `LARGEST_NOISE` of a variance, slopes are
    mostly noise.

    Args:
        features: The number of features.
        calibration: The noise (`calibrate_products`).
    """
    return math.ceil(_noise(calibration) * math.sqrt(features) / LARGEST_NOISE)


def _noise(calibration: RaceCalibration) -> float:
    """Standard deviation of the noise on a sum of products of two coordinates."""
    return math.sqrt(calibration.cells.variance) / (OFF_DIAGONAL * 4.0**BITS)


@dataclass(frozen=True, eq=False)
class Products:
    """Sums over the records of the products of their coordinates, as released.

    Attributes:
        sums: Symmetric, float64 of shape (D, D).
        noise: Standard deviation of the noise on a product of two coordinates; on squares it is 7/5 of that.
    """

    sums: npt.NDArray[np.float64]
    noise: float


def whole_vectors(standard: Points) -> Whole:
    """Each record's q: int64 of shape (n, columns + 1) in units of 2^-BITS, with the 1 before the target.

    A record's vector follows from it alone.

    Args:
        standard: Standardised features and, last, target: finite, float64 of shape (n, columns).
    """
    vectors = np.insert(standard, -1, 1.0, axis=1)
    shrink = np.sqrt(np.minimum(1.0, reach(vectors.shape[1]) / squared_lengths(vectors)))
    return np.asarray(np.trunc(vectors * shrink[:, None] * 2.0**BITS), dtype=np.int64)


def _sums(vectors: Whole) -> Whole:
    """Σ q qᵀ, exactly: int64 of shape (D, D).

    A product is at most b, and `_CHUNK` of them add up to at most 2^15·2^24·B: below 2^53 for B up to 2^14.
    """
    total = np.zeros((vectors.shape[1], vectors.shape[1]), dtype=np.int64)
    for start in range(0, len(vectors), _CHUNK):
        part = vectors[start : start + _CHUNK].astype(np.float64)
        total += np.rint(part.T @ part).astype(np.int64)
    return total


def measure_products(
    standard: Points, calibration: RaceCalibration | None, source: NoiseSource | None
) -> tuple[Products, SketchPrivacy | None]:
    """Release the sums of products of a dataset.

    Args:
        standard: As `whole_vectors`.
        calibration: By `calibrate_products` for one more coordinate than columns; None: no noise, no privacy.
        source: Draws the noise; None without noise.

    Returns:
        The sums, and the guarantee of the release.

    Raises:
        LocalProtocolError: A calibration without a source, or a source without one.
    """
    check_noise(calibration, source)
    vectors = whole_vectors(standard)
    size = vectors.shape[1]
    upper = np.triu_indices(size)
    factors = np.where(upper[0] == upper[1], DIAGONAL, OFF_DIAGONAL)
    total = _sums(vectors)[upper] * factors
    noise, privacy = 0.0, None
    if calibration is not None and source is not None:
        total = total + source.draw(calibration.cells)
        noise, privacy = _noise(calibration), calibration.privacy(source)
    sums = np.zeros((size, size))
    sums[upper] = total / (factors * 4.0**BITS)
    return Products(sums + np.triu(sums, 1).T, noise), privacy


@dataclass(frozen=True, eq=False)
class Line:
    """A linear model of standardised columns.

    Attributes:
        slope: Shape (features,); zeros: no penalty gives a line that is surely better than the mean.
        means: Means of the features and, last, of the target, as weighted: shape (features + 1,).
        loss: Estimated mean squared residual, as weighted; noise can make it negative.
    """

    slope: npt.NDArray[np.float64]
    means: npt.NDArray[np.float64]
    loss: float


def fit_line(products: Products) -> Line:
    """The ridge regression with the least estimated loss, which costs no privacy.

    C and c are the noisy covariances of the features, and of features and target, E and e their noise: nearly
    normal, of standard deviation t off the diagonal and √2·t on it. θ = Mc, with M = (C + λ)⁻¹, has the loss
    θᵀ(C - E)θ - 2θᵀ(c - e) beyond the mean's. By Stein's identity its noise has the expectations

        E[θᵀEθ] = -2t²·(tr M·‖θ‖² + θᵀMθ),  E[θᵀe] = t²·tr M,

    so that the loss is estimated from what was released, without bias but for third orders of the noise. λ
    is the one with the least estimate, raised by `_CAUTION` of its standard error 2t‖θ‖·√(1 + ‖θ‖²/2). As in
    AdaSSP, C + λ has no eigenvalue that the noise could have made (`_FLOOR`). AdaSSP releases the smallest
    eigenvalue for that, with a third of its budget. Here nothing more is released.
    """
    sums = products.sums
    middle = len(sums) - 2
    others = np.delete(np.arange(len(sums)), middle)
    weight = max(float(sums[middle, middle]), 1.0)
    means = np.clip(sums[middle, others] / weight, -_LONGEST, _LONGEST)
    centred = sums[np.ix_(others, others)] / weight - np.outer(means, means)
    # Means have noise too: of a covariance, mean_i·e_j + mean_j·e_i.
    noise = products.noise / weight * (1.0 + float(np.mean(means**2)))
    values, axes = np.linalg.eigh(centred[:-1, :-1])
    along = axes.T @ centred[:-1, -1]
    floor = _FLOOR * noise * math.sqrt(len(values))
    best, gain, slope = 0.0, 0.0, np.zeros(len(values))
    for penalty in _PENALTIES:
        shifted = values + penalty
        if shifted.min() <= floor:
            continue
        inverse = 1.0 / shifted
        theta = along * inverse
        square, trace = float(theta @ theta), float(inverse.sum())
        loss = float(values @ theta**2 - 2.0 * theta @ along)
        loss += 2.0 * noise**2 * (trace * (square + 1.0) + float(inverse @ theta**2))
        careful = loss + _CAUTION * 2.0 * noise * math.sqrt(square + square**2 / 2.0)
        if careful < best:
            best, gain, slope = careful, loss, axes @ theta
    return Line(slope, means, float(centred[-1, -1]) + gain)


_LONGEST: Final = 3.0
"""Largest plausible mean of a standardised column; anything beyond is noise."""
