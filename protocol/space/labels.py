"""Labels in the choice: they turn the angles of a feature map, so that points of other labels are less alike.

Angle f of a point is turned by θ_f(y), a normal number for each class (and for each end of a range of
amounts) whose variance is -ln(similarity), in radians. The mean of cos(θ_f(y) - θ_f(y')) over f is then
`similarity` for two classes, so that the kernel of two points is

    k(x, x')                 where their labels are equal,
    k(x, x')·similarity      where they are two classes, or the two ends of the range,
    k(x, x')·√similarity     where one of them has no label.

A label is part of its point. ‖φ‖, its bounds and all that depends on them (sensitivity, prior, clipping, the
lemma) are those of the map without labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.space.expansion import ANGLE_BITS, NORMAL_BITS, Expansion, WholeNumbers, normals

__all__ = ["UNKNOWN", "LabelCode", "LabelTurns", "Labels", "listed_labels", "one_each"]

Labels: TypeAlias = Sequence[int | float | str | None] | npt.NDArray[Any]
"""Of points, in order; None where one has none."""

UNKNOWN: Final = -1
"""The code of a point without a label."""
_RANGE_BITS: Final = 16
"""An amount is a whole number of 2^-16 of the range."""
_TURN_BITS: Final = 32
"""Turns by labels are in units of 2^-32 of a turn."""
_DOMAIN: Final = b"hushbid label turns 1"


def listed_labels(labels: Labels) -> list[int | float | str | None]:
    """The labels as Python numbers and text."""
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)


def one_each(labels: Labels | None, count: int) -> Labels:
    """The labels of `count` points; None for each of them where there are no labels."""
    return [None] * count if labels is None else labels


@dataclass(frozen=True)
class LabelCode:
    """What is public about labels in the choice.

    Attributes:
        similarity: Of two points that differ in their label alone, between 0 and 1.
        classes: Two different ones or more, whole numbers or texts; empty: labels are amounts.
        lower, upper: The range of amounts.

    Raises:
        ConfigError: One of them is out of range, or there is one class only.
    """

    similarity: float
    classes: tuple[int | str, ...] = ()
    lower: float = 0.0
    upper: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.similarity < 1.0:
            raise ConfigError(
                f"labels.similarity is {self.similarity:g}, and two labels have one between 0 and 1.",
                advice="Leave it out; or leave [labels] out, and labels have no part in the choice.",
            )
        if self.classes and (len(set(self.classes)) < max(2, len(self.classes))):
            raise ConfigError(
                "labels.classes has a class twice, or one only.",
                advice="List each class that an owner may have once; there are two or more.",
            )
        if not self.classes and not (math.isfinite(self.upper - self.lower) and self.lower < self.upper):
            raise ConfigError(
                "labels.lower and labels.upper enclose no range of amounts.",
                advice="Correct them; or list the classes, if labels are no amounts.",
            )

    @property
    def corners(self) -> int:
        """Labels that have a turn of their own: the classes, or the two ends of the range."""
        return len(self.classes) or 2

    def codes(self, labels: Labels) -> npt.NDArray[np.int64]:
        """What a map takes of labels: the number of the class, or the place in the range; or `UNKNOWN`.

        Args:
            labels: None where a point has none; length n.

        Returns:
            int64 of shape (n,). An amount's place is a whole number from 0 to 2^16.

        Raises:
            DataError: A label is no class of the list, or outside of the range; names the row, and no label.
        """
        listed = listed_labels(labels)
        if not self.classes:
            return np.array([self._place(label, row) for row, label in enumerate(listed)], dtype=np.int64)
        known: dict[Any, int] = {label: number for number, label in enumerate(self.classes)}
        found = [UNKNOWN if label is None else known.get(label, -2) for label in listed]
        if -2 in found:
            raise DataError(
                f"Row {found.index(-2)} (counted from 0) has a label that is no class of the session's list.",
                advice="Correct the label, or have it added to labels.classes of the session file, for all "
                "parties. If labels are amounts, the file needs labels.lower and labels.upper instead.",
            )
        return np.array(found, dtype=np.int64)

    def labels(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The label of each code: shape (n,); any label for `UNKNOWN`."""
        if self.classes:
            return np.array(self.classes)[codes]
        places = np.maximum(codes, 0) / 2**_RANGE_BITS
        return np.asarray(np.clip(self.lower + places * (self.upper - self.lower), self.lower, self.upper))

    def any_codes(self, count: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
        """Codes of labels at random: int64 of shape (count,)."""
        return generator.integers(0, len(self.classes) or 2**_RANGE_BITS + 1, size=count)

    def _place(self, label: Any, row: int) -> int:
        if label is None:
            return UNKNOWN
        if isinstance(label, str) or not self.lower <= label <= self.upper:
            what = "text where the session has amounts" if isinstance(label, str) else "outside of the range"
            raise DataError(
                f"Row {row} (counted from 0) has a label that is {what}.",
                advice="Correct the label, or have labels.lower and labels.upper of the session file "
                "changed, for all parties.",
            )
        share = (float(label) - self.lower) / (self.upper - self.lower)
        return round(share * 2**_RANGE_BITS)


class LabelTurns:
    """θ, drawn from the seed of a map.

    Row f of the seed's `Expansion` in a domain of its own has a word for each corner, which gives a normal
    number.

    Args:
        frequencies: Of the map.
        seed: The map's.

    Attributes:
        corners: int64 of shape (corners, frequencies), in units of 2^-32 of a turn.
    """

    def __init__(self, code: LabelCode, frequencies: int, seed: int | bytes) -> None:
        words = Expansion(_DOMAIN, seed).rows(frequencies, code.corners)
        shift = NORMAL_BITS + NORMAL_BITS - _TURN_BITS
        self.corners = ((normals(words) * _deviation(code.similarity) + (1 << shift - 1)) >> shift).T
        self._amounts = not code.classes

    def of(self, codes: npt.NDArray[np.int64]) -> WholeNumbers:
        """The turns of points with these codes (`LabelCode.codes`), in units of 2^-16 of a turn.

        Returns:
            int64 of shape (n, frequencies); 0 for a point without a label.
        """
        if self._amounts:
            first, last = self.corners
            places = codes[:, None]
            turns = ((2**_RANGE_BITS - places) * first + places * last) >> _RANGE_BITS
        else:
            turns = self.corners[codes]
        turns = (turns + (1 << _TURN_BITS - ANGLE_BITS - 1)) >> (_TURN_BITS - ANGLE_BITS)
        turns[codes == UNKNOWN] = 0
        return np.asarray(turns)


def _deviation(similarity: float) -> int:
    """√(-ln similarity)/2π of a turn, in units of 2^-28, the same on every machine."""
    with localcontext() as exact:
        exact.prec = 40  # logarithm and square root of decimals are rounded correctly
        radians = (-Decimal(similarity).ln()).sqrt()
        return int((radians / _TWO_PI * 2**NORMAL_BITS).to_integral_value())


_TWO_PI: Final = Decimal("6.283185307179586476925286766559005768394")
