"""The selection experiment: a row for each setting, with its guarantee and its result."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.consumer.model_figures import ModelJudge
from hushbid.lab.experiments.selection import SelectionRow, selection
from hushbid.protocol.errors import ConfigError
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def rows() -> list[SelectionRow]:
    return selection("digits", None, epsilons=[1.0, 100.0], points=[5, 60], seeds=[0, 1])


def test_there_is_a_row_for_each_number_of_points_and_epsilon(rows: list[SelectionRow]) -> None:
    assert [(row.points, row.epsilon) for row in rows] == [(5, 1.0), (5, 100.0), (60, 1.0), (60, 100.0)]


def test_a_row_states_what_the_accountant_says_of_its_noise(rows: list[SelectionRow]) -> None:
    for row in rows:
        assert row.delta == 1e-5
        assert 0.99 * row.epsilon < row.epsilon_owners <= row.epsilon
        assert 0.99 * row.epsilon < row.epsilon_consumer <= row.epsilon


def test_a_row_has_the_mean_of_its_seeds(rows: list[SelectionRow]) -> None:
    for row in rows:
        assert len(set(row.mmd2_each)) == 2
        assert row.mmd2 == pytest.approx(sum(row.mmd2_each) / 2)
        assert row.mmd2_greedy > 0


def test_a_selection_under_a_generous_budget_is_far_better_than_chance(rows: list[SelectionRow]) -> None:
    """At p = 60, with weights: it has about 0.007, uniform sampling about 0.06."""
    generous = rows[-1]
    assert generous.mmd2 < 0.6 * generous.mmd2_uniform


def test_the_same_seeds_give_the_same_figures(rows: list[SelectionRow]) -> None:
    (again,) = selection("digits", None, epsilons=[1.0], points=[5], seeds=[0, 1])
    assert replace(again, wall_seconds=0.0) == replace(rows[0], wall_seconds=0.0)


def test_a_row_is_json(rows: list[SelectionRow]) -> None:
    assert json.loads(json.dumps(rows[0].as_json()))["mmd2"] == rows[0].mmd2


def test_what_runs_is_said_and_no_model_is_judged_that_no_row_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(*_: Any) -> None:
        raise AssertionError("a model is judged")

    monkeypatch.setattr(ModelJudge, "judge", judge)
    said: list[str] = []
    (row,) = selection("digits", None, epsilons=[1.0], points=[5], seeds=[3], say=said.append)
    assert said == ["digits, p = 5, ε = 1, seed 3"]
    assert row.accuracy is not None


def own_cluster(place: Path) -> Path:
    """A user's cluster file: sealed, with secure noise, own files, columns and budgets."""
    generator = np.random.default_rng(2)
    for name in ("north", "south", "validation", "seed"):
        rows = [
            f"{a:.3f},{b:.3f},{kind}"
            for (a, b), kind in zip(generator.random((40, 2)), "yn" * 20, strict=True)
        ]
        (place / f"{name}.csv").write_text("\n".join(["age,score,bought", *rows]))
    release = {"mechanism": "gaussian", "epsilon": 2.0}
    columns = {"label": "bought"}
    table: dict[str, Any] = {
        "session": {"name": "birds", "points": 12, "batch": 4, "delta": 1e-6},
        "features": {"gamma": 1.0, "columns": 2, "dimension": 20, "lower": 0.0, "upper": 1.0},
        "target": release | {"neighbours": "substitute-one"},
        "summary": release | {"neighbours": "add-remove-one"},
        "acquisition": {"rule": "sealed"},
        "owners": {
            "north": {"data": "north.csv", "columns": columns, "budget": {"epsilon": 0.1}},
            "south": {"data": "south.csv", "columns": columns},
        },
        "consumer": {"validation": "validation.csv", "seed_set": "seed.csv", "columns": columns},
    }
    path = place / "cluster.toml"
    path.write_text(tomli_w.dumps(table), encoding="utf-8")
    return path


def test_anybody_s_cluster_file_is_experimented_with_and_nothing_is_charged(tmp_path: Path) -> None:
    path = own_cluster(tmp_path)
    before = sorted(tmp_path.iterdir())
    arguments = [
        "experiment",
        "selection",
        "--session",
        str(path),
        "--epsilon",
        "1",
        "--seeds",
        "2",
        "--json",
    ]
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0, ended.stderr
    (row,) = json.loads(ended.stdout)["rows"]
    assert (row["dataset"], row["points"], row["batch"], row["delta"]) == ("cluster.toml", 12, 4, 1e-6)
    assert (row["mechanism"], row["epsilon"]) == ("filtered-gaussian", 1.0)
    assert 0.99 < row["epsilon_owners"] <= 1.0
    assert len(set(row["mmd2_each"])) == 2
    assert sorted(tmp_path.iterdir()) == before, "no ledger and no directory"


def test_a_cluster_file_s_number_of_points_and_dealing_can_be_others() -> None:
    digits = ROOT / "configs" / "digits" / "cluster.toml"
    (row,) = selection(digits, None, epsilons=[100.0], points=[10], seeds=[0, 1])
    assert (row.points, row.batch) == (10, 1)
    assert len(set(row.mmd2_each)) == 2


@pytest.mark.parametrize(
    ("more", "says"),
    [(("digits",), "Both a dataset"), ((), "is a session file")],
    ids=["both", "session file"],
)
def test_what_is_no_cluster_file_is_refused(more: tuple[str, ...], says: str) -> None:
    path = ROOT / "configs" / "separate" / "session.toml"
    ended = CliRunner().invoke(app, ["experiment", "selection", *more, "--session", str(path)])
    assert ended.exit_code == 4
    assert says in ended.stderr


@pytest.mark.parametrize("missing", ["epsilons", "points", "seeds"])
def test_an_experiment_without_settings_is_refused(missing: str) -> None:
    settings = {"epsilons": [1.0], "points": [5], "seeds": [0]} | {missing: []}
    with pytest.raises(ConfigError):
        selection("digits", None, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("setting", [{"epsilons": [0.0]}, {"points": [0]}, {"mechanism": "exact"}], ids=str)
def test_settings_that_cannot_hold_are_refused(setting: dict[str, object]) -> None:
    settings = {"epsilons": [1.0], "points": [5], "seeds": [0]} | setting
    with pytest.raises(ConfigError):
        selection("digits", None, **settings)  # type: ignore[arg-type]
