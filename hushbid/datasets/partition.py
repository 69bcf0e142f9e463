"""A public dataset dealt out to the parties of a demonstration cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["CONSUMER", "Partition", "PartitionOptions", "Table", "limited"]

Array: TypeAlias = npt.NDArray[Any]

CONSUMER: Final = "consumer"
"""The consumer's directory."""


@dataclass(frozen=True)
class PartitionOptions:
    """The options of every dataset.

    Attributes:
        seed_points: Points of the public seed set.
        owner_points: Most points of an owner, drawn at random from its own; None: all.
    """

    seed_points: int = 150
    owner_points: int | None = None


@dataclass(frozen=True, eq=False)
class Table:
    """Raw features, shape (n, c), and their labels, shape (n,)."""

    features: Array
    labels: Array

    def __len__(self) -> int:
        return len(self.features)

    def take(self, rows: npt.NDArray[np.intp]) -> Table:
        """The rows of these indices, in this order."""
        return Table(self.features[rows], self.labels[rows])


@dataclass(frozen=True, eq=False)
class Partition:
    """The data of each party of a demonstration. No point is in two of the tables.

    Attributes:
        owners: By name, in order.
        validation: D_v, with labels, which no release looks at (DPDS §4).
        seed_set: D_init, of another distribution than D_v. Its labels are not handed out either.
        test: The test set of a downstream model, of D_v's distribution.
        columns: Feature columns c.
        lower, upper: Public bounds of every column.
        dtype: Number type of all features.
        suggested: Session parameters that suit the dataset: "gamma", "dimension", "model".
    """

    owners: dict[str, Table]
    validation: Table
    seed_set: Table
    test: Table
    columns: int
    lower: float
    upper: float
    dtype: np.dtype[Any]
    suggested: dict[str, float | int | str]


def limited(
    rows: npt.NDArray[np.intp], most: int | None, generator: np.random.Generator
) -> npt.NDArray[np.intp]:
    """At most `most` of the rows, drawn at random, in their order."""
    if most is None or len(rows) <= most:
        return rows
    return np.sort(generator.choice(rows, size=most, replace=False))
