"""What a release asks of a source of noise, and what a source promises (DESIGN §2, "Noise")."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy.typing as npt

from protocol.errors import LocalProtocolError

__all__ = ["Distribution", "Draw", "NoiseSource"]

Distribution = Literal["uniform", "laplace", "discrete-gaussian"]


@dataclass(frozen=True, slots=True)
class Draw:
    """One request for noise. It depends on public values only, so noise can be drawn ahead of its use.

    Args:
        distribution: ``uniform``: float64 in [0, 1), `scale` is 1. ``laplace``: float64 of density
            exp(-|x|/scale)/(2·scale). ``discrete-gaussian``: int64 with P(x) ∝ exp(-x²/(2·scale²)),
            `scale` in units of the integer grid.
        scale: Positive and finite.
        size: How many independent values, at least 1.

    Raises:
        LocalProtocolError: A scale or size outside of these bounds.
    """

    distribution: Distribution
    scale: float
    size: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0 and self.size >= 1):
            raise LocalProtocolError(f"A draw of {self.size} values at scale {self.scale} was requested.")
        if self.distribution == "uniform" and self.scale != 1.0:
            raise LocalProtocolError("A uniform draw was requested at a scale other than 1.")


class NoiseSource(Protocol):
    """Where noise comes from: simulated, secure, or recorded."""

    @property
    def name(self) -> str:
        """The source, as it stands in every record of a release."""
        ...

    @property
    def protects(self) -> bool:
        """Whether a release with this noise keeps the privacy that its mechanism states."""
        ...

    def draw(self, request: Draw) -> npt.NDArray[Any]:
        """Fresh noise: float64, or int64 for ``discrete-gaussian``, of shape (request.size,)."""
        ...
