"""A public dataset dealt out to the parties of a demonstration cluster, and its files on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["CONSUMER", "Partition", "PartitionOptions", "Table", "limited", "write_partition"]

Array: TypeAlias = npt.NDArray[Any]

CONSUMER: Final = "consumer"
"""The consumer's directory."""


@dataclass(frozen=True)
class PartitionOptions:
    """What can be chosen of every dataset.

    Attributes:
        seed_points: Points of the public seed set; None: the dataset's own number.
        owner_points: Most points of an owner, drawn at random from those that fall to it; None: all.
    """

    seed_points: int | None = None
    owner_points: int | None = None


@dataclass(frozen=True, eq=False)
class Table:
    """Raw features, shape (n, c), and their labels, shape (n,)."""

    features: Array
    labels: Array

    def __len__(self) -> int:
        return len(self.features)

    def take(self, rows: npt.NDArray[np.intp]) -> Table:
        """The rows of these indices, in that order."""
        return Table(self.features[rows], self.labels[rows])


@dataclass(frozen=True, eq=False)
class Partition:
    """What each party of a demonstration holds. No point is in two of the tables.

    Attributes:
        owners: By name, in order.
        validation: D_v. Its labels are for evaluation: the consumer does not get them (DPDS §4).
        seed_set: D_init, of another distribution than D_v. Its labels are not handed out either.
        test: What a downstream model is judged by; of D_v's distribution.
        columns: Feature columns c.
        lower, upper: Public bounds of every column.
        dtype: Of all features.
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


def write_partition(partition: Partition, directory: Path) -> dict[str, dict[str, Path]]:
    """Write each party's files into a directory of its own (mode 0700, files 0600).

    An owner gets ``data.npz`` (features, labels); the consumer ``validation.npz`` and ``seed-set.npz``
    (features) and ``test.npz`` (features, labels). Files of an earlier run are replaced.

    Args:
        partition: What to write.
        directory: Created if need be.

    Returns:
        Party → what it is ("data"; "validation", "seed-set", "test") → path.

    Raises:
        OSError: A file cannot be written.
    """
    files: dict[str, dict[str, Path]] = {}
    for name, table in partition.owners.items():
        place = _own_directory(directory, name)
        files[name] = {"data": _write(place / "data.npz", table.features, table.labels)}
    place = _own_directory(directory, CONSUMER)
    files[CONSUMER] = {
        "validation": _write(place / "validation.npz", partition.validation.features),
        "seed-set": _write(place / "seed-set.npz", partition.seed_set.features),
        "test": _write(place / "test.npz", partition.test.features, partition.test.labels),
    }
    return files


def _own_directory(directory: Path, party: str) -> Path:
    place = directory / party
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.chmod(0o700)
    return place


def _write(path: Path, features: Array, labels: Array | None = None) -> Path:
    arrays = {"features": features} if labels is None else {"features": features, "labels": labels}
    path.unlink(missing_ok=True)
    path.touch(mode=0o600, exist_ok=False)
    np.savez(path, **arrays)  # type: ignore[arg-type]  # numpy's stub takes the names for its own option
    return path
