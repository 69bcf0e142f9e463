"""CSV as programs write it: detected by content, or declared; other files are named for what they are."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushbid.protocol.config.loading import read_toml
from hushbid.protocol.config.party import DataSection
from hushbid.protocol.data import DataColumns, Dataset, load_dataset
from hushbid.protocol.data.csv_files import read_cells
from hushbid.protocol.data.dialect import Dialect
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError, DataError

SCHEMA = Schema.of(
    [
        {"name": "size", "kind": "number", "lower": 0, "upper": 10},
        {"name": "town", "kind": "category", "categories": ["Köln", "Bonn"]},
    ]
)
ROWS = [["1.5", "Köln", "a"], ["2", "Bonn", "b"], ["0.25", "Köln", "c"]]
ENCODED = [[1.5, 1, 0], [2, 0, 1], [0.25, 1, 0]]
COMMA = "a comma before fractions"
HEADER = ["size", "town", "label"]


def written(separator: str = ",", decimal: str = ".", line: str = "\n") -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=separator, lineterminator=line)
    writer.writerow(HEADER)
    for size, *rest in ROWS:
        writer.writerow([size.replace(".", decimal), *rest])
    return stream.getvalue()


def read(path: Path, content: bytes, dialect: Dialect | None = None) -> Dataset:
    path.write_bytes(content)
    return load_dataset(path, DataColumns(label="label", schema=SCHEMA, dialect=dialect))


def refused(path: Path, content: bytes, dialect: Dialect | None = None) -> str:
    with pytest.raises(DataError) as caught:
        read(path, content, dialect)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "note"),
    [
        ("a.csv", written().encode(), ""),
        ("a.csv", written(line="\r\n").encode(), ""),
        ("a.csv", codecs.BOM_UTF8 + written(";", ",", "\r\n").encode(), f"separated by semicolons, {COMMA}"),
        ("a.csv", written("\t").encode(), "separated by tabs"),
        ("a.csv", written("|").encode(), "separated by bars"),
        ("a.tsv", written("\t").encode(), "separated by tabs"),
        ("a.csv", written("\t", ",").encode("utf-16"), f"separated by tabs, {COMMA}, encoded in utf-16"),
        ("a.csv", written(";").encode("utf-16-le"), "separated by semicolons, encoded in utf-16-le"),
        ("a.csv", gzip.compress(written().encode(), mtime=0), ""),
        ("a.csv.zst", pa.Codec("zstd").compress(written().encode()).to_pybytes(), ""),
        ("a.csv", ("\n\n" + written()).encode(), ""),
    ],
    ids=str,
)  # fmt: skip
def test_a_dialect_is_found_by_the_content_and_said(
    tmp_path: Path, name: str, content: bytes, note: str
) -> None:
    found = read(tmp_path / name, content)
    assert found.features.tolist() == ENCODED
    assert found.labels is not None
    assert found.labels.tolist() == ["a", "b", "c"]
    assert found.notes == ((f"{name} is read as CSV, {note}",) if note else ())


def test_latin_1_is_refused_and_read_where_it_is_declared(tmp_path: Path) -> None:
    content = written().encode("latin-1")
    said = refused(tmp_path / "a.csv", content)
    assert "column 'town' has text that is not in UTF-8, but perhaps in Latin-1" in said
    assert "`encoding`" in said
    found = read(tmp_path / "a.csv", content, Dialect(encoding="latin-1"))
    assert found.features.tolist() == ENCODED
    assert "is not encoded in ascii" in refused(
        tmp_path / "a.csv", written().encode(), Dialect(encoding="ascii")
    )


def test_a_declared_dialect_goes_before_the_content(tmp_path: Path) -> None:
    found = read(tmp_path / "a.csv", written(":", ",").encode(), Dialect(":", ","))
    assert found.features.tolist() == ENCODED
    commas = b'size,town,label\n"1,5",Bonn,a\n'
    assert "`decimal" in refused(tmp_path / "a.csv", commas)
    assert read(tmp_path / "a.csv", commas, Dialect(decimal=",")).features.tolist() == [[1.5, 0, 1]]


def test_commas_that_may_part_thousands_are_refused(tmp_path: Path) -> None:
    said = refused(tmp_path / "a.csv", b"size;town;label\n1,000;Bonn;a\n2,000;Bonn;b\n")
    assert "column 'size' has numbers with commas" in said
    found = read(tmp_path / "a.csv", b"size;town;label\n1,000;Bonn;a\n2,5;Bonn;b\n")
    assert found.features[:, 0].tolist() == [1.0, 2.5]


def test_a_point_beside_decimal_commas_is_no_fraction(tmp_path: Path) -> None:
    content = b"size;town;label\n1.234;Bonn;a\n2,5;Bonn;b\n"
    assert "column 'size': row 0 (counted from 0; line 2 of the file) is not a number" in refused(
        tmp_path / "a.csv", content
    )
    dotted = b"size;town;label\n1.234;Bonn;a\n"
    assert "is not a number" in refused(tmp_path / "a.csv", dotted, Dialect(decimal=","))
    assert read(tmp_path / "a.csv", dotted).features[:, 0].tolist() == [1.234]


def test_blanks_separate_cells_where_nothing_else_does_and_numbers_stand_between(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"

    def names(content: str, *wanted: str) -> list[str]:
        path.write_text(content)
        return list(read_cells(path, wanted=wanted).column_names)

    assert names("'a' b\n1 x\n2.5 y\n") == ["'a'", "b"]
    assert names("room name\nhall blue\n") == ["room name"]
    assert names("room name\nhall 7\n", "room name") == ["room name"]
    assert names("a b;c d\n1 2;3 4\n") == ["a b", "c d"]
    assert names("a b\nx y\n", "a", "b") == ["a", "b"]
    path.write_text("a~b\n1~2\n")
    with pytest.raises(DataError, match="its only column is 'a~b'") as caught:
        load_dataset(path, DataColumns(schema=SCHEMA))
    assert "say `separator` under `columns`" in caught.value.advice


def test_points_among_decimal_commas_are_told_as_such(tmp_path: Path) -> None:
    schema = Schema.of([{"name": name, "kind": "number", "lower": 0, "upper": 9} for name in ("a", "b")])
    path = tmp_path / "mixed.csv"
    path.write_text("a;b\n1,5;2.5\n")
    with pytest.raises(DataError, match=r"column 'b': row 0 .* is not a number") as caught:
        load_dataset(path, DataColumns(schema=schema))
    assert caught.value.advice.startswith("Correct it. Other cells of the file have commas before fractions")


def test_the_columns_that_are_wanted_decide_between_separators(tmp_path: Path) -> None:
    content = b"size;town;label;a, b\n1,5;Bonn;a;x\n2,5;Bonn;b;y\n"
    assert read(tmp_path / "a.csv", content).features[:, 0].tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (lambda path: pq.write_table(pa.table({"size": [1.0]}), path), "it is Parquet"),
        (lambda path: path.write_bytes(b"\x93NUMPY" + bytes(99)), "it is an array of NumPy"),
        (lambda path: path.write_bytes(b"PK\x03\x04" + bytes(99)), "an Excel workbook"),
    ],
    ids=["parquet", "numpy", "excel"],
)
def test_what_is_no_csv_is_called_what_it_is(
    tmp_path: Path, content: Callable[[Path], object], says: str
) -> None:
    path = tmp_path / "a.csv"
    content(path)
    with pytest.raises(DataError, match="is no CSV: by its content") as caught:
        load_dataset(path, DataColumns())
    assert says in caught.value.what


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("length", [100, 3_000_000], ids=["many lines", "a long cell"])
def test_quoted_line_breaks_and_long_cells_are_read_in_files_of_any_size(
    tmp_path: Path, length: int, packed: bool
) -> None:
    rows = 20 if length > 1000 else 12_000
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(["note", *HEADER])
    for row in range(rows):
        writer.writerow(["line, one\nx" * (length // 11 if row % 10 == 5 else 9), *ROWS[row % 3]])
    content = stream.getvalue().encode()
    found = read(tmp_path / "a.csv", gzip.compress(content, mtime=0) if packed else content)
    assert found.features.tolist() == [ENCODED[row % 3] for row in range(rows)]


def test_a_directory_of_parquet_files_is_one_table(tmp_path: Path) -> None:
    place = tmp_path / "rows.parquet"
    place.mkdir()
    columns = DataColumns(label="label", schema=SCHEMA)
    with pytest.raises(DataError, match="without Parquet files"):
        load_dataset(place, columns)
    for number, (size, town, label) in enumerate(ROWS):
        part = pa.table({"size": [float(size)], "town": [town], "label": [label]})
        pq.write_table(part, place / f"part-{number}.parquet")
    assert load_dataset(place, columns).features.tolist() == ENCODED
    pq.write_table(pa.table({"size": [1], "town": ["Bonn"], "label": ["a"]}), place / "z.parquet")
    with pytest.raises(DataError, match="different names or types"):
        load_dataset(place, columns)
    (place / "year=2020").mkdir()
    (place / "z.parquet").rename(place / "year=2020" / "z.parquet")
    with pytest.raises(DataError, match="whose folders are no columns"):
        load_dataset(place, columns)


# -- what is not asked for does not matter ---------------------------------------------------------------


def test_columns_that_nobody_asks_for_may_hold_anything(tmp_path: Path) -> None:
    content = written().replace("size,", "x,x,size,").encode()
    for size, _, _ in ROWS:
        content = content.replace(f"\n{size},".encode(), f"\n\xe9,7,{size},".encode("latin-1"))
    assert read(tmp_path / "a.csv", content).features.tolist() == ENCODED
    path = tmp_path / "a.parquet"
    table = pa.Table.from_arrays(
        [pa.array([1.5]), pa.array(["Bonn"]), pa.array(["a"]), pa.array([{"a": 1}]), pa.array([b"x"])],
        names=["size", "town", "label", "d", "d"],
    )
    pq.write_table(table, path)
    assert load_dataset(path, DataColumns(label="label", schema=SCHEMA)).features.tolist() == [[1.5, 0, 1]]


def test_the_index_that_pandas_writes_into_csv_is_no_feature(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    pd.DataFrame({"x": [0.5, 1.5]}).to_csv(path)
    found = load_dataset(path, DataColumns())
    assert (found.feature_names, found.features.tolist()) == (("x",), [[0.5], [1.5]])
    assert load_dataset(path, DataColumns(features=("", "x"))).features.tolist() == [[0, 0.5], [1, 1.5]]


def test_a_column_may_have_the_name_of_anything(tmp_path: Path) -> None:
    schema = Schema.of([{"name": "schema", "kind": "number", "lower": 0, "upper": 9}])
    path = tmp_path / "a.csv"
    path.write_text("schema\n1\n2\n")
    assert load_dataset(path, DataColumns(schema=schema)).features.tolist() == [[1], [2]]
    np.savez(tmp_path / "a.npz", schema=np.array([1.0, 2.0]))
    assert load_dataset(tmp_path / "a.npz", DataColumns(schema=schema)).features.tolist() == [[1], [2]]


# -- what a party declares -------------------------------------------------------------------------------


def test_a_party_s_file_declares_a_dialect() -> None:
    section = DataSection.model_validate({"separator": ";", "decimal": ",", "encoding": "Latin1"})
    assert section.columns().dialect == Dialect(";", ",", "iso8859-1")
    for wrong in ({"separator": ";;"}, {"decimal": ";"}, {"encoding": "klingon"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            DataSection.model_validate(wrong)


def test_a_toml_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(codecs.BOM_UTF8 + b'[[columns]]\nname = "x"\nkind = "boolean"\n')
    assert read_toml(path)["columns"] == [{"name": "x", "kind": "boolean"}]
    assert Schema.read(path).columns[0].name == "x"
    path.write_bytes("x = 1".encode("utf-16"))
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_toml(path)


# -- a first line that says the separator ----------------------------------------------------------------


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "sep=,", "sep=\t", "sep=|"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_first_line_of_excel_says_the_separator(tmp_path: Path, first: str, mark: bytes, end: str) -> None:
    separator = first.strip('"')[-1]
    lines = [first, *(line.replace(" ", separator) for line in ("a b y", "1 2 u", "3 4 v"))]
    path = tmp_path / "rows.csv"
    path.write_bytes(mark + end.join([*lines, ""]).encode())
    found = load_dataset(path, DataColumns(("a", "b"), "y"))
    assert found.features.tolist() == [[1, 2], [3, 4]]
    assert found.labels is not None
    assert found.labels.tolist() == ["u", "v"]


def test_lines_are_counted_as_they_are_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("sep=;\na;b\n1;2\nx;4\n")
    schema = Schema.of([{"name": name, "kind": "number", "lower": 0, "upper": 9} for name in "ab"])
    with pytest.raises(DataError, match="line 4 of the file"):
        load_dataset(path, DataColumns(schema=schema))


def test_a_cell_that_begins_so_announces_nothing(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("sep=;,b\n1,2\n")
    assert load_dataset(path, DataColumns()).features.tolist() == [[1, 2]]


# -- directories whose folders are columns ---------------------------------------------------------------

RENT = Schema.of(
    [
        {"name": "rent", "kind": "number", "lower": 0, "upper": 10},
        {"name": "year", "kind": "integer", "lower": 2000, "upper": 2100},
        {"name": "zip", "kind": "category", "categories": ["02134", "a/b", "none"], "missing": "none"},
    ]
)


def partitioned(place: Path) -> Path:
    path = place / "rents.parquet"
    table = pa.table(
        {
            "rent": [1.0, 2.0, 3.0, 4.0],
            "year": [2023, 2023, 2024, 2024],
            "zip": ["02134", "a/b", "02134", None],
            "y": ["01", "1", "01", "1"],
        }
    )
    pq.write_to_dataset(table, path, partition_cols=["year", "zip", "y"])
    return path


def test_folders_are_columns_as_cells_of_csv_are(tmp_path: Path) -> None:
    found = load_dataset(partitioned(tmp_path), DataColumns(schema=RENT, label="y"))
    assert found.labels is not None
    rows = sorted(zip(found.features.tolist(), found.labels.tolist(), strict=True))
    assert rows == [
        ([1.0, 2023.0, 1.0, 0.0, 0.0], "01"),
        ([2.0, 2023.0, 0.0, 1.0, 0.0], "1"),
        ([3.0, 2024.0, 1.0, 0.0, 0.0], "01"),
        ([4.0, 2024.0, 0.0, 0.0, 1.0], "1"),
    ]
    whole = load_dataset(partitioned(tmp_path / "again"), DataColumns(("rent", "year")))
    assert sorted(whole.features.tolist()) == [[1, 2023], [2, 2023], [3, 2024], [4, 2024]]


def test_a_column_that_files_have_themselves_keeps_its_type(tmp_path: Path) -> None:
    place = tmp_path / "rents.parquet" / "code=7"
    place.mkdir(parents=True)
    pq.write_table(pa.table({"rent": [1.0, 2.0], "code": ["07", "7"]}), place / "rows.parquet")
    found = load_dataset(place.parent, DataColumns(("rent",), identifier="code"))
    assert found.identifiers is not None
    assert found.identifiers.tolist() == ["07", "7"]
    with pytest.raises(DataError, match="code"):
        load_dataset(place.parent, DataColumns(("rent", "code")))


def test_folders_that_are_no_columns_are_refused(tmp_path: Path) -> None:
    path = partitioned(tmp_path)
    (path / "more").mkdir()
    pq.write_table(pa.table({"rent": [1.0]}), path / "more" / "rows.parquet")
    with pytest.raises(DataError, match="folders are no columns"):
        load_dataset(path, DataColumns(("rent",)))
