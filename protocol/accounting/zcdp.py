"""Zero-concentrated differential privacy (Bun and Steinke 2016): ρ adds up, and becomes (ε, δ) at the end."""

from __future__ import annotations

import math

from protocol.errors import ConfigError

__all__ = ["bounded_range_rho", "compose_rho", "epsilon_of_rho", "gaussian_rho", "pure_rho"]


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


def compose_rho(*parts: tuple[float, int]) -> float:
    """ρ of adaptively composed releases, from (ρ of one, how many) of each kind."""
    return math.fsum(rho * count for rho, count in parts)


def epsilon_of_rho(rho: float, delta: float) -> float:
    """The least ε that the Rényi curve of ρ-zCDP gives at δ.

    min over α > 1 of αρ + ln(1 - 1/α) - (ln δ + ln α)/(α - 1): Canonne, Kamath, Steinke (2020),
    Proposition 12. Every α is valid, so an inexact minimum is still a guarantee.

    Raises:
        ConfigError: ρ < 0, or δ outside of (0, 1).
    """
    if not (rho >= 0.0 and 0.0 < delta < 1.0):
        raise ConfigError(
            f"No ε can be stated for rho {rho} at delta {delta}.", advice="Set delta between 0 and 1."
        )
    if rho == 0.0:
        return 0.0
    # Here, for it takes a third of the time in which a party starts, and most sessions have no use for it.
    from scipy.optimize import minimize_scalar  # noqa: PLC0415

    def epsilon(log_excess: float) -> float:
        excess = math.exp(log_excess)  # α - 1
        order = 1.0 + excess
        return order * rho + log_excess - math.log(order) - (math.log(delta) + math.log(order)) / excess

    # Around the optimum of the simple conversion ρ + 2√(ρ ln 1/δ); the tight one has its own a little
    # to the left.
    centre = 0.5 * math.log(-math.log(delta) / rho)
    found = minimize_scalar(
        epsilon, bounds=(centre - 8.0, centre + 4.0), method="bounded", options={"xatol": 1e-9}
    )
    return max(0.0, min(float(found.fun), epsilon(centre)))
