"""Marginal gains by the exact kernel, and features rounded to the grid: only tests need them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hushbid.protocol.space.grid import FEATURE_BITS, Features
from hushbid.protocol.space.mmd import Points, Vector, kernel_means

__all__ = ["marginal_gains", "round_features"]


def marginal_gains(target: Points, summary: Points, candidates: Points, gamma: float) -> Vector:
    """J(S + x) - J(S) for each candidate x, by the exact kernel (DPDS eq. 12).

    Args:
        target: D_v, scaled, shape (m, columns).
        summary: S, scaled, shape (q, columns); q may be 0.
        candidates: Scaled, shape (n, columns).
        gamma: γ.

    Returns:
        Shape (n,).

    Raises:
        DataError: An empty target or no candidates, or numbers of columns that differ.
    """
    q = len(summary)
    wanted = kernel_means(candidates, target, gamma)
    if not q:
        return 2.0 * wanted - 1.0
    held = kernel_means(candidates, summary, gamma)
    cross = kernel_means(summary, target, gamma).mean()
    within = kernel_means(summary, summary, gamma).mean()
    # With k(x, x) = 1; see `gain_constant` for the terms without x.
    changing = 2.0 / (q + 1) * (wanted - q / (q + 1) * held)
    constant = -2.0 / (q + 1) * cross + (2 * q + 1) / (q + 1) ** 2 * within - 1.0 / (q + 1) ** 2
    return np.asarray(changing + constant)


def round_features(values: npt.NDArray[np.float64]) -> Features:
    """Round features to the grid.

    Args:
        values: Finite float64 of any shape, each of magnitude below 1.

    Returns:
        int16 of the same shape, in units of 2^-15, ties to even.
    """
    return np.rint(values * 2.0**FEATURE_BITS).astype(np.int16)
