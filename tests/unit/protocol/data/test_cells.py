"""CSV files are text: the schema's column decides the type of its cells, not one party's rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hushbid.protocol.config.labels import LabelsSection, reading
from hushbid.protocol.data import DataColumns, Dataset, dataset_digest, load_dataset
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError, DataError

X: dict[str, Any] = {"name": "x", "kind": "number", "lower": -1e30, "upper": 1e30}
WHOLE: dict[str, Any] = {"name": "x", "kind": "integer", "lower": -(2**53), "upper": 2**53}

BOOLEAN: dict[str, Any] = {"name": "x", "kind": "boolean"}


def category(*values: object, **more: Any) -> dict[str, Any]:
    return {"name": "x", "kind": "category", "categories": list(values), **more}


def read(place: Path, content: str, column: dict[str, Any] | None, **columns: Any) -> Dataset:
    path = place / "rows.csv"
    path.write_text(content, encoding="utf-8")
    schema = None if column is None else Schema.of([column])
    return load_dataset(path, DataColumns(schema=schema, **columns))


def refused(place: Path, content: str, column: dict[str, Any] | None, **columns: Any) -> str:
    with pytest.raises(DataError) as caught:
        read(place, content, column, **columns)
    assert "7351" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("column", "cells", "numbers"),
    [
        pytest.param(category("0", "1", "3+"), ["0", "1"], [[1, 0, 0], [0, 1, 0]], id="dependents"),
        pytest.param(category("02134", "10001"), ["02134", "10001"], [[1, 0], [0, 1]], id="zip"),
        pytest.param(category("true", "false"), ["true", "false"], [[1, 0], [0, 1]], id="words of booleans"),
        pytest.param(category("2020-01-01", "2020-02-01"), ["2020-02-01"], [[0, 1]], id="dates"),
        pytest.param(category("1.0", "1"), ["1", "1.0"], [[0, 1], [1, 0]], id="numbers as text"),
        pytest.param(category(7, -2), ["-2", "007", "7.0"], [[0, 1], [1, 0], [1, 0]], id="whole numbers"),
        pytest.param(category(0, 1, kind="ordinal"), ["1", "0"], [[1], [0]], id="ordinal"),
        pytest.param(X, ["1e3", " 2.5 ", "+3", ".5"], [[1e3], [2.5], [3], [0.5]], id="numbers"),
        pytest.param(X, ["1152921504606846976"], [[2.0**60]], id="large numbers"),
        pytest.param(WHOLE, ["1e3", "9007199254740992", "-3.0"], [[1e3], [2.0**53], [-3]], id="integers"),
        pytest.param(BOOLEAN, ["true", "1", "FALSE", "0.0"], [[1], [1], [0], [0]], id="booleans"),
    ],
)  # fmt: skip
def test_the_kind_of_a_column_decides_what_its_cells_are(
    tmp_path: Path, column: dict[str, Any], cells: list[str], numbers: list[list[float]]
) -> None:
    assert read(tmp_path, "\n".join(["x", *cells, ""]), column).features.tolist() == numbers
    for cell, expected in zip(cells, numbers, strict=True):  # whatever other rows there are
        assert read(tmp_path, f"x\n{cell}\n", column).features.tolist() == [expected]


@pytest.mark.parametrize(
    ("column", "cell", "says"),
    [
        (X, "7351a", "is not a number"),
        (X, "7,351", "is not a number"),
        (X, "0x7351", "is not a number"),
        (X, "9007199254740993", "is a number that would be changed"),
        (X, "1e400", "is out of bounds"),
        (WHOLE, "9007199254740993", "is a number that would be changed"),
        (WHOLE, "1.00000000000000000001", "is a number that would be changed"),
        (WHOLE, "7351.5", "is no whole number"),
        (BOOLEAN, "7351yes", "is neither true nor false"),
        (BOOLEAN, "7351", "is out of bounds"),
        (category("0", "1"), "7351", "is of no category"),
        (category("0", "1"), "1.0", "is of no category"),
        (category(0, 1), "7351", "is of no category"),
        (category(0, 1), "0.5", "is of no category"),
    ],
)
def test_a_cell_that_does_not_fit_is_named_by_column_and_line(
    tmp_path: Path, column: dict[str, Any], cell: str, says: str
) -> None:
    quoted = f'note,x\n"two\nlines",1\n\nb,"{cell}"\n'
    said = refused(tmp_path, quoted, column)
    assert f"column 'x': row 1 (counted from 0; line 5 of the file) {says}." in said


def test_all_faults_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    schema = Schema.of([X, WHOLE | {"name": "k"}, category("a", "b") | {"name": "c"}, X | {"name": "gone"}])
    path = tmp_path / "rows.csv"
    path.write_text("x,k,c\n7351a,1,a\n,1.5,z\n3,7351351351351351351,b\n")
    with pytest.raises(DataError) as caught:
        load_dataset(path, DataColumns(schema=schema))
    said = caught.value.what
    for part in (
        "has no column 'gone'; its columns are 'x', 'k', 'c'",
        "(1) Column 'x': row 0 (counted from 0; line 2 of the file) is not a number",
        "Column 'x': row 1 (counted from 0; line 3 of the file) is missing",
        "Column 'k': row 2",
        "Column 'k': row 1",
        "Column 'c': row 1 (counted from 0; line 3 of the file) is of no category",
    ):
        assert part in said
    assert "7351" not in said


# -- labels and identifiers ------------------------------------------------------------------------------


def labels(place: Path, cells: list[str], **columns: Any) -> list[Any]:
    content = "x,y\n" + "".join(f"{row},{cell}\n" for row, cell in enumerate(cells))
    return list(read(place, content, None, features=("x",), label="y", **columns).known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (["1", "-2", "0"], [1, -2, 0]),
        (["01", "1"], ["01", "1"]),
        (["000123", "123", "007"], ["000123", "123", "007"]),
        (["+1", "2"], ["+1", "2"]),
        (["12345678901234567890", "1"], ["12345678901234567890", "1"]),
        (["1.5", "2", "1e3"], [1.5, 2.0, 1000.0]),
        (["1.5", "9007199254740993"], ["1.5", "9007199254740993"]),
        (["01.5", "2.5"], ["01.5", "2.5"]),
        (["true", "false"], [1, 0]),
        (["2020-01-01", "2020-02-01"], ["2020-01-01", "2020-02-01"]),
        (["12:30:00", "13:30:00"], ["12:30:00", "13:30:00"]),
        (["0x10", "0x11"], ["0x10", "0x11"]),
        ([" a", "a"], [" a", "a"]),
    ],
    ids=str,
)
def test_a_label_is_a_number_only_where_its_text_is_how_the_number_is_written(
    tmp_path: Path, cells: list[str], found: list[Any]
) -> None:
    assert labels(tmp_path, cells) == found


@pytest.mark.parametrize(
    ("kind", "cells", "found"),
    [
        ("text", ["1", "01", "true"], ["1", "01", "true"]),
        ("integer", ["1", "01", "2.0"], [1, 1, 2]),
        ("integer", ["9007199254740993"], [9007199254740993]),
        ("number", ["1", "2"], [1, 2]),
        ("number", ["01", "2.5"], [1.0, 2.5]),
    ],
    ids=str,
)
def test_what_the_session_declares_decides(
    tmp_path: Path, kind: Any, cells: list[str], found: list[Any]
) -> None:
    assert labels(tmp_path, cells, label_kind=kind) == found


@pytest.mark.parametrize(
    ("section", "cells", "found"),
    [
        ({"classes": ["0", "1", "NA"]}, ["0", "1", "NA"], ["0", "1", "NA"]),
        ({"classes": [0, 1]}, ["0", "01"], [0, 1]),
        ({"lower": 0, "upper": 9}, ["0", "01.5"], [0.0, 1.5]),
    ],
    ids=str,
)
def test_classes_and_amounts_say_it_too(
    tmp_path: Path, section: dict[str, Any], cells: list[str], found: list[Any]
) -> None:
    declared = reading(DataColumns(), None, None, LabelsSection.model_validate(section), (0, 1))
    assert labels(tmp_path, cells, label_kind=declared.label_kind, label_words=declared.label_words) == found


@pytest.mark.parametrize(("kind", "cell"), [("integer", "7351.5"), ("integer", "7351a"), ("number", "7351a")])
def test_a_label_of_another_kind_is_named_by_column_and_line(tmp_path: Path, kind: Any, cell: str) -> None:
    said = refused(tmp_path, f"x,y\n1,2\n2,{cell}\n", None, label="y", label_kind=kind)
    assert "row 1 (counted from 0; line 3 of the file), column 'y' is no" in said


def test_a_label_in_quotes_is_text_and_no_gap(tmp_path: Path) -> None:
    content = 'x,y,id\n1,"NA","null"\n2,b,n\n'
    found = read(tmp_path, content, None, features=("x",), label="y", identifier="id")
    assert found.labels is not None
    assert found.identifiers is not None
    assert (found.labels.tolist(), found.identifiers.tolist()) == (["NA", "b"], ["null", "n"])
    assert "column 'y' is missing" in refused(tmp_path, content.replace('"', ""), None, label="y")


def test_identifiers_keep_their_text(tmp_path: Path) -> None:
    content = "x,id\n1,000123\n2,123\n3,007\n"
    found = read(tmp_path, content, None, features=("x",), identifier="id").identifiers
    assert found is not None
    assert found.tolist() == ["000123", "123", "007"]
    whole = read(tmp_path, "x,id\n1,5\n2,-3\n", None, features=("x",), identifier="id").identifiers
    assert whole is not None
    assert whole.tolist() == [5, -3]


# -- what is as before -----------------------------------------------------------------------------------

ORDINARY: dict[str, tuple[str, dict[str, Any], str]] = {
    "whole": (
        "a,b,y,id\n" + "".join(f"{i % 7},{-i},{i % 3},{i}\n" for i in range(50)),
        {"label": "y", "identifier": "id"},
        "29f9ef93a45d7903",
    ),
    "fractions": (
        "a,b,y\n" + "".join(f"{i / 7!r},{i * 1e-5:.3e},{i % 5}.5\n" for i in range(50)),
        {"label": "y"},
        "46fea826ec9c17c5",
    ),
    "booleans and text": (
        "a,b,flag,word\n"
        + "".join(
            f"{i},{i / 3 if i > 40 else i},{'true' if i % 2 else 'false'},w{i}\n" for i in range(50)
        ),
        {"label": "word"},
        "63c1f62be7bed404",
    ),
    "boolean labels": (
        "a,y\n" + "".join(f"{i},{'True' if i % 2 else 'False'}\n" for i in range(50)),
        {"label": "y"},
        "bd78edb92c7556e1",
    ),
    "blanks": (
        "a, b,y\n" + "".join(f"{i}, {i}.25,{i}\n" for i in range(50)), {"label": "y"}, "b3a6810d2e323f32",
    ),
    "named": (
        "a,b,y,id\n" + "".join(f"{i},{i * i},c{i % 2},k{i}\n" for i in range(50)),
        {"features": ("b", "a"), "label": "y", "identifier": "id"},
        "d2e018918a63c9a3",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "columns", "digest"), ORDINARY.values(), ids=ORDINARY.keys())
def test_a_session_that_runs_recognises_its_data(
    tmp_path: Path, content: str, columns: dict[str, Any], digest: str
) -> None:
    """Digests of the version before the reader followed the schema."""
    assert dataset_digest(read(tmp_path, content, None, **columns)).hex().startswith(digest)


def test_a_session_of_columns_that_runs_recognises_its_data(tmp_path: Path) -> None:
    schema = Schema.of(
        [
            {"name": "a", "kind": "number", "lower": 0, "upper": 100},
            {"name": "k", "kind": "integer", "lower": 0, "upper": 100, "missing": 3},
            {"name": "c", "kind": "category", "categories": ["u", "NA", "w"], "missing": "own"},
            {"name": "f", "kind": "boolean"},
        ]
    )
    path = tmp_path / "rows.csv"
    path.write_text(
        "a,k,c,f,y\n"
        + "".join(
            f"{i / 3},{'' if i % 5 == 0 else i},{['u', 'NA', 'w', '', 'null'][i % 5]},"
            f"{'true' if i % 2 else 'false'},{i % 3}\n"
            for i in range(50)
        )
    )
    found = dataset_digest(load_dataset(path, DataColumns(label="y", schema=schema)))
    assert found.hex().startswith("9a8dc17934a0d1a9")


# -- tables with types -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "values", "numbers"),
    [
        (category("0", "1", "3+"), [0, 1, None], [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]),
        (category("0", "1", "3+"), [0.0, 1.0, np.nan], [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]),
        (category("True", "False"), [True, False], [[1, 0, 0], [0, 1, 0]]),
        (category("2020-01-01", "x"), pa.array([18262], pa.date32()), [[1, 0, 0]]),
    ],
    ids=str,
)
def test_numbers_booleans_and_dates_of_a_table_are_the_categories_that_are_written_so(
    column: dict[str, Any], values: Any, numbers: list[list[float]]
) -> None:
    schema = Schema.of([column | {"missing": "own"}])
    assert schema.encode(pa.table({"x": values})).tolist() == numbers


def test_a_whole_number_of_a_table_is_held_exactly_or_refused() -> None:
    schema = Schema.of([X])
    assert schema.encode(pa.table({"x": pa.array([2**63], pa.uint64())})).tolist() == [[2.0**63]]
    with pytest.raises(DataError, match=r"row 1 .* is a number that would be changed"):
        schema.encode(pa.table({"x": [1, 2**53 + 1]}))


# -- words that a column has -----------------------------------------------------------------------------


def test_a_word_is_a_gap_in_one_column_and_a_category_in_another(tmp_path: Path) -> None:
    schema = Schema.of(
        [
            WHOLE | {"name": "front", "missing": 0},
            category("NA", "Grvl", missing="own") | {"name": "alley"},
            category("a", "NA", "b", gaps=["?", "."], missing="own") | {"name": "kind"},
            X | {"name": "size", "gaps": ["None"], "missing": -1},
        ]
    )
    path = tmp_path / "rows.csv"
    path.write_text("front,alley,kind,size\nNA,NA,?,None\n5,,NA,2\n6,Grvl,.,\n")
    assert load_dataset(path, DataColumns(schema=schema)).features.tolist() == [
        [0, 1, 0, 0, 0, 0, 0, 1, -1],
        [5, 0, 0, 1, 0, 1, 0, 0, 2],
        [6, 0, 1, 0, 0, 0, 0, 1, -1],
    ]
    path.write_text("front,alley,kind,size\n1,Grvl,a,NA\n")
    with pytest.raises(DataError, match=r"column 'size': row 0 .* is not a number"):
        load_dataset(path, DataColumns(schema=schema))


def test_declared_words_hold_for_text_of_every_format() -> None:
    schema = Schema.of([category("a", "NA", gaps=["?"], missing="own")])
    assert schema.encode(pa.table({"x": ["?", "NA", "a", None]})).argmax(axis=1).tolist() == [2, 1, 0, 2]
    usual = Schema.of([category("a", "b", missing="own")])
    with pytest.raises(DataError, match="is of no category"):
        usual.encode(pa.table({"x": ["a", "NA"]}))
    words = Schema.of(
        [BOOLEAN | {"true": ["yes", "T"], "false": ["no", "F"], "gaps": ["?"], "missing": False}]
    )
    assert words.encode(pa.table({"x": ["yes", "F", "true", "?", "T"]})).tolist() == [[1], [0], [1], [0], [1]]
    with pytest.raises(DataError, match=r"row 1 .* is neither true nor false"):
        words.encode(pa.table({"x": ["yes", "maybe"]}))
    with pytest.raises(DataError, match="holds values of type string"):
        Schema.of([BOOLEAN]).encode(pa.table({"x": ["true"]}))


def test_words_of_booleans_are_read_from_csv(tmp_path: Path) -> None:
    column = BOOLEAN | {"true": ["yes"], "false": ["no"]}
    assert read(tmp_path, "x\nyes\nno\n1\nFalse\n", column).features.tolist() == [[1], [0], [1], [0]]


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (X | {"true": ["yes"]}, "true and false are for booleans"),
        (BOOLEAN | {"true": ["yes"], "false": ["Yes"]}, "stands for true and for false"),
        (BOOLEAN | {"true": ["0"]}, "stands for true and for false"),
        (BOOLEAN | {"true": ["y"], "gaps": ["y"]}, "stands for a value and for a gap"),
        ({"name": "x", "kind": "image", "size": [2, 2], "gaps": ["?"]}, "images have no text"),
    ],
    ids=str,
)
def test_words_that_contradict_each_other_are_refused(column: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Schema.of([column])


def test_words_are_in_a_schema_only_where_they_are_given() -> None:
    plain = Schema.of([X]).model_dump(mode="json", exclude_none=True)
    assert {"gaps", "true", "false"}.isdisjoint(plain["columns"][0])
