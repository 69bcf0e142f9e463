"""The least of f(w) = wᵀKw - 2·crossᵀw + λ‖w‖² over w ≥ 0 whose groups have fixed sums, in two ways.

`by_gradients` is for a K in memory, `by_landmarks` for many points. Both end where a bound on f's distance
from its minimum is `TOLERANCE`: ∇f(w)ᵀw less the sum over groups of their share times their least ∇f(w)ᵢ
(Frank and Wolfe 1956; Jaggi 2013, eq. 2). The bound holds whatever the steps do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hushbid.consumer.balance import Group
from hushbid.protocol.errors import DataError
from hushbid.protocol.space.mmd import Vector

__all__ = ["TOLERANCE", "Found", "Kernel", "Matrix", "by_gradients", "by_landmarks"]

TOLERANCE: Final = 1e-7
"""Largest accepted distance of the objective from its minimum."""
_MOST_STEPS: Final = 5_000
_MOST_LANDMARKS: Final = 800
_POINTS_A_LANDMARK: Final = 10
_MOST_LONG_STEPS: Final = 500
"""Most steps of `by_landmarks`."""
_MOST_NEWTON_STEPS: Final = 60
_JITTER: Final = 1e-8
"""Added to the diagonal of the landmarks' K, as two may be the same point."""
_FIRST_REST: Final = 1.0
_LEAST_REST: Final = 1e-3
_ROUNDING: Final = 1e-14

Matrix = npt.NDArray[np.float64]


class Kernel(Protocol):
    """K of n points: symmetric and positive semidefinite, its values from 0 to 1."""

    def times(self, weights: Vector) -> Vector:
        """K·w, shape (n,)."""
        ...

    def columns(self, rows: npt.NDArray[np.intp]) -> Matrix:
        """K's columns of these points, shape (n, len(rows))."""
        ...


class Found(NamedTuple):
    """Weights, K·w, and the bound on their objective's distance from its minimum."""

    weights: Vector
    within: Vector
    gap: float


class _Steps(Protocol):
    def step(self, ahead: Vector, within: Vector) -> tuple[Vector, Vector]:
        """Weights from those `ahead` of K·w `within`, and their own K·w."""
        ...


def by_gradients(kernel: Matrix, cross: Vector, ridge: float, groups: Sequence[Group]) -> Found:
    """By projected gradient steps; `kernel` has shape (n, n)."""
    weights = np.zeros(len(kernel))
    for rows, share in groups:
        weights[rows] = share / len(rows)
    start = Found(weights, kernel @ weights, math.inf)
    return _descended(_Gradients(kernel, cross, ridge, groups), start, cross, ridge, groups, _MOST_STEPS)


def by_landmarks(kernel: Kernel, cross: Vector, ridge: float, groups: Sequence[Group]) -> Found:
    """By steps that know K's features by some of the points: a few, each of one product with K."""
    steps = _Landmarks(kernel, cross, ridge, groups)
    weights = steps.start()
    within = kernel.times(weights)
    start = Found(weights, within, _gap(weights, within, cross, ridge, groups))
    return _descended(steps, start, cross, ridge, groups, _MOST_LONG_STEPS)


