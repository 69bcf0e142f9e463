"""The interface between releases and sources of noise (DESIGN §2, "Noise")."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import ConfigError, LocalProtocolError

__all__ = ["MAX_DISCRETE_SCALE", "Distribution", "Draw", "NoiseSource", "check_byte_count", "drawn_type"]

Distribution = Literal["uniform", "laplace", "discrete-gaussian", "discrete-laplace"]

MAX_DISCRETE_SCALE: Final = 2.0**56
"""Largest scale of discrete noise, in grid units.

A discrete Gaussian X is as sub-Gaussian as the continuous one, P(|X| ≥ m) ≤ 2·exp(-m²/(2·scale²)) (Canonne,
Kamath, Steinke 2020). So P(|X| ≥ 2^62) ≤ 2·exp(-2^11) < 10^-888: no value comes near the ends of int64, where
a sampler would clamp it, or a sum with a total would wrap. A discrete Laplace is out there with a
probability of e^-64 at this scale, once in 10^27 values.
"""


@dataclass(frozen=True, slots=True)
class Draw:
    """A request for noise. It depends only on public values, so noise can be drawn ahead of its use.

    Args:
        distribution: ``uniform``: float64 in [0, 1), `scale` is 1. ``laplace``: float64 of density
            exp(-|x|/scale)/(2·scale). ``discrete-gaussian``: int64 with P(x) ∝ exp(-x²/(2·scale²)),
            `scale` in units of the integer grid. ``discrete-laplace``: int64 with P(x) ∝ exp(-|x|/scale).
        scale: Positive and finite.
        size: Number of independent values, at least 1.

    Raises:
        LocalProtocolError: A scale or size outside of these bounds.
        ConfigError: Discrete noise of more than `MAX_DISCRETE_SCALE`.
    """

    distribution: Distribution
    scale: float
    size: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0 and self.size >= 1):
            raise LocalProtocolError(f"A draw of {self.size} values at scale {self.scale} was requested.")
        if self.distribution == "uniform" and self.scale != 1.0:
            raise LocalProtocolError("A uniform draw was requested at a scale other than 1.")
        if self.distribution.startswith("discrete-") and self.scale > MAX_DISCRETE_SCALE:
            raise ConfigError(
                f"Discrete noise of scale {self.scale:g} in grid units does not fit into 64 bits: "
                f"the most is {MAX_DISCRETE_SCALE:g}.",
                advice="Lower the noise, or raise epsilon or delta.",
            )

    @property
    def variance(self) -> float:
        """Variance of one value; for a discrete Gaussian the continuous one's, which bounds its own."""
        match self.distribution:
            case "uniform":
                return 1.0 / 12.0
            case "laplace":
                return 2.0 * self.scale**2
            case "discrete-gaussian":
                return self.scale**2
            case "discrete-laplace":
                # 2q/(1 - q)² with q = e^(-1/scale): P(x) ∝ q^|x|.
                return 2.0 * math.exp(-1.0 / self.scale) / math.expm1(-1.0 / self.scale) ** 2

    def __str__(self) -> str:
        return f"{self.size} {self.distribution} values of scale {self.scale:g}"


class NoiseSource(Protocol):
    """A source of noise: simulated, secure, or recorded. Not for use by two threads at once."""

    @property
    def name(self) -> str:
        """The source's name in every record of a release."""
        ...

    @property
    def protects(self) -> bool:
        """Whether a release with this noise keeps the privacy that its mechanism states."""
        ...

    def check(self, request: Draw) -> None:
        """Refuse a request that `draw` would refuse, before a session starts.

        Raises:
            ConfigError: The source has no such noise.
        """
        ...

    def draw(self, request: Draw) -> npt.NDArray[Any]:
        """Fresh noise of `drawn_type`, shape (request.size,).

        Raises:
            ConfigError: As `check`.
        """
        ...

    def random_bytes(self, count: int) -> bytes:
        """`count` fresh bytes, at least one, for keys. They do not affect the noise that `draw` returns.

        Raises:
            LocalProtocolError: `count` is less than 1.
        """
        ...


def drawn_type(request: Draw) -> type[np.float64] | type[np.int64]:
    """The type of a source's answer: int64 for discrete noise, otherwise float64."""
    return np.int64 if request.distribution.startswith("discrete-") else np.float64


def check_byte_count(count: int) -> None:
    """Raises LocalProtocolError unless `count` is at least 1."""
    if count < 1:
        raise LocalProtocolError(f"{count} random bytes were requested.")
