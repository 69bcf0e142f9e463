"""Composition as DPDS computes it: Theorem 7, which is Theorem 3.5 of Kairouz, Oh and Viswanath (2017)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import ConfigError

__all__ = ["compose_as_claimed", "kinds"]


def compose_as_claimed(epsilons: npt.ArrayLike, slack: float, *, counts: npt.ArrayLike = 1) -> float:
    """ε as DPDS computes the totals of its §4: Σε² + √(2Σε²·ln(1/slack)).

    The second bound of Theorem 7, with the relaxation (e^ε - 1)/(e^ε + 1) ≤ ε of eqs. 8 and 10. It gives
    the printed 1.4 and 0.043, when one release of ε is counted a step; for reproduction only.

    Args:
        epsilons: ε of each kind of mechanism.
        slack: δ, in (0, 1].
        counts: Number of mechanisms of each kind.

    Raises:
        ConfigError: A value is out of range, or lengths differ.
    """
    eps, _, number = kinds(epsilons, 0.0, counts)
    if not 0.0 < slack <= 1.0:
        raise ConfigError(f"The composition's slack is {slack}.", advice="Set it above 0, up to 1.")
    squares = float(number @ (eps * eps))
    return squares + math.sqrt(2.0 * squares * math.log(1.0 / slack))


def kinds(
    epsilons: npt.ArrayLike, deltas: npt.ArrayLike, counts: npt.ArrayLike
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """ε, δ and number of each kind of mechanism, as arrays of one length; raise a ConfigError otherwise."""
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
