"""Labels in the weights of bought points: a kernel of labels that is added to that of features.

With strength a, the weights match the mean of φ(x) and of the labels' own features together: the kernel of
two points is (1 - a)·k(x, x') + a·s(y, y'). For classes s is 1 where they are equal, and 0 otherwise; for
amounts it is exp(-(y - y')² / median squared distance of D_v's labels). D_v's unlabelled rows have a part in
the features alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.consumer.balance import Group
from hushbid.consumer.downstream import Labels, are_amounts, known_labels, listed_labels
from hushbid.protocol import ranges
from hushbid.protocol.config.party import LABEL_WEIGHT
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.intervals import within
from hushbid.protocol.space.mmd import Points, Vector, at_even_distances

__all__ = ["FEWEST", "MOST_FOR_SURE", "LabelPart", "check_label_weight", "label_part"]

FEWEST: Final = 10
"""Labelled rows of D_v below which labels have no part: their shares are chance."""
MOST_FOR_SURE: Final = 50
"""Labelled rows of D_v from which a class that none of them has is taken for unwanted."""
_MOST_PAIRS: Final = 1_000
"""Amounts among which the median squared distance is looked for."""
_CHUNK: Final = 1_024
"""Rows of a kernel matrix of amounts that are held at a time."""


def check_label_weight(strength: float) -> None:
    """Raise `ConfigError` if the strength of labels is not from 0 to below 1."""
    if not within(ranges.LabelWeight, strength):
        raise ConfigError(
            f"The strength of labels in the weights is {strength}.",
            advice="Set label_weight from 0, which leaves labels out, to less than 1.",
        )


@dataclass(frozen=True, eq=False, repr=False)
class LabelPart:
    """What labels add to the objective of weights (`hushbid.consumer.matching.match`).

    Attributes:
        strength: a, from 0 to below 1.
        cross: Mean of s over the labelled rows of D_v, of each point; shape (n,).
        lacking: Points of a class that no row of D_v has, where `MOST_FOR_SURE` rows are labelled; shape
            (n,).
        classes: For classes, a number for that of each point; one without a label has a number of its own.
        amounts: For amounts, those of the points, NaN where a point has none; None for classes.
        width: For amounts, the median squared distance.
    """

    strength: float
    cross: Vector
    lacking: npt.NDArray[np.bool_]
    classes: npt.NDArray[np.intp] | None = None
    amounts: Vector | None = None
    width: float = 1.0

    def groups(self) -> tuple[Group, ...]:
        """Groups that give no weight to the `lacking` points; none if all or no points are lacking."""
        if not self.lacking.any() or self.lacking.all():
            return ()
        return Group(np.flatnonzero(~self.lacking), 1.0), Group(np.flatnonzero(self.lacking), 0.0)

    def mixed(self, features: Points, labels: Points) -> Points:
        """(1 - a)·k + a·s of values, or of sums of them."""
        mixed: Points = (1.0 - self.strength) * features + self.strength * labels
        return mixed

    def add_to(self, kernel: npt.NDArray[np.float64]) -> None:
        """Replace k of each pair by (1 - a)·k + a·s, in place."""
        kernel *= 1.0 - self.strength
        for rows in self._chunks():
            kernel[rows] += self.strength * self.similar(rows, self._all)

    def times(self, weights: Vector) -> Vector:
        """Σ wⱼ·s(yᵢ, yⱼ) of each point i, shape (n,)."""
        if self.classes is not None:
            return np.asarray(np.bincount(self.classes, weights)[self.classes])
        some = np.flatnonzero(weights)
        return np.concatenate([self.similar(rows, some) @ weights[some] for rows in self._chunks()])

    def square(self, weights: Vector) -> float:
        """Σ wᵢwⱼ·s(yᵢ, yⱼ)."""
        return float(weights @ self.times(weights))

    def similar(self, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]) -> Points:
        """S of points by their places: 0 where one has no label, but 1 of a point and itself."""
        if self.classes is not None:
            same: Points = (self.classes[rows, None] == self.classes[columns]).astype(np.float64)
            return same
        assert self.amounts is not None
        distances = (self.amounts[rows, None] - self.amounts[columns]) ** 2
        similar = np.nan_to_num(np.exp(-distances / self.width), nan=0.0)
        similar[rows[:, None] == columns] = 1.0
        return similar

    @property
    def _all(self) -> npt.NDArray[np.intp]:
        return np.arange(len(self.cross))

    def _chunks(self) -> Iterator[npt.NDArray[np.intp]]:
        for start in range(0, len(self.cross), _CHUNK):
            yield self._all[start : start + _CHUNK]


def label_part(
    labels: Labels,
    wanted: Labels | None,
    strength: float = LABEL_WEIGHT,
    *,
    amounts: bool | None = None,
) -> LabelPart | None:
    """What labels add to the weights of points.

    Args:
        labels: Of the points; None where one has none.
        wanted: Of D_v's rows, likewise; None: it has no labels.
        strength: a.
        amounts: Whether labels are amounts; None: what their values say.

    Returns:
        None if labels say nothing: a is 0, D_v has fewer than `FEWEST` or the points none; or these have no
            class in common; or D_v's labels are neither classes nor amounts (as names of rows are), or are
            amounts that hardly differ.

    Raises:
        ConfigError: a is not from 0 to below 1.
    """
    check_label_weight(strength)
    if wanted is None or strength == 0.0:
        return None
    known, of_points = known_labels(wanted), listed_labels(labels)
    bought = set(known_labels(of_points))
    if len(known) < FEWEST or not bought:
        return None
    if are_amounts(known, of_points) if amounts is None else amounts:
        return _of_amounts(of_points, known, strength)
    if not bought & set(known):
        return None
    shares: dict[Any, float] = defaultdict(float)
    for label in known:
        shares[label] += 1.0 / len(known)
    numbers: dict[Any, int] = {}
    classes = [
        numbers.setdefault(("unlabelled", row) if label is None else label, len(numbers))
        for row, label in enumerate(of_points)
    ]
    lacking = np.zeros(len(of_points), dtype=np.bool_)
    if len(known) >= MOST_FOR_SURE:
        lacking[:] = [label is not None and label not in shares for label in of_points]
    return LabelPart(
        strength,
        np.array([0.0 if label is None else shares.get(label, 0.0) for label in of_points]),
        lacking,
        np.array(classes, dtype=np.intp),
    )


def _of_amounts(labels: list[Any], known: list[Any], strength: float) -> LabelPart | None:
    if any(isinstance(label, str) for label in [*labels, *known]):
        return None
    wanted = np.array(known, dtype=np.float64)
    some = at_even_distances(np.sort(wanted), _MOST_PAIRS)
    distances = (some[:, None] - some) ** 2
    width = float(np.median(distances[np.triu_indices(len(some), 1)])) if len(some) > 1 else 0.0
    if not (math.isfinite(width) and width > 0.0):
        return None
    amounts = np.array([np.nan if label is None else float(label) for label in labels])
    cross = np.array([np.exp(-((amount - wanted) ** 2) / width).mean() for amount in amounts])
    return LabelPart(
        strength,
        np.nan_to_num(cross, nan=0.0),
        np.zeros(len(amounts), dtype=np.bool_),
        amounts=amounts,
        width=width,
    )
