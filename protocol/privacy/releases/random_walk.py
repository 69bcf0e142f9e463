"""The filter over the rounds that noisy totals go through: post-processing, which costs no privacy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["STEP_VARIANCE", "RandomWalk", "RandomWalkFilter"]

STEP_VARIANCE: Final = 500.0
"""Variance of a step of the random walk that a total of points of length 1 is taken for, in all coordinates
together.

One point moves a total by at most 1. But its steps do not cancel as a random walk's would, for the points
that are bought lie in the direction of what is wanted: over a window of n rounds they add up to n steps and
not to √n, and windows here are of about σ·√(d/500) rounds. Between 100 and 1000 the MMD² of a selection
changes by a tenth: larger values suit short sessions, smaller ones long ones.
"""


@dataclass(frozen=True, slots=True)
class RandomWalk:
    """What a filter takes a total for: a random walk that is observed with noise.

    Attributes:
        noise: Variance of an observation's noise, of a coordinate.
        step: Variance of the walk's step between observations, of a coordinate.
        from_zero: Whether it is known to begin at 0; else it begins with the first observation.
    """

    noise: float
    step: float
    from_zero: bool

    @property
    def start(self) -> float | None:
        """Variance of what is known of its beginning; None: nothing is known."""
        return 0.0 if self.from_zero else None

    def after(self, variance: float | None) -> tuple[float, float]:
        """The gain of the next observation in a Kalman filter (Kalman 1960), and the variance that it leaves.

        They depend on the two variances alone, and not on what is observed.

        Args:
            variance: That the observation before it left, at first `start`.
        """
        if variance is None:
            return 1.0, self.noise
        predicted = variance + self.step
        gain = predicted / (predicted + self.noise)
        return gain, (1.0 - gain) * predicted

    def gains(self) -> Iterator[float]:
        """Of each observation, without end."""
        variance = self.start
        while True:
            gain, variance = self.after(variance)
            yield gain


class RandomWalkFilter:
    """A Kalman filter of a random walk, the same gain for every coordinate.

    Attributes:
        variance: Of the last estimate's error, of a coordinate; None: there is neither estimate nor start.

    Args:
        walk: What is filtered.
    """

    def __init__(self, walk: RandomWalk) -> None:
        self._walk = walk
        self._estimate: npt.NDArray[np.float64] | float = 0.0
        self.variance = walk.start

    def after(self, observed: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The estimate of the state after one more observation, float64 of shape (width,)."""
        first = self.variance is None
        gain, self.variance = self._walk.after(self.variance)
        estimate = observed if first else self._estimate + gain * (observed - self._estimate)
        self._estimate = estimate
        return estimate
