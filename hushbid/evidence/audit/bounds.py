"""Lower bounds on ε from counts, at a stated confidence: Clopper and Pearson's, or from both counts.

A test decides between two neighbouring datasets by an event E fixed before the counted trials. With P = Pr[E
| D'] and Q = Pr[E | D], (ε, δ)-DP demands (Kairouz, Oh, Viswanath 2015)

    P ≤ e^ε·Q + δ   and   1 - Q ≤ e^ε·(1 - P) + δ,

so ε ≥ max(ln((P - δ)/Q), ln((1 - Q - δ)/(1 - P))). Both grow in P and fall in Q, so one lower bound on P and
one upper bound on Q serve both. Each is one-sided and fails with probability at most (1 - confidence)/2, so
the bound on ε fails with probability at most 1 - confidence, whatever the mechanism.

If runs are few, two separate bounds lose much: from 27 hits and no false alarm in 27 runs, with δ = 0.5, they
give 1.06. So up to `JOINTLY` runs both counts are tested together (`epsilon_lower_jointly`), and 12 runs give
as much.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

__all__ = [
    "JOINTLY",
    "allowed_alarms",
    "epsilon_lower",
    "epsilon_lower_jointly",
    "epsilon_lower_of",
    "lower_proportion",
    "upper_proportion",
]

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

JOINTLY: Final = 40
"""Runs on each side up to which both counts are tested together."""
_STEP: Final = 0.01
"""Step between tested values of ε."""
_CELLS: Final = 256
"""Number of cells into which the values of Q are divided."""

_UNLIKELY = 0.01
"""Upper bound on the probability that a sound suite has more alarms than `allowed_alarms`."""


def lower_proportion(successes: Counts, trials: int, error: float) -> Floats:
    """One-sided lower confidence bound on a proportion (Clopper and Pearson 1934).

    Args:
        successes: From 0 to `trials`, which is at least 1.
        error: Probability that the bound may exceed the proportion.
    """
    return np.asarray(_lower_proportions(trials, error)[np.asarray(successes)])


@lru_cache(maxsize=16)
def _lower_proportions(trials: int, error: float) -> Floats:
    """The bound for each number of successes from 0: an audit asks for many of few numbers of trials."""
    counted = np.arange(trials + 1, dtype=np.float64)
    bound = beta.ppf(error, np.maximum(counted, 1.0), trials - counted + 1.0)
    return np.asarray(np.where(counted == 0, 0.0, bound), dtype=np.float64)


def upper_proportion(successes: Counts, trials: int, error: float) -> Floats:
    """One-sided upper confidence bound on a proportion: `lower_proportion`'s mirror image."""
    return np.asarray(1.0 - lower_proportion(trials - np.asarray(successes), trials, error), dtype=np.float64)


def epsilon_lower(
    hits: Counts, false_alarms: Counts, trials: int, *, delta: float, confidence: float
) -> Floats:
    """Lower bounds on ε, one for each event; at least 0, which holds for every mechanism.

    Args:
        hits: Number of occurrences of the event in `trials` runs on D'.
        false_alarms: Number of occurrences in as many runs on D.
        trials: At least 1.
        delta: The stated δ, in [0, 1).
        confidence: In (0, 1).
    """
    error = (1.0 - confidence) / 2.0
    hit = lower_proportion(hits, trials, error)
    alarm = upper_proportion(false_alarms, trials, error)
    bound = np.maximum(_log_ratio(hit - delta, alarm), _log_ratio(1.0 - alarm - delta, 1.0 - hit))
    return np.maximum(bound, 0.0)


def epsilon_lower_of(hits: int, false_alarms: int, trials: int, *, delta: float, confidence: float) -> float:
    """`epsilon_lower` of one event; up to `JOINTLY` runs, `epsilon_lower_jointly`."""
    if trials <= JOINTLY:
        return epsilon_lower_jointly(hits, false_alarms, trials, delta=delta, confidence=confidence)
    counts = np.array([hits]), np.array([false_alarms])
    return float(epsilon_lower(*counts, trials, delta=delta, confidence=confidence)[0])


@lru_cache
def epsilon_lower_jointly(
    hits: int, false_alarms: int, trials: int, *, delta: float, confidence: float
) -> float:
    """A lower bound on ε by an exact test of both counts.

    An ε is rejected if, for every P and Q that it allows, counts at least as extreme have a probability of at
    most 1 - confidence. The extremeness of counts is hits - e^ε·false alarms, or the same for the event's
    complement, whichever is larger. The bound is the last multiple of `_STEP` that is rejected together with
    all smaller ones; 0 if there is none. It exceeds the mechanism's ε only if the next multiple is rejected,
    which happens with probability at most 1 - confidence. The test is Barnard's (1945): the largest
    probability of all that ε allows.

    Arguments as of `epsilon_lower`; the time it takes grows with the square of `trials`.
    """
    error = 1.0 - confidence
    step = 0
    while _largest_probability(hits, false_alarms, trials, step * _STEP, delta) <= error:
        step += 1
    return max(step - 1, 0) * _STEP


def _largest_probability(hits: int, false_alarms: int, trials: int, epsilon: float, delta: float) -> float:
    """An upper bound, over all P and Q of (ε, δ), on the probability of counts as extreme as these."""
    factor = math.exp(epsilon)
    edges = np.linspace(0.0, 1.0, _CELLS + 1)
    # It grows in P and falls in Q: within a cell the largest P and smallest Q bound all pairs.
    most = np.minimum(factor * edges[1:] + delta, 1.0 - np.maximum(1.0 - edges[1:] - delta, 0.0) / factor)
    hit, alarm = _binomial(trials, np.clip(most, 0.0, 1.0)), _binomial(trials, edges[:-1])
    at_least = np.concatenate([np.cumsum(hit[::-1], axis=0)[::-1], np.zeros((1, _CELLS))])
    loud = max(hits - factor * false_alarms, trials - false_alarms - factor * (trials - hits))
    alarms = np.arange(trials + 1)
    needed = np.minimum(loud + factor * alarms, trials - (trials - alarms - loud) / factor)
    places = np.clip(np.ceil(needed - 1e-9), 0, trials + 1).astype(np.intp)
    return float((alarm * at_least[places]).sum(axis=0).max())


def _binomial(trials: int, proportions: Floats) -> Floats:
    """The probability of each number of successes, shape (trials + 1, proportions)."""
    counts = np.arange(trials + 1)[:, None]
    ways = np.array([math.comb(trials, int(count)) for count in counts[:, 0]], dtype=np.float64)
    return np.asarray(ways[:, None] * proportions**counts * (1.0 - proportions) ** (trials - counts))


def allowed_alarms(repeats: int, confidence: float) -> int:
    """The alarms that fewer than 1 in 100 series of `repeats` sound audits exceed: 4 of 20 at 95 %."""
    if repeats == 1:
        return 0
    from scipy.stats import binom

    return int(binom.ppf(1.0 - _UNLIKELY, repeats, 1.0 - confidence))


def _log_ratio(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(np.maximum(numerator, 0.0) / denominator)
    return np.asarray(np.where(numerator > 0.0, ratio, -np.inf), dtype=np.float64)
