"""Sources of noise behind one narrow interface.

A source is one file and one line of `NOISE_SOURCES`; releases ask for `Draw` values and never know which
source answers.
"""

from __future__ import annotations

from typing import Final

from protocol.noise.base import Distribution, Draw, NoiseSource
from protocol.noise.simulated import SimulatedNoise

__all__ = ["NOISE_SOURCES", "Distribution", "Draw", "NoiseSource", "SimulatedNoise"]

NOISE_SOURCES: Final[dict[str, type[NoiseSource]]] = {SimulatedNoise.name: SimulatedNoise}
"""Every source, by the name that a session file uses."""
