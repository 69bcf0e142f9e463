"""What a party that is handed a point checks: that the features that came with it are the point's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protocol.errors import DataError
from protocol.features import FeatureMap
from protocol.grid import Features

__all__ = ["CLOSE_MATCH", "NO_FEATURES", "hash_points", "matching"]

CLOSE_MATCH: Final = 1
"""Grid units by which φ of a point may differ between machines' floating-point arithmetic."""

NO_FEATURES: Final = -(2**15)
"""Every coordinate of a point that has no φ, its values being too large. No map has such a coordinate."""


def hash_points(feature_map: FeatureMap, points: Sequence[npt.NDArray[Any]]) -> Features:
    """φ of points that came from others, so that they may differ in number type, or have no φ at all.

    Args:
        feature_map: The session's.
        points: Each of shape (columns,).

    Returns:
        int16 of shape (n, d), read-only; `NO_FEATURES` throughout for a point that cannot be mapped.
    """
    hashed = _hash_together(feature_map, points)
    if hashed is None:
        hashed = np.full((len(points), feature_map.dimension), NO_FEATURES, dtype=np.int16)
        for row, point in enumerate(points):
            alone = _hash_together(feature_map, (point,))
            if alone is not None:
                hashed[row] = alone[0]
    hashed.flags.writeable = False
    return hashed


def matching(recomputed: Features, claimed: Features) -> npt.NDArray[np.bool_]:
    """Which rows of claimed features are, within `CLOSE_MATCH`, those recomputed from the points.

    Args:
        recomputed: What `hash_points` gave, shape (n, d).
        claimed: What came with the points, shape (n, d).

    Returns:
        Shape (n,).
    """
    close = np.abs(recomputed.astype(np.int32) - claimed) <= CLOSE_MATCH
    matches: npt.NDArray[np.bool_] = (close & (recomputed != NO_FEATURES)).all(axis=1)
    return matches


def _hash_together(feature_map: FeatureMap, points: Sequence[npt.NDArray[Any]]) -> Features | None:
    """φ of all points in one product; None if their types differ or one of them has no φ."""
    if not points:
        return np.zeros((0, feature_map.dimension), dtype=np.int16)
    if len({point.dtype for point in points}) > 1:
        return None
    try:
        return feature_map.hash(np.stack(points))
    except DataError:
        return None
