"""Privacy-loss distributions, for mechanisms that are known by their privacy profile.

A profile δ(t) bounds P(loss beyond t), in the hockey-stick sense, for every real t. It is replaced by the
piecewise linear curve (in e^t) through its values on a grid, which lies above it: the "connect the dots"
discretisation of Doroshenko et al. (2022), pessimistic and with no drift. Compositions are powers of
the discrete distribution's Fourier transform.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocol.accounting.zcdp import bounded_range_rho, compose_rho, epsilon_of_rho, pure_rho
from protocol.errors import ConfigError

__all__ = ["ProfiledMechanism", "bounded_range", "epsilon_of_composition", "pure_laplace"]

Profile: TypeAlias = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]

GRID_POINTS_PER_BOUND: Final = 32
"""Grid points from 0 to the smallest loss bound of a composition: the figures below are then within
0.1 % of their limit."""

TAIL_SHARE: Final = 1e-3
"""Share of δ that is given up for the mass beyond the grid."""


MAX_GRID_POINTS: Final = 2**21
"""Grid points within ten standard deviations of a composition; a coarser grid is used above."""

MAX_RHO: Final = 50.0
"""Compositions of a larger ρ are left to zCDP: their ε is past all use, and e^loss past float64."""


@dataclass(frozen=True)
class ProfiledMechanism:
    """A mechanism whose privacy loss lies in [-bound, bound].

    Attributes:
        bound: ε of its pure differential privacy.
        rho: ρ of its zCDP.
        profile: δ(t) for |t| ≤ bound.
    """

    bound: float
    rho: float
    profile: Profile


def pure_laplace(epsilon: float) -> ProfiledMechanism:
    """Laplace noise that is ε-DP: δ(t) = 1 - e^((t - ε)/2) for |t| ≤ ε."""
    return ProfiledMechanism(epsilon, pure_rho(epsilon), lambda t: -np.expm1((t - epsilon) / 2.0))


def bounded_range(eta: float) -> ProfiledMechanism:
    """An exponential mechanism of range η: δ(t) = (1 - e^((t - η)/2))²/(1 - e^-η) for |t| ≤ η.

    Source: Dong, Durfee and Rogers (2020); with weights e^(cψ) and a score of sensitivity Δ,
    η = 2cΔ.
    """
    return ProfiledMechanism(
        eta, bounded_range_rho(eta), lambda t: np.expm1((t - eta) / 2.0) ** 2 / -math.expm1(-eta)
    )


def epsilon_of_composition(parts: Sequence[tuple[ProfiledMechanism, int]], delta: float) -> float:
    """The ε at δ of the adaptive composition of `count` times each mechanism.

    The lesser of what the privacy-loss distribution and zCDP give.

    Args:
        parts: (mechanism, count) of each kind.
        delta: In (0, 1).

    Raises:
        ConfigError: No part, a bound or count that is not positive, or δ outside of (0, 1).
    """
    if not parts or not 0.0 < delta < 1.0 or any(part.bound <= 0.0 or count < 1 for part, count in parts):
        raise ConfigError(
            "A composition needs mechanisms of positive ε and a delta between 0 and 1.",
            advice="Correct the privacy parameters.",
        )
    rho = compose_rho(*((part.rho, count) for part, count in parts))
    simple = epsilon_of_rho(rho, delta)
    return simple if rho > MAX_RHO else min(simple, _epsilon_by_distribution(parts, delta))


def _epsilon_by_distribution(parts: Sequence[tuple[ProfiledMechanism, int]], delta: float) -> float:
    # Here, for it takes a third of the time in which a party starts, and most sessions have no use for it.
    from scipy import fft  # noqa: PLC0415

    spread = math.sqrt(sum(count * part.bound**2 for part, count in parts))
    step = max(min(part.bound for part, _ in parts) / GRID_POINTS_PER_BOUND, 10.0 * spread / MAX_GRID_POINTS)
    losses = [(_discretise(part, step), count) for part, count in parts]
    tail = delta * TAIL_SHARE
    half = max(_reach(losses, sign, tail / 2.0) for sign in (1.0, -1.0))
    size = fft.next_fast_len(2 * half + 1, real=True)
    spectrum: npt.NDArray[np.complex128] = np.ones(size // 2 + 1, dtype=np.complex128)
    for masses, count in losses:
        reach = len(masses) // 2
        circle = np.zeros(size)
        # A grid narrower than one mechanism's own support cannot be: `_reach` is at least that support.
        circle[: reach + 1] = masses[reach:]
        circle[-reach:] = masses[:reach]
        spectrum *= fft.rfft(circle) ** count
    composed = np.maximum(fft.irfft(spectrum, size), 0.0)
    return _epsilon(composed[: half + 1], step, delta - tail)


def _discretise(part: ProfiledMechanism, step: float) -> npt.NDArray[np.float64]:
    """Masses under P of the losses -n·step … n·step, n·step ≥ bound."""
    n = math.ceil(part.bound / step - 1e-9)
    losses = np.arange(-n, n + 1) * step
    inside = np.clip(losses, -part.bound, part.bound)
    curve = np.where(losses >= part.bound, 0.0, part.profile(inside))
    curve = np.where(losses <= -part.bound, -np.expm1(losses), curve)
    # δ = Σ p·(1 - e^(t - loss))+ is piecewise linear in e^t, with slope -q to the left of a loss of mass q
    # under Q. Left of the grid the curve is 1 - e^t, right of it 0.
    slopes = np.concatenate(([-1.0], np.diff(curve) / (np.exp(losses[:-1]) * math.expm1(step)), [0.0]))
    masses = np.maximum(np.diff(slopes), 0.0) * np.exp(losses)
    return np.asarray(masses / masses.sum(), dtype=np.float64)


def _reach(losses: Sequence[tuple[npt.NDArray[np.float64], int]], sign: float, tail: float) -> int:
    """Grid steps beyond which the composition has at most `tail` mass on one side (Chernoff)."""
    support = max(len(masses) // 2 for masses, _ in losses)
    variance = sum(
        count * float(masses @ (np.arange(len(masses)) - len(masses) // 2) ** 2) for masses, count in losses
    )
    best = math.inf
    for scale in np.geomspace(0.1, 30.0, 60):
        rate = scale / math.sqrt(variance)  # per grid step
        log_moment = 0.0
        for masses, count in losses:
            exponents = sign * rate * (np.arange(len(masses)) - len(masses) // 2)
            top = float(exponents.max())
            log_moment += count * (top + math.log(float(masses @ np.exp(exponents - top))))
        best = min(best, (log_moment - math.log(tail)) / rate)
    whole = sum(count * (len(masses) // 2) for masses, count in losses)
    return min(whole, max(support, math.ceil(best)))


def _epsilon(masses: npt.NDArray[np.float64], step: float, delta: float) -> float:
    """Least ε ≥ 0 with Σ p·(1 - e^(ε - loss))+ ≤ δ, over losses of 0, 1, 2, … steps."""
    losses = np.arange(len(masses)) * step
    above = np.cumsum(masses[::-1])[::-1]
    tilted = np.cumsum((masses * np.exp(-losses))[::-1])[::-1]
    curve = above - np.exp(losses) * tilted
    within = int(np.argmax(curve <= delta))
    if within == 0:
        return 0.0
    # Between two grid points the losses that count are those from the right one on.
    return math.log((float(above[within]) - delta) / float(tilted[within]))
