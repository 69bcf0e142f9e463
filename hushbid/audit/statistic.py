"""What the attacker makes of its evidence: a statistic and a threshold, fitted on one half of the trials.

The attacker knows everything but the noise: both datasets, the session, who is away when. What it does not
work out it learns from trials of its own, the first half. The second half is counted only after everything is
fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushbid.audit.bounds import epsilon_lower

__all__ = ["Event", "Evidence", "fit"]

Floats = npt.NDArray[np.float64]

_THRESHOLDS = 400
"""Most thresholds that are tried for a statistic."""
_CAUTION = 100.0
"""How many times rarer the bounds err that choose a threshold: a tail of few runs looks best by luck."""
_SINGLE_COLUMNS = 24
"""Most columns that are also tried each by itself."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one owner saw in several runs.

    Attributes:
        values: Numbers read off what it received, float64 of shape (runs, k).
        shapes: What kinds of frames of which sizes it received, in which order: a number for each course of
            events, int64 of shape (runs,).
    """

    values: Floats
    shapes: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.shapes)

    def part(self, start: int, stop: int) -> Evidence:
        """Some of the runs."""
        return Evidence(self.values[start:stop], self.shapes[start:stop])

    @staticmethod
    def joined(parts: list[Evidence]) -> Evidence:
        """Several runs' evidence in one."""
        return Evidence(
            np.concatenate([part.values for part in parts]), np.concatenate([part.shapes for part in parts])
        )


@dataclass(frozen=True, slots=True)
class Event:
    """That a statistic exceeds a threshold, which speaks for D'."""

    statistic: Callable[[Evidence], Floats]
    threshold: float

    def count(self, evidence: Evidence) -> int:
        """In how many runs it occurred."""
        return int(np.count_nonzero(self.statistic(evidence) > self.threshold))


def fit(first: Evidence, second: Evidence, *, delta: float, confidence: float) -> Event:
    """The event, of all that are tried, that bounds ε highest on these trials.

    Args:
        first: Of runs on D.
        second: Of as many runs on D'.
        delta: Of the bound.
        confidence: Of the bound.
    """
    best: tuple[float, Event] | None = None
    for statistic in _statistics(first, second):
        bound, threshold = _threshold(statistic(first), statistic(second), delta=delta, confidence=confidence)
        if best is None or bound > best[0]:
            best = bound, Event(statistic, threshold)
    assert best is not None, "there is always the statistic of the shapes"
    return best[1]


def _statistics(first: Evidence, second: Evidence) -> Iterator[Callable[[Evidence], Floats]]:
    """What is tried: the log-likelihood ratio of the shapes, linear statistics of the values, and a sum."""
    shape = _shape_ratio(first.shapes, second.shapes)
    yield lambda evidence: shape(evidence.shapes)
    varying = np.flatnonzero(np.ptp(np.concatenate([first.values, second.values]), axis=0) > 0.0)
    if not len(varying):
        return
    weights, offset = _discriminant(first.values[:, varying], second.values[:, varying])
    linear = [(weights, offset)]
    if len(varying) > 1:
        linear.append((np.ones(len(varying)), 0.0))
    if 1 < len(varying) <= _SINGLE_COLUMNS:
        linear += [(row, 0.0) for row in np.eye(len(varying))]
    yield lambda evidence: evidence.values[:, varying] @ weights - offset + shape(evidence.shapes)
    for direction, _ in linear:
        for sign in (1.0, -1.0):
            signed = sign * direction
            yield lambda evidence, signed=signed: evidence.values[:, varying] @ signed  # type: ignore[misc]


def _shape_ratio(
    first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]
) -> Callable[[npt.NDArray[np.int64]], Floats]:
    """The log-likelihood ratio of a shape, D' over D, by how often it was seen; 0 for one that was not."""
    known = np.unique(np.concatenate([first, second]))
    counted = [
        np.bincount(np.searchsorted(known, shapes), minlength=len(known)) + 0.5 for shapes in (first, second)
    ]
    ratios = np.log(counted[1] / counted[1].sum()) - np.log(counted[0] / counted[0].sum())

    def ratio(shapes: npt.NDArray[np.int64]) -> Floats:
        place = np.minimum(np.searchsorted(known, shapes), len(known) - 1)
        return np.where(known[place] == shapes, ratios[place], 0.0)

    return ratio


def _discriminant(first: Floats, second: Floats) -> tuple[Floats, float]:
    """Fisher's discriminant: the log-likelihood ratio of two normal distributions of one covariance.

    The covariance is shrunk (Ledoit and Wolf 2004), so that few runs with many values do not mislead.
    """
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    fitted = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(
        np.concatenate([first, second]), np.repeat([0, 1], [len(first), len(second)])
    )
    return np.asarray(fitted.coef_[0], dtype=np.float64), -float(fitted.intercept_[0])


def _threshold(first: Floats, second: Floats, *, delta: float, confidence: float) -> tuple[float, float]:
    """The highest bound that a threshold gives, and the threshold."""
    seen = np.unique(np.concatenate([first, second]))
    if len(seen) == 1:
        return 0.0, float(seen[0])
    middles = (seen[1:] + seen[:-1]) / 2.0
    if len(middles) > _THRESHOLDS:
        middles = middles[np.linspace(0, len(middles) - 1, _THRESHOLDS + 2)[1:-1].astype(np.intp)]
    false_alarms = len(first) - np.searchsorted(np.sort(first), middles, side="right")
    hits = len(second) - np.searchsorted(np.sort(second), middles, side="right")
    cautious = 1.0 - (1.0 - confidence) / _CAUTION
    bounds = epsilon_lower(hits, false_alarms, len(first), delta=delta, confidence=cautious)
    place = int(np.argmax(bounds))
    return float(bounds[place]), float(middles[place])
