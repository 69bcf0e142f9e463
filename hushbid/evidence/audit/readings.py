"""What an owner reads off its view of a session: numbers, the same kinds of them in every round."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hushbid.evidence.audit.attack import Reading, View
from protocol.space.grid import FEATURE_UNIT

__all__ = ["broadcasts", "with_betrayed_counts"]

Floats = npt.NDArray[np.float64]


def broadcasts(direction: Floats, rounds: int, seed_size: int, *, batch: int = 1) -> Reading:
    """Reads off every broadcast the noisy Σφ, up to a constant, and how far it goes into a direction.

    Args:
        direction: Shape (d,).
        rounds: How many; a round whose broadcast did not come reads 0.
        seed_size: |D_init|.
        batch: Points that a round buys.

    Returns:
        Of a view, shape (rounds, d + 1): all coordinates, and the projection.
    """

    def read(view: View) -> Floats:
        sums = np.zeros((rounds, len(direction)))
        for number, weights in view.weights.items():
            sums[number - 1] = -weights[: len(direction)] * (seed_size + batch * number)
        return np.column_stack([sums, sums @ direction])

    return read


def with_betrayed_counts(reading: Reading, target: Floats, rounds: int, seed_size: int) -> Reading:
    """Adds to a reading the q that each broadcast was most likely made with.

    Σφ and its noise are whole numbers of grid units, so that g̃ - w is one of them divided by q + 1, for
    one q only, but for the rounding of w.

    Args:
        reading: Of which each round gets one number more.
        target: g̃, shape (d,).
        rounds: p.
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
