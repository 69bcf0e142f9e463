"""A drawn seed set: uniform within the public bounds or columns, and independent of private data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.config.session import FeatureSection
from hushbid.protocol.data import Dataset
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError

__all__ = ["DRAWN", "SEALED_BITS", "STREAM", "drawn_seed_set"]

DRAWN: Final = "drawn seed set"
"""Its name as a dataset."""

STREAM: Final = "consumer/seed-set"
"""The stream that supplies a drawn seed set where noise is simulated. It is not a party's stream, so no
party's own noise changes.
"""

SEALED_BITS: Final = 128.0
"""Entropy in bits that a drawn set needs under `sealed`, so that the curator cannot guess it."""

_WORD: Final = 2**64
_FLOAT_CHOICES: Final = {np.dtype(np.float32): 2**24, np.dtype(np.float64): 2**53}


def drawn_seed_set(
    features: FeatureSection,
    count: int,
    dtype: np.dtype[Any],
    random_bytes: Callable[[int], bytes],
    *,
    column_values: int | None = None,
    sealed: bool = False,
    schema: Schema | None = None,
) -> Dataset:
    """Draw `count` points. Only the number type of the consumer's data enters them.

    A column of whole numbers takes each value within its bounds with equal probability. With `column_values`
    (``session.column_values``), a column takes that many evenly spaced values, bounds included, since real
    columns have no more either. With a schema, the points are its rows, all categories equally likely.

    Args:
        dtype: D_v's number type, one of `hushbid.protocol.data.FEATURE_DTYPES`.
        random_bytes: Returns as many random bytes as requested (`NoiseSource.random_bytes`).
        sealed: Whether the curator must not be able to guess the set.

    Raises:
        ConfigError: A column's bounds contain no value of the type; or, under `sealed`, there are so few
            possible sets that the curator could guess this one.
    """
    columns = features.columns
    words = np.frombuffer(random_bytes(8 * count * columns), dtype="<u8").reshape(count, columns)
    rows = np.zeros((count, columns), dtype=dtype)
    if schema is None:
        low, high = (
            np.broadcast_to(np.asarray(each, dtype=np.float64), (columns,))
            for each in (features.lower, features.upper)
        )
        drawn: Iterator[int] = (
            _column(rows[:, at], words[:, at], float(low[at]), float(high[at]), column_values, at)
            for at in range(columns)
        )
    else:
        drawn = _of_schema(rows, words, schema, column_values)
    bits = sum(count * math.log2(choices) for choices in drawn)
    if sealed and bits < SEALED_BITS:
        raise ConfigError(
            f"A drawn seed set of {count} points has {bits:.0f} bits, and the curator could guess it: under "
            f"sealed it needs {SEALED_BITS:.0f}.",
            advice="Set a larger `seed_points` in the consumer's file.",
        )
    return Dataset.from_arrays(DRAWN, rows)


def _of_schema(
    rows: npt.NDArray[Any], words: npt.NDArray[np.uint64], schema: Schema, most: int | None
) -> Iterator[int]:
    """Fill in rows of a schema, column by column, and return the number of possible values of each."""
    at = 0
    for column in schema.columns:
        if column.kind == "category":
            places = (words[:, at] % np.uint64(column.width)).astype(np.intp)
            rows[np.arange(len(rows)), at + places] = 1
            yield column.width
        elif column.kind == "number":
            yield _column(rows[:, at], words[:, at], *column.extremes, most, at)
        else:
            for place in range(at, at + column.width):
                whole = np.zeros(len(rows), dtype=np.int64)
                yield _column(whole, words[:, place], *column.extremes, most, place)
                rows[:, place] = whole
        at += column.width


def _column(
    column: npt.NDArray[Any],
    words: npt.NDArray[np.uint64],
    low: float,
    high: float,
    most: int | None,
    place: int,
) -> int:
    """Fill in one column, and return the number of its possible values."""
    dtype = column.dtype
    if dtype.kind == "f":
        share = (words >> np.uint64(11)) * 2.0**-53
        values = low + share * (high - low) if most is None else _steps(words, low, high, most)
        # Rounding to the type moves no value beyond a bound as the type represents it.
        column[:] = np.clip(values.astype(dtype), dtype.type(low), dtype.type(high))
        return _FLOAT_CHOICES[dtype] if most is None else most
    info = np.iinfo(dtype)
    first, last = max(math.ceil(low), int(info.min)), min(math.floor(high), int(info.max))
    if first > last:
        raise ConfigError(
            f"Feature column {place} (counted from 0): no {dtype.name} lies within its bounds, so that no "
            "seed set can be drawn.",
            advice="Correct the bounds, or name a file (`seed_set`).",
        )
    choices = min(last - first + 1, _WORD - 1)
    if most is not None and most < choices:
        # Steps of at least 1, so that no two values round to the same one.
        column[:] = np.rint(_steps(words, float(first), float(last), most))
        return most
    # Modulo 2^64 throughout, so that the sum of any two bounds wraps around correctly.
    column[:] = (words % np.uint64(choices) + np.uint64(first % _WORD)).view(np.int64)
    return choices


def _steps(words: npt.NDArray[np.uint64], low: float, high: float, count: int) -> npt.NDArray[np.float64]:
    """For each word, one of `count` evenly spaced values that include both bounds."""
    return low + (words % np.uint64(count)).astype(np.float64) * ((high - low) / (count - 1))
