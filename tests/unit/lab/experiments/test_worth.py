"""Where buying pays: the measurements on a distributed table, and how owners differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.datasets import Table
from hushbid.datasets.tilted import FAR, NEAR, tilted
from hushbid.lab.experiment_options import WorthOptions
from hushbid.lab.experiments.runner import run
from hushbid.lab.experiments.worth import WorthRow, worth
from hushbid.protocol.errors import ConfigError, DataError


def table(rows: int = 4_000) -> Table:
    """Columns of which two are correlated, and a label that follows one of them."""
    generator = np.random.default_rng(1)
    base = generator.normal(size=rows)
    features = np.stack([base, 2 * base + generator.normal(size=rows), generator.normal(size=rows)], axis=1)
    return Table(features.astype(np.float32), (base + 0.5 * features[:, 2] > 0.5).astype(np.int8))


def dealt(tilts: tuple[float, ...], seed: int = 0) -> Any:
    generator = np.random.default_rng(seed)
    return tilted(table(), tilts, validation=100, test=300, owner_points=500, generator=generator)


def test_a_tilted_owner_is_nearer_to_the_consumer_and_no_row_is_dealt_twice() -> None:
    means = {}
    for name, tilts in (("near", NEAR), ("far", FAR)):
        found = dealt(tilts)
        tables = [*found.owners.values(), found.validation, found.seed_set, found.test]
        rows = np.concatenate([each.features for each in tables])
        assert len(np.unique(rows, axis=0)) == len(rows)
        assert [len(each) for each in tables[5:]] == [100, 150, 300]
        assert all(100 < len(each) <= 500 for each in found.owners.values())
        firsts = [float(each.features[:, 0].mean()) for each in found.owners.values()]
        assert firsts == sorted(firsts) or firsts == sorted(firsts, reverse=True), "as their tilts"
        means[name] = abs(np.mean(firsts) - found.validation.features[:, 0].mean())
        assert rows.min() >= 0.0
        assert rows.max() <= 1.0
        gap = abs(found.validation.features[:, 0].mean() - found.test.features[:, 0].mean())
        assert gap < 0.03, "the test rows are the consumer's"
    assert means["far"] > 1.4 * means["near"]


def test_rows_that_are_alike_are_dealt_once() -> None:
    held = table(2_000)
    twice = Table(np.concatenate([held.features] * 2), np.concatenate([held.labels] * 2))
    found = tilted(
        twice, NEAR, validation=100, test=300, owner_points=500, generator=np.random.default_rng(0)
    )
    rows = np.concatenate(
        [each.features for each in (*found.owners.values(), found.validation, found.seed_set, found.test)]
    )
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_the_same_seed_deals_the_same_and_few_rows_are_refused() -> None:
    assert np.array_equal(dealt(NEAR).validation.features, dealt(NEAR).validation.features)
    assert not np.array_equal(dealt(NEAR).validation.features, dealt(NEAR, 1).validation.features)
    with pytest.raises(DataError, match="too few to deal out"):
        tilted(table(500), NEAR, validation=100, test=300, owner_points=9, generator=np.random.default_rng(0))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[int, WorthRow]:
    place = tmp_path_factory.mktemp("data")
    made = table()
    np.savez(place / "occupancy.npz", features=made.features, labels=made.labels)
    options = WorthOptions(
        settings=["occupancy-far"],
        data=place,
        own_rows=[60],
        labelled=[0, 20, 1000],
        points=[40],
        seeds=2,
    )
    return {row.labelled: row for row in run(worth, options).rows}


def test_each_number_of_labels_has_a_row_of_means_and_gains(rows: dict[int, WorthRow]) -> None:
    assert list(rows) == [0, 20, 60], "at most all rows have a label"
    for labelled, row in rows.items():
        assert (row.setting, row.own_rows, row.points, row.metric, row.seeds) == (
            "occupancy-far", 60, 40, "accuracy", 2,
        )  # fmt: skip
        assert len(row.gain_each) == 2
        figures = (row.bought, row.uniform, row.greedy, row.own_and_bought, row.own_and_uniform, row.trivial)
        assert all(figure is not None and 0.0 <= figure <= 1.0 for figure in figures)
        assert (row.own is None) == (labelled == 0)
        assert row.mmd2 is not None
        assert row.effective_points is not None
        assert 1.0 <= row.effective_points <= 40.0
    assert rows[0].own_and_bought == rows[0].bought, "nothing to stand beside"
    assert rows[0].mmd2 == rows[60].mmd2, "labels have no part in the choice"
    assert rows[60].own is not None
    assert rows[60].gain == pytest.approx(rows[60].own_and_bought - rows[60].own)  # type: ignore[operator]


def test_a_setting_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(ConfigError, match="no setting moon"):
        run(worth, WorthOptions(settings=["moon"], seeds=1))
    with pytest.raises(ConfigError, match="a seed"):
        run(worth, WorthOptions(settings=["rare"], seeds=[]))


def test_on_real_rows_of_occupancy_a_purchase_is_measured(shared_data: Any) -> None:
    place: Path = shared_data("occupancy.npz").parent
    options = WorthOptions(
        settings=["occupancy-near"], data=place, own_rows=[50], labelled=[50], points=[50], seeds=1
    )
    (row,) = run(worth, options).rows
    assert row.own is not None
    assert row.own > 0.8
