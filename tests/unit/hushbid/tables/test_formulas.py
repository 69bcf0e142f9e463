"""Our CSV: exact for programs, with a warning about cells that a spreadsheet takes for formulas."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.data.tables import read_csv, typed_by_values
from hushbid.tables.formulas import formula_cells, formula_line
from hushbid.tables.frames import write_table

FORMULAS = [
    '=HYPERLINK("http://evil.example","x")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\tx",
    "\rx",
    "\n=1",
    "=",
    "-",
]
HARMLESS = ["a=b", "1", "-1", "+2.5", "-.5e-3", "a\n=1", " =1", "é", "x-1", "'=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_that_a_spreadsheet_would_work_out_is_found(text: str) -> None:
    assert formula_cells(pa.table({"label": ["a", text, None]})) == {"label": 1}
    assert formula_cells(pa.table({"label": pa.array(["a", text]).dictionary_encode()})) == {"label": 1}
    assert formula_cells(pa.table({text: [1, 2]})) == {text: 1}, "a column's name is a cell too"


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_and_numbers_are_not(text: str) -> None:
    assert formula_cells(pa.table({"label": ["a", text]})) == {}


def test_columns_of_numbers_stay_numbers() -> None:
    table = pa.table({"x": [-1.5, 2.0], "n": [-3, 4], "b": [True, None], "t": pa.nulls(2, pa.string())})
    assert formula_cells(table) == {}


def test_what_is_written_is_read_again_as_it_was(tmp_path: Path) -> None:
    texts = [*FORMULAS, *HARMLESS, 'quoted "x", and\r\nmore'] * 3000  # more than a block of the reader
    count = len(texts)
    names = [f"@{number}" for number in range(count)]
    table = pa.table({"x": np.linspace(-1, 1, count), "label": texts, "=id": names})
    path = tmp_path / "t.csv"
    found = write_table(table, path)
    assert found == {"label": len(FORMULAS) * 3000, "=id": count + 1}
    assert typed_by_values(read_csv(path, DataColumns())).equals(table)
    rows = load_dataset(path, DataColumns(("x",), "label", "=id"))
    assert rows.labels is not None
    assert rows.labels.tolist() == texts
    assert write_table(table, tmp_path / "t.parquet") == {}


@pytest.fixture
def delivered(tmp_path: Path) -> Path:
    """A delivery with labels and identifiers made by owners, and its schema and D_v."""
    points = np.random.default_rng(1).random((30, 2))
    np.savez(
        tmp_path / "delivered.npz",
        features=points, labels=np.array(["=1+1", "yes", "no"] * 10), labelled=np.ones(30, dtype=bool),
        identifiers=np.array([f"@{n}" for n in range(30)]), identified=np.ones(30, dtype=bool),
        owners=np.array(["heron", "magpie"] * 15), rounds=np.arange(1, 31), weights=np.full(30, 1 / 30),
        gamma=np.float64(2.0), lower=np.float64(0.0), upper=np.float64(1.0),
    )  # fmt: skip
    np.save(tmp_path / "validation.npy", np.random.default_rng(2).random((20, 2)))
    columns = [{"name": name, "kind": "number", "lower": 0, "upper": 1} for name in "ab"]
    (tmp_path / "schema.toml").write_text(tomli_w.dumps({"columns": columns}), encoding="utf-8")
    return tmp_path / "delivered.npz"


@pytest.mark.parametrize("verb", ["weigh", "decode"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_who_writes_a_table_is_told_once_and_in_the_json(delivered: Path, verb: str, ending: str) -> None:
    place = delivered.parent
    output = place / f"out.{ending}"
    arguments = {
        "weigh": ["weigh", str(delivered), "--validation", str(place / "validation.npy")],
        "decode": ["schema", "decode", str(place / "schema.toml"), str(delivered)],
    }[verb]
    told = CliRunner().invoke(app, [*arguments, "--output", str(output), "--json"])
    assert told.exit_code == 0, told.stderr
    found = json.loads(told.stdout)["formulas"]
    assert found == ({"label": 10, "identifier": 30} if ending == "csv" else {})
    shown = CliRunner().invoke(app, [*arguments, "--output", str(output)])
    line = formula_line(found, output)
    assert (line in shown.stderr) == bool(found)
    of_labels = verb == "weigh"  # the validation set has none
    assert shown.stderr.count("WARNING") == bool(found) + of_labels
    table = read_csv(output, DataColumns()) if ending == "csv" else pq.read_table(output)
    assert table.column("label").to_pylist() == ["=1+1", "yes", "no"] * 10
