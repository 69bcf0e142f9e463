"""Lower bounds on ε from counts: Clopper and Pearson's, at a stated confidence.

A test decides between two neighbouring datasets by an event E fixed before the counted trials. With P = Pr[E
| D'] and Q = Pr[E | D], (ε, δ)-DP demands (Kairouz, Oh, Viswanath 2015)

    P ≤ e^ε·Q + δ   and   1 - Q ≤ e^ε·(1 - P) + δ,

so ε ≥ max(ln((P - δ)/Q), ln((1 - Q - δ)/(1 - P))). Both grow in P and fall in Q: one lower bound on P and one
upper bound on Q serve both, and no others are needed. Each is one-sided and fails with probability at most (1
- confidence)/2, so the bound on ε fails with probability at most 1 - confidence, whatever the mechanism.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

__all__ = ["allowed_alarms", "epsilon_lower", "lower_proportion", "upper_proportion"]

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_UNLIKELY = 0.01
"""Upper bound on the probability that a sound suite has more alarms than `allowed_alarms`."""


def lower_proportion(successes: Counts, trials: int, error: float) -> Floats:
    """One-sided lower confidence bound on a proportion (Clopper and Pearson 1934).

    Args:
        successes: From 0 to `trials`.
        trials: At least 1.
        error: Probability that the bound may exceed the proportion.
    """
    counted = np.asarray(successes, dtype=np.float64)
    bound = beta.ppf(error, np.maximum(counted, 1.0), trials - counted + 1.0)
    return np.asarray(np.where(counted == 0, 0.0, bound), dtype=np.float64)


def upper_proportion(successes: Counts, trials: int, error: float) -> Floats:
    """One-sided upper confidence bound on a proportion: `lower_proportion`'s mirror image."""
    return np.asarray(1.0 - lower_proportion(trials - np.asarray(successes), trials, error), dtype=np.float64)


def epsilon_lower(
    hits: Counts, false_alarms: Counts, trials: int, *, delta: float, confidence: float
) -> Floats:
    """Lower bounds on ε, one for each event.

    Args:
        hits: Number of occurrences of the event in `trials` runs on D'.
        false_alarms: Number of occurrences in as many runs on D.
        trials: Runs on each, at least 1.
        delta: The stated δ, in [0, 1).
        confidence: In (0, 1).

    Returns:
        At least 0, which holds for every mechanism.
    """
    error = (1.0 - confidence) / 2.0
    hit = lower_proportion(hits, trials, error)
    alarm = upper_proportion(false_alarms, trials, error)
    bound = np.maximum(_log_ratio(hit - delta, alarm), _log_ratio(1.0 - alarm - delta, 1.0 - hit))
    return np.maximum(bound, 0.0)


def allowed_alarms(repeats: int, confidence: float) -> int:
    """Most alarms in `repeats` audits of a sound suite: fewer than 1 in 100 such series have more.

    0 for a single audit; 4 of 20 at 95 % confidence.
    """
    if repeats == 1:
        return 0
    from scipy.stats import binom

    return int(binom.ppf(1.0 - _UNLIKELY, repeats, 1.0 - confidence))


def _log_ratio(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(np.maximum(numerator, 0.0) / denominator)
    return np.asarray(np.where(numerator > 0.0, ratio, -np.inf), dtype=np.float64)
