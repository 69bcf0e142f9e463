"""``python -m tests.statistics.weights_at_size``: the cost of matching weights, a process for each row.

Points are 8 columns of a mixture, D_v 500 rows of one of its parts. Where the kernel fits into memory,
gradient steps are timed on the same points.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.consumer import matching
from hushbid.consumer.matching import match

_SIZES: Final = (3_000, 5_000, 10_000, 20_000, 50_000)
_COLUMNS: Final = 8
_GAMMA: Final = 3.0
_MOST_BY_GRADIENTS: Final = 5_000


def drawn(count: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Points of ten parts, and D_v of the first."""
    rng = np.random.default_rng(count)
    centres = rng.random((10, _COLUMNS))
    points = np.clip(
        centres[rng.integers(0, 10, count)] + 0.15 * rng.standard_normal((count, _COLUMNS)), 0, 1
    )
    wanted = np.clip(centres[0] + 0.15 * rng.standard_normal((500, _COLUMNS)), 0, 1)
    return points, wanted


def measure(count: int, ridge: float, way: str) -> None:
    """Print one row."""
    points, wanted = drawn(count)
    if way == "gradients":
        matching._FEW = count  # type: ignore[misc]
    before = time.process_time()
    found = match(points, wanted, _GAMMA, ridge=ridge)
    seconds = time.process_time() - before
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"| {count:,} | {ridge:g} | {way} | {seconds:.1f} | {megabytes:,.0f} MB | {found.gap:.0e} | "
        f"{np.count_nonzero(found.weights):,} |",
        flush=True,
    )


def main() -> None:
    """Measure all, or the given one."""
    if len(sys.argv) > 1:
        measure(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
        return
    print("| points | λ | steps by | processor seconds | peak memory | gap | points with weight |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for count in _SIZES:
        for ridge in ("1", "0"):
            for way in ("gradients", "landmarks") if count <= _MOST_BY_GRADIENTS else ("landmarks",):
                subprocess.run(
                    [sys.executable, "-m", "tests.statistics.weights_at_size", str(count), ridge, way],
                    check=True,
                    env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                )


if __name__ == "__main__":
    main()
