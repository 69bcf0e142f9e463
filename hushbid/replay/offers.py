"""The points that were handed over in the messages of one transcript, by φ: all of them, or a sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hushbid.protocol.space.grid import Features
from hushbid.protocol.wire.values import Value
from hushbid.replay.rows import Row

__all__ = ["BRINGING", "MOST_OFFERED", "HandedPoint", "HandedPoints"]

MOST_OFFERED: Final = 600
"""Most points of one transcript that are kept."""
BRINGING: Final = frozenset({"bid", "batch", "submission", "offer"})
"""Messages of an owner that may bring φ of points; under `blind` none does."""


class HandedPoint(NamedTuple):
    """A point that was handed over, in the message of a row; `number` counts those of the transcript."""

    number: int
    row: Row
    features: Features


class HandedPoints:
    """Takes points in, and keeps at most `MOST_OFFERED`: of more, a sample without replacement.

    Each point is as likely as any other to be kept (Vitter 1985, algorithm R). The draws have a fixed seed:
    the same transcript gives the same sample.
    """

    def __init__(self) -> None:
        self.count = 0
        """Points that were handed over, kept or not."""
        self._kept: list[HandedPoint] = []
        self._generator = np.random.default_rng(0)

    def take(self, row: Row, fields: Mapping[str, Value]) -> None:
        """Take in the points of a message that may bring some."""
        for features in _points_of(fields):
            offer = HandedPoint(self.count, row, features)
            self.count += 1
            if len(self._kept) < MOST_OFFERED:
                self._kept.append(offer)
            elif (place := int(self._generator.integers(self.count))) < MOST_OFFERED:
                self._kept[place] = offer

    def kept(self) -> list[HandedPoint]:
        """The points that were kept, in the order in which they came."""
        return sorted(self._kept, key=lambda offer: offer.number)


def _points_of(fields: Mapping[str, Value]) -> Iterator[Features]:
    """φ of each point of a message, without a batch's padding."""
    if isinstance(one := fields.get("candidate"), Mapping) and not fields.get("exhausted"):
        yield _array(one["features"])
    elif isinstance(several := fields.get("candidates"), Mapping):
        handles = _array(fields["handles"])
        for handle, features in zip(
            handles, _array(several["features"]).reshape(len(handles), -1), strict=True
        ):
            if handle:
                yield features


def _array(value: Value) -> npt.NDArray[Any]:
    assert isinstance(value, np.ndarray), "its party's machine has taken it as one"
    return value
