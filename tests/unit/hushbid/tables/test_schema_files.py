"""`hushbid schema`: a draft, rows for a session, and delivered rows as a table again."""

from __future__ import annotations

import io
import json
import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import tomli_w
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.data.images import arrays_as_lists
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import DataError
from hushbid.tables.drafting import MOST_CATEGORIES
from hushbid.tables.schema_files import arrays_of

ROWS: dict[str, Any] = {
    "age": [31, 44, 90],
    "height": [1.5, None, 1.9],
    "job": ["nurse", None, "farmer"],
    "member": [True, False, True],
    "when": pa.array([1, 2, 3], pa.timestamp("s")),
}
SCHEMA = """
[[columns]]
name = "age"
kind = "integer"
lower = 18
upper = 99

[[columns]]
name = "job"
kind = "category"
categories = ["nurse", "farmer"]
missing = "own"
"""


def run(*arguments: object, code: int = 0) -> Any:
    found = CliRunner().invoke(app, ["schema", *map(str, arguments)])
    assert found.exit_code == code, found.output
    return json.loads(found.stdout) if "--json" in arguments and code == 0 else found.output


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pq.write_table(pa.table(ROWS), tmp_path / "rows.parquet")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def test_a_draft_of_private_rows_says_nothing_of_them(place: Path) -> None:
    said = run("draft", place / "rows.parquet")
    assert '[[columns]]\nname = "age"\nkind = "integer"\nlower = ?\nupper = ?' in said
    assert 'name = "job"\nkind = "category"\ncategories = ?' in said
    assert 'name = "when"\nkind = "datetime"\nlower = ?\nupper = ?' in said
    for value in ("31", "90", "1.5", "nurse", 'missing = "own"'):
        assert value not in said
    other = pa.table(ROWS | {"age": [5, 6, 7], "job": ["x", "y", "z"], "height": [0.0, 1.0, 2.0]})
    pq.write_table(other, place / "other.parquet")
    assert run("draft", place / "other.parquet") == said


@pytest.mark.parametrize("public", [(), ("--public",)], ids=["private", "public"])
def test_a_draft_leaves_the_label_out(place: Path, public: tuple[str, ...]) -> None:
    said = run("draft", place / "rows.parquet", "--label", "job", *public)
    assert "# 'job' is left out: it is the label" in said
    assert 'name = "job"' not in said
    assert 'name = "age"' in said
    assert "rows.parquet has no column 'sold'" in run(
        "draft", place / "rows.parquet", "--label", "sold", code=4
    )


def test_a_draft_leaves_the_index_of_pandas_out_and_says_what_becomes_of_dates(place: Path) -> None:
    rows = pd.DataFrame({"age": [31, 90, 47], "day": pd.to_datetime(["2024-01-02"] * 3)}).iloc[[2, 0, 1]]
    rows.to_parquet(place / "rows.parquet")
    for options in ((), ("--public",)):
        said = run("draft", place / "rows.parquet", *options)
        assert said.count("[[columns]]") == 2 - bool(options)
        assert "'__index_level_0__' is left out: it is an index" in said
        assert ("'day' is left out: it is constant" if options else 'kind = "datetime"') in said


def test_a_draft_tells_dates_by_their_text_and_says_how_a_file_is_read(place: Path) -> None:
    path = place / "rows.csv"
    path.write_text("day;at;zip;same\n2024-01-02;2024-01-02 10:00;02134;7\n2023-01-02;2024-02-02;10001;7\n")
    said = run("draft", path, "--public")
    assert "# rows.csv is read as CSV, separated by semicolons." in said
    assert "'same' is left out: it is constant: it has one value alone" in said
    (place / "drafted.toml").write_text(said)
    schema = Schema.read(place / "drafted.toml")
    assert [column.kind for column in schema.columns] == ["date", "datetime", "category"]
    assert schema.columns[2].categories == ("02134", "10001")
    assert len(load_dataset(path, DataColumns(schema=schema))) == 2
    assert 'kind = "date"\nlower = ?' in run("draft", path)


def test_a_draft_of_public_rows_is_a_schema_that_they_fit(place: Path) -> None:
    rows = pa.table(ROWS).drop_columns(["height", "when"])
    pacsv.write_csv(rows, place / "rows.csv")
    (place / "drafted.toml").write_text(run("draft", place / "rows.csv", "--public"))
    schema = Schema.read(place / "drafted.toml")
    assert [column.kind for column in schema.columns] == ["integer", "category", "boolean"]
    assert schema.columns[0].upper == 90
    assert schema.columns[1].categories == ("farmer", "nurse")
    assert schema.decode(schema.encode(rows)).to_pylist() == rows.to_pylist()


