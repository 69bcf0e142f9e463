"""After a session with columns: its table, gaps, and a cluster file in the place of a session file."""

from __future__ import annotations

import json
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


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A simulated session with columns, whose delivery and transcripts lie in `record`."""
    for name, count, seed in (("north", 60, 1), ("south", 50, 2), ("seeds", 20, 4), ("test", 30, 5)):
        table(tmp_path / f"{name}.csv", count, seed)
    table(tmp_path / "validation.csv", 40, 3, gap=True)
    named = {"label": "sold"}
    (tmp_path / "cluster.toml").write_text(
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
    done = run("simulate", tmp_path / "cluster.toml", "--record", tmp_path / "record", "--json")
    assert done.exit_code == 0, done.output
    return tmp_path


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
