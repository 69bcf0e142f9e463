"""The best of many points under a weight: exactly, and in one total order (DESIGN §1, "Exact scores").

The order is: higher score wᵀφ first, then smaller bytes of φ, then smaller rank (the owner's position
among the sorted names), then the older entry. It depends on nothing but the points themselves, as the
lemma behind the sensitivity of 2 needs.

Two shortcuts keep this fast, and neither decides anything by itself:

* float32 scores of all points find the few within the rounding error of the best; these are compared
  exactly, on the grid;
* between two broadcasts whose weights differ by Δw no score moves by more than ‖Δw‖·‖φ‖, so as long as
  the best of a short list of earlier leaders beats that bound for all others, only the list is scored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protocol.errors import LocalProtocolError
from protocol.grid import FEATURE_UNIT, SCORE_UNIT, Features, Weights, exact_scores, weights_to_float

__all__ = ["Best", "ScoreTable"]

LEADERS: Final = 192
"""Length of the list of earlier leaders."""
_FLOAT32_EPSILON: Final = 2.0**-24
_GROWTH: Final = 2


@dataclass(frozen=True, slots=True)
class Best:
    """The first entry in the total order."""

    index: int
    score: int
    """wᵀφ in units of 2^-37."""


class ScoreTable:
    """Points by their features, of which entries can be withdrawn but never changed.

    Args:
        features: int16 of shape (n, d): the first entries, in units of 2^-15; n may be 0.
        norm_bound: At least the largest ‖φ‖ of any entry (`FeatureMap.norm_bound`).
    """

    def __init__(self, features: Features, *, norm_bound: float) -> None:
        self._size: int = features.shape[0]
        self._dimension: int = features.shape[1]
        self._norm_bound = norm_bound
        self._grid: Features = features
        self._float: npt.NDArray[np.float32] = features * np.float32(FEATURE_UNIT)
        self._rank = np.zeros(self._size, dtype=np.int32)
        self._withdrawn = np.zeros(self._size, dtype=np.bool_)
        self._leaders: npt.NDArray[np.intp] | None = None
        self._leader_rows = self._float[:0]
        self._reference: npt.NDArray[np.float64] = np.zeros(self._dimension)
        self._rest = -np.inf

    def __len__(self) -> int:
        return self._size

    @property
    def remaining(self) -> int:
        """How many entries are not withdrawn."""
        return int(self._size - np.count_nonzero(self._withdrawn[: self._size]))

    def features(self, index: int) -> Features:
        """φ of an entry, int16 of shape (d,), read-only."""
        row: Features = self._grid[index]
        row.flags.writeable = False
        return row

    def append(self, features: Features, *, rank: int) -> int:
        """Add an entry; returns its index."""
        if self._size == len(self._withdrawn):
            self._grow()
        index = self._size
        self._grid[index] = features
        self._float[index] = features * np.float32(FEATURE_UNIT)
        self._rank[index] = rank
        self._withdrawn[index] = False
        self._size += 1
        self._leaders = None
        return index

    def withdraw(self, index: int) -> None:
        """Take an entry out for good.

        Raises:
            LocalProtocolError: It was out already.
        """
        if self._withdrawn[index]:
            raise LocalProtocolError(f"Entry {index} was withdrawn before.")
        self._withdrawn[index] = True

    def best(self, weights: Weights, *, withheld: npt.NDArray[np.bool_] | None = None) -> Best | None:
        """The first available entry in the total order.

        Args:
            weights: Shape (d,), in units of 2^-22.
            withheld: Per rank, whether its entries are unavailable this time; None: all are available.

        Returns:
            The entry and its exact score, or None if nothing is available.
        """
        values = weights_to_float(weights)
        error = self._screening_error(values)
        if withheld is None:
            found = self._best_of_leaders(weights, values, error)
            if found is not None:
                return found
        unavailable = self._withdrawn[: self._size]
        if withheld is not None:
            unavailable = unavailable | withheld[self._rank[: self._size]]
        scores = self._float[: self._size] @ values.astype(np.float32)
        scores[unavailable] = -np.inf
        if withheld is None:
            self._remember_leaders(scores, values, error)
        return self._decide(None, scores, weights, error)

    def _screening_error(self, values: npt.NDArray[np.float64]) -> float:
        """Bound of |float32 score - exact score|: rounding of w, and of d products and their sum.

        Features are exact in float32. Standard bound γ_{d+2}·Σ|w_i||φ_i| ≤ γ_{d+2}·‖w‖·‖φ‖.
        """
        steps = (self._dimension + 2) * _FLOAT32_EPSILON
        return 1.01 * steps / (1.0 - steps) * math.sqrt(values @ values) * self._norm_bound

    def _decide(
        self,
        rows: npt.NDArray[np.intp] | None,
        scores: npt.NDArray[np.float32],
        weights: Weights,
        error: float,
    ) -> Best | None:
        """The exact best among the entries whose float32 scores are given: of `rows`, or of all."""
        if scores.size == 0:
            return None
        top = float(scores.max())
        if top == -np.inf:
            return None
        near = np.flatnonzero(scores >= np.float32(top - 2.5 * error))
        if rows is not None:
            near = rows[near]
        exact = exact_scores(self._grid[near], weights)
        best = int(exact.max())
        tied = near[exact == best]
        if len(tied) > 1:
            index = int(min(tied, key=lambda row: (self._grid[row].tobytes(), self._rank[row], row)))
        else:
            index = int(tied[0])
        return Best(index, best)

    def _remember_leaders(
        self, scores: npt.NDArray[np.float32], values: npt.NDArray[np.float64], error: float
    ) -> None:
        if scores.size <= 2 * LEADERS:
            return
        split = scores.size - LEADERS
        order = np.argpartition(scores, split - 1)
        self._leaders = order[split:]
        self._leader_rows = self._float[self._leaders]
        self._reference = values
        self._rest = float(scores[order[split - 1]]) + error

    def _best_of_leaders(
        self, weights: Weights, values: npt.NDArray[np.float64], error: float
    ) -> Best | None:
        """The best, if the list of leaders proves it; None if all entries have to be scored."""
        if self._leaders is None:
            return None
        scores = self._leader_rows @ values.astype(np.float32)
        scores[self._withdrawn[self._leaders]] = -np.inf
        found = self._decide(self._leaders, scores, weights, error)
        if found is None:
            return None
        step = values - self._reference
        # No other entry's exact score is above this. Strictly above it, a tie is excluded too; the factor
        # covers the rounding of this bound's own few operations.
        others = self._rest + math.sqrt(step @ step) * self._norm_bound * (1 + 1e-9) + 1e-12
        if found.score * SCORE_UNIT > others:
            return found
        self._leaders = None
        return None

    def _grow(self) -> None:
        capacity = max(256, _GROWTH * len(self._withdrawn))
        self._grid = _extended(self._grid, capacity)
        self._float = _extended(self._float, capacity)
        self._rank = _extended(self._rank, capacity)
        self._withdrawn = _extended(self._withdrawn, capacity)


def _extended(array: npt.NDArray[Any], capacity: int) -> npt.NDArray[Any]:
    grown = np.zeros((capacity, *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown
