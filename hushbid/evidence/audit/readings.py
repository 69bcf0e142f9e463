"""Numbers that an owner extracts from its view of a session, of the same kinds in every round."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hushbid.evidence.audit.attack import Reading, View
from hushbid.protocol.space.grid import FEATURE_UNIT

__all__ = ["broadcasts", "with_betrayed_counts"]

Floats = npt.NDArray[np.float64]


def broadcasts(direction: Floats, rounds: int, seed_size: int, *, batch: int = 1) -> Reading:
    """Extracts from every broadcast the noisy Σφ, up to a constant, and its component in a direction.

    Args:
        direction: Shape (d,).
        rounds: Number of rounds; a round without a broadcast gives 0.
        seed_size: |D_init|.

    Returns:
        For a view, shape (rounds, d + 1): all coordinates, and the projection.
    """

    def read(view: View) -> Floats:
        sums = np.zeros((rounds, len(direction)))
        for number, weights in view.weights.items():
            sums[number - 1] = -weights[: len(direction)] * (seed_size + batch * number)
        return np.column_stack([sums, sums @ direction])

    return read


def with_betrayed_counts(reading: Reading, target: Floats, rounds: int, seed_size: int) -> Reading:
    """Adds to a reading the q with which each broadcast was most likely made: one more number per round.

    Σφ and its noise are integers in grid units, so g̃ - w is such an integer divided by q + 1 for only one q,
    up to the rounding of w.

    Args:
        target: g̃, shape (d,).
        seed_size: |D_init|.
    """
    counts = seed_size + np.arange(rounds)

    def read(view: View) -> Floats:
        betrayed = np.zeros(rounds)
        for number, weights in view.weights.items():
            sums = np.outer(counts + 1, target - weights) / FEATURE_UNIT
            betrayed[number - 1] = counts[np.abs(sums - np.rint(sums)).sum(axis=1).argmin()]
        return np.column_stack([reading(view), betrayed])

    return read