def test_a_draft_asks_what_a_gap_stands_for_and_leaves_free_text_out(place: Path) -> None:
    names = [f"text {number}" for number in range(MOST_CATEGORIES + 1)]
    heights = [None, *range(MOST_CATEGORIES)]
    pq.write_table(pa.table({"text": names, "height": heights}), place / "texts.parquet")
    said = run("draft", place / "texts.parquet", "--public", "--json")["schema"]
    assert f"'text' is left out: it has {MOST_CATEGORIES + 1} different texts" in said
    assert "missing = ?" in said


def test_a_public_draft_leaves_out_what_a_session_could_not_use(place: Path) -> None:
    columns = {
        "same": [3, 3, 3],
        "one": ["a", "a", "a"],
        "nothing": pa.array([None, None, None], pa.float64()),
        "broken": [1.5, float("inf"), float("nan")],
        "huge": [0, 1, 2**60],
        "fine": [1.0, float("nan"), 2.0],
        "exact": pa.array([Decimal("1.25"), Decimal("2.50"), None], pa.decimal128(6, 2)),
    }
    pq.write_table(pa.table(columns), place / "odd.parquet")
    said = run("draft", place / "odd.parquet", "--public")
    drafted = said.replace("missing = ?", "missing = 1.5")
    (place / "odd.toml").write_text(drafted)
    schema = Schema.read(place / "odd.toml")
    assert [(column.name, column.lower, column.upper) for column in schema.columns] == [
        ("fine", 1.0, 2.0),
        ("exact", 1.25, 2.5),
    ]
    assert re.findall(r"^# '(.*)' is left out: ", said, re.M) == ["same", "one", "nothing", "broken", "huge"]


def test_a_draft_fills_gaps_and_keeps_constants_by_a_rule_that_it_states(place: Path) -> None:
    columns: dict[str, Any] = {
        "gaps": [1.0, None, 4.0],
        "same": [7, 7, 7],
        "large": [1e9, 1e9, None],
        "word": ["a", "a", "a"],
        "one": ["a", None, "a"],
        "owns": [True, None, True],
        "day": pa.array(["2024-01-01", None, "2024-01-04"]),
        "at": pa.array([0, 5, None], pa.timestamp("us")),
        "scan": [[1, 2, 3, 4], None, [4, 3, 2, 1]],
        "nothing": pa.array([None, None, None], pa.string()),
    }
    pq.write_table(pa.table(columns), place / "rows.parquet")
    said = run("draft", place / "rows.parquet", "--public", "--fill")
    assert "# Gaps are filled: a category of their own, false, or the middle of the bounds." in said
    assert re.findall(r"^# '(.*)' is left out: (.*)", said, re.M) == [
        ("nothing", "it has gaps alone, and no value")
    ]
    (place / "filled.toml").write_text(said)
    schema = Schema.read(place / "filled.toml")
    back = schema.decode(schema.encode(pq.read_table(place / "rows.parquet"))).to_pydict()
    assert back["gaps"] == [1.0, 2.5, 4.0]
    assert back["same"] == columns["same"]
    assert back["large"] == [1e9, 1e9, 1.5e9]
    assert back["one"] == columns["one"]
    assert back["word"] == columns["word"]
    assert back["owns"] == [True, False, True]
    assert [str(day) for day in back["day"]] == ["2024-01-01", "2024-01-02", "2024-01-04"]
    assert [time.microsecond for time in back["at"]] == [0, 5, 2]
    assert back["scan"][1] == [127] * 4
    asked = run("draft", place / "rows.parquet", "--public")
    assert "'large' is left out: it is constant: it has one value and gaps" in asked
    assert asked.count("missing = ?") == 5
    assert "Say --public as well" in run("draft", place / "rows.parquet", "--fill", code=4)


def test_a_draft_refuses_what_the_reader_would_and_takes_what_is_declared(place: Path) -> None:
    path = place / "rows.csv"
    path.write_bytes("town;size\nKöln;1,234\nBonn;2,345\n".encode("latin-1"))
    assert "column 'town' has text that is not in UTF-8" in run("draft", path, code=4)
    assert "--encoding of `hushbid schema`" in " ".join(run("draft", path, code=4).split())
    said = run("draft", path, "--encoding", "latin-1", code=4)
    assert "column 'size' has numbers with commas, which may stand before fractions" in " ".join(said.split())
    declared = ("--encoding", "latin-1", "--decimal", ",")
    (place / "drafted.toml").write_text(run("draft", path, "--public", *declared))
    schema = Schema.read(place / "drafted.toml")
    assert schema.columns[1].upper == 2.345
    run("encode", place / "drafted.toml", path, "--output", place / "rows.npz", *declared)
    assert np.load(place / "rows.npz")["features"].tolist() == [[0, 1, 1.234], [1, 0, 2.345]]
    assert "should be '.' or ','" in run("draft", path, "--decimal", "x", code=4)


