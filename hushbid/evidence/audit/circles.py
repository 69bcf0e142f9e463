"""Points on the circles of a paired map: some circles decide who wins, the others show in releases.

The attacker chooses the target of every round (`broken.ChosenTargets`) on one circle of the features, so
large that noise does not matter there. The available point whose angle on that circle is nearest to the
target's wins. On the other circles points are `LIKE_X` or `LIKE_Y`, where φ(x) = -φ(y).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["LIKE_X", "LIKE_Y", "STRENGTH", "opposite", "placed", "target"]

Angles = npt.NDArray[np.float64]

LIKE_X: Final = 0.7 * math.pi
"""Neither cosine nor sine is 0, and they differ: noise that is missing anywhere, or the same in all
coordinates, leaves some of the difference exposed.
"""
LIKE_Y: Final = LIKE_X + math.pi
STRENGTH: Final = 200.0
"""Length of chosen targets; the noise of a weight is about 0.02."""


def placed(dimension: int, others: float, on: Mapping[int, float]) -> Angles:
    """A point's angles, shape (d/2,).

    Args:
        dimension: d of the map.
        others: Angle on all circles not in `on`, in radians.
        on: Circle, from 0 → angle on it.
    """
    angles = np.full(dimension // 2, others)
    for circle, angle in on.items():
        angles[circle] = angle
    return angles


def target(dimension: int, angle: float, *, circle: int = 0, strength: float = STRENGTH) -> Angles:
    """A target with an angle on one circle and nothing else, shape (d,)."""
    embedding = np.zeros(dimension)
    embedding[circle], embedding[dimension // 2 + circle] = (
        strength * math.cos(angle),
        strength * math.sin(angle),
    )
    return embedding


def opposite(dimension: int, *, first: int = 0) -> Angles:
    """The direction from y to x on the circles from `first` on, shape (d,): where releases show x."""
    there = np.arange(dimension // 2) >= first
    return np.concatenate([there * math.cos(LIKE_X), there * math.sin(LIKE_X)])
