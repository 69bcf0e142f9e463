"""The RBF kernel exp(-γ‖x - y‖²) of scaled points, on all cores, and RKHS distances by it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

__all__ = ["distance", "in_threads", "kernel", "kernel_means", "squared_norm", "weighted_squared_norm"]

Points: TypeAlias = npt.NDArray[np.float64]
Vector: TypeAlias = npt.NDArray[np.float64]
T = TypeVar("T")
R = TypeVar("R")

CHUNK_VALUES: Final = 2**17
"""Kernel values that a thread works out at a time: 1 MiB, which stays in a core's cache."""


def in_threads(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """`function` of each item, in their order; a thread a core, and BLAS with one each."""
    with threadpool_limits(1), ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(function, items))


def kernel(x: Points, y: Points, gamma: float) -> Points:
    """k(x_i, y_j), float64 of shape (n, m).

    Every value is made of its two points alone by the same operations in the same order, so that it does not
    depend on which others are worked out with it; its error is at most (columns + 5)·2^-53.

    Args:
        x: Shape (n, columns).
        y: Shape (m, columns).
        gamma: γ.
    """
    exponents = np.zeros((len(x), len(y)))
    for column in range(x.shape[1]):
        apart = np.subtract.outer(x[:, column], y[:, column])
        exponents += np.square(apart, out=apart)
    exponents *= -gamma
    return np.exp(exponents, out=exponents)


def kernel_means(at: Points, points: Points, gamma: float, weights: Vector | None = None) -> Vector:
    """Mean (with weights: weighted sum) over `points` of their kernel with each point of `at`: shape (n,)."""
    shares = np.full(len(points), 1.0 / len(points)) if weights is None else weights
    rows = max(1, CHUNK_VALUES // len(at))

    def part(start: int) -> Vector:
        end = start + rows
        return np.asarray(shares[start:end] @ kernel(points[start:end], at, gamma))

    return np.asarray(np.sum(in_threads(part, range(0, len(points), rows)), axis=0))


def squared_norm(points: Points, gamma: float) -> float:
    """‖μ‖² of the equally weighted points: (Σ k(x, x'))/n², in n²/2 kernel values."""
    return weighted_squared_norm(points, np.full(len(points), 1.0 / len(points)), gamma)


def weighted_squared_norm(points: Points, weights: Vector, gamma: float) -> float:
    """‖Σ w_m k(z_m, ·)‖² = wᵀKw."""
    rows = 256

    def part(start: int) -> float:
        end = start + rows
        block, w = points[start:end], weights[start:end]
        total = float(w @ kernel(block, block, gamma) @ w)
        width = CHUNK_VALUES // rows
        for other in range(end, len(points), width):
            right = other + width
            total += 2.0 * float(w @ kernel(block, points[other:right], gamma) @ weights[other:right])
        return total

    return math.fsum(in_threads(part, range(0, len(points), rows)))


def distance(points: Points, weights: Vector, data: Points, gamma: float, data_squared_norm: float) -> float:
    """RKHS distance of weighted points to the empirical embedding of data, by the exact kernel (KME eq. 3).

    Args:
        points: Scaled, shape (M, columns).
        weights: Shape (M,).
        data: Scaled, shape (n, columns).
        gamma: γ.
        data_squared_norm: `squared_norm` of the data.
    """
    cross = float(weights @ kernel_means(points, data, gamma))
    within = weighted_squared_norm(points, weights, gamma)
    return math.sqrt(max(0.0, math.fsum((data_squared_norm, -2.0 * cross, within))))
