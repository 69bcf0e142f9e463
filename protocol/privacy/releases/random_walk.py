"""The filter over the rounds that noisy totals go through: post-processing, which costs no privacy."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["STEP_VARIANCE", "RandomWalkFilter"]

STEP_VARIANCE: Final = 500.0
"""Variance of a step of the random walk that a total of points of length 1 is taken for, in all coordinates
together.

One point moves a total by at most 1. But its steps do not cancel as a random walk's would, for the points
that are bought lie in the direction of what is wanted: over a window of n rounds they add up to n steps and
not to √n, and windows here are of about σ·√(d/500) rounds. Between 100 and 1000 the MMD² of a selection
changes by a tenth: larger values suit short sessions, smaller ones long ones.
"""


class RandomWalkFilter:
    """A Kalman filter (Kalman 1960) whose state is a random walk, the same gain for every coordinate.

    The gains depend on the two variances alone, and not on what is observed.

    Attributes:
        variance: Of the last estimate's error, of a coordinate.

    Args:
        noise: Variance of an observation's noise, of a coordinate.
        step: Variance of the walk's step between observations, of a coordinate.
        start: Where the walk is known to begin, shape (width,); None: with the first observation.
    """

    def __init__(self, *, noise: float, step: float, start: npt.NDArray[np.float64] | None) -> None:
        self._noise = noise
        self._step = step
        self._estimate = start
        self.variance = 0.0

    def after(self, observed: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The estimate of the state after one more observation, float64 of shape (width,)."""
        if self._estimate is None:
            self._estimate, self.variance = observed, self._noise
            return observed
        predicted = self.variance + self._step
        gain = predicted / (predicted + self._noise)
        self.variance = (1.0 - gain) * predicted
        self._estimate = self._estimate + gain * (observed - self._estimate)
        return self._estimate
