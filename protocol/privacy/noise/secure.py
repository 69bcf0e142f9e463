"""Noise that protects: exact samplers on the operating system's randomness."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from nacl.bindings import randombytes

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.noise.base import Draw, check_byte_count

__all__ = ["SecureNoise"]


class SecureNoise:
    """Unrepeatable noise from exact samplers on the operating system's randomness.

    - ``discrete-gaussian``: OpenDP's sampler (Canonne, Kamath, Steinke 2020) in integer and rational
      arithmetic of any size. P(x) ∝ exp(-x²/(2σ²)) holds exactly, with σ the float64 that is asked for, into
      the farthest tail; a value is clamped to int64 with the probability at `MAX_DISCRETE_SCALE`: never.
    - ``discrete-laplace``: OpenDP's sampler, the difference of two geometric variables, likewise exact: the
      scale is a rational number, and one value that is another by one has e^(±1/scale) times the probability.
    - ``uniform``: a multiple of 2^-53, each equally likely.
    - ``laplace``: refused. Its values are real numbers, and the low bits of float64 Laplace noise give away
      what it was added to (Mironov 2012).

    The operating system supplies the randomness: it seeds OpenDP's cryptographic generator and provides every
    byte for libsodium. A child process draws other noise than its parent.
    """

    name = "secure"
    protects = True

    def __init__(self) -> None:
        _gaussian(1.0)  # loads OpenDP now instead of in the first round

    def check(self, request: Draw) -> None:
        """Refuse ``laplace``; accept everything else."""
        if request.distribution == "laplace":
            raise ConfigError(
                "Secure Laplace noise was asked for, and there is none: the low bits of floating-point "
                "Laplace noise give away the value that it hides.",
                advice="Release with a mechanism that has discrete noise, or, where nobody needs protection, "
                "set [noise] source to simulated.",
            )

    def draw(self, request: Draw) -> npt.NDArray[Any]:
        self.check(request)
        if request.distribution == "uniform":
            words = np.frombuffer(randombytes(8 * request.size), dtype="<u8")
            return np.asarray((words >> 11) * 2.0**-53, dtype=np.float64)
        # A measurement of zeros is pure noise.
        measurement = _laplace if request.distribution == "discrete-laplace" else _gaussian
        return np.array(measurement(request.scale)([0] * request.size), dtype=np.int64)

    def random_bytes(self, count: int) -> bytes:
        check_byte_count(count)
        return bytes(randombytes(count))


@lru_cache(maxsize=8)  # a session has two scales; a measurement costs as much as a dozen values
def _gaussian(scale: float) -> Any:
    """OpenDP's measurement that adds a discrete Gaussian of that scale to each of a list of integers."""
    # Parties without secure noise do not wait for its library.
    from opendp.measurements import make_gaussian  # noqa: PLC0415
    from opendp.metrics import l2_distance  # noqa: PLC0415

    return make_gaussian(_integers(), l2_distance(T="f64"), scale)


@lru_cache(maxsize=8)
def _laplace(scale: float) -> Any:
    """OpenDP's measurement that adds a discrete Laplace of that scale to each of a list of integers."""
    from opendp.measurements import make_laplace  # noqa: PLC0415
    from opendp.metrics import l1_distance  # noqa: PLC0415

    return make_laplace(_integers(), l1_distance(T="i64"), scale)


def _integers() -> Any:
    """OpenDP's domain of lists of int64."""
    from opendp.domains import atom_domain, vector_domain  # noqa: PLC0415
    from opendp.mod import enable_features  # noqa: PLC0415

    # A process-wide switch enables the samplers, as with all of OpenDP that it has not yet vetted.
    enable_features("contrib")
    # i64, not the default i32: scales reach 2^26 and more, where i32 would clamp the tail.
    return vector_domain(atom_domain(T="i64"))
