"""Own rows that do not fit: a verb's `--outside` means the same as in a party's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from typer.testing import CliRunner

from hushbid.cli.app import app

BOUNDS: dict[str, Any] = {"lower": np.float64(0.0), "upper": np.float64(1.0)}
COLUMNS = [{"name": name, "kind": "number", "lower": 0.0, "upper": 1.0} for name in "ab"]


def run(*arguments: Any, code: int = 0) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert done.exit_code == code, (done.stdout, done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A delivery, and a validation set of 40 rows with one out of bounds and one without a label."""
    rng = np.random.default_rng(0)
    points = rng.random((60, 2))
    labels = (points[:, 0] > 0.5).astype(np.int64)
    np.savez(
        tmp_path / "delivered.npz", features=points, owners=np.array(["heron", "wren"] * 30),
        rounds=np.arange(60), gamma=np.float64(2.0), **BOUNDS,
        labels=labels, labelled=np.ones(60, dtype=bool),
    )  # fmt: skip
    lines = [f"{a:.3f},{b:.3f},{int(a > 0.5)}" for a, b in rng.random((38, 2))]
    (tmp_path / "wanted.csv").write_text("\n".join(["a,b,y", *lines, "1.7,0.5,1", "0.2,0.5,"]) + "\n")
    (tmp_path / "public.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")
    (tmp_path / "columns.toml").write_text(tomli_w.dumps({"columns": COLUMNS}))
    return tmp_path


def arguments(verb: str, place: Path) -> list[Any]:
    wanted, tables = place / "wanted.csv", ["--features", "a,b", "--label", "y"]
    given: dict[str, list[Any]] = {
        "weigh": [place / "delivered.npz", "--validation", wanted, *tables, "--output", place / "w.npz"],
        "value": [place / "delivered.npz", "--validation", wanted, "--features", "a,b"],
        "train": [place / "delivered.npz", "--validation", wanted, *tables],
        "advise": [
            wanted, *tables, "--lower", "0", "--upper", "1", "--owners", "400,300",
            "--points", "20", "--gamma", "2", "--epsilon", "1", "--no-rehearsal",
        ],
    }  # fmt: skip
    return [verb, *given[verb]]


@pytest.mark.parametrize("verb", ["weigh", "value", "train", "advise"])
def test_rows_are_refused_clipped_or_dropped_as_a_party_s_are(place: Path, verb: str) -> None:
    words = arguments(verb, place)
    assert "out of" in run(*words, code=4)["error"]["what"]
    for outside, rows in (("clip", 0), ("drop", 1)):
        found = run(*words, "--outside", outside)["outside"]
        found = found if verb == "advise" else found["wanted.csv"]
        assert found["dropped"] == rows
        counted = found["dropped_by"] if rows else found["clipped"]
        assert counted == {"a": 1}


def test_it_is_told_to_people(place: Path) -> None:
    done = CliRunner().invoke(app, [*map(str, arguments("value", place)), "--outside", "drop"])
    assert "wanted.csv: 1 row was dropped (1 by column" in done.stderr


def test_two_tables_of_one_name_are_both_told(place: Path) -> None:
    """The later one, a test set in another folder, replaced the first."""
    other = place / "test" / "wanted.csv"
    other.parent.mkdir()
    other.write_text((place / "wanted.csv").read_text() + "1.8,0.5,1\n")
    words = [*arguments("weigh", place), "--test", other, "--outside", "clip"]
    (place / "wanted.csv").write_text((place / "wanted.csv").read_text().replace("0.2,0.5,\n", ""))
    other.write_text(other.read_text().replace("0.2,0.5,\n", ""))
    found = run(*words)["outside"]
    assert {name: each["clipped"] for name, each in found.items()} == {
        "wanted.csv": {"a": 1},
        str(other): {"a": 2},
    }


