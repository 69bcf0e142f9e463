"""The filter over the rounds that noisy totals go through: post-processing, which costs no privacy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["STEP_VARIANCE", "RandomWalk"]

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
    """The filter's model of a total: a random walk that is observed with noise, alike in every coordinate.

    A Kalman filter (Kalman 1960) estimates it. Its gains depend on the two variances, and not on what is
    observed.

    Attributes:
        noise: Variance of an observation's noise, of a coordinate.
        step: Variance of the walk's step between observations, of a coordinate.
        from_zero: Whether it is known to begin at 0; else it begins with the first observation.
    """

    noise: float
    step: float
    from_zero: bool

    def after(self, variance: float | None) -> tuple[float, float]:
        """The gain of an observation, and the variance of the estimate's error after it.

        Args:
            variance: After the observation before; None: there was none.
        """
        if variance is None and not self.from_zero:
            return 1.0, self.noise
        predicted = (variance or 0.0) + self.step
        gain = predicted / (predicted + self.noise)
        return gain, (1.0 - gain) * predicted

    def gains(self) -> Iterator[float]:
        """Of all observations, without end."""
        variance = None
        while True:
            gain, variance = self.after(variance)
            yield gain
