"""The experiments on purchases: the distribution of data, the resulting rows, and their quick form."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.datasets import Partition, Table
from hushbid.lab.experiment_options import OPTIONS, KmeOptions
from hushbid.lab.experiments.rare import deal_rare
from hushbid.lab.purchase_options import InsuranceOptions
from hushbid.protocol.errors import ConfigError

DATA = {
    "selection": None,
    "regression": None,
    "kme": "kme-mixture-2d.npz",
    "race": "codrna.npz",
    "worth": "occupancy.npz",
    "insurance": "allstate.csv.gz",
    "rivals": "allstate.csv.gz",
    "privacy-utility": "allstate.csv.gz",
    "scaling": None,
}
"""Of the quick forms; the others take MNIST."""
DIRECTORIES = ("kme", "race", "worth")
"""Who takes a directory, and not a file."""


def invoked(*arguments: str | Path) -> list[dict[str, Any]]:
    done = CliRunner().invoke(app, ["experiment", *map(str, arguments), "--json"])
    assert done.exit_code == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


def images(count: int) -> Partition:
    """As many of each digit, at five owners of two digits each; a row's one column is its number."""
    labels = np.arange(10 * count) % 10
    table = Table(np.arange(10 * count, dtype=np.float64)[:, None], labels)
    owners = {f"digits-{digit}": table.take(np.flatnonzero(labels // 2 == digit)) for digit in range(5)}
    none = table.take(np.arange(0))
    return Partition(owners, none, none, none, 1, 0.0, 1.0, table.features.dtype, {})


def test_of_a_rare_pool_the_share_is_wanted_at_seven_to_three_and_spread_over_all_owners() -> None:
    dealt = deal_rare(images(300), 1000, 0.2, None, np.random.default_rng(0))
    assert [len(table) for table in dealt.owners.values()] == [200] * 5
    labels = np.concatenate([table.labels for table in dealt.owners.values()])
    counts = np.bincount(labels, minlength=10)
    assert (counts[3], counts[4], counts.sum()) == (140, 60, 1000)
    for table in dealt.owners.values():
        assert 20 <= np.isin(table.labels, (3, 4)).sum() <= 60
    rows = np.concatenate([table.features[:, 0] for table in dealt.owners.values()])
    assert len(set(rows.tolist())) == 1000, "no image is dealt twice"


def test_a_limit_of_an_owner_takes_points_at_random() -> None:
    dealt = deal_rare(images(300), 1000, 0.2, 50, np.random.default_rng(0))
    assert [len(table) for table in dealt.owners.values()] == [50] * 5
    assert len(set(np.concatenate([t.labels for t in dealt.owners.values()]).tolist())) == 10


def test_a_pool_that_there_are_too_few_images_for_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"takes 7 images of the digits 3, and there are 5"):
        deal_rare(images(5), 50, 0.2, None, np.random.default_rng(0))


def test_quick_changes_what_nothing_was_said_of(tmp_path: Path) -> None:
    quick = InsuranceOptions(tmp_path, quick=True, points=[7]).settled()
    assert (quick.seeds, quick.points, quick.epsilons, quick.quick) == (1, [7], (1.0,), False)
    said = KmeOptions(tmp_path, quick=True, seeds=3, settings=["1-5d-leak-977"]).settled()
    assert (said.seeds, said.settings, said.simulated) == (3, ["1-5d-leak-977"], True)
    assert InsuranceOptions(tmp_path).settled() == InsuranceOptions(tmp_path)


def test_an_unknown_method_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    done = CliRunner().invoke(app, ["experiment", "insurance", "--data", str(path), "--method", "barter"])
    assert done.exit_code == 4
    assert "no method barter" in done.stderr


def test_insurance_rows_have_each_method_at_each_epsilon(shared_data: Callable[[str], Path]) -> None:
    arguments = "--points 40 --owner-points 150 --seeds 2 --epsilon 3 --epsilon 30"
    methods = "--method uniform --method greedy-kernel --method private"
    data = shared_data("allstate.csv.gz")
    rows = invoked("insurance", "--data", data, *arguments.split(), *methods.split())
    assert [(row["method"], row["epsilon"]) for row in rows] == [
        ("uniform", None),
        ("greedy-kernel", None),
        ("private", 3.0),
        ("private", 30.0),
    ]
    uniform, greedy, _, private = rows
    assert greedy["increase_exact"] == 0.0 < uniform["increase_exact"]
    assert greedy["mmd2"] < private["mmd2"] < uniform["mmd2"], "30 is as good as no noise"
    assert private["epsilon_owners"] <= 30.0
    assert uniform["epsilon_owners"] is None
    for row in rows:
        assert (row["dataset"], row["seeds"], row["bought"]) == ("insurance", 2, 40.0)
        assert len(row["accuracy_weighted_each"]) == 2
        assert row["wanted"] is None


def test_mnist_rows_have_each_gamma(shared_data: Callable[[str], Path]) -> None:
    arguments = "--points 20 --owner-points 50 --seeds 1 --method uniform --method private --epsilon 50"
    rows = invoked("mnist", "--data", shared_data("mnist.npz"), *arguments.split())
    assert [(row["gamma"], row["method"]) for row in rows] == [
        (0.1, "uniform"),
        (0.1, "private"),
        (0.01, "uniform"),
        (0.01, "private"),
    ]
    assert rows[2]["wanted"] == 4, "of each of five owners four, and one owner has 3s and 4s"
    assert rows[3]["wanted"] > 4
    # Most kernel values are 0 at the paper's γ, so that methods hardly differ in MMD².
    assert rows[0]["increase"] < 0.2 * rows[2]["increase"]


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_the_quick_form_runs(name: str, shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    file = DATA.get(name, "mnist.npz")
    where = [] if file is None else [shared_data(file)]
    if name in DIRECTORIES:
        where = [where[0].parent]
    data = [part for path in where for part in ("--data", path)]
    rows = invoked(name, *data, "--quick", "--jobs", "2", "--out", tmp_path)
    assert rows
    assert (tmp_path / "results.md").read_text().startswith("# ")
    assert "quick" not in (tmp_path / "experiment.toml").read_text()
