"""Maximum Mean Discrepancy, the objective J, and marginal gains: by the exact kernel and by features.

The kernel is exp(-γ‖x - y‖²) on scaled points (`FeatureMap.scale`), float64 of shape (n, columns). Its
functions raise `DataError` for an empty set, and for sets with different numbers of columns. Only
`kernel_matrix` and `kernel_block` hold more than a chunk of a kernel matrix. By features, g̃ is the mean
embedding of D_v, released or exact; g is that of S, any vector if |S| = q = 0; both have shape (d,). φ is in
values, not in grid units.
"""

from __future__ import annotations

import math
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import DataError

__all__ = [
    "MOST_COMPARED",
    "at_even_distances",
    "embedding_gain",
    "embedding_gains",
    "embedding_objective",
    "gain_constant",
    "kernel_block",
    "kernel_matrix",
    "kernel_means",
    "mmd2",
    "mmd2_curve",
    "objective",
]

Points: TypeAlias = npt.NDArray[np.float64]
Vector: TypeAlias = npt.NDArray[np.float64]

CHUNK_VALUES: Final = 2**21
"""Kernel values held at a time: 16 MiB."""
_BLOCK_ROWS: Final = 512
"""Rows of a set compared with as many others of it at a time: their kernel values stay in the cache."""
MOST_COMPARED: Final = 1_000
"""Rows that stand for a whole set in comparisons for people: time grows with the square, and the error of a
thousand rows is below the shown precision.
"""


