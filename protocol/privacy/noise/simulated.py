"""Seeded noise, for simulation and tests. It protects nobody: the seed determines the noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.intervals import within
from hushbid.protocol.privacy.noise.base import Draw, check_byte_count

__all__ = ["SimulatedNoise"]


class SimulatedNoise:
    """Noise with the right distribution from a seeded generator for one party.

    Equal seeds, parties and sequences of requests give equal noise.

    Args:
        party: The party that draws; each party has its own stream.

    Raises:
        ConfigError: A negative seed.
    """

    name = "simulated"
    protects = False

    def __init__(self, seed: int, party: str) -> None:
        if not within(ranges.Seed, seed):
            raise ConfigError("The seed of simulated noise is negative.", advice="Set it to 0 or more.")
        label = party.encode()
        # The length comes first, so that no party, not even a nameless one, shares the stream of the bare
        # seed (a feature map's).
        sequence = np.random.SeedSequence(entropy=seed, spawn_key=(len(label), *label))
        self._generator = np.random.Generator(np.random.PCG64(sequence))
        # A separate stream that no party's label can reach: it is one longer than its first item says.
        sequence = np.random.SeedSequence(entropy=seed, spawn_key=(len(label), *label, 1))
        self._keys = np.random.Generator(np.random.PCG64(sequence))

    def check(self, request: Draw) -> None:
        """Accept every request."""

    def draw(self, request: Draw) -> npt.NDArray[Any]:
        """Noise as `request` asks.

        Discrete noise is sampled from its own distribution, not rounded from a continuous one, up to
        float64's error in the acceptance probability: enough for simulation; not for protection, where low
        bits leak (Mironov 2012).
        """
        match request.distribution:
            case "uniform":
                return self._generator.random(request.size)
            case "laplace":
                return self._generator.laplace(0.0, request.scale, request.size)
            case "discrete-gaussian":
                return self._discrete_gaussian(request.scale, request.size)
            case "discrete-laplace":
                return self._discrete_laplace(-math.expm1(-1.0 / request.scale), request.size)

    def random_bytes(self, count: int) -> bytes:
        check_byte_count(count)
        return self._keys.bytes(count)

    def _discrete_gaussian(self, sigma: float, size: int) -> npt.NDArray[np.int64]:
        # Canonne, Kamath, Steinke (2020): propose from a discrete Laplace distribution of
        # scale t and accept with probability exp(-(|y| - σ²/t)²/(2σ²)).
        t = math.floor(sigma) + 1
        success = -math.expm1(-1.0 / t)
        drawn = np.empty(0, dtype=np.int64)
        while len(drawn) < size:
            proposals = 2 * (size - len(drawn)) + 16
            y = self._discrete_laplace(success, proposals)
            accept = np.exp(-((np.abs(y) - sigma * sigma / t) ** 2) / (2.0 * sigma * sigma))
            drawn = np.concatenate([drawn, y[self._generator.random(proposals) < accept]])
        return drawn[:size]

    def _discrete_laplace(self, success: float, size: int) -> npt.NDArray[np.int64]:
        """P(x) ∝ (1 - success)^|x|: the difference of two geometric variables."""
        return self._generator.geometric(success, size) - self._generator.geometric(success, size)
