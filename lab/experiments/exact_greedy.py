"""The greedy choice by the exact kernel, without a seed set and without features (Kim et al. 2016)."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.space.mmd import Points, kernel_means

__all__ = ["exact_greedy"]

_BLOCK: Final = 32
"""Number of candidates scored together."""
_UNIT: Final = 2.0**-24
"""Unit roundoff of float32: half the distance from 1 to the next number."""


def exact_greedy(candidates: Points, wanted: Points, gamma: float, p: int) -> npt.NDArray[np.intp]:
    """Choose the point with the largest gain in MMD², p times.

    With q chosen points the score of x is mean k(x, D_v) - Σ k(x, s)/(q + 1) (DPDS eq. 12, k(x, x) = 1). Sums
    are kept from products in float32, which determine each sum within a factor proved below. So every score
    has an upper bound, and only candidates whose bound reaches the best score are computed in float64: the
    choice is the same as if all were, up to float64's rounding (in the manner of Minoux 1978).

    The inner product of two rows of c columns, rounded to float32 and summed in float32 in any order, has an
    error of at most (c + 2)·u/(1 - (c + 2)·u)·‖x‖‖s‖, u = 2⁻²⁴ (Higham 2002, §3.1). A squared distance
    contains it twice and has an error of at most e = 2(c + 3)·u·‖x‖‖s‖, and a kernel value a factor within
    exp(±γe).

    Args:
        candidates: Scaled, shape (n, columns).
        wanted: D_v, scaled, shape (m, columns).
        p: Points to choose; all if there are fewer.

    Returns:
        Indices of the chosen candidates, in order, shape (min(p, n),). Ties go to the first index.
    """
    count, columns = candidates.shape
    gain = kernel_means(candidates, wanted, gamma)
    rough = _Rough(candidates, gamma)
    sums, known = np.zeros(count), np.zeros(count, dtype=np.intp)
    """Sums in float64 over the chosen points computed so far; sums over the others are rough."""
    free = np.ones(count, dtype=bool)
    rows = np.empty((min(p, count), columns))
    chosen: list[int] = []
    for q in range(len(rows)):
        while True:
            bounds = np.where(free, gain - (sums + rough.least) / (q + 1), -np.inf)
            first = np.flatnonzero(bounds == bounds.max())
            if (known[first] == q).all():
                break
            stale = np.flatnonzero(known < q)
            most = min(_BLOCK, len(stale))
            block = stale[np.argpartition(-bounds[stale], most - 1)[:most]]
            _bring_up(sums, known, block, candidates, rows[:q], gamma)
            rough.least[block] = 0.0
        chosen.append(int(first[0]))
        free[first[0]] = False
        rows[q] = candidates[first[0]]
        rough.add(rows[q])
    return np.array(chosen, dtype=np.intp)


class _Rough:
    """Lower bounds on sums of kernel values, from float32.

    Attributes:
        least: Lower bound for each candidate, shape (n,).
    """

    def __init__(self, candidates: Points, gamma: float) -> None:
        self.least = np.zeros(len(candidates))
        self._gamma = gamma
        self._squares = np.einsum("ij,ij->i", candidates, candidates)
        self._rows = candidates.astype(np.float32)
        lengths = np.sqrt(self._squares)
        error = 2.0 * (candidates.shape[1] + 3) * _UNIT * lengths * lengths.max(initial=0.0)
        self._factor = np.exp(-gamma * error)

    def add(self, row: npt.NDArray[np.float64]) -> None:
        """Add the kernel values of all candidates with a chosen one."""
        distances = self._squares + row @ row - 2.0 * (self._rows @ row.astype(np.float32))
        self.least += self._factor * np.exp(-self._gamma * np.maximum(distances, 0.0))


def _bring_up(
    sums: npt.NDArray[np.float64],
    known: npt.NDArray[np.intp],
    block: npt.NDArray[np.intp],
    candidates: Points,
    chosen: Points,
    gamma: float,
) -> None:
    """Add to a block's sums the kernel values of the points chosen since."""
    since = int(known[block].min())
    rows, new = candidates[block], chosen[since:]
    distances = (
        np.einsum("ij,ij->i", rows, rows)[:, None] + np.einsum("ij,ij->i", new, new) - 2.0 * (rows @ new.T)
    )
    values = np.exp(-gamma * np.maximum(distances, 0.0))
    # A candidate that was scored later has some of them already.
    values[np.arange(since, len(chosen)) < known[block][:, None]] = 0.0
    sums[block] += values.sum(axis=1)
    known[block] = len(chosen)
