"""Advanced composition: Theorem 7 of DPDS, which is Theorem 3.5 of Kairouz, Oh and Viswanath (2017)."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from protocol.errors import ConfigError

__all__ = ["TheoremForm", "compose", "compose_as_claimed"]

TheoremForm = Literal["original", "printed"]


def compose(
    epsilons: npt.ArrayLike,
    deltas: npt.ArrayLike,
    slack: float,
    form: TheoremForm,
    *,
    counts: npt.ArrayLike = 1,
) -> tuple[float, float]:
    """(ε, δ) of the k-fold adaptive composition of (ε_i, δ_i)-DP mechanisms: the least of three bounds.

    Σε; Σε·tanh(ε/2) + √(2Σε²·ln(1/slack)); and Σε·tanh(ε/2) + √(2Σε²·ln(e + √(Σε²)/slack)). DPDS prints
    √(Σ2ε²) for the √(Σε²) inside the last logarithm: larger, so valid, but loose.

    Args:
        epsilons: ε_i: one number, or as many as there are kinds of mechanisms.
        deltas: δ_i, in the same form.
        slack: δ̃ of the theorem, in [0, 1].
        form: ``original``, or ``printed`` for the third bound as DPDS has it.
        counts: Number of mechanisms of each kind.

    Returns:
        ε, and δ = 1 - (1 - slack)·Π(1 - δ_i).

    Raises:
        ConfigError: A value is out of range, or lengths differ.
    """
    eps, dlt, number = _kinds(epsilons, deltas, counts)
    if not 0.0 <= slack <= 1.0:
        raise ConfigError(f"The composition's slack is {slack}.", advice="Set it between 0 and 1.")
    certain = slack == 1.0 or bool(np.any((dlt == 1.0) & (number > 0)))
    delta = 1.0 if certain else -math.expm1(float(number @ _log_complement(dlt)) + math.log1p(-slack))
    simple = float(number @ eps)
    if slack == 0.0:
        return simple, delta
    drift = float(number @ (eps * np.tanh(eps / 2.0)))
    squares = float(number @ (eps * eps))
    inside = math.sqrt(squares if form == "original" else 2.0 * squares)
    second = drift + math.sqrt(2.0 * squares * math.log(1.0 / slack))
    third = drift + math.sqrt(2.0 * squares * math.log(math.e + inside / slack))
    return min(simple, second, third), delta


def compose_as_claimed(epsilons: npt.ArrayLike, slack: float, *, counts: npt.ArrayLike = 1) -> float:
    """ε as DPDS computes the totals of its §4: Σε² + √(2Σε²·ln(1/slack)).

    The second bound of Theorem 7, with the relaxation (e^ε - 1)/(e^ε + 1) ≤ ε of eqs. 8 and 10. It gives
    the printed 1.4 and 0.043, when one release of ε is counted a step; for reproduction only.

    Raises:
        ConfigError: A value is out of range, or lengths differ.
    """
    eps, _, number = _kinds(epsilons, 0.0, counts)
    if not 0.0 < slack <= 1.0:
        raise ConfigError(f"The composition's slack is {slack}.", advice="Set it above 0, up to 1.")
    squares = float(number @ (eps * eps))
    return squares + math.sqrt(2.0 * squares * math.log(1.0 / slack))


def _kinds(
    epsilons: npt.ArrayLike, deltas: npt.ArrayLike, counts: npt.ArrayLike
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    try:
        eps, dlt, number = (
            np.atleast_1d(values).astype(np.float64)
            for values in np.broadcast_arrays(epsilons, deltas, counts)
        )
    except ValueError:
        raise ConfigError(
            "A composition was given ε, δ and counts of different lengths.", advice="Give one of each a kind."
        ) from None
    if not (
        np.all(np.isfinite(eps) & (eps >= 0.0))
        and np.all((dlt >= 0.0) & (dlt <= 1.0))
        and np.all(np.isfinite(number) & (number >= 0.0) & (number == np.floor(number)))
    ):
        raise ConfigError(
            "A composition was given an ε below 0, a δ outside of [0, 1], or a count that is not whole.",
            advice="Correct the privacy parameters.",
        )
    return eps, dlt, number


def _log_complement(deltas: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """ln(1 - δ), with 0 for a δ of 1: that kind has a count of 0."""
    return np.log1p(-np.where(deltas < 1.0, deltas, 0.0))
