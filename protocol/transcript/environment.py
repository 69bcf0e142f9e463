"""What floating-point results may depend on: recorded in a transcript's header.

Two machines may round features differently; when a replay diverges, the first question is whether the
two environments are the same. Nothing here names a user, a host or a path.
"""

from __future__ import annotations

import sys
import sysconfig

import numpy as np
import threadpoolctl

from protocol.transcript.item import Value

__all__ = ["environment_fingerprint"]


def environment_fingerprint() -> dict[str, Value]:
    """Python, numpy, BLAS and processor features of this process.

    Returns:
        A map of text and sequences of text: ``python``, ``machine``, ``numpy``, ``blas`` (one text for each
        BLAS that is loaded: name, version, and the kernels that it chose), ``cpu`` (features that numpy's
        own kernels use).
    """
    build = np.show_config(mode="dicts")
    simd = build.get("SIMD Extensions", {})
    return {
        "python": f"{sys.implementation.name} {sys.version.split()[0]}",
        "machine": f"{sysconfig.get_platform()} {sys.byteorder}-endian",
        "numpy": np.__version__,
        "blas": sorted(
            {
                f"{pool.get('internal_api')} {pool.get('version')} {pool.get('architecture', '')}".strip()
                for pool in threadpoolctl.threadpool_info()
                if pool.get("user_api") == "blas"
            }
        ),
        "cpu": sorted({*simd.get("baseline", ()), *simd.get("found", ())}),
    }
