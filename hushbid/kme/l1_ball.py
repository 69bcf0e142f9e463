"""Weights with ‖w‖₁ ≤ C, for an optimiser that knows bounds only (KME, Theorem 8)."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["L1Ball", "within_norm"]

Vector: TypeAlias = npt.NDArray[np.float64]


class L1Ball:
    """The ball ‖w‖₁ ≤ C as the image of shares t ≥ 0: w = C·(t⁺ - t⁻)/(Σt⁺ + Σt⁻ + t⁰).

    L-BFGS-B has bounds but no such constraint. Shares need bounds only, all of their values are feasible, and
    the slack t⁰ gives the inside of the ball. With C ≤ 1 there are no t⁻: the data's own embedding has
    positive weights of sum 1, and negative ones within this ball would fit little but noise.

    Args:
        count: M.
        norm: C > 0.
    """

    def __init__(self, count: int, norm: float) -> None:
        self.count = count
        self.norm = norm
        self.signed = norm > 1.0
        self.size = (2 if self.signed else 1) * count + 1
        """Number of shares."""

    def shares(self, weights: Vector) -> Vector:
        """Shares of given weights, scaled into the ball: shape (size,), mean near 1, none stuck at 0."""
        halves = [np.maximum(weights, 0.0)]
        if self.signed:
            halves.append(np.maximum(-weights, 0.0))
        slack = max(self.norm - float(np.abs(weights).sum()), 0.0)
        shares = np.concatenate([*halves, [slack]])
        total = float(shares.sum()) or 1.0
        return np.asarray(shares * (self.size / total) + 1e-3)

    def weights(self, shares: Vector) -> Vector:
        """The weights of shares, shape (M,)."""
        parts = shares * (self.norm / max(float(shares.sum()), np.finfo(np.float64).tiny))
        if self.signed:
            return np.asarray(parts[: self.count] - parts[self.count : -1])
        return np.asarray(parts[:-1])

    def pull_back(self, shares: Vector, gradient: Vector) -> Vector:
        """The gradient by shares, shape (size,), from that by weights, shape (M,)."""
        total = max(float(shares.sum()), np.finfo(np.float64).tiny)
        by_part = np.concatenate([gradient, -gradient, [0.0]] if self.signed else [gradient, [0.0]])
        return np.asarray((by_part - by_part @ shares / total) * (self.norm / total))


def within_norm(weights: Vector, norm: float) -> Vector:
    """The weights, scaled down by as little as makes `math.fsum` of their magnitudes at most `norm`."""
    total = math.fsum(np.abs(weights))
    scale = 1.0 if total <= norm else norm / total
    while math.fsum(np.abs(weights * scale)) > norm:
        scale = math.nextafter(scale, 0.0)
    return np.asarray(weights * scale)
