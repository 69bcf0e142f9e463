"""The Gaussian mechanism's privacy profile, and that of discrete Gaussian noise.

μ-Gaussian differential privacy composes as Σμ² and has the profile
δ(ε) = Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ) (Balle and Wang 2018, Theorem 8; Dong, Roth, Su 2022, Corollary 2.13).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting.costs import DiscreteGaussianCost, GaussianCost
from hushbid.protocol.privacy.accounting.validation import check_delta, check_epsilon
from hushbid.protocol.privacy.accounting.zcdp import epsilon_of_rho, epsilons_of_rho

__all__ = [
    "discrete_gaussian_epsilon",
    "epsilon_of_gaussians",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_epsilons",
    "gaussian_mu",
    "law_ratios",
    "odometer_of_gaussians",
    "usable_delta",
]

SMALLEST_SIGMA: Final = 1.0
"""σ in grid units below which discrete noise is not compared with rounded noise: only zCDP then applies."""

NEGLIGIBLE: Final = 40.0
"""The comparison fails with a probability of e^-40·δ: 4·10^-18 of what δ allows."""

LARGEST_RATIO: Final = 1.0
"""Largest a for which discrete noise is compared with rounded noise."""

BISECTIONS: Final = 64

Floats = npt.NDArray[np.float64]


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ of μ-Gaussian differential privacy at ε ≥ 0. Source: Balle and Wang (2018), Theorem 8."""
    if mu == 0.0:
        return 0.0
    return math.exp(float(_log_delta(np.array([mu]), np.array([epsilon]))[0]))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least ε ≥ 0 at which μ-Gaussian differential privacy has at most this δ, rounded up.

    Raises:
        ConfigError: Also for a μ that is negative or not finite.
    """
    return float(gaussian_epsilons(np.array([mu], dtype=np.float64), delta)[0])


def gaussian_epsilons(mus: Floats, delta: float | Floats) -> Floats:
    """`gaussian_epsilon` of many μ at once.

    Args:
        mus: float64 of shape (n,), as is the result.
        delta: One value for all, or float64 of shape (n,).
    """
    if not np.all(np.isfinite(mus) & (mus >= 0.0)):
        raise ConfigError(
            "A Gaussian release was said to have a μ that is negative or not finite.",
            advice="Set its sensitivity and sigma to positive numbers.",
        )
    deltas = np.broadcast_to(np.asarray(delta, dtype=np.float64), mus.shape)
    for extreme in (deltas.min(initial=0.5), deltas.max(initial=0.5)):
        check_delta(float(extreme))
    positive = np.where(mus > 0.0, mus, 1.0)
    targets = np.log(deltas)
    # ρ + 2√(ρ·ln 1/δ) with ρ = μ²/2: Bun and Steinke (2016), Proposition 1.3.
    high = positive * positive / 2.0 + positive * np.sqrt(-2.0 * targets)
    low = np.zeros_like(high)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        enough = _log_delta(positive, middle) <= targets
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle)
    none = (mus == 0.0) | (_log_delta(positive, np.zeros_like(high)) <= targets)
    return np.where(none, 0.0, high)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest μ whose profile has at most this δ at ε, rounded up: the inverse of `gaussian_epsilon`.

    Raises:
        ConfigError: Also for an ε that is not positive and finite.
    """
    check_epsilon(epsilon)
    check_delta(delta)
    # μ²/2 + μ√(2·ln 1/δ) = ε: sufficient by zCDP's simple conversion.
    simple = math.sqrt(-2.0 * math.log(delta))
    low = 2.0 * epsilon / (math.hypot(simple, math.sqrt(2.0 * epsilon)) + simple)
    low = low or math.ulp(0.0)  # of the least ε it is 0, which no doubling leaves
    high = 2.0 * low
    while gaussian_delta(high, epsilon) <= delta:
        low, high = high, 2.0 * high
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gaussian_delta(middle, epsilon) <= delta else (low, middle)
    return high


