"""Raw points with any features that an attacker wants: any angles on the paired map's circles.

A paired map has d/2 circles, and a point's angle on each is that of Wx + b. With as many columns as circles W
can be inverted: any features are possible, and the strongest neighbours too, two points with φ(x) = -φ(y).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.session.points import hash_seed_set
from hushbid.protocol.space.features import FeatureMap, FourierMap
from hushbid.protocol.space.grid import features_to_float

__all__ = ["MAP_SEED", "feature_table", "points_at", "points_at_angle", "points_near", "seed_set"]

Angles = npt.NDArray[np.float64]

MAP_SEED: Final = 1
"""Seed of public maps."""
_GAMMA: Final = 1e8
"""So large that every angle occurs at many places within the public bounds."""
_CLOSE: Final = 1e-3
_STARTS: Final = 4096
"""Number of starting places for the search of a point. The nearest point with given angles is far if W is
almost singular, but not from all places: fewer than one map in a million has none.
"""
_SEED_SET: Final = 3


def feature_table(dimension: int) -> dict[str, Any]:
    """``[features]`` of a session with as many columns as circles; without the seed of a public map."""
    return {"dimension": dimension, "gamma": _GAMMA, "columns": dimension // 2}


def points_at(feature_map: FeatureMap, angles: Angles) -> npt.NDArray[np.float64]:
    """Points with these angles: raw, shape (n, d/2), within the public bounds.

    Args:
        feature_map: A paired map of a `feature_table`. Every owner has it, and so has the attacker.
        angles: Shape (n, d/2), in radians.

    Raises:
        LocalProtocolError: The map has no such points.
    """
    if not isinstance(feature_map, FourierMap):
        raise LocalProtocolError("Points are asked for by their angles on a map that has none.")
    frequencies = feature_map.frequencies / feature_map.space.range
    dimension = feature_map.space.dimension
    inverse = np.linalg.inv(frequencies)
    points = np.full(np.shape(angles), math.nan)
    starts = np.random.Generator(np.random.PCG64(0)).uniform(size=(_STARTS, dimension // 2))
    starts[0] = 0.5
    for start in starts:
        missing = ~((points >= 0.0) & (points <= 1.0)).all(axis=1)
        if not missing.any():
            break
        turn = np.asarray(angles)[missing] - feature_map.phases - frequencies @ start
        turn -= 2.0 * math.pi * np.rint(turn / (2.0 * math.pi))
        points[missing] = start + turn @ inverse.T
    wanted = math.sqrt(2.0 / dimension) * np.hstack([np.cos(angles), np.sin(angles)])
    found = features_to_float(hash_seed_set(feature_map, points))
    if not (np.abs(found - wanted).max() <= _CLOSE and points.min() >= 0.0 and points.max() <= 1.0):
        raise LocalProtocolError("The feature map has no points of the features that an attack needs.")
    return points


def points_at_angle(feature_map: FeatureMap, *angles: float) -> npt.NDArray[np.float64]:
    """A point for each angle, with that angle on all circles: raw, shape (len(angles), d/2)."""
    return points_at(feature_map, np.repeat(np.array([angles]).T, feature_map.space.dimension // 2, axis=1))


def seed_set(feature_map: FeatureMap, count: int) -> npt.NDArray[np.float64]:
    """Points with random angles, always the same: their mean embedding is near zero."""
    generator = np.random.Generator(np.random.PCG64(_SEED_SET))
    angles = generator.uniform(0.0, 2.0 * math.pi, (count, feature_map.space.dimension // 2))
    return points_at(feature_map, angles)


def points_near(
    feature_map: FeatureMap, angle: float, *, spread: float, count: int
) -> npt.NDArray[np.float64]:
    """Points whose angles on all circles deviate from one by at most `spread` radians; always the same."""
    generator = np.random.Generator(np.random.PCG64(_SEED_SET))
    angles = generator.uniform(angle - spread, angle + spread, (count, feature_map.space.dimension // 2))
    return points_at(feature_map, angles)
