"""Every party's data, as only the operator of a demonstration cluster holds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hushbid.datasets import Partition
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError

__all__ = ["ClusterData", "Draw", "of_partition", "spread"]

Draw: TypeAlias = Callable[[Dataset], Dataset]
"""Draws a seed set of D_v's number type."""


@dataclass(frozen=True, eq=False)
class ClusterData:
    """The data of each party: owners' by name, in order; D_v, D_init, and test points, if there are any."""

    owners: Mapping[str, Dataset]
    validation: Dataset
    seed_set: Dataset
    test: Dataset | None

    @property
    def consumers(self) -> list[Dataset]:
        """The consumer's sets."""
        return [each for each in (self.validation, self.seed_set, self.test) if each is not None]


def of_partition(partition: Partition, draw: Draw | None = None) -> ClusterData:
    """The data of a dataset's parties, as they read them from files; `draw` may replace its seed set."""
    validation = Dataset.from_arrays("validation", partition.validation.features, partition.validation.labels)
    return ClusterData(
        owners={
            name: Dataset.from_arrays(name, table.features, table.labels)
            for name, table in partition.owners.items()
        },
        validation=validation,
        seed_set=Dataset.from_arrays("seed-set", partition.seed_set.features)
        if draw is None
        else draw(validation),
        test=Dataset.from_arrays("test", partition.test.features, partition.test.labels),
    )


def spread(data: ClusterData, owners: int, points: int | None, *, seed: int) -> ClusterData:
    """Spread the owners' points over another number of owners, to simulate large sessions.

    New owner number i takes its points from old owner i mod K. Without `points` an old owner's rows are dealt
    out, each once; with it every new owner draws that many of them, with replacement.

    Raises:
        ConfigError: There are too few points to deal one to each.
    """
    generator = np.random.default_rng(seed)
    old = list(data.owners.values())
    digits = len(str(owners))
    new: dict[int, Dataset] = {}
    for number, dataset in enumerate(old[:owners]):
        heirs = range(number, owners, len(old))
        if points is not None:
            shares = [generator.integers(len(dataset), size=points) for _ in heirs]
        elif len(heirs) > len(dataset):
            raise ConfigError(
                f"{dataset.name} has {len(dataset)} points, too few to deal out to {len(heirs)} owners.",
                advice="Use fewer owners; with `simulate` each can draw points anew (`--owner-points`).",
            )
        else:
            shares = np.array_split(generator.permutation(len(dataset)), len(heirs))
        for heir, share in zip(heirs, shares, strict=True):
            new[heir] = _rows(dataset, f"owner-{heir + 1:0{digits}}", np.sort(share))
    named = {dataset.name: dataset for _, dataset in sorted(new.items())}
    return ClusterData(named, data.validation, data.seed_set, data.test)


def _rows(dataset: Dataset, name: str, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Dataset:
    labels = None if dataset.labels is None else dataset.labels[rows]
    labelled = None if dataset.labelled is None else dataset.labelled[rows]
    identifiers = None if dataset.identifiers is None else dataset.identifiers[rows]
    return Dataset.from_arrays(
        name,
        dataset.features[rows],
        labels,
        identifiers,
        feature_names=dataset.feature_names,
        labelled=labelled,
    )
