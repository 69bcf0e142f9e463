"""After a session with columns: its table, gaps, and a cluster file in place of a session file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import tomli_w
from typer.testing import CliRunner, Result

from hushbid.cli.app import app

COLUMNS = [
    {"name": "age", "kind": "number", "lower": 0.0, "upper": 100.0, "missing": 40.0},
    {"name": "kind", "kind": "category", "categories": ["a", "b"]},
]


def table(path: Path, count: int, seed: int, *, gap: bool = False) -> None:
    generator = np.random.default_rng(seed)
    ages, kinds = generator.uniform(0.0, 100.0, count), generator.choice(["a", "b"], count)
    rows = [f"{age:.6f},{kind},{'yes' if age > 50 else 'no'}" for age, kind in zip(ages, kinds, strict=True)]
    if gap:
        rows[3] = f",{kinds[3]},no"
    path.write_text("\n".join(["age,kind,sold", *rows]) + "\n")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated session with columns, whose delivery and transcripts lie in `record`."""
    place = tmp_path_factory.mktemp("simulated")
    for name, count, seed in (("north", 60, 1), ("south", 50, 2), ("seeds", 20, 4), ("test", 30, 5)):
        table(place / f"{name}.csv", count, seed)
    table(place / "validation.csv", 40, 3, gap=True)
    named = {"label": "sold"}
    (place / "cluster.toml").write_text(
        tomli_w.dumps(
            {
                "session": {"name": "columns", "points": 20, "allow_nonprivate": True},
                "features": {"gamma": 1.0, "seed": 1, "dimension": 16},
                "columns": COLUMNS,
                "target": {"mechanism": "exact"},
                "summary": {"mechanism": "exact"},
                "acquisition": {"rule": "ask-all"},
                "owners": {name: {"data": f"{name}.csv", "columns": named} for name in ("north", "south")},
                "consumer": {
                    "validation": "validation.csv",
                    "seed_set": "seeds.csv",
                    "columns": named,
                },
            }
        )
    )
    done = run("simulate", place / "cluster.toml", "--record", place / "record", "--json")
    assert done.exit_code == 0, done.output
    return place


@pytest.fixture
def place(simulated: Path, tmp_path: Path) -> Path:
    """Its directory, for a test that may change its files."""
    return shutil.copytree(simulated, tmp_path, dirs_exist_ok=True)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_a_recorded_simulation_leaves_the_table_that_a_run_does(place: Path) -> None:
    found = pq.read_table(place / "record" / "delivered.parquet")
    assert found.num_rows == 20
    assert {"age", "kind", "sold", "owner", "weight"} <= set(found.column_names)
    assert set(found["kind"].to_pylist()) <= {"a", "b"}
    assert (place / "record" / "delivered.parquet").stat().st_mode & 0o077 == 0


VERBS: dict[str, tuple[str, ...]] = {
    "weigh": ("--validation", "validation.csv", "--label", "sold"),
    "value": ("--validation", "validation.csv", "--label", "sold"),
    "train": ("--test", "test.csv", "--label", "sold"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_cluster_file_stands_for_its_session_file(
    place: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.chdir(place)
    done = run(verb, "record/delivered.npz", *VERBS[verb], "--session", "cluster.toml", "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["points"] == 20


@pytest.mark.parametrize("verb", ["weigh", "value"])
def test_a_gap_says_that_a_session_file_can_fill_it(
    place: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.chdir(place)
    options = ("record/delivered.npz", "--validation", "validation.csv", "--features", "age")
    done = run(verb, *options)
    said = " ".join(done.stderr.split())
    assert done.exit_code == 4
    assert "is missing (empty, NA or NaN)" in said
    assert "with --session, if its [[columns]] say by `missing` what a gap stands for" in said


def test_advise_says_of_a_gap_the_same(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    options = ("--features", "age", "--lower", "0", "--upper", "100", "--points", "20", "--no-rehearsal")
    done = run("advise", "validation.csv", *options)
    assert done.exit_code == 4
    assert "with --session, if its [[columns]] say by `missing`" in " ".join(done.stderr.split())
    by_columns = ("--session", "cluster.toml", "--points", "20", "--no-rehearsal")
    assert run("advise", "validation.csv", *by_columns).exit_code == 0


def test_what_is_neither_a_session_nor_a_cluster_file_is_refused(place: Path) -> None:
    (place / "other.toml").write_text("[session]\nname = 'x'\n")
    done = run(
        "weigh",
        place / "record" / "delivered.npz",
        "--validation",
        place / "test.csv",
        "--session",
        place / "other.toml",
    )
    assert done.exit_code == 4
    assert "other.toml" in done.stderr


# -- labels that the session calls amounts -------------------------------------------------------------------


@pytest.fixture
def amounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A simulated session whose labels are few different whole numbers, and amounts by [labels]."""
    generator = np.random.default_rng(6)
    for name, count in (("north", 80), ("south", 80), ("seeds", 20), ("test", 40), ("validation", 40)):
        x = generator.random((count, 2))
        rows = [f"{a:.6f},{b:.6f},{round(4 * a + b)}" for a, b in x]
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,b,score", *rows]) + "\n")
    cluster = {
        "session": {"name": "amounts", "points": 40, "allow_nonprivate": True},
        "features": {"gamma": 1.0, "seed": 1, "dimension": 32, "columns": 2},
        "labels": {"lower": 0.0, "upper": 5.0},
        "target": {"mechanism": "exact"},
        "summary": {"mechanism": "exact"},
        "acquisition": {"rule": "ask-all"},
        "owners": {
            name: {"data": f"{name}.csv", "columns": {"label": "score"}} for name in ("north", "south")
        },
        "consumer": {
            "validation": "validation.csv",
            "seed_set": "seeds.csv",
            "test": "test.csv",
            "columns": {"label": "score"},
        },
    }
    (tmp_path / "cluster.toml").write_text(tomli_w.dumps(cluster))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_whole_numbers_that_a_session_calls_amounts_are_amounts_to_every_verb(amounts: Path) -> None:
    done = run("simulate", "cluster.toml", "--record", "record", "--json")
    assert done.exit_code == 0, done.output
    simulated = json.loads(done.stdout)
    assert simulated["model"]["metric"] == "r2"
    assert simulated["accuracy"] is None
    tables = ("--validation", "validation.csv", "--test", "test.csv", "--label", "score")
    by_session = (*tables, "--session", "cluster.toml", "--json")
    weighed = json.loads(run("weigh", "record/delivered.npz", *by_session).stdout)
    assert (weighed["model"]["metric"], weighed["accuracy"]) == ("r2", None)
    assert weighed["model"]["own"]["value"] == pytest.approx(simulated["model"]["own"]["value"])
    assert "by [labels] of the session" in weighed["labels_why"]
    trained = json.loads(run("train", "record/delivered.npz", *by_session, "--estimator", "Ridge").stdout)
    assert trained["model"]["metric"] == "r2"
    refused = run("train", "record/delivered.npz", *by_session)
    assert refused.exit_code == 4
    assert "LogisticRegression learns classes" in refused.stderr
    assert "--estimator Ridge" in refused.stderr


def test_a_plan_names_the_file_whose_labels_the_session_refuses(amounts: Path) -> None:
    (amounts / "validation.csv").write_text("a,b,score\n0.1,0.2,9\n" + "0.3,0.4,2\n" * 20)
    for verb in ("plan", "simulate"):
        refused = run(verb, "cluster.toml")
        assert refused.exit_code == 4
        assert "validation.csv: row 0" in " ".join(refused.stderr.split())
