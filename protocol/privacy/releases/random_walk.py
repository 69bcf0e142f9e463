"""The filter that noisy totals pass through over the rounds: post-processing, which costs no privacy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["STEP_VARIANCE", "RandomWalk"]

STEP_VARIANCE: Final = 500.0
"""Variance per step, over all coordinates, of the random walk that models a total of points of length 1.

One point moves a total by at most 1. But its steps do not cancel as a random walk's would, because the bought
points lie in the direction of the target. Over a window of n rounds they add up to n steps and not to √n, and
windows here are about σ·√(d/500) rounds. Between 100 and 1000 the MMD² of a selection changes by a tenth:
larger values suit short sessions, smaller ones long sessions.
"""


@dataclass(frozen=True, slots=True)
class RandomWalk:
    """The filter's model of a total: a random walk observed with noise, the same in every coordinate.

    A Kalman filter (Kalman 1960) estimates it. Its gains depend on the two variances, not on the
    observations.

    Attributes:
        noise: Variance of an observation's noise per coordinate.
        step: Variance of the walk's step between observations per coordinate.
        from_zero: Whether it is known to begin at 0; otherwise it begins with the first observation.
    """

    noise: float
    step: float
    from_zero: bool

    def after(self, variance: float | None) -> tuple[float, float]:
        """The gain of an observation, and the variance of the estimate's error after it.

        Args:
            variance: The error variance after the previous observation; None if there was none.
        """
        if variance is None and not self.from_zero:
            return 1.0, self.noise
        predicted = (variance or 0.0) + self.step
        gain = predicted / (predicted + self.noise)
        return gain, (1.0 - gain) * predicted

    def gains(self) -> Iterator[float]:
        """The gains of all observations, without end."""
        variance = None
        while True:
            gain, variance = self.after(variance)
            yield gain
