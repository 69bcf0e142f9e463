"""Fixed-point arithmetic that makes scores exact (DESIGN §1, "Exact scores").

A feature is an integer multiple of 2^-15, and a broadcast weight one of 2^-22. Both are kept as integers
("grid units"): features as int16, weights as int32, and the score wᵀφ(x) as int64 in units of 2^-37. Every
partial sum of a score stays below 2^53 (`limits.MAX_WEIGHT`), so a float64 dot product gives the same integer
in any order of summation, on any BLAS.

Rounding features is part of the map φ, so every sensitivity stated for φ includes it.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol import limits

__all__ = [
    "FEATURE_BITS",
    "FEATURE_UNIT",
    "SCORE_UNIT",
    "WEIGHT_BITS",
    "WEIGHT_UNIT",
    "Features",
    "Scores",
    "Totals",
    "Weights",
    "exact_scores",
    "features_to_float",
    "round_weights",
    "weights_to_float",
]

Features: TypeAlias = npt.NDArray[np.int16]
"""φ(x), or a stack of them, in units of 2^-15. Shape (d,) or (n, d)."""
Totals: TypeAlias = npt.NDArray[np.int64]
"""Σφ over a set of points, in units of 2^-15. Shape (d,)."""
Weights: TypeAlias = npt.NDArray[np.int32]
"""A broadcast weight, in units of 2^-22. Shape (d,)."""
Scores: TypeAlias = npt.NDArray[np.int64]
"""wᵀφ, in units of 2^-37. Shape (n,)."""

FEATURE_BITS: Final = 15
WEIGHT_BITS: Final = 22
_BLOCK_COORDINATES: Final = 2**20
"""Coordinates that are held as float64 at a time: 8 MiB."""
FEATURE_UNIT: Final = 2.0**-FEATURE_BITS
WEIGHT_UNIT: Final = 2.0**-WEIGHT_BITS
SCORE_UNIT: Final = FEATURE_UNIT * WEIGHT_UNIT


def features_to_float(features: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """The values of features, or of totals up to 2^53, exactly: float64 of the same shape."""
    return np.asarray(features * FEATURE_UNIT, dtype=np.float64)


def round_weights(values: npt.NDArray[np.float64]) -> Weights:
    """Clip a weight to ±`limits.MAX_WEIGHT` and round it to the grid.

    Args:
        values: Finite float64, shape (d,).

    Returns:
        int32 of shape (d,), in units of 2^-22, ties to even.
    """
    clipped = np.clip(values, -limits.MAX_WEIGHT, limits.MAX_WEIGHT)
    return np.rint(clipped * 2.0**WEIGHT_BITS).astype(np.int32)


def weights_to_float(weights: Weights) -> npt.NDArray[np.float64]:
    """The weight's values, exactly: float64 of the same shape."""
    return np.asarray(weights * WEIGHT_UNIT, dtype=np.float64)


def exact_scores(features: npt.NDArray[np.integer], weights: Weights) -> Scores:
    """wᵀφ for each row, exactly: int64 of shape (n,), in units of 2^-37.

    Args:
        features: Integers in units of 2^-15, shape (n, d) with d ≤ `limits.MAX_DIMENSION` and rows of
            a feature map (|coordinate| ≤ √(2/d)).
        weights: Shape (d,), within `limits.MAX_WEIGHT`.
    """
    # Integers below 2^53 throughout: float64 holds them exactly, and BLAS is far faster on them than numpy's
    # integer product. A block at a time: all that a tender brought would take four times its bytes.
    values = weights.astype(np.float64)
    scores: Scores = np.empty(len(features), dtype=np.int64)
    rows = max(1, _BLOCK_COORDINATES // max(1, len(values)))
    for start in range(0, len(features), rows):
        scores[start : start + rows] = features[start : start + rows].astype(np.float64) @ values
    return scores
