"""Composition as DPDS computes it: Theorem 7, which is Theorem 3.5 of Kairouz, Oh and Viswanath (2017)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["compose_as_claimed"]


def compose_as_claimed(epsilons: npt.ArrayLike, slack: float, *, counts: npt.ArrayLike = 1) -> float:
    """ε as DPDS computes the totals of its §4: Σε² + √(2Σε²·ln(1/slack)).

    The second bound of Theorem 7, with the relaxation (e^ε - 1)/(e^ε + 1) ≤ ε of eqs. 8 and 10. It gives
    the printed 1.4 and 0.043, when one release of ε is counted a step; for reproduction only.

    Args:
        epsilons: ε of each kind of mechanism.
        slack: δ, in (0, 1].
        counts: Number of mechanisms of each kind.
    """
    eps, number = (
        np.atleast_1d(values).astype(np.float64) for values in np.broadcast_arrays(epsilons, counts)
    )
    squares = float(number @ (eps * eps))
    return squares + math.sqrt(2.0 * squares * math.log(1.0 / slack))