def _descended(
    steps: _Steps, start: Found, cross: Vector, ridge: float, groups: Sequence[Group], most: int
) -> Found:
    """The best of steps with momentum (Beck, Teboulle 2009) and restarts (O'Donoghue, Candès 2015)."""
    weights, within, _ = best = start
    ahead, ahead_within, momentum = weights, within, 1.0
    for _ in range(most):
        if best.gap <= TOLERANCE:
            break
        found, found_within = steps.step(ahead, ahead_within)
        gap = _gap(found, found_within, cross, ridge, groups)
        if gap < best.gap:
            best = Found(found, found_within, gap)
        if (ahead - found) @ (found - weights) > 0.0:
            momentum, ahead, ahead_within = 1.0, found, found_within
        else:
            later = (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
            share = (momentum - 1.0) / later
            ahead = found + share * (found - weights)
            ahead_within = found_within + share * (found_within - within)
            momentum = later
        weights, within = found, found_within
    return best


def _gap(weights: Vector, within: Vector, cross: Vector, ridge: float, groups: Sequence[Group]) -> float:
    gradient = 2.0 * (within - cross + ridge * weights)
    least = math.fsum(share * gradient[rows].min() for rows, share in groups)
    return max(0.0, float(gradient @ weights - least))


class _Gradients:
    """Projected gradient steps as long as the objective's curvature allows."""

    def __init__(self, kernel: Matrix, cross: Vector, ridge: float, groups: Sequence[Group]) -> None:
        self._kernel, self._cross, self._ridge, self._groups = kernel, cross, ridge, groups
        # No eigenvalue exceeds the largest row sum (Gershgorin), as kernel values are not negative.
        self._most = float(kernel.sum(axis=1).max()) + ridge
        self._curvature = min(self._most, _curvature(kernel) + ridge)

    def step(self, ahead: Vector, within: Vector) -> tuple[Vector, Vector]:
        slope = within - self._cross + self._ridge * ahead
        while True:
            found = _in_shares(ahead - slope / self._curvature, self._groups)
            found_within = self._kernel @ found
            step = found - ahead
            bend = step @ (found_within - within) + self._ridge * (step @ step)
            if self._curvature >= self._most or bend <= self._curvature * (step @ step):
                return found, found_within
            self._curvature = min(self._most, 2.0 * self._curvature)


def _curvature(kernel: Matrix) -> float:
    """Estimate the largest eigenvalue of K among vectors of sum 0, like steps; steps correct it."""
    vector = np.cos(np.arange(len(kernel), dtype=np.float64))
    largest = 0.0
    for _ in range(8):
        vector = vector - vector.mean()
        length = float(np.linalg.norm(vector))
        if length == 0.0:
            break
        vector = vector / length
        image = kernel @ vector
        largest = float(vector @ image)
        vector = image
    return max(1.1 * largest, 1e-12)


class _Landmarks:
    """Steps to the least of the objective with ΦΦᵀ + δI for K.

    Φ, shape (n, r), are features of the points by r of them (Nyström's; Williams and Seeger 2001). δ is
    raised where K bends more, so that no step leads past the least.
    """

    def __init__(self, kernel: Kernel, cross: Vector, ridge: float, groups: Sequence[Group]) -> None:
        self._kernel, self._cross, self._ridge, self._groups = kernel, cross, ridge, groups
        count = len(cross)
        landmarks = max(1, min(_MOST_LANDMARKS, count // _POINTS_A_LANDMARK))
        # Not at even distances: rows that come in turns, as of several owners, would all be of one kind.
        rows = np.random.default_rng(0).permutation(count)[:landmarks]
        columns = kernel.columns(rows)
        among = columns[rows] + _JITTER * np.eye(landmarks)
        try:
            self._features = np.linalg.solve(np.linalg.cholesky(among), columns.T).T.copy()
        except np.linalg.LinAlgError:  # the distances are rounding: rows lie far out, and near each other
            raise DataError(
                "The points cannot be weighed: some lie too far from the others.",
                advice="Leave out points that are not within the session's public bounds.",
            ) from None
        self._dual = np.zeros(landmarks)
        self._rest = _FIRST_REST

    def start(self) -> Vector:
        """The least with Φ alone: with an ever smaller δ, since each is near the one before."""
        known = float(np.einsum("ij,ij->i", self._features, self._features).mean())
        least = max(_LEAST_REST, 1.0 - known)
        weights, _ = self._least(self._cross, self._ridge + self._rest)
        while self._rest > least:
            smaller = max(least, self._rest / 10.0)
            nearer, is_least = self._least(self._cross, self._ridge + smaller)
            if not is_least:  # as where points repeat: with δ as it is, steps are shorter and sure
                break
            weights, self._rest = nearer, smaller
        return weights

    def step(self, ahead: Vector, within: Vector) -> tuple[Vector, Vector]:
        while True:
            known = self._features @ (ahead @ self._features)
            aim = self._cross - within + known + self._rest * ahead
            found, is_least = self._least(aim, self._ridge + self._rest)
            if not is_least and self._rest < _FIRST_REST:
                self._rest *= 4.0
                continue
            found_within = self._kernel.times(found)
            step = found - ahead
            seen = step @ self._features
            bend = step @ (found_within - within)
            allowed = seen @ seen + self._rest * (step @ step) + _ROUNDING
            if bend <= allowed or self._rest >= len(found):  # no eigenvalue of K is above n
                return found, found_within
            self._rest *= 4.0

    def _least(self, cross: Vector, ridge: float) -> tuple[Vector, bool]:
        """The least of ‖Φᵀw‖² - 2·crossᵀw + ridge‖w‖², by its dual, and whether it was found.

        With u = Φᵀw, the w of a u is the nearest one in its shares to (cross - Φu)/ridge, and -D(u) is convex
        with slope 2(u - Φᵀw). Newton's steps on it are semismooth (Qi and Sun 1993), in r unknowns.
        """
        features, dual = self._features, self._dual
        weights, seen, value = self._at(dual, cross, ridge)
        for _ in range(_MOST_NEWTON_STEPS):
            if _gap(weights, features @ seen, cross, ridge, self._groups) <= TOLERANCE / 20.0:
                self._dual = dual
                return weights, True
            slope = dual - seen
            way = -np.linalg.solve(self._bend(weights, ridge), slope)
            length, fall = 1.0, 2.0 * float(slope @ way)
            while True:
                weights, seen, later = self._at(dual + length * way, cross, ridge)
                if later <= value + 1e-4 * length * fall + _ROUNDING:
                    break
                length /= 2.0
                if length < 1e-4:
                    return weights, False
            dual, value = dual + length * way, later
        return weights, False

    def _at(self, dual: Vector, cross: Vector, ridge: float) -> tuple[Vector, Vector, float]:
        """W of u, Φᵀw and -D(u)."""
        weights = _in_shares((cross - self._features @ dual) / ridge, self._groups)
        seen = weights @ self._features
        value = dual @ dual - 2.0 * (dual @ seen) + 2.0 * (cross @ weights) - ridge * (weights @ weights)
        return weights, seen, float(value)

    def _bend(self, weights: Vector, ridge: float) -> Matrix:
        """Half of the Hessian of -D: I + Σ over groups of Φ's scatter where w > 0, over ridge; (r, r)."""
        bend = np.eye(self._features.shape[1])
        for rows, _ in self._groups:
            free = self._features[rows[weights[rows] > 0.0]]
            if len(free):
                free -= free.mean(axis=0)
                bend += (free.T @ free) / ridge
        return bend


def _in_shares(values: Vector, groups: Sequence[Group]) -> Vector:
    """The nearest w ≥ 0 that has each group's share."""
    nearest = np.zeros_like(values)
    for rows, share in groups:
        if share > 0.0:
            nearest[rows] = _on_simplex(values[rows], share)
    return nearest


def _on_simplex(values: Vector, share: float) -> Vector:
    """The nearest w ≥ 0 with this sum (Held, Wolfe and Crowder 1974)."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - share) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    nearest = np.maximum(values - excess[last], 0.0)
    return np.asarray(share * (nearest / nearest.sum()))