IMAGES: dict[str, Any] = {
    "nested": arrays_as_lists(np.arange(36, dtype=np.uint8).reshape(3, 3, 4)),
    "colour": arrays_as_lists(np.arange(72, dtype=np.uint8).reshape(3, 2, 4, 3)),
    "flat": arrays_as_lists(np.arange(48, dtype=np.uint8).reshape(3, 16)),
    "bytes": pa.array([b"fourfourfour"] * 3),
    "lists": [[1] * 6] * 3,
    "uneven": [[1] * 6, [1] * 6, [1] * 5],
    "bright": [[256] * 4] * 3,
    "vector": [[0.5, 1.5]] * 3,
}


def test_a_draft_recognises_images_by_their_types_alone(place: Path) -> None:
    pq.write_table(pa.table(IMAGES), place / "images.parquet")
    said = run("draft", place / "images.parquet")
    pq.write_table(pa.table(IMAGES).take([2, 2]), place / "others.parquet")
    assert run("draft", place / "others.parquet") == said
    known = {"nested": ([4, 3], 1), "colour": ([4, 2], 3), "flat": ([4, 4], 1)}
    drafted = tomllib.loads(re.sub(r"= \?.*", "= [1, 1]", said))["columns"]
    assert [column["name"] for column in drafted if column["kind"] == "image"] == list(IMAGES)[:-1]
    assert {column["name"]: (column["size"], column["channels"]) for column in drafted[:3]} == known
    assert said.count("size = ?") == 4
    assert "'flat' is taken for square images of 16 numbers" in said
    assert "'vector' is left out" in said


def test_a_public_draft_reads_sizes_off_values_and_its_images_fit(place: Path) -> None:
    pq.write_table(pa.table(IMAGES), place / "images.parquet")
    said = run("draft", place / "images.parquet", "--public")
    for name, why in (
        ("uneven", "its lists or bytes are of different lengths"),
        ("bright", "row 0 (counted from 0) has a pixel that is out of bounds, and those of 2 more rows"),
        ("vector", "values of type list<element: double> have no kind of column"),
    ):
        assert f"'{name}' is left out: {why}" in said
    (place / "images.toml").write_text(said.replace("size = ?", "size = [3, 2]"))
    schema = Schema.read(place / "images.toml")
    assert schema.images == ("nested", "colour", "flat", "bytes", "lists")
    assert [column.size for column in schema.columns] == [(4, 3), (4, 2), (4, 4), (2, 2), (3, 2)]
    assert schema.encode(pa.table(IMAGES)).shape == (3, 12 + 24 + 16 + 12 + 6)
    gap = pa.table({"lists": [[1] * 4, None]})
    pq.write_table(gap, place / "gap.parquet")
    assert "missing = ?" in run("draft", place / "gap.parquet", "--public")
    assert "missing = ?" not in run("draft", place / "gap.parquet")


def test_images_are_delivered_as_a_column_and_not_in_csv(place: Path) -> None:
    pixels = np.arange(12, dtype=np.uint8).reshape(2, 6)
    (place / "scan.toml").write_text('[[columns]]\nname = "scan"\nkind = "image"\nsize = [3, 2]\n')
    pq.write_table(pa.table({"scan": pixels.tolist()}), place / "scans.parquet")
    run("encode", place / "scan.toml", place / "scans.parquet", "--output", place / "scans.npz")
    features = np.load(place / "scans.npz")["features"]
    beside: dict[str, Any] = {"owners": np.array(["north", "south"]), "rounds": np.array([1, 2])}
    np.savez(place / "delivered.npz", features=features, **beside)
    decoding = ("decode", place / "scan.toml", place / "delivered.npz", "--output")
    run(*decoding, place / "bought.parquet")
    assert pq.read_table(place / "bought.parquet")["scan"].to_pylist() == pixels.tolist()
    said = " ".join(run(*decoding, place / "bought.csv", code=4).split())
    assert "CSV, which holds no images, and column 'scan' has some. Name a .parquet file." in said
    assert not (place / "bought.csv").exists()


