"""The environment of floating-point results, recorded in a transcript's header.

Two machines may round features differently. When a replay diverges, the first question is whether their
environments are the same. Nothing here names a user, a host or a path.
"""

from __future__ import annotations

import sys
import sysconfig

import numpy as np
import threadpoolctl

from hushbid.protocol.platform import LIBRARIES
from hushbid.protocol.wire.values import Fields, Value

__all__ = ["environment_differences", "environment_fingerprint"]


def environment_fingerprint() -> dict[str, Value]:
    """Python, numpy, BLAS and processor features of this process.

    Returns:
        A map of text and sequences of text: ``python``, ``machine``, ``numpy``, ``blas`` (name, version and
        chosen kernels of each loaded BLAS), ``cpu`` (features that numpy's own kernels use).
    """
    build = np.show_config(mode="dicts")
    with LIBRARIES:
        pools = threadpoolctl.threadpool_info()
    simd = build.get("SIMD Extensions", {})
    return {
        "python": f"{sys.implementation.name} {sys.version.split()[0]}",
        "machine": f"{sysconfig.get_platform()} {sys.byteorder}-endian",
        "numpy": np.__version__,
        # Tuples, as they come back from a header that was read.
        "blas": tuple(
            sorted(
                {
                    f"{pool.get('internal_api')} {pool.get('version')} {pool.get('architecture', '')}".strip()
                    for pool in pools
                    if pool.get("user_api") == "blas"
                }
            )
        ),
        "cpu": tuple(sorted({*simd.get("baseline", ()), *simd.get("found", ())})),
    }


def environment_differences(recorded: Fields) -> dict[str, dict[str, Value]]:
    """Differences between the environment of a transcript and this process's.

    A process names its loaded BLAS libraries, and a replay needs fewer than the party did. If one names a
    subset of the other's, they count as equal.

    Returns:
        By key, a map of what was `recorded` and what is `here`.
    """
    here = environment_fingerprint()
    return {
        key: {"recorded": recorded.get(key), "here": here.get(key)}
        for key in sorted({*recorded, *here})
        if recorded.get(key) != here.get(key)
        and not (key == "blas" and _one_in_the_other(recorded.get(key), here.get(key)))
    }


def _one_in_the_other(recorded: Value, here: Value) -> bool:
    if not isinstance(recorded, tuple) or not isinstance(here, tuple):
        return False
    return all(name in here for name in recorded) or all(name in recorded for name in here)
