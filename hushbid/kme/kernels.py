"""The RBF kernel exp(-γ‖x - y‖²) of scaled points, on all cores, and RKHS distances by it."""

from __future__ import annotations

import decimal
import math
from functools import cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol.runtime.threads import in_threads

__all__ = ["distance", "kernel", "kernel_means", "squared_norm"]

Points: TypeAlias = npt.NDArray[np.float64]
Vector: TypeAlias = npt.NDArray[np.float64]

CHUNK_VALUES: Final = 2**17
"""Kernel values that a thread holds at a time."""

BLOCK_VALUES: Final = 2**15
"""Kernel values computed at a time: 1 MiB with their scratch, which stays in a core's cache."""

STEPS: Final = 256
"""Entries of the table of e^-t for a unit of t."""

LARGEST: Final = 44
"""End of the table: e^-44 is below 2^-63, and stands for everything smaller."""

TAYLOR: Final = (1 / 24 / STEPS**4, -1 / 6 / STEPS**3, 1 / 2 / STEPS**2, -1 / STEPS)
"""Coefficients of e^(-r/STEPS) - 1, the highest power first."""


def kernel(x: Points, y: Points, gamma: float) -> Points:
    """k(x_i, y_j), float64 of shape (n, m).

    Every value follows from its two points alone, to the last bit, on every machine: it takes only sums,
    products and roundings of single numbers, which IEEE 754 defines, in the order below. `np.exp` is no such
    operation: its last bits differ between processors.

    The error of a value is at most (columns + 5)·2^-53. Let t = γ‖x - y‖². It is computed with a relative
    error of at most (columns + 3)·2^-53, which moves e^-t by at most 0.37 times as much, as t·e^-t < 0.37.
    Let n be the whole number next to 256t, and r = t - n/256, which is exact. Then e^-t is e^(-n/256), from a
    table that is correctly rounded, times 1 - r + r²/2 - r³/6 + r⁴/24. That polynomial misses at most
    |r|⁵/120 ≤ 2^-45/120, which is 2.2·2^-53. The table and the last sum round by 2^-54 each. All that is
    smaller adds less than 0.1·2^-53.

    Args:
        x: Shape (n, columns).
        y: Shape (m, columns).
        gamma: γ.
    """
    values = np.empty((len(x), len(y)))
    rows = max(1, BLOCK_VALUES // max(1, len(y)))
    columns = np.ascontiguousarray(y.T)
    nearest, part = np.empty((2, min(rows, len(x)), len(y)))
    places = np.empty(part.shape, dtype=np.intp)
    for start in range(0, len(x), rows):
        block = values[start : start + rows]
        scratch = (nearest[: len(block)], part[: len(block)], places[: len(block)])
        _squared_distances(block, x[start : start + rows], columns, scratch[1])
        _decay(block, gamma, *scratch)
    return values


def _squared_distances(found: Points, x: Points, columns: Points, part: Points) -> None:
    """‖x - y‖² into `found`, column after column; `part` is scratch of its shape."""
    for column, values in enumerate(columns):
        apart = part if column else found
        # Copying a column and subtracting from the copy is faster than both in one operation.
        np.copyto(apart, x[:, column, None])
        apart -= values
        np.multiply(apart, apart, out=apart)
        if column:
            found += part


def _decay(t: Points, gamma: float, nearest: Points, part: Points, places: npt.NDArray[np.intp]) -> None:
    """e^(-γt) in place of t (`kernel`); the other arrays are scratch of its shape."""
    table = _powers()
    t *= gamma * STEPS
    np.minimum(t, len(table) - 1, out=t)
    np.rint(t, out=nearest)
    np.copyto(places, nearest, casting="unsafe")
    t -= nearest
    np.multiply(t, TAYLOR[0], out=part)
    for coefficient in TAYLOR[1:]:
        part += coefficient
        part *= t
    np.take(table, places, out=nearest, mode="clip")
    np.multiply(part, nearest, out=t)
    t += nearest


@cache
def _powers() -> Vector:
    """e^(-n/`STEPS`) for n from 0 to `STEPS`·`LARGEST`, each correctly rounded to float64."""
    precise = decimal.Context(prec=40)
    return np.array([float(precise.exp(decimal.Decimal(-n) / STEPS)) for n in range(STEPS * LARGEST + 1)])


def kernel_means(at: Points, points: Points, gamma: float, weights: Vector | None = None) -> Vector:
    """Mean (with weights: weighted sum) over `points` of their kernel with each point of `at`: shape (n,)."""
    shares = np.full(len(points), 1.0 / len(points)) if weights is None else weights
    rows = max(1, CHUNK_VALUES // len(at))

    def part(start: int) -> Vector:
        end = start + rows
        return np.asarray(shares[start:end] @ kernel(points[start:end], at, gamma))

    return np.asarray(np.sum(in_threads(part, range(0, len(points), rows)), axis=0))


def squared_norm(points: Points, gamma: float, weights: Vector | None = None) -> float:
    """‖Σ w_m k(z_m, ·)‖² = wᵀKw, in n²/2 kernel values; without weights, for weights 1/n."""
    rows = 256
    shares = np.full(len(points), 1.0 / len(points)) if weights is None else weights

    def part(start: int) -> float:
        end = start + rows
        block, w = points[start:end], shares[start:end]
        total = float(w @ kernel(block, block, gamma) @ w)
        width = CHUNK_VALUES // rows
        for other in range(end, len(points), width):
            right = other + width
            total += 2.0 * float(w @ kernel(block, points[other:right], gamma) @ shares[other:right])
        return total

    return math.fsum(in_threads(part, range(0, len(points), rows)))


def distance(points: Points, weights: Vector, data: Points, gamma: float, data_squared_norm: float) -> float:
    """RKHS distance of weighted points to the empirical embedding of data, by the exact kernel (KME eq. 3).

    Points and data are scaled, of shapes (M, columns) and (n, columns); `data_squared_norm` is the data's
    `squared_norm`.
    """
    cross = float(weights @ kernel_means(points, data, gamma))
    within = squared_norm(points, gamma, weights)
    return math.sqrt(max(0.0, math.fsum((data_squared_norm, -2.0 * cross, within))))
