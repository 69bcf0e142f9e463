"""Points next to rounding boundaries, which show whether a hash of points works row by row.

It does if the hash of a row depends on that row alone. Inexact arithmetic shows where it rounds: of two
neighbouring points one is rounded up and the other down, and the last bit of a sum decides. `at_boundaries`
finds such points for any hash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Hash", "at_boundaries", "views"]

Points = npt.NDArray[Any]
Hash = Callable[[Points], npt.NDArray[Any]]
"""Points, shape (n, columns), to a row for each of them."""

_HALVINGS = 80
"""As many as bring two float64 numbers of one sign next to each other."""


def at_boundaries(hash: Hash, low: Points, high: Points) -> Points:
    """Pairs of neighbouring points that are hashed differently: on either side of a boundary.

    Args:
        hash: Hashes all points together.
        low: float64 of shape (n, columns): where each search begins.
        high: Where it ends; each is to be hashed differently from its `low`.

    Returns:
        Shape (2n, columns): the points before a boundary, then those behind it.
    """
    low, high = low.copy(), high.copy()
    before = hash(low)
    assert (hash(high) != before).any(axis=1).all(), "there is no boundary between some pair of points"
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2.0
        same = (hash(middle) == before).all(axis=1)[:, None]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.concatenate([low, high])


def views(points: Points, seed: int = 0) -> Iterator[tuple[str, Points, npt.NDArray[np.intp]]]:
    """The points among others, in other orders and in other memory layouts.

    Args:
        points: Shape (n, columns), n at least 40.
        seed: Seed of the orders.

    Yields:
        What is different, the points, and which of `points` each row is.
    """
    rows, generator = np.arange(len(points)), np.random.default_rng(seed)
    for row in rows:
        yield f"row {row} alone", points[row : row + 1], rows[row : row + 1]
    # Sizes at which a BLAS may change its kernel, and their neighbours.
    for size in (2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 18, 19, 31, 33, 37, 38):
        for start in (0, 1, len(points) - size):
            yield f"{size} rows from {start}", points[start : start + size], rows[start : start + size]
    order = generator.permutation(rows)
    yield "another order", points[order], order
    yield "backwards", points[::-1], rows[::-1]
    yield "twice", np.concatenate([points, points]), np.concatenate([rows, rows])
    yield "column by column", np.asfortranarray(points), rows
    yield "one row of columns", np.asfortranarray(points)[-1:], rows[-1:]
    yield "every other column", np.repeat(points, 2, axis=1)[:, ::2], rows
    yield "every other row", np.repeat(points, 2, axis=0)[::2], rows
    shifted = np.empty(points.nbytes + 1, dtype=np.uint8)[1:].view(points.dtype).reshape(points.shape)
    shifted[...] = points
    yield "at odd addresses", shifted, rows