def discrete_gaussian_epsilon(
    sensitivity: float, sigma: float, releases: int, values: int, delta: float
) -> float:
    """ε at δ of adaptive releases of integer vectors with discrete Gaussian noise on each coordinate.

    The smaller of two guarantees. One is zCDP with its tight conversion (Canonne, Kamath, Steinke 2020). The
    other compares the noise with a continuous Gaussian of the same σ that is rounded to whole numbers. Its
    profile is exactly the continuous mechanism's: totals are whole, so round(total + g) = total + round(g),
    and rounding is post-processing.

    *Claim.* Let D be the law of all n noise values of the discrete Gaussian, and R that of n independent
    rounded Gaussians; both are independent of data. If a session with noise R is (ε, δ')-DP, then with noise
    D it is (ε + a + b, e^a·(δ' + e^ε·τ))-DP, where

    - a = n·c/(1 - c), c = 1/(24σ²);
    - b = n·2q/(1 - q) + B²/(24σ²), q = e^(-2π²σ²);
    - B = √(n + 2√(n·x) + 2x) + √n/(2σ), τ = e^-x, for any x > 0.

    *Proof.* Write D(k) = e^(-k²/2σ²)/C, and R(k) for the integral of the Gaussian's density over
    [k - ½, k + ½].

    1. By Poisson summation C = Σ_k e^(-k²/2σ²) = σ√(2π)·(1 + θ) with θ = 2·Σ_{j≥1} q^(j²) and
       0 ≤ θ ≤ 2·Σ_{j≥1} q^j = 2q/(1 - q).
    2. Substituting k + u and folding u with -u, R(k) = e^(-k²/2σ²)·I(k)/(σ√(2π)), with I(k) the integral of
       cosh(ku/σ²)·e^(-u²/2σ²) over u in [-½, ½]. Hence R(k)/D(k) = (1 + θ)·I(k).
    3. cosh ≥ 1 and e^-y ≥ 1 - y give I(k) ≥ 1 - c, and ln(1 - c) ≥ -c/(1 - c). With θ ≥ 0:
       D(z) ≤ e^a·R(z) for *every* vector z of n values.
    4. e^-y ≤ 1 and sinh(v)/v ≤ e^(v²/6) give I(k) ≤ sinh(v)/v ≤ e^(k²/24σ⁴), v = k/2σ². With
       ln(1 + θ) ≤ θ: R(z) ≤ e^b·D(z) for every z with ‖z‖ ≤ σB.
    5. Under R each |z_i| ≤ |g_i| + ½, so ‖z‖ ≤ ‖g‖ + √n/2. ‖g‖²/σ² is chi-squared with n degrees of
       freedom, and exceeds n + 2√(n·x) + 2x with probability at most e^-x (Laurent and Massart 2000,
       Lemma 1). So R(‖z‖ > σB) ≤ τ.
    6. A party's whole view is a randomised function of the noise z; its law given z depends on the dataset X,
       but not on whether z was drawn from D or R: that covers adaptive releases and any other mechanism in
       between. For neighbours X, X' and an event S, D_X(S) ≤ e^a·R_X(S) ≤ e^a·(e^ε·R_X'(S) + δ') by 3 and
       the assumption, and R_X'(S) ≤ e^b·D_X'(S) + τ by 4 and 5. ∎

    So the continuous profile is evaluated at δ' = e^-a·δ - e^ε·τ. x is chosen such that e^ε·τ ≤ e^-40·δ for
    all ε up to that of zCDP; above it zCDP is returned anyway. The comparison is skipped at σ below
    `SMALLEST_SIGMA`, and where a exceeds `LARGEST_RATIO`; where a + b is not small, zCDP gives the smaller ε
    anyway.

    Args:
        sensitivity: L2 sensitivity of one release, in units of the grid; the caller states which datasets it,
            and so the ε, compares.
        sigma: σ of the noise on each coordinate, in units of the grid.
        values: n, the noise values of all releases together.

    Raises:
        ConfigError: A value is out of range.
    """
    if releases < 1 or values < releases or values % releases:
        raise ConfigError(
            f"{releases} releases cannot have {values} noise values together.",
            advice="Give the values of all releases together: as many for each.",
        )
    one = DiscreteGaussianCost(sensitivity=sensitivity, sigma=sigma, width=values // releases, count=releases)
    return epsilon_of_gaussians((one,), delta)


def epsilon_of_gaussians(costs: Sequence[GaussianCost | DiscreteGaussianCost], delta: float) -> float:
    """`discrete_gaussian_epsilon` for releases with different noise: μ², ρ, a and b all add up."""
    by_zcdp = epsilon_of_rho(math.fsum(cost.rho for cost in costs), delta)
    down, up = law_ratios([cost for cost in costs if isinstance(cost, DiscreteGaussianCost)], by_zcdp, delta)
    if not math.isfinite(up):
        return by_zcdp
    mu = math.sqrt(math.fsum(cost.mu_squared for cost in costs))
    return min(by_zcdp, gaussian_epsilon(mu, usable_delta(delta, down)) + down + up)


def law_ratios(costs: Sequence[DiscreteGaussianCost], epsilon: float, delta: float) -> tuple[float, float]:
    """(a, b) of the claim in `discrete_gaussian_epsilon`, for noise of several σ.

    With n_l values of σ_l, a and the θ-part of b are sums over l. The rest of b is Σ_l ‖z_l‖²/(24σ_l⁴), a
    weighted sum of squares: Laurent and Massart's lemma has Σ w_i·(g_i/σ_i)² ≤ Σw + 2√(Σw²·x) + 2·max(w)·x
    but for e^-x, here with w_i = 1/(24σ_i²), and Minkowski's inequality adds the rounding of each by ½.

    Args:
        costs: Costs of discrete noise; without any, the laws are equal.
        epsilon: The largest ε for which the claim will be used.
        delta: The δ relative to which τ·e^ε must be negligible.

    Returns:
        (0, 0) without costs; (∞, ∞) if the claim is not used.
    """
    if not costs:
        return 0.0, 0.0
    x = NEGLIGIBLE + epsilon - math.log(delta)
    if min(cost.sigma for cost in costs) < SMALLEST_SIGMA or not math.isfinite(x):
        return math.inf, math.inf
    down = normaliser = total = squares = rounding = largest = 0.0
    for cost in costs:
        weight = 1.0 / (24.0 * cost.sigma**2)
        tail = math.exp(-2.0 * math.pi**2 * cost.sigma**2)
        down += cost.values * weight / (1.0 - weight)
        normaliser += cost.values * 2.0 * tail / (1.0 - tail)
        total += cost.values * weight
        squares += cost.values * weight**2
        rounding += cost.values * weight / cost.sigma**2
        largest = max(largest, weight)
    radius = math.sqrt(total + 2.0 * math.sqrt(squares * x) + 2.0 * largest * x) + math.sqrt(rounding) / 2.0
    # Beyond that nothing is left of δ, and zCDP is far better.
    return (down, normaliser + radius**2) if down <= LARGEST_RATIO else (math.inf, math.inf)


def usable_delta(delta: float, down: float) -> float:
    """δ' = e^-a·δ - e^ε·τ, with the τ that `law_ratios` chose."""
    return delta * (math.exp(-down) - math.exp(-NEGLIGIBLE))


def odometer_of_gaussians(costs: Sequence[GaussianCost | DiscreteGaussianCost], delta: float) -> Floats:
    """`epsilon_of_gaussians` of the first 1, 2, …, n costs: float64 of shape (n,), never decreasing.

    a and b are those of all n releases, which bound those of fewer.
    """
    rhos = np.cumsum([cost.rho for cost in costs])
    by_zcdp = epsilons_of_rho(rhos, delta)
    discrete = [cost for cost in costs if isinstance(cost, DiscreteGaussianCost)]
    down, up = law_ratios(discrete, float(by_zcdp.max(initial=0.0)), delta)
    if not math.isfinite(up):
        return by_zcdp
    profile = gaussian_epsilons(np.sqrt(2.0 * rhos), usable_delta(delta, down))
    return np.minimum(by_zcdp, profile + down + up)


def _log_delta(mus: Floats, epsilons: Floats) -> Floats:
    """Ln δ, for μ > 0. Its relative error is about 10^-15·(1 + ε)/μ."""
    # Imported here because it takes a tenth of a party's start-up time, and owners do not need it.
    from scipy.special import log_ndtr  # noqa: PLC0415

    first = log_ndtr(mus / 2.0 - epsilons / mus)
    second = epsilons + log_ndtr(-mus / 2.0 - epsilons / mus)
    with np.errstate(divide="ignore"):
        return np.asarray(first + np.log(-np.expm1(np.minimum(second - first, 0.0))), dtype=np.float64)