@pytest.mark.parametrize(("outside", "rows"), [("clip", 40), ("drop", 38)])
def test_rows_are_encoded_as_far_as_they_fit(place: Path, outside: str, rows: int) -> None:
    output = place / "rows.npz"
    words = ["schema", "encode", place / "columns.toml", place / "wanted.csv", "--output", output]
    run(*words, code=4)
    assert not output.exists()
    labelled = ["--label", "y"] if outside == "drop" else []  # a gap cannot be clipped
    found = run(*words, *labelled, "--outside", outside)
    assert found["rows"] == rows
    assert found["outside"]["wanted.csv"]["dropped"] == 40 - rows
    with np.load(output) as arrays:
        assert arrays["features"].shape == (rows, 2)
        assert arrays["features"].max() <= 1.0
        assert ("labels" in arrays) == (outside == "drop")


def test_encoded_rows_that_may_be_wrong_are_told(place: Path) -> None:
    rows = "".join(f"0.5,0.{row % 20:02}\n" for row in range(40))
    (place / "twice.csv").write_text(f"a,b\n{rows}")
    words = ["schema", "encode", place / "columns.toml", place / "twice.csv", "--output", place / "rows.npz"]
    assert run(*words)["warnings"] == [
        "every row is there at least twice",
        "column 'a' has one value alone, or gaps alone",
    ]
    shown = CliRunner().invoke(app, [*map(str, words)])
    assert "WARNING: every row is there at least twice." in shown.stderr


def test_a_plan_reads_all_tables_of_a_cluster_file_by_the_word(place: Path) -> None:
    values: dict[str, Any] = {
        "session": {"name": "s", "points": 5, "allow_nonprivate": True, "labels": "optional"},
        "features": {"gamma": 2.0, "seed": 1, "columns": 2, "lower": 0.0, "upper": 1.0},
        "target": {"mechanism": "exact"},
        "acquisition": {"rule": "ask-all"},
        "owners": {"heron": {"data": "wanted.csv", "columns": {"features": ["a", "b"]}}},
        "consumer": {
            "validation": "wanted.csv", "seed_points": 10, "columns": {"features": ["a", "b"], "label": "y"},
        },
    }  # fmt: skip
    (place / "cluster.toml").write_text(tomli_w.dumps(values))
    words = ["plan", place / "cluster.toml", "--no-rehearsal"]
    assert run(*words)["validation"] == 40
    assert run(*words, "--outside", "drop")["validation"] == 39
    assert run(*words, "--outside", "clip")["validation"] == 40
    for refused in ([], ["digits"]):
        found = run("plan", *refused, "--outside", "drop", "--owners", "5", code=4)
        assert "--outside is for" in found["error"]["what"]


def test_an_advice_without_bounds_has_nothing_to_go_by(place: Path) -> None:
    words = ["advise", place / "wanted.csv", "--features", "a,b", "--public", place / "public.csv"]
    assert "--outside drop needs bounds" in run(*words, "--outside", "drop", code=4)["error"]["what"]


# -- a validation set without labels ---------------------------------------------------------------------


def test_an_unlabelled_validation_set_is_valued_and_encoded_and_not_balanced(place: Path) -> None:
    (place / "bare.csv").write_text("a,b,y\n" + "".join(f"0.{row},0.5,\n" for row in range(10, 40)))
    delivered, bare = place / "delivered.npz", ["--validation", place / "bare.csv"]
    tables = ["--features", "a,b", "--label", "y"]
    assert run("value", delivered, *bare, "--features", "a,b")["points"] == 60
    assert run("value", delivered, *bare, *tables)["points"] == 60
    weigh = ["weigh", delivered, *bare, *tables, "--output", place / "w.npz"]
    assert run(*weigh)["points"] == 60
    said = run(*weigh, "--balance", "wanted", code=4)["error"]
    assert "label" in said["what"]
    assert said["advice"]
    assert run(*weigh, "--balance", "equal")["balance"] == "equal"
    encode = ["schema", "encode", place / "columns.toml", place / "bare.csv", "--output", place / "rows.npz"]
    assert run(*encode)["rows"] == 30
    refused = run(*encode, "--label", "y", code=4)["error"]
    assert "column 'y' is missing" in refused["what"]
    assert "do not name the column" in refused["advice"]