def test_a_word_for_a_gap_is_none_where_it_is_a_category(place: Path) -> None:
    (place / "words.csv").write_text("it,age\nNA,3\nnull,NA\nb,4\n")
    column = {"name": "it", "kind": "category", "categories": ["NA", "b"], "missing": "own"}
    for columns, expected in (
        ([column], [[1, 0, 0], [0, 0, 1], [0, 1, 0]]),
        ([column | {"categories": ["a", "b"]}], [[0, 0, 1], [0, 0, 1], [0, 1, 0]]),
    ):
        (place / "words.toml").write_text(tomli_w.dumps({"columns": columns}))
        run("encode", place / "words.toml", place / "words.csv", "--output", place / "words.npz")
        assert np.load(place / "words.npz")["features"].tolist() == expected


def test_features_are_what_the_session_file_has_to_say(place: Path) -> None:
    said = tomllib.loads(run("features", place / "schema.toml"))
    assert said == run("features", place / "schema.toml", "--json")
    assert said["columns"] == 4
    assert said["lower"] == [18.0, 0.0, 0.0, 0.0]
    assert said["upper"] == pytest.approx([99.0, *[2.0**0.5] * 3])


def test_encoded_rows_are_a_party_s_file(place: Path) -> None:
    output = place / "rows.npz"
    said = run(
        "encode", place / "schema.toml", place / "rows.parquet", "--output", output,
        "--label", "member", "--identifier", "age", "--json",
    )  # fmt: skip
    outside = said.pop("outside")
    assert said == {"rows": 3, "columns": 4, "output": str(output), "warnings": []}
    assert outside["rows.parquet"].pop("filled") == {"job": {"cells": 1, "value": "own"}}
    assert outside == {"rows.parquet": {"clipped": {}, "dropped": 0, "dropped_by": {}, "over": 0}}
    dataset = load_dataset(output, DataColumns())
    assert dataset.features.tolist() == [
        [31.0, 1.0, 0.0, 0.0], [44.0, 0.0, 0.0, 1.0], [90.0, 0.0, 1.0, 0.0],
    ]  # fmt: skip
    assert dataset.labels is not None
    assert dataset.labels.tolist() == [1, 0, 1]
    assert dataset.identifiers is not None
    assert dataset.identifiers.tolist() == [31, 44, 90]
    assert output.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_delivered_rows_are_a_table_again(place: Path, ending: str) -> None:
    np.savez(
        place / "delivered.npz",
        features=np.array([[31.0, 1.0, 0.0, 0.0], [90.0, 0.0, 0.0, 1.0]]),
        labels=np.array([4, 0]), labelled=np.array([True, False]),
        identifiers=np.array(["a", ""]), identified=np.array([True, False]),
        owners=np.array(["north", "south"]), rounds=np.array([1, 2]), weights=np.array([0.25, 0.75]),
    )  # fmt: skip
    output = place / f"bought.{ending}"
    run("decode", place / "schema.toml", place / "delivered.npz", "--output", output, "--label", "job")
    strings = pacsv.ConvertOptions(strings_can_be_null=True)
    rows = pacsv.read_csv(output, convert_options=strings) if ending == "csv" else pq.read_table(output)
    assert rows.to_pydict() == {
        "age": [31, 90], "job": ["nurse", None], "job_": [4, None], "identifier": ["a", None],
        "owner": ["north", "south"], "round": [1, 2], "weight": [0.25, 0.75],
    }  # fmt: skip
    assert output.stat().st_mode & 0o777 == 0o600


def test_a_table_takes_the_place_of_one_that_everybody_may_read(place: Path) -> None:
    np.savez(
        place / "delivered.npz", features=np.array([[31.0, 1.0, 0.0, 0.0]]),
        owners=np.array(["north"]), rounds=np.array([1]),
    )  # fmt: skip
    output = place / "bought.csv"
    output.touch()
    output.chmod(0o644)
    run("decode", place / "schema.toml", place / "delivered.npz", "--output", output)
    assert output.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_parquet_of_pandas_and_polars_has_text_and_categories(place: Path, library: str) -> None:
    path, rows = place / "theirs.parquet", {"age": [31, 90], "job": ["nurse", None]}
    if library == "pandas":
        pd.DataFrame(rows).astype({"job": "category"}).to_parquet(path)
    else:
        pl.DataFrame(rows).write_parquet(path)
    said = run("encode", place / "schema.toml", path, "--output", place / "theirs.npz", "--json")
    assert said["rows"] == 2
    drafted = run("draft", path, "--public")
    assert "left out" not in drafted
    assert '"nurse"' in drafted


