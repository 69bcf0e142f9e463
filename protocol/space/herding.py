"""Choosing rows whose running mean comes to a wanted mean: kernel herding on whole numbers (rule `tender`).

Chen, Welling and Smola 2010. With k rows chosen, the next is the row with the largest y·((k + 1)·a - Σy):
a is the wanted mean, and Σy the total of the chosen ones. Among equal scores the smaller bytes of φ come
first, then the earlier row. Everything is a whole number, so every machine chooses the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol import limits
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.space.grid import Features, Totals
from hushbid.protocol.space.shortlist import ValueScreen
from hushbid.protocol.space.terms import NO_TERMS, Purse

__all__ = ["FARTHEST", "MOST_WEIGHED", "Valued", "herd", "shortlisted", "whole_numbers"]

Valued: TypeAlias = Callable[[Features], Totals]
"""y of φ: of int16 of shape (n, d), int64 of shape (n, width)."""

FARTHEST: Final = 2**17
"""Largest |coordinate| of a wanted mean, in units of 2^-15; that of one with noise is far below.

With 4096 coordinates ‖a‖ ≤ 2^23. ‖y‖ < 2^16, and so a sum in any order stays below 2^39·(k + 1) ≤ 2^53.
"""
MOST_WEIGHED: Final = 2**16
"""Most rows that are compared with each other, so that memory is bounded: `shortlisted` chooses them."""
_BLOCK: Final = 2**12
"""Rows whose y is worked out at a time."""
_FEW_COORDINATES: Final = 2**20
"""Coordinates of y that are held as they are, 8 MiB: a screen of them costs more than it saves."""
_MOST_NEAR: Final = 2**-3
"""Share of the rows that a screen may leave in doubt; beyond it y is held."""


def whole_numbers(values: Valued, features: Features) -> npt.NDArray[np.float64]:
    """Y of points, as float64 holds it: shape (n, width); a block of y at a time is int64."""
    found = np.empty((len(features), values(features[:0]).shape[1]))
    for block in _blocks(len(features)):
        found[block] = values(features[block])
    return found


def herd(
    values: Valued | Totals | npt.NDArray[np.float64],
    mean: Totals,
    count: int,
    *,
    features: Features,
    before: Totals | npt.NDArray[np.float64] | None = None,
    purse: Purse | None = None,
) -> tuple[int, ...]:
    """Choose rows one by one, each the best beside those before it.

    It takes `count` passes over a byte for each row and coordinate, by which rows are screened; over 8 bytes
    where y is given, where points have prices, and where a screen leaves too many rows in doubt.

    Args:
        values: y, whole numbers of shape (n, width), ‖y‖ < 2^16, in units of 2^-15; or what makes it of φ.
        mean: a, int64 of shape (width,), in the same units, within `FARTHEST`.
        count: The most to choose, up to `limits.MAX_HERDED`, with those before.
        features: φ of the rows, int16 of shape (n, d); its bytes order equal scores.
        before: y of rows that were chosen before, of shape (k, width); None: none was.
        purse: What a row costs, and which are sold; None: all are free.

    Returns:
        Numbers of rows, in the order of their choice.

    Raises:
        LocalProtocolError: Too many are to be chosen, or the mean is too far.
    """
    earlier = 0 if before is None else len(before)
    if count + earlier > limits.MAX_HERDED or max(int(mean.max()), -int(mean.min())) > FARTHEST:
        raise LocalProtocolError(f"{count + earlier} rows cannot be chosen exactly for such a mean.")
    if purse is None:
        purse = Purse(NO_TERMS, np.zeros(len(features), dtype=np.intp))
    total = np.zeros(len(mean)) if before is None else before.sum(axis=0).astype(np.float64)
    wanted = mean.astype(np.float64)
    sums: _Sums
    if not callable(values):
        sums = _Whole(np.asarray(values, dtype=np.float64), wanted, total)
    elif purse.priced or len(features) * len(mean) < _FEW_COORDINATES:
        sums = _Whole(whole_numbers(values, features), wanted, total)
    else:
        sums = _Screened(values, features, wanted, total)

    def tie(row: int) -> tuple[bytes, int]:
        return features[row].tobytes(), row

    chosen: list[int] = []
    most = purse.affordable(count)
    while len(chosen) < count:
        offered = purse.offered(most - len(chosen))
        if len(chosen) == most or not offered.any():
            # More may be left than was counted: caps have made others the sellers of what several hold.
            most = len(chosen) + purse.affordable(count - len(chosen))
            if len(chosen) == most:
                break
            offered = purse.offered(most - len(chosen))
        best = purse.first(sums.scores(earlier + len(chosen), offered), offered, tie)
        best = purse.buy(best, offered)
        sums.add(best)
        chosen.append(best)
    return tuple(chosen)


class _Sums(Protocol):
    """Scores of rows beside the total Σy of those that were chosen."""

    def scores(self, chosen: int, offered: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """y·((k + 1)·a - Σy) of each row, with k chosen; -∞ for rows that cannot be the first offered one."""

    def add(self, row: int) -> None:
        """Add a row that was chosen."""


class _Whole:
    """Scores of all rows, whose y is held."""

    def __init__(
        self,
        rows: npt.NDArray[np.float64],
        mean: npt.NDArray[np.float64],
        total: npt.NDArray[np.float64],
    ) -> None:
        self._rows = rows
        self._towards, self._of_total = rows @ mean, rows @ total

    def scores(self, chosen: int, offered: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        return (chosen + 1) * self._towards - self._of_total

    def add(self, row: int) -> None:
        self._of_total += self._rows @ self._rows[row]


class _Screened:
    """Scores of the few rows that can be the first: bounds on all scores find them."""

    def __init__(
        self,
        values: Valued,
        features: Features,
        mean: npt.NDArray[np.float64],
        total: npt.NDArray[np.float64],
    ) -> None:
        self._values, self._features = values, features
        self._mean, self._total = mean, total.copy()
        self._screen = ValueScreen(values, features)
        self._whole: _Whole | None = None

    def scores(self, chosen: int, offered: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        if self._whole is not None:
            return self._whole.scores(chosen, offered)
        weights = (chosen + 1) * self._mean - self._total
        lower, upper = self._screen.bounds(weights)
        near = np.flatnonzero(offered & (upper >= lower.max(where=offered, initial=-np.inf)))
        if len(near) > _MOST_NEAR * len(offered):
            self._whole = _Whole(whole_numbers(self._values, self._features), self._mean, self._total)
            return self._whole.scores(chosen, offered)
        scores = np.full(len(offered), -np.inf)
        for block in _blocks(len(near)):
            rows = near[block]
            scores[rows] = self._values(self._features[rows]).astype(np.float64) @ weights
        return scores

    def add(self, row: int) -> None:
        self._total += self._values(self._features[row : row + 1])[0]
        if self._whole is not None:
            self._whole.add(row)


def shortlisted(
    values: Valued, mean: Totals, features: Features, rows: npt.NDArray[np.intp], most: int = MOST_WEIGHED
) -> npt.NDArray[np.intp]:
    """The rows among which `herd` is to choose, at most `most`: all, if they are no more.

    Otherwise half are those with the largest y·a, of equal ones the first. The other half are at even
    distances in the order of y·a, for what the wanted mean has little of.

    Args:
        mean: As `herd` takes it.
        features: int16 of shape (n, d); may be memory-mapped, and is read a block at a time.
        rows: Numbers of rows.

    Returns:
        Numbers of rows, in the order of `rows`.
    """
    if len(rows) <= most:
        return rows
    towards = np.empty(len(rows))
    wanted = mean.astype(np.float64)
    for block in _blocks(len(rows)):
        towards[block] = values(np.asarray(features[rows[block]])).astype(np.float64) @ wanted
    order = np.argsort(-towards, kind="stable")
    best, rest = order[: most - most // 2], order[most - most // 2 :]
    spread = rest[np.arange(most // 2) * len(rest) // (most // 2)]
    found: npt.NDArray[np.intp] = rows[np.sort(np.concatenate([best, spread]))]
    return found


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))
