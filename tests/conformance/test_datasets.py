"""Every demonstration dataset distributes its points by the same rules.

Datasets that need files are tested where the files lie beside the project.
tests/unit/hushbid/datasets/test_datasets.py checks that no row is dealt twice: real data have equal rows, so
each dataset needs its own check.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hushbid.cluster.data import of_partition
from hushbid.cluster.parties import shares, write_share
from hushbid.consumer.learners import MODELS
from hushbid.datasets import CONSUMER, DATASETS, Partition, Table, build
from hushbid.protocol.data import DataColumns, Dataset, check_dataset, load_dataset
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.space.features import feature_map

SHARED = {"mnist": "mnist.npz", "insurance": "allstate.csv.gz"}
"""Datasets that need a file, and the file beside the project."""

every_dataset = pytest.mark.parametrize("name", DATASETS)


@pytest.fixture
def path(name: str, shared_data: Callable[[str], Path]) -> Path | None:
    return shared_data(SHARED[name]) if name in SHARED else None


@cache
def built(name: str, path: Path | None, seed: int = 0, **options: int) -> Partition:
    """A partition that several tests read."""
    return build(name, path=path, seed=seed, options=options)


def tables(partition: Partition) -> Iterator[tuple[str, Table]]:
    yield from partition.owners.items()
    yield "validation", partition.validation
    yield "seed set", partition.seed_set
    yield "test", partition.test


@every_dataset
def test_the_parties_share_one_form_within_the_public_bounds(name: str, path: Path | None) -> None:
    partition = built(name, path)
    for what, table in tables(partition):
        assert len(table) > 0, what
        assert table.features.dtype == partition.dtype
        dataset = Dataset.from_arrays(what, table.features, table.labels)
        check_dataset(dataset, columns=partition.columns, lower=partition.lower, upper=partition.upper)


@every_dataset
def test_the_same_seed_deals_the_same_and_another_deals_otherwise(name: str, path: Path | None) -> None:
    first, again, other = built(name, path), build(name, path=path, seed=0), build(name, path=path, seed=6)
    for (_, table), (_, same) in zip(tables(first), tables(again), strict=True):
        assert np.array_equal(table.features, same.features)
        assert np.array_equal(table.labels, same.labels)
    assert first.validation.features.tobytes() != other.validation.features.tobytes()


@every_dataset
def test_options_bound_the_seed_set_and_the_owners(name: str, path: Path | None) -> None:
    partition = built(name, path, seed_points=7, owner_points=20)
    assert len(partition.seed_set) == 7
    assert {len(table) for table in partition.owners.values()} == {20}


@every_dataset
def test_what_is_suggested_can_be_used(name: str, path: Path | None) -> None:
    partition = built(name, path)
    suggested = partition.suggested
    assert suggested["model"] in MODELS
    made = feature_map(
        "paired",
        seed=0,
        dimension=int(suggested["dimension"]),
        gamma=float(suggested["gamma"]),
        lower=partition.lower,
        upper=partition.upper,
        columns=partition.columns,
    )
    assert made.hash(partition.validation.features).shape == (len(partition.validation), made.space.dimension)


@every_dataset
def test_each_party_gets_its_own_files_and_nobody_elses(name: str, path: Path | None, tmp_path: Path) -> None:
    partition = built(name, path, seed_points=7, owner_points=20)
    files = {}
    for party, share in shares(of_partition(partition)).items():
        (tmp_path / party).mkdir()
        files[party] = write_share(share, tmp_path / party)
    assert sorted(files) == sorted([*partition.owners, CONSUMER])
    for party, own in files.items():
        assert sorted((tmp_path / party).iterdir()) == sorted(own.values())
        for file in own.values():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for owner, table in partition.owners.items():
        dataset = load_dataset(files[owner]["data"], DataColumns())
        assert np.array_equal(dataset.features, table.features)
        assert dataset.features.dtype == table.features.dtype
        assert dataset.labels is not None
        assert np.array_equal(dataset.labels, table.labels)
    for what, table in (("validation", partition.validation), ("seed_set", partition.seed_set)):
        dataset = load_dataset(files[CONSUMER][what], DataColumns())
        assert np.array_equal(dataset.features, table.features)
        assert (dataset.labels is None) == (what == "seed_set")
    for what, table in (("validation", partition.validation), ("test", partition.test)):
        assert np.array_equal(load_dataset(files[CONSUMER][what], DataColumns()).labels, table.labels)  # type: ignore[arg-type]


@every_dataset
def test_a_path_is_asked_for_where_one_is_needed_and_refused_where_none_is(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=name):
        build(name, path=None if name in SHARED else tmp_path, seed=0)