def _broken_deliveries() -> dict[str, bytes]:
    good: dict[str, Any] = {
        "features": np.array([[31.0, 1.0, 0.0, 0.0]]), "owners": np.array(["a"]), "rounds": np.array([1])
    }  # fmt: skip

    def saved(**changes: Any) -> bytes:
        stream = io.BytesIO()
        np.savez(stream, **(good | changes))
        return stream.getvalue()

    array = io.BytesIO()
    np.save(array, np.zeros(3))
    return {
        "cut off": saved()[:300],
        "no archive": array.getvalue(),
        "text": saved(features=np.array(["a"])),
        "too few owners": saved(owners=np.array([], dtype="U1")),
        "labels that none may have": saved(labels=np.array([1])),
        "too few labels": saved(labels=np.array([], dtype=int), labelled=np.array([], dtype=bool)),
        "too many weights": saved(weights=np.array([0.5, 0.5])),
    }


@pytest.mark.parametrize("content", _broken_deliveries().values(), ids=_broken_deliveries().keys())
def test_what_is_no_delivery_is_refused(place: Path, content: bytes) -> None:
    (place / "delivered.npz").write_bytes(content)
    said = run(
        "decode", place / "schema.toml", place / "delivered.npz", "--output", place / "a.csv", code=4
    )  # fmt: skip
    assert "is not a delivery" in " ".join(said.split())


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"a,a\n1,2\n", "two columns of one name"), (b"\xe9\n1\n", "not in UTF-8, but perhaps in Latin-1")],
)
def test_a_table_whose_columns_cannot_be_named_is_refused(place: Path, content: bytes, says: str) -> None:
    (place / "odd.csv").write_bytes(content)
    assert says in " ".join(run("draft", place / "odd.csv", code=4).split())


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([[1, 2]] * 3, "a nested type"),
        ([b"a"] * 3, "type binary"),
        ([Decimal("1.5")] * 3, "type decimal128(2, 1)"),
        (pd.to_datetime(["2026-01-01"] * 3), "type timestamp"),
    ],
    ids=["lists", "bytes", "decimals", "dates"],
)
@pytest.mark.parametrize("option", ["--label", "--identifier"])
def test_values_that_cannot_travel_with_a_point_are_refused_before_a_file_is_written(
    place: Path, values: Any, says: str, option: str
) -> None:
    table = pq.read_table(place / "rows.parquet").append_column("more", pa.array(values))
    pq.write_table(table, place / "more.parquet")
    output = place / "rows.npz"
    said = run(
        "encode", place / "schema.toml", place / "more.parquet", "--output", output, option, "more", code=4
    )
    assert says in said
    assert "cannot travel with a point" in " ".join(said.split())
    assert not output.exists()


def test_a_label_that_two_columns_are_named_is_refused(place: Path) -> None:
    twice = pa.Table.from_arrays([pa.array([31]), *[pa.array([1])] * 2], names=["age", "sold", "sold"])
    schema = Schema.of([{"name": "age", "kind": "integer", "lower": 18, "upper": 99}])
    with pytest.raises(DataError, match="no column 'sold', or several"):
        arrays_of(schema, twice, "rows", DataColumns(label="sold"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["encode", "schema.toml", "none.csv", "--output", "a.npz"], "cannot be read"),
        (["encode", "none.toml", "rows.parquet", "--output", "a.npz"], "cannot be read"),
        (["encode", "schema.toml", "rows.parquet", "--output", "a.csv"], "is no .npz"),
        (["encode", "schema.toml", "rows.parquet", "--output", "a.npz", "--label", "no"], "no column 'no'"),
        (
            ["encode", "schema.toml", "rows.parquet", "--output", "a.npz", "--label", "height"],
            "column 'height' is missing",
        ),
        (
            ["encode", "schema.toml", "rows.parquet", "--output", "a.npz", "--label", "job"],
            "Column 'job' is the label, and rows are compared by it",
        ),
        (["encode", "schema.toml", "rows.parquet", "--output", "no/a.npz"], "cannot be written"),
        (["decode", "schema.toml", "rows.parquet", "--output", "a.csv"], "is not a delivery"),
        (["decode", "schema.toml", "none.npz", "--output", "a.csv"], "cannot be read"),
        (["draft", "schema.toml"], "in no format of tables"),
    ],
    ids=str,
)
def test_what_cannot_be_done_ends_with_4_and_says_why(
    place: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(place)
    assert says in " ".join(run(*arguments, code=4).split())
