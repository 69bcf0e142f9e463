"""Sessions over random points, for measuring speed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import tomli_w

__all__ = ["DIMENSION", "write_cluster"]

DIMENSION: Final = 140
_SEED: Final = 1
_VALIDATION_POINTS: Final = 380
_SEED_POINTS: Final = 150
_LEVELS: Final = 256


def write_cluster(
    place: Path,
    *,
    owners: int,
    points: int,
    columns: int,
    rounds: int,
    batch: int = 1,
    whole: bool = False,
) -> Path:
    """Write the parties' points and a cluster file with exact releases and `ask-all`.

    Args:
        whole: Whether points are bytes, like pixels, instead of float64.
    """
    generator = np.random.Generator(np.random.PCG64(_SEED))

    def drawn(rows: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8 | np.float64]]:
        if whole:
            return generator.integers(0, _LEVELS, (rows, columns), dtype=np.uint8)
        return generator.random((rows, columns))

    names = [f"owner-{number}" for number in range(owners)]
    for name in names:
        np.savez(place / f"{name}.npz", features=drawn(points), labels=generator.integers(0, 10, points))
    np.save(place / "validation.npy", drawn(_VALIDATION_POINTS))
    np.save(place / "seed-set.npy", drawn(_SEED_POINTS))
    table = {
        "session": {
            "name": "bench",
            "points": rounds * batch,
            "batch": batch,
            "allow_nonprivate": True,
        },
        "features": {
            "dimension": DIMENSION,
            "gamma": 6.0 / columns,
            "seed": _SEED,
            "columns": columns,
            "lower": 0.0,
            "upper": _LEVELS - 1.0 if whole else 1.0,
        },
        "target": {"mechanism": "exact"},
        "summary": {"mechanism": "exact"},
        "acquisition": {"rule": "ask-all"},
        "owners": {name: {"data": f"{name}.npz"} for name in names},
        "consumer": {"validation": "validation.npy", "seed_set": "seed-set.npy"},
    }
    path = place / "cluster.toml"
    path.write_text(tomli_w.dumps(table), encoding="utf-8")
    return path
