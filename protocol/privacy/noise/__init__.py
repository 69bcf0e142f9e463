"""Sources of noise behind one narrow interface.

A source is one file and one line of `NOISE_SOURCES`; releases ask for `Draw` values and never know which
source answers.
"""

from __future__ import annotations

from typing import Final

from hushbid.protocol.privacy.noise.base import Draw, NoiseSource, drawn_type
from hushbid.protocol.privacy.noise.recorded import RecordedNoise
from hushbid.protocol.privacy.noise.secure import SecureNoise
from hushbid.protocol.privacy.noise.simulated import SimulatedNoise

__all__ = [
    "NOISE_SOURCES",
    "Draw",
    "NoiseSource",
    "RecordedNoise",
    "SecureNoise",
    "SimulatedNoise",
    "drawn_type",
]

NOISE_SOURCES: Final[dict[str, type[NoiseSource]]] = {
    SecureNoise.name: SecureNoise,
    SimulatedNoise.name: SimulatedNoise,
    RecordedNoise.name: RecordedNoise,
}
"""Every source, by its name in records. Each takes its own constructor arguments: none, a seed, or a
recording.
"""
