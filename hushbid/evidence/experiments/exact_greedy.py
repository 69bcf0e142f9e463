"""The greedy choice by the exact kernel, without a seed set and without features (Kim et al. 2016)."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from protocol.space.mmd import Points, kernel_means

__all__ = ["exact_greedy"]

_BLOCK: Final = 256
"""Candidates that are looked at together: one product of matrices for all of them."""


def exact_greedy(candidates: Points, wanted: Points, gamma: float, p: int) -> npt.NDArray[np.intp]:
    """Choose the point of the largest gain in MMD², p times.

    Of q chosen points the score of x is mean k(x, D_v) - Σ k(x, s)/(q + 1) (DPDS eq. 12, k(x, x) = 1). The
    kernel is nowhere negative, so a sum over fewer of the chosen points is a bound from above. Only
    candidates whose bound is above the best score are worked out anew: the choice is the same as if all
    were, up to rounding (Minoux 1978).

    Args:
        candidates: Scaled, shape (n, columns).
        wanted: D_v, scaled, shape (m, columns).
        gamma: γ.
        p: Points to choose; all, if there are fewer.

    Returns:
        Places of the chosen ones, in order, shape (min(p, n),). Of equal scores the first place is taken.
    """
    gain = kernel_means(candidates, wanted, gamma)
    squares = np.einsum("ij,ij->i", candidates, candidates)
    sums, known = np.zeros(len(candidates)), np.zeros(len(candidates), dtype=np.intp)
    free = np.ones(len(candidates), dtype=bool)
    chosen: list[int] = []
    for q in range(min(p, len(candidates))):
        while True:
            bounds = np.where(free, gain - sums / (q + 1), -np.inf)
            best = bounds.max()
            first = np.flatnonzero(bounds == best)
            if (known[first] == q).all():
                break
            stale = np.flatnonzero(known < q)
            most = min(_BLOCK, len(stale))
            block = stale[np.argpartition(-bounds[stale], most - 1)[:most]]
            _bring_up(sums, known, block, candidates, squares, chosen, gamma)
        chosen.append(int(first[0]))
        free[first[0]] = False
    return np.array(chosen, dtype=np.intp)


def _bring_up(
    sums: npt.NDArray[np.float64],
    known: npt.NDArray[np.intp],
    block: npt.NDArray[np.intp],
    candidates: Points,
    squares: npt.NDArray[np.float64],
    chosen: list[int],
    gamma: float,
) -> None:
    """Add to the sums of a block the kernel values of the points that were chosen since."""
    since = int(known[block].min())
    new = np.array(chosen[since:], dtype=np.intp)
    distances = squares[block][:, None] + squares[new] - 2.0 * (candidates[block] @ candidates[new].T)
    values = np.exp(-gamma * np.maximum(distances, 0.0))
    # A point that was looked at later has some of them already.
    values[np.arange(since, len(chosen)) < known[block][:, None]] = 0.0
    sums[block] += values.sum(axis=1)
    known[block] = len(chosen)
