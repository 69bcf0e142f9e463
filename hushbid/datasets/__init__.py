"""Public datasets for demonstrations and experiments, dealt out to the parties of a cluster.

A new one is a function in a module of its own, named in `DATASETS`: ``tests/conformance/test_datasets.py``
then tests it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from hushbid.datasets.digits import digits
from hushbid.datasets.insurance import insurance
from hushbid.datasets.mnist import mnist
from hushbid.datasets.partition import CONSUMER, Partition, PartitionOptions, Table
from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.intervals import within

__all__ = [
    "CONSUMER",
    "DATASETS",
    "Builder",
    "Partition",
    "PartitionOptions",
    "Table",
    "build",
]

Builder: TypeAlias = Callable[[Path | None, np.random.Generator, PartitionOptions], Partition]
"""Reads a dataset and deals it out. Raises a ConfigError or a DataError."""

DATASETS: Final[Mapping[str, Builder]] = {"digits": digits, "mnist": mnist, "insurance": insurance}
"""Every dataset, by the name that a cluster file uses."""


def build(
    name: str, *, path: Path | None = None, seed: int, options: Mapping[str, object] | None = None
) -> Partition:
    """Deal a dataset out.

    Args:
        name: One of `DATASETS`.
        path: The place of its files; None if it needs none.
        seed: Not negative; the same seed deals the same points to the same parties.
        options: The fields of `PartitionOptions`, each a positive integer.

    Raises:
        ConfigError: An unknown dataset or option, or an invalid value.
        DataError: The dataset's files cannot be used.
    """
    if name not in DATASETS:
        raise ConfigError(
            f"There is no dataset named {name!r}.", advice=f"Choose one of: {', '.join(DATASETS)}."
        )
    if not within(ranges.Seed, seed):
        raise ConfigError("The dataset's seed is negative.", advice="Give 0 or a positive integer.")
    return DATASETS[name](path, np.random.default_rng(seed), _parse_options(options or {}))


def _parse_options(options: Mapping[str, object]) -> PartitionOptions:
    known = PartitionOptions.__dataclass_fields__
    parsed: dict[str, int] = {}
    for name, value in options.items():
        if name not in known:
            raise ConfigError(
                f"A dataset has no option {name!r}.", advice=f"Options are: {', '.join(known)}."
            )
        if isinstance(value, bool) or not isinstance(value, int) or not within(ranges.Count, value):
            raise ConfigError(
                f"The dataset's option {name!r} is not a positive integer.", advice="Correct the option."
            )
        parsed[name] = value
    return PartitionOptions(**parsed)
