"""The attacker's use of its evidence: a statistic and a threshold, fitted on one half of the trials.

The attacker knows everything but the noise: both datasets, the session, and who is away when. It learns the
rest from the first half of the trials. The second is counted only after everything is fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.evidence.audit.bounds import epsilon_lower

__all__ = ["Observations", "ThresholdEvent", "fit"]

Floats: TypeAlias = npt.NDArray[np.float64]
Statistic: TypeAlias = Callable[["Observations"], Floats]
Fitter: TypeAlias = Callable[["Observations", "Observations"], Statistic]
"""Fits a statistic to runs on D and on D'."""

_THRESHOLDS: Final = 400
"""Most thresholds tried for a statistic."""
_CAUTION: Final = 100.0
"""Factor by which bounds for choosing a threshold err less often: a tail of few runs looks best by luck."""
_SINGLE_COLUMNS: Final = 24
"""Most columns that are also tried individually."""
_RUNS_PER_COLUMN: Final = 10
"""Fewest runs per column of a discriminant that is judged by the runs it is fitted to: these flatter it."""
_FEWEST_RUNS_PER_COLUMN: Final = 2
"""Fewest runs per column of a discriminant whose covariance is not shrunk."""
_FOLDS: Final = 2
"""Parts of the runs, for each of which a statistic is fitted to the others."""
_REACHED: Final = 2
"""Fewest runs on D that must attain the largest value for it to be a bound."""
_RIDGE: Final = 1e-9
"""Share of the mean variance added to each variance: without noise a covariance is singular."""


@dataclass(frozen=True, slots=True)
class Observations:
    """What one owner saw in several runs.

    Attributes:
        values: Numbers extracted from what it received, float64 of shape (runs, rounds, readings), with the
            same kinds of reading in every round, such as the coordinates of a broadcast.
        shapes: A number for each sequence of kinds and sizes of the frames received, int64 of shape (runs,).
    """

    values: Floats
    shapes: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.shapes)

    def part(self, start: int, stop: int) -> Observations:
        return Observations(self.values[start:stop], self.shapes[start:stop])

    def columns(self, places: npt.NDArray[np.intp]) -> Floats:
        """Some of all (round, reading) values, shape (runs, places)."""
        return self.values.reshape(len(self), -1)[:, places]

    def at(self, places: npt.NDArray[np.intp]) -> Observations:
        return Observations(self.values[places], self.shapes[places])

    @staticmethod
    def joined(parts: list[Observations]) -> Observations:
        return Observations(
            np.concatenate([part.values for part in parts]), np.concatenate([part.shapes for part in parts])
        )


@dataclass(frozen=True, slots=True)
class ThresholdEvent:
    """The event that a statistic exceeds a threshold, which indicates D'."""

    statistic: Callable[[Observations], Floats]
    threshold: float

    def count(self, evidence: Observations) -> int:
        """Number of runs in which it occurred."""
        return int(np.count_nonzero(self.statistic(evidence) > self.threshold))


def fit(first: Observations, second: Observations, *, delta: float, confidence: float) -> ThresholdEvent:
    """Of all candidate events, the one with the highest bound on ε, from as many runs on D as on D'."""
    best: tuple[_Promise, ThresholdEvent] | None = None
    for candidate in _candidates(first, second):
        promise, threshold = _threshold(candidate, delta=delta, confidence=confidence)
        if best is None or promise > best[0]:
            best = promise, ThresholdEvent(candidate.statistic, threshold)
    assert best is not None, "there is always the statistic of the shapes"
    return best[1]


class _Candidate(NamedTuple):
    """A statistic, and its values on D and on D' by which its threshold is chosen."""

    statistic: Statistic
    values: tuple[Floats, Floats]
    flattered: bool = False
    """Whether these tell it better apart than those of other runs would."""


class _Promise(NamedTuple):
    """The merits of an event, most important first; with few runs the first is 0 for many events."""

    cautious: float
    """The lower bound on ε with an error `_CAUTION` times smaller."""
    bound: float
    """The lower bound on ε."""
    ahead: int
    """Number of runs in which it occurred on D', minus those on D."""
    distance: float
    """How far apart the statistic is on D and D'; without noise, it is very far."""


