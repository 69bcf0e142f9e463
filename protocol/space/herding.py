"""Choosing rows whose running mean comes to a wanted mean: kernel herding on whole numbers (rule `tender`).

Chen, Welling and Smola 2010. With k rows chosen, the next is the row with the largest y·((k + 1)·a - Σy):
a is the wanted mean, and Σy the total of the chosen ones. Among equal scores the smaller bytes of φ come
first, then the earlier row. Everything is a whole number, so every machine chooses the same.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.space.grid import Features, Totals

__all__ = ["FARTHEST", "MOST_HERDED", "herd"]

MOST_HERDED: Final = 2**14
"""Most rows that are chosen: their scores then stay whole numbers below 2^53, which float64 adds exactly."""
FARTHEST: Final = 2**17
"""Largest |coordinate| of a wanted mean, in units of 2^-15; that of one with noise is far below.

With 4096 coordinates ‖a‖ ≤ 2^23. ‖y‖ < 2^16, and so a sum in any order stays below 2^39·(k + 1) ≤ 2^53.
"""


def herd(
    values: Totals,
    mean: Totals,
    count: int,
    *,
    features: Features,
    available: npt.NDArray[np.bool_] | None = None,
) -> tuple[int, ...]:
    """Choose rows one by one, each the best beside those before it.

    It takes 8 bytes for each row and coordinate, and `count` passes over them.

    Args:
        values: y, int64 of shape (n, width), ‖y‖ < 2^16, in units of 2^-15.
        mean: a, int64 of shape (width,), in the same units, within `FARTHEST`.
        count: The most to choose, up to `MOST_HERDED`.
        features: φ of the rows, int16 of shape (n, d), for the order of equal scores.
        available: Whether each row can be chosen, shape (n,); None: all can.

    Returns:
        Numbers of rows, in the order of their choice.

    Raises:
        LocalProtocolError: Too many are to be chosen, or the mean is too far.
    """
    if count > MOST_HERDED or max(int(mean.max()), -int(mean.min())) > FARTHEST:
        raise LocalProtocolError(f"{count} rows cannot be chosen exactly for such a mean.")
    left = np.ones(len(values), dtype=np.bool_) if available is None else available.copy()
    rows = values.astype(np.float64)
    towards, of_total = rows @ mean.astype(np.float64), np.zeros(len(rows))
    chosen: list[int] = []
    for number in range(1, min(count, int(left.sum())) + 1):
        scores = np.where(left, number * towards - of_total, -np.inf)
        equal = np.flatnonzero(scores == scores.max()).tolist()
        best = min(equal, key=lambda row: (features[row].tobytes(), row)) if len(equal) > 1 else equal[0]
        left[best] = False
        of_total += rows @ rows[best]
        chosen.append(best)
    return tuple(chosen)
