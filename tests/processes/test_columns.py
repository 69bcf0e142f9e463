"""A session with columns between processes: each party names its own table, and rows come back."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import tomli_w
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.cluster.file import open_cluster
from hushbid.consumer.delivered import delivered_table
from hushbid.protocol.config.session import DraftSession
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import DataError
from hushbid.running.simulate import simulate
from tests.processes.test_run import start

COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "kind": "integer", "lower": 18, "upper": 90},
    {"name": "job", "kind": "category", "categories": ["clerk", "nurse"], "missing": "own"},
    {"name": "member", "kind": "boolean"},
]


def people(count: int, nurses: float, seed: int) -> Any:
    generator = np.random.default_rng(seed)
    jobs = generator.choice(["clerk", "nurse", ""], count, p=[0.9 - nurses, nurses, 0.1]).tolist()
    jobs = [job or None for job in jobs]
    members = (generator.random(count) < nurses).tolist()
    ages = generator.integers(18, 91, count)
    return pa.table({"age": ages, "job": pa.array(jobs, pa.string()), "member": members, "paid": ages % 2})


OWNERS = {"north": people(60, 0.8, 1), "south": people(60, 0.1, 2)}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("columns")
    consumer = {"validation": people(30, 0.8, 3), "seed": people(20, 0.2, 4)}
    theirs = set(map(str, consumer["validation"].drop_columns("paid").to_pylist()))
    others = [str(row) not in theirs for row in consumer["seed"].drop_columns("paid").to_pylist()]
    consumer["seed"] = consumer["seed"].filter(others)
    for name, table in (OWNERS | consumer).items():
        if name == "south":
            pq.write_table(table, place / "south.parquet")
        else:
            pacsv.write_csv(table, place / f"{name}.csv")
    release = {"mechanism": "filtered-gaussian", "epsilon": 3.0}
    paid = {"columns": {"label": "paid"}}
    sections = {
        "session": {"name": "columns", "points": 20},
        "features": {"gamma": 1.0},
        "columns": COLUMNS,
        "target": release | {"neighbours": "substitute-one"},
        "summary": release | {"neighbours": "add-remove-one"},
        "acquisition": {"rule": "sealed"},
        "owners": {"north": {"data": "north.csv"} | paid, "south": {"data": "south.parquet"} | paid},
        "consumer": {"validation": "validation.csv", "seed_set": "seed.csv"} | paid,
    }
    (place / "cluster.toml").write_text(tomli_w.dumps(sections))
    return place


@pytest.fixture(scope="module")
def ran(place: Path) -> dict[str, Any]:
    """The output of a run of the cluster."""
    ended = start(place / "cluster.toml", place / "runs").end()
    assert ended.code == 0, ended.err
    return ended.json


def test_what_is_bought_are_rows_of_the_owners_tables(ran: dict[str, Any]) -> None:
    assert ran["points_delivered"] == 20
    table = Path(ran["data"]).with_suffix(".parquet")
    rows = pq.read_table(table).to_pylist()
    assert list(rows[0]) == ["age", "job", "member", "paid", "owner", "round", "weight", "training_weight"]
    for row in rows:
        assert {name: row[name] for name in OWNERS["north"].column_names} in OWNERS[row["owner"]].to_pylist()
    assert sum(row["weight"] for row in rows) == pytest.approx(1.0)
    assert table.stat().st_mode & 0o777 == 0o600


def test_an_owner_that_drops_rows_is_alone_told_how_many(place: Path) -> None:
    rows = (place / "north.csv").read_text() + '7,"nurse",true,1\n'
    (place / "more.csv").write_text(rows.replace(",", ";"))
    values = tomllib.loads((place / "cluster.toml").read_text())
    values["owners"]["north"]["data"] = "more.csv"
    (place / "more.toml").write_text(tomli_w.dumps(values))
    with pytest.raises(DataError, match="column 'age': row 60"):
        open_cluster(place / "more.toml").load()
    values["owners"]["north"]["columns"]["outside"] = "drop"
    (place / "more.toml").write_text(tomli_w.dumps(values))
    ended = start(place / "more.toml", place / "more-runs").end()
    assert ended.code == 0, ended.err
    assert "dropped" not in json.dumps(ended.json).replace('"dropped": 0', "")
    parties = Path(ended.json["directory"]) / "parties"
    log = (parties / "north" / "log.txt").read_text()
    assert "INFO data.dialect more.csv is read as CSV, separated by semicolons" in log
    assert "WARNING data.changed" in log
    told = {each.name: json.loads((each / "result.json").read_text()) for each in parties.iterdir()}
    filled = {name: told[name]["outside"].pop("filled") for name in ("north", "south", "consumer")}
    assert {name: found["job"]["cells"] for name, found in filled.items()} == {
        "north": OWNERS["north"]["job"].null_count,
        "south": OWNERS["south"]["job"].null_count,
        "consumer": 2,
    }
    nothing = {"clipped": {}, "dropped": 0, "dropped_by": {}, "over": 0}
    assert told["north"]["outside"] == {**nothing, "dropped": 1, "dropped_by": {"age": 1}}
    assert told["south"]["outside"] == told["consumer"]["outside"] == nothing
    assert "outside" not in told["curator"]


def test_it_is_weighed_by_a_table_of_the_session_s_columns(place: Path, ran: dict[str, Any]) -> None:
    given = [
        "weigh",
        ran["data"],
        "--validation",
        str(place / "validation.csv"),
        "--label",
        "paid",
        "--json",
    ]
    alone = CliRunner().invoke(app, given)
    assert alone.exit_code == 4
    session = next(Path(ran["directory"]).rglob("session.toml"))
    done = CliRunner().invoke(app, [*given, "--session", str(session)])
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["older"] == str(Path(ran["data"]).with_suffix(".parquet"))


def test_a_simulation_reads_the_same_tables(place: Path) -> None:
    result = simulate(open_cluster(place / "cluster.toml"))
    assert result.points_delivered == 20
    assert result.choices.run.weighted is not None


def with_half_rows(place: Path, rule: str) -> Path:
    """The cluster with an owner whose points are within bounds but no rows: half a clerk, half a nurse."""
    points = np.tile([54.0, 0.5, 0.5, 0.0, 1.0], (40, 1)) + np.arange(40)[:, None] * [1.0, 0, 0, 0, 0] // 2
    np.savez(place / "east.npz", features=points, labels=np.arange(40) % 2)
    sections = tomllib.loads((place / "cluster.toml").read_text())
    sections["owners"]["east"] = {"data": "east.npz"}
    sections["acquisition"]["rule"] = rule
    sections["features"] |= {"seed": 7} if rule == "ask-all" else {}
    path = place / f"half-rows-{rule}.toml"
    path.write_text(tomli_w.dumps(sections))
    return path


def test_an_owner_of_numbers_that_are_no_rows_is_told_so(place: Path) -> None:
    with pytest.raises(DataError, match=r"east.npz: row 0 .* numbers of no category .* column 'job'"):
        simulate(open_cluster(with_half_rows(place, "sealed")))


@pytest.mark.parametrize("rule", ["sealed", "ask-all"])
def test_points_that_are_no_rows_are_not_paid_and_harm_no_table(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    """An owner that does not check its own points sells them: they count as out of bounds."""
    cluster = open_cluster(with_half_rows(place, rule))
    monkeypatch.setattr(DraftSession, "check_points", lambda *_, **__: None)
    result = simulate(cluster, record=tmp_path / "record")
    assert result.data is not None
    delivered = np.load(result.data)
    assert "east" not in delivered["owners"]
    assert len(delivered["owners"]) == 20 - result.disputed
    if rule == "sealed":
        assert result.disputed > 0
    else:  # the curator sees the points
        assert {(each.owner, each.what) for each in result.faults} == {
            ("east", "the point is outside the public bounds")
        }
    table = delivered_table(Schema.of(COLUMNS), result.data, label="paid")
    assert table.num_rows == len(delivered["owners"])
