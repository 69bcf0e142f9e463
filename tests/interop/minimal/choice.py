"""An owner's submission for a call: docs/wire.md, "Under `tender`", for no more rows than are compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def aimed(mechanism: str, call: Mapping[str, Any], features: npt.NDArray[np.int16]) -> tuple[Ints, Ints]:
    """The vector that each row counts by, and the aim; `mechanism` is that of the target."""
    values, aim = features.astype(np.int64), call["embedding"] * 2.0**15
    if mechanism == "filtered-gaussian":
        n, total = call["seed_size"], call["seed_total"]
        centre = (2 * total + n) // (2 * n)
        apart = max(2**30 - int(centre @ centre), 0) * (n + 1) // max(n - 1, 1)
        spread = min(max(math.isqrt(apart), 2**13), 2**16)
        moved, aim = values - centre, (aim - centre) / spread * 2.0**15
        lengths = [max(math.isqrt(max(int(z @ z) - 1, 0)) + 1, 9 * spread // 10) for z in moved]
        values = np.sign(moved) * (np.abs(moved) * 2**15 // np.array(lengths)[:, None])
    return values, np.rint(np.clip(aim, -(2.0**17), 2.0**17)).astype(np.int64)


def chosen(values: Ints, aim: Ints, features: npt.NDArray[np.int16]) -> Iterator[int]:
    """The chosen rows, each the best beside those before it."""
    left, total = set(range(len(values))), np.zeros_like(aim)
    for number in range(1, len(values) + 1):
        found = values @ (number * aim - total)
        best = min(left, key=lambda row: (-found[row], features[row].astype("<i2").tobytes(), row))
        left.remove(best)
        total += values[best]
        yield best
