"""Zero-concentrated differential privacy (Bun and Steinke 2016): ρ adds up, and becomes (ε, δ) at the end."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.intervals import within

__all__ = [
    "bounded_range_rho",
    "epsilon_of_rho",
    "epsilons_of_rho",
    "gaussian_rho",
    "pure_rho",
    "rho_of_epsilon",
]

GOLDEN_RATIO: Final = (math.sqrt(5.0) - 1.0) / 2.0
GOLDEN_STEPS: Final = 44
"""Steps of the golden-section search over ln(α - 1): 12·0.618^44 is below 10^-8, and ε is flat there."""


RHO_TOLERANCE: Final = 1e-9
"""Relative shortfall of `rho_of_epsilon`."""


def gaussian_rho(sensitivity: float, sigma: float) -> float:
    """ρ = Δ²/(2σ²) of (discrete) Gaussian noise on a vector of L2 sensitivity Δ.

    Source: Canonne, Kamath, Steinke (2020): the multivariate discrete Gaussian has
    the continuous one's ρ, for vectors on the noise's grid.
    """
    return sensitivity * sensitivity / (2.0 * sigma * sigma)


def pure_rho(epsilon: float) -> float:
    """ρ = ε²/2 of an ε-DP mechanism (Bun and Steinke 2016)."""
    return epsilon * epsilon / 2.0


def bounded_range_rho(eta: float) -> float:
    """ρ = η²/8 of an η-bounded-range mechanism (Cesar and Rogers 2021)."""
    return eta * eta / 8.0


def epsilon_of_rho(rho: float, delta: float) -> float:
    """The least ε that the Rényi curve of ρ-zCDP gives at δ.

    min over α > 1 of αρ + ln(1 - 1/α) - (ln δ + ln α)/(α - 1): Canonne, Kamath, Steinke (2020),
    Proposition 12. Every α is valid, so an inexact minimum is still a guarantee.

    Raises:
        ConfigError: Also for ρ < 0.
    """
    return float(epsilons_of_rho(np.array([rho], dtype=np.float64), delta)[0])


def epsilons_of_rho(rhos: npt.NDArray[np.float64], delta: float) -> npt.NDArray[np.float64]:
    """`epsilon_of_rho` of many ρ at once: float64 of shape (n,). An infinite ρ has an infinite ε."""
    if not (np.all(rhos >= 0.0) and within(ranges.Delta, delta)):
        worst = float(np.min(rhos, initial=0.0))
        raise ConfigError(
            f"No ε can be stated for rho {worst} at delta {delta}.", advice="Set delta between 0 and 1."
        )
    usable = np.isfinite(rhos) & (rhos > 0.0)
    scale = np.where(usable, rhos, 1.0)

    def epsilons(log_excess: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        excess = np.exp(log_excess)  # α - 1
        log_order = np.log1p(excess)
        return (1.0 + excess) * scale + log_excess - log_order - (math.log(delta) + log_order) / excess

    # Around the optimum of the simple conversion ρ + 2√(ρ ln 1/δ); the optimum of the tight one is slightly
    # to the left.
    centre = 0.5 * np.log(-math.log(delta) / scale)
    low, high = centre - 8.0, centre + 4.0
    best = epsilons(centre)
    for _ in range(GOLDEN_STEPS):
        width = (high - low) * GOLDEN_RATIO
        left, right = high - width, low + width
        at_left, at_right = epsilons(left), epsilons(right)
        best = np.minimum(best, np.minimum(at_left, at_right))
        keep_left = at_left < at_right
        low, high = np.where(keep_left, low, left), np.where(keep_left, right, high)
    return np.where(usable, np.maximum(best, 0.0), np.where(rhos > 0.0, np.inf, 0.0))


@lru_cache(maxsize=256)
def rho_of_epsilon(epsilon: float, delta: float) -> float:
    """The largest ρ whose `epsilon_of_rho` at δ is at most ε > 0, rounded down."""
    # ρ + 2√(ρ·ln 1/δ) = ε is the simple conversion, which the tight one never exceeds.
    simple = math.sqrt(-math.log(delta))
    low = (epsilon / (math.sqrt(epsilon - math.log(delta)) + simple)) ** 2
    high = 2.0 * low
    while epsilon_of_rho(high, delta) <= epsilon:
        low, high = high, 2.0 * high
    while high > low * (1.0 + RHO_TOLERANCE):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if epsilon_of_rho(middle, delta) <= epsilon else (low, middle)
    return low