def at_even_distances(rows: npt.NDArray[Any], most: int = MOST_COMPARED) -> npt.NDArray[Any]:
    """At most that many rows, evenly spaced, in order and without duplicates; the first is among them.

    Args:
        rows: Shape (n, ...).
        most: At least 1.
    """
    count = len(rows)
    return rows if count <= most else rows[np.arange(most) * count // most]


def kernel_means(x: Points, y: Points, gamma: float, *, weights: Vector | None = None) -> Vector:
    """Mean over y of k(x_i, y), for each x_i: shape (n,).

    Where x and y are the same array, the value of each pair serves both its points: half of the work.

    Args:
        weights: Of the points of y, for a weighted sum in place of the mean; shape (m,).
    """
    _check(x, y)
    if x is y and weights is None:
        return _means_within(x, gamma)
    # The same shift for both changes no distance and keeps ‖x‖² + ‖y‖² - 2xᵀy from cancelling far away
    # from the origin.
    centre = y.mean(axis=0)
    y = y - centre
    y_squares = np.einsum("ij,ij->i", y, y)
    means = np.empty(len(x))
    rows = max(1, CHUNK_VALUES // len(y))
    for start in range(0, len(x), rows):
        part = _kernel(x[start : start + rows] - centre, y, y_squares, gamma)
        means[start : start + rows] = part.mean(axis=1) if weights is None else part @ weights
    return means


def kernel_block(x: Points, y: Points, gamma: float) -> Points:
    """k(x_i, y_j) of all pairs, shape (n, m)."""
    _check(x, y)
    centre = y.mean(axis=0)
    y = y - centre
    return _kernel(x - centre, y, np.einsum("ij,ij->i", y, y), gamma)


def _means_within(x: Points, gamma: float) -> Vector:
    """Mean over all points of x of k(x_i, x_j), for each x_i: shape (n,)."""
    x = x - x.mean(axis=0)
    squares = np.einsum("ij,ij->i", x, x)
    sums = np.zeros(len(x))
    blocks = [slice(start, start + _BLOCK_ROWS) for start in range(0, len(x), _BLOCK_ROWS)]
    for number, block in enumerate(blocks):
        for other in blocks[number:]:
            values = _kernel(x[block], x[other], squares[other], gamma)
            sums[block] += values.sum(axis=1)
            if other is not block:
                sums[other] += values.sum(axis=0)
    return sums / len(x)


def _kernel(x: Points, y: Points, y_squares: Vector, gamma: float) -> Points:
    """k(x_i, y_j), shape (n, m), of points near the origin; `y_squares` is ‖y_j‖², shape (m,)."""
    distances = x @ y.T
    distances *= -2.0
    distances += np.einsum("ij,ij->i", x, x)[:, None]
    distances += y_squares
    np.maximum(distances, 0.0, out=distances)
    distances *= -gamma
    return np.exp(distances, out=distances)


def kernel_matrix(x: Points, gamma: float) -> Points:
    """k(x_i, x_j) of all pairs, shape (n, n)."""
    _check(x, x)
    x = x - x.mean(axis=0)
    squares = np.einsum("ij,ij->i", x, x)
    values = np.empty((len(x), len(x)))
    rows = max(1, CHUNK_VALUES // len(x))
    for start in range(0, len(x), rows):
        values[start : start + rows] = _kernel(x[start : start + rows], x, squares, gamma)
    if np.isfinite(values.diagonal()).all():
        # A huge γ makes much of the rounding in a point's distance to itself.
        np.fill_diagonal(values, 1.0)
    return values


def mmd2(x: Points, y: Points, gamma: float) -> float:
    """Biased MMD² of two sets of points (DPDS eq. 1).

    Raises:
        DataError: Also for values that are not finite, or so far apart that their distances are not.
    """
    _check(x, y)
    with np.errstate(over="ignore", invalid="ignore"):
        within = kernel_means(x, x, gamma).mean() + kernel_means(y, y, gamma).mean()
        distance = float(within - 2.0 * kernel_means(x, y, gamma).mean())
    if math.isnan(distance):
        raise _too_far()
    # A squared distance: what is below 0 is rounding.
    return max(0.0, distance)


def mmd2_curve(x: Points, y: Points, gamma: float) -> Vector:
    """Biased MMD² of the first 1, 2, … n points of x against y: `mmd2` of every prefix, up to rounding.

    With A_i = Σ k over all pairs of the first i points, A_i - A_(i-1) is one row of kernel values, counted
    twice except
    for its diagonal: all prefixes need the same n²/2 + n·m values as the last one.

    Returns:
        Shape (n,).

    Raises:
        DataError: As `mmd2`.
    """
    _check(x, y)
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.arange(1, len(x) + 1)
        within = np.cumsum(_new_pairs(x, gamma)) / sizes**2 + kernel_means(y, y, gamma).mean()
        distances = within - 2.0 * np.cumsum(kernel_means(x, y, gamma)) / sizes
    if np.isnan(distances).any():
        raise _too_far()
    return np.asarray(np.maximum(distances, 0.0))


def _new_pairs(x: Points, gamma: float) -> Vector:
    """Sum of k(x_i, x_j) over the pairs that x_i adds to those of earlier points, for each i."""
    x = x - x.mean(axis=0)
    squares = np.einsum("ij,ij->i", x, x)
    sums = np.empty(len(x))
    rows = max(1, CHUNK_VALUES // len(x))
    for start in range(0, len(x), rows):
        end = min(start + rows, len(x))
        values = _kernel(x[start:end], x[:end], squares[:end], gamma)
        before = values[:, :start].sum(axis=1) + np.tril(values[:, start:], -1).sum(axis=1)
        sums[start:end] = 2.0 * before + np.diagonal(values, start)
    return sums


def objective(target: Points, summary: Points, gamma: float) -> float:
    """J(S) = 2·mean k(V, S) - mean k(S, S), the exact kernel's (DPDS eq. 3): MMD² is mean k(V, V) - J.

    Args:
        target: D_v, scaled.
        summary: S, scaled; J of no points is 0.
    """
    if not len(summary):
        return 0.0
    cross, within = kernel_means(summary, target, gamma), kernel_means(summary, summary, gamma)
    return float(2.0 * cross.mean() - within.mean())


def embedding_objective(target: Vector, mean: Vector) -> float:
    """J(S) = 2·g̃ᵀg - ‖g‖², by mean embeddings."""
    return float(2.0 * (target @ mean) - mean @ mean)


def gain_constant(target: Vector, mean: Vector, q: float, square: float = 1.0) -> float:
    """The part of J(S + x) - J(S) besides its score term, 2/(q+1)·[g̃ᵀφ(x) - q/(q+1)·gᵀφ(x)].

    const = -2/(q+1)·g̃ᵀg + (2q+1)/(q+1)²·‖g‖² - ‖φ(x)‖²/(q+1)². It orders no candidates if ‖φ‖² is the same
    for all, as with the kernel and the `paired` map (up to rounding), but not with `cosine`.

    Args:
        square: ‖φ(x)‖².
    """
    if q == 0:
        return -square
    return float(
        -2.0 / (q + 1) * (target @ mean) + (2 * q + 1) / (q + 1) ** 2 * (mean @ mean) - square / (q + 1) ** 2
    )


def embedding_gains(target: Vector, mean: Vector, q: float, features: npt.NDArray[np.float64]) -> Vector:
    """J(S + x) - J(S) for each row of features, by mean embeddings (DESIGN §1, first row): shape (n,)."""
    weight = target - q / (q + 1) * mean
    squares = np.einsum("ij,ij->i", features, features)
    shared = gain_constant(target, mean, q, square=0.0)
    return np.asarray(2.0 / (q + 1) * (features @ weight) + shared - squares / (q + 1) ** 2)


def embedding_gain(target: Vector, mean: Vector, q: float, features: Vector) -> float:
    """J(S + x) - J(S) of one point: what settlement pays for, with the released g̃ as target."""
    return float(embedding_gains(target, mean, q, features[None, :])[0])


def _too_far() -> DataError:
    return DataError(
        "Two sets of points cannot be compared: some point lies too far from the others.",
        advice="Leave out points that are not within the session's public bounds.",
    )


def _check(x: Points, y: Points) -> None:
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1] or not len(x) or not len(y):
        raise DataError(
            f"Two sets of points of shapes {x.shape} and {y.shape} cannot be compared.",
            advice="Both need at least one row and the same feature columns.",
        )