def _candidates(first: Observations, second: Observations) -> Iterator[_Candidate]:
    """The candidate statistics, simplest first; of equally good ones, the first is taken.

    Each reading is tried over all rounds, and each round over all readings, besides everything together. So
    noise that is missing from one coordinate, or repeated in two rounds, is not lost among the rest.
    """

    def plain(statistic: Statistic, *, flattered: bool = False) -> _Candidate:
        return _Candidate(statistic, (statistic(first), statistic(second)), flattered)

    shape = _shape_ratio(first.shapes, second.shapes)
    yield plain(lambda evidence: shape(evidence.shapes))
    _, rounds, readings = first.values.shape
    flat = [evidence.values.reshape(len(evidence), -1) for evidence in (first, second)]
    varying = np.flatnonzero(np.ptp(np.concatenate(flat), axis=0)) if rounds * readings else np.arange(0)
    if not len(varying):
        return
    by_reading = [varying[varying % readings == place] for place in range(readings)]
    by_round = [varying[varying // readings == place] for place in range(rounds)]
    singles = list(varying[:, None]) if len(varying) <= _SINGLE_COLUMNS else []
    for group in (*singles, *by_reading):
        for sign in (1.0, -1.0):
            yield plain(_linear(group, np.full(len(group), sign)))
    runs = len(first) + len(second)
    for group in (*by_reading, *by_round, varying):
        if 1 < len(group) <= runs / _FEWEST_RUNS_PER_COLUMN:
            yield _fitted(partial(_discriminant, group), len(group), first, second)
    beyond = _beyond(varying, flat[0][:, varying], flat[1][:, varying])
    if beyond is not None:
        yield plain(beyond)
    weights, offset = _shrunk_discriminant(flat[0][:, varying], flat[1][:, varying])
    yield plain(_linear(varying, weights), flattered=True)
    yield plain(
        lambda evidence: _linear(varying, weights)(evidence) - offset + shape(evidence.shapes), flattered=True
    )


def _fitted(fitter: Fitter, columns: int, first: Observations, second: Observations) -> _Candidate:
    """A statistic that is fitted to runs, with its values on runs that it was not fitted to.

    Where runs are many, its values on the same runs do as well.
    """
    statistic = fitter(first, second)
    if columns * _RUNS_PER_COLUMN <= len(first) + len(second):
        return _Candidate(statistic, (statistic(first), statistic(second)))
    folds = np.arange(len(first)) % _FOLDS
    values = np.empty(len(first)), np.empty(len(second))
    for fold in range(_FOLDS):
        others, own = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        left_out = fitter(first.at(others), second.at(others))
        for evidence, found in zip((first, second), values, strict=True):
            found[own] = left_out(evidence.at(own))
    return _Candidate(statistic, values)


def _linear(columns: npt.NDArray[np.intp], weights: Floats) -> Statistic:
    """The weighted sum of some of all (round, reading) values."""
    return lambda evidence: evidence.columns(columns) @ weights


def _beyond(columns: npt.NDArray[np.intp], first: Floats, second: Floats) -> Statistic | None:
    """Largest excess of a value over a bound that D's values attain, in standard deviations.

    A largest value that only one run has is chance, not a bound; None if no value is attained by several
    runs.
    """
    sign = np.sign(second.mean(axis=0) - first.mean(axis=0))
    bound = (first * sign).max(axis=0)
    bounded = np.count_nonzero(first * sign == bound, axis=0) >= _REACHED
    if not bounded.any():
        return None
    spread = first.std(axis=0) + _RIDGE * np.ptp(np.concatenate([first, second]), axis=0)

    def beyond(evidence: Observations) -> Floats:
        values = evidence.columns(columns)
        return np.asarray(((values * sign - bound) / spread)[:, bounded].max(axis=1))

    return beyond


def _shape_ratio(
    first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]
) -> Callable[[npt.NDArray[np.int64]], Floats]:
    """The log-likelihood ratio of a shape, D' over D, by its frequencies; 0 for an unseen shape."""
    known = np.unique(np.concatenate([first, second]))
    counted = [
        np.bincount(np.searchsorted(known, shapes), minlength=len(known)) + 0.5 for shapes in (first, second)
    ]
    ratios = np.log(counted[1] / counted[1].sum()) - np.log(counted[0] / counted[0].sum())

    def ratio(shapes: npt.NDArray[np.int64]) -> Floats:
        place = np.minimum(np.searchsorted(known, shapes), len(known) - 1)
        return np.where(known[place] == shapes, ratios[place], 0.0)

    return ratio


def _discriminant(columns: npt.NDArray[np.intp], first: Observations, second: Observations) -> Statistic:
    """Fisher's discriminant: the log-likelihood ratio of two normal distributions with equal covariance.

    A direction without noise in which the two differ outweighs all others.
    """
    one, other = first.columns(columns), second.columns(columns)
    apart = other.mean(axis=0) - one.mean(axis=0)
    middle = (other.mean(axis=0) + one.mean(axis=0)) / 2.0
    spread = (np.cov(one, rowvar=False) + np.cov(other, rowvar=False)) / 2.0
    spread += np.eye(len(apart)) * _RIDGE * float(np.mean(np.diag(spread) + apart**2))
    weights = np.linalg.solve(spread, apart)
    return lambda evidence: (evidence.columns(columns) - middle) @ weights


def _shrunk_discriminant(first: Floats, second: Floats) -> tuple[Floats, float]:
    """A discriminant with a shrunk covariance (Ledoit and Wolf 2004), and its log-likelihood ratio's offset.

    Few runs with many values do not mislead it, but it does not notice missing noise.
    """
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    fitted = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(
        np.concatenate([first, second]), np.repeat([0, 1], [len(first), len(second)])
    )
    return np.asarray(fitted.coef_[0], dtype=np.float64), -float(fitted.intercept_[0])


def _threshold(candidate: _Candidate, *, delta: float, confidence: float) -> tuple[_Promise, float]:
    first, second = candidate.values
    seen = np.unique(np.concatenate([first, second]))
    if len(seen) == 1:
        return _Promise(0.0, 0.0, 0, 0.0), float(seen[0])
    middles = (seen[1:] + seen[:-1]) / 2.0
    if len(middles) > _THRESHOLDS:
        middles = middles[np.linspace(0, len(middles) - 1, _THRESHOLDS + 2)[1:-1].astype(np.intp)]
    false_alarms = len(first) - np.searchsorted(np.sort(first), middles, side="right")
    hits = len(second) - np.searchsorted(np.sort(second), middles, side="right")
    cautious, plain = (
        epsilon_lower(hits, false_alarms, len(first), delta=delta, confidence=level)
        for level in (1.0 - (1.0 - confidence) / _CAUTION, confidence)
    )
    place = int(np.lexsort((hits - false_alarms, plain, cautious))[-1])
    promise = _Promise(
        float(cautious[place]),
        float(plain[place]),
        int(hits[place] - false_alarms[place]),
        0.0 if candidate.flattered else _distance(first, second),
    )
    return promise, float(middles[place])


def _distance(first: Floats, second: Floats) -> float:
    """Between the means, in standard deviations."""
    apart = float(second.mean() - first.mean())
    return apart / float(np.sqrt((first.var() + second.var()) / 2.0) + _RIDGE * abs(apart))
