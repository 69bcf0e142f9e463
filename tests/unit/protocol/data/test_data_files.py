"""Bad data files: each is a DataError that says what and where, and never quotes a value."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushbid.protocol.data import DataColumns, check_dataset, load_dataset
from hushbid.protocol.errors import DataError, ExitCode

SECRET = "7351.25"
"""A value that stands in every bad file that can hold one."""
NUMBER = float(SECRET)
XY = DataColumns(features=("x", "y"))


def text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content.encode())


def raw(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def npy(array: np.ndarray) -> Callable[[Path], object]:
    return lambda path: np.save(path, array, allow_pickle=True)


def npz(**arrays: np.ndarray) -> Callable[[Path], object]:
    return lambda path: np.savez(path, **arrays)  # type: ignore[arg-type]  # taken for an option of savez


def archive(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, features=np.ones((3, 2)))


def parquet(**columns: list[object]) -> Callable[[Path], object]:
    return lambda path: pq.write_table(pa.table(columns), path)


def cut(write: Callable[[Path], object], size: int) -> Callable[[Path], object]:
    def damaged(path: Path) -> None:
        write(path)
        os.truncate(path, size)

    return damaged


@dataclass(frozen=True)
class Bad:
    name: str
    write: Callable[[Path], object]
    says: tuple[str, ...]
    columns: DataColumns = field(default_factory=DataColumns)


OBJECTS = np.array([[NUMBER, None]], dtype=object)
LATE = "x,y\n" + "1,2\n" * 400_000
"""Longer than the first block, which pyarrow guesses the types of columns from."""

BAD = {
    "missing file": Bad("gone.npy", lambda path: None, ("gone.npy", "does not exist")),
    "directory": Bad("folder.npz", lambda path: path.mkdir(), ("folder.npz", "not a file")),
    "unknown format": Bad("points.txt", text(SECRET), ("points.txt", "no known format", ".parquet")),
    "empty npy": Bad("a.npy", raw(b""), ("a.npy", "cannot be read")),
    "npy of another format": Bad("a.npy", text(SECRET * 40), ("a.npy", "cannot be read")),
    "npy cut short": Bad("a.npy", cut(npy(np.full((90, 9), NUMBER)), 4000), ("a.npy", "damaged")),
    "npy with objects": Bad("a.npy", npy(OBJECTS), ("a.npy", "Python objects")),
    "npy that is an archive": Bad("a.npy", archive, ("a.npy", "cannot be read")),
    "npy with one axis": Bad("a.npy", npy(np.full(4, NUMBER)), ("a.npy", "1 axes", "(rows, columns)")),
    "npy with three axes": Bad("a.npy", npy(np.full((4, 2, 2), NUMBER)), ("a.npy", "3 axes")),
    "npy of text": Bad("a.npy", npy(np.array([[SECRET]])), ("a.npy", "not a real number")),
    "npy of complex numbers": Bad("a.npy", npy(np.full((2, 2), 1j)), ("a.npy", "complex128")),
    "npy of structures": Bad(
        "a.npy", npy(np.zeros((2, 2), dtype=[(SECRET, "f8")])), ("a.npy", "a structure")
    ),
    "npy of too large integers": Bad(
        "a.npy", npy(np.array([[1], [2**63]], dtype=np.uint64)), ("a.npy", "row 1", "63 bits")
    ),
    "npy with a label": Bad("a.npy", npy(np.ones((2, 2))), ("a.npy", ".npz"), DataColumns(label="l")),
    "npz that is none": Bad("a.npz", raw(b"PK\x03\x04" + SECRET.encode()), ("a.npz", "damaged")),
    "npz cut short": Bad("a.npz", cut(npz(features=np.ones((9, 9))), 200), ("a.npz", "damaged")),
    "npz without features": Bad(
        "a.npz", npz(points=np.ones((2, 2))), ("a.npz", "no array 'features'; it has 'points'")
    ),
    "npz without the label": Bad(
        "a.npz", npz(features=np.ones((2, 2))), ("a.npz", "no array 'bought'"), DataColumns(label="bought")
    ),
    "npz with two feature arrays": Bad("a.npz", npz(x=np.ones((2, 1)), y=np.ones((2, 1))), ("a.npz",), XY),
    "npz with objects": Bad(
        "a.npz",
        npz(features=np.ones((1, 2)), labels=np.array([{SECRET}], dtype=object)),
        ("a.npz", "'labels'", "Python objects"),
    ),
    "labels of another length": Bad(
        "a.npz", npz(features=np.ones((2, 2)), labels=np.arange(3)), ("a.npz", "labels", "2 rows")
    ),
    "label that is not finite": Bad(
        "a.npz", npz(features=np.ones((2, 2)), labels=np.array([NUMBER, np.nan])), ("a.npz", "row 1")
    ),
    "identifiers that are floats": Bad(
        "a.npz", npz(features=np.ones((1, 2)), identifiers=np.array([NUMBER])), ("a.npz", "identifiers")
    ),
    "empty csv": Bad("a.csv", text(""), ("a.csv", "empty")),
    "csv with a header only": Bad("a.csv", text("x,y\n"), ("a.csv", "no rows")),
    "csv without a header": Bad("a.csv", text(f"1,{SECRET}\n2,3\n"), ("a.csv", "header is missing")),
    "csv with a short line": Bad("a.csv", text(f"x,y\n1,2\n{SECRET}\n"), ("a.csv", "line 3")),
    "csv with a long line": Bad("a.csv", text(f"x,y\n1,2\n3,4,{SECRET}\n"), ("a.csv", "line 3")),
    "csv with a short line late": Bad("a.csv", text(f"{LATE}{SECRET}\n"), ("a.csv", "line 400002")),
    "csv with a word": Bad(
        "a.csv",
        text(f"x,y\n1,2\n3,{SECRET}a\n"),
        ("a.csv", "row 1, feature column 1 ('y')", "not a number"),
        XY,
    ),
    "csv with a word late": Bad(
        "a.csv",
        text(f"{LATE}1,{SECRET}a\n"),
        ("a.csv", "row 400000, feature column 1 ('y')", "not a number"),
        XY,
    ),
    "csv with a gap": Bad(
        "a.csv", text(f"x,y\n{SECRET},2\n3,\n"), ("a.csv", "row 1, feature column 1", "missing")
    ),
    "csv with NaN": Bad(
        "a.csv", text(f"x,y\nnan,{SECRET}\n"), ("a.csv", "row 0, feature column 0", "missing")
    ),
    "csv without the column": Bad("a.csv", text(f"x,{SECRET}\n1,2\n"), ("a.csv", "no column 'y'"), XY),
    "csv with a name twice": Bad("a.csv", text("x,x\n1,2\n"), ("a.csv", "two columns of one name")),
    "csv of words": Bad("a.csv", text("x\none\n"), ("a.csv", "no numeric column")),
    "csv of other bytes": Bad("a.csv", raw(bytes(range(256)) * 9), ("a.csv",)),
    "csv with another encoding": Bad(
        "a.csv", raw(b"x,y\n1,\xe9\n"), ("a.csv", "'y'", "not in UTF-8", "Latin-1"), DataColumns(label="y")
    ),
    "csv with a missing identifier": Bad(
        "a.csv",
        text(f"x,y\n{SECRET},1\n2,\n"),
        ("a.csv", "row 1", "'y'", "missing"),
        DataColumns(identifier="y"),
    ),
    "csv with an empty text label": Bad(
        "a.csv",
        text(f"x,y\n{SECRET},a\n2,\n"),
        ("a.csv", "row 1", "column 'y'", "missing", "remove the row"),
        DataColumns(label="y"),
    ),
    "csv with NA among text labels": Bad(
        "a.csv", text(f"x,y\n{SECRET},a\n2,NA\n"), ("row 1", "column 'y'", "missing"), DataColumns(label="y")
    ),
    "csv with a blank identifier": Bad(
        "a.csv", text(f"x,y\n{SECRET},a\n2, \n"), ("row 1", "column 'y'"), DataColumns(identifier="y")
    ),
    "csv without any label": Bad(
        "a.csv", text(f"x,y\n{SECRET},\n2,\n"), ("row 0", "column 'y'"), DataColumns(label="y")
    ),
    "csv with a long label": Bad(
        "a.csv", text(f"x,y\n1,a\n2,{SECRET * 999}\n"), ("a.csv", "row 1", "4096"), DataColumns(label="y")
    ),
    "gzip that is none": Bad("a.csv.gz", text(f"x,y\n1,{SECRET}\n"), ("a.csv.gz", "damaged")),
    "gzip cut short": Bad("a.csv.gz", raw(gzip.compress(b"x,y\n" + b"1,2\n" * 99)[:30]), ("a.csv.gz",)),
    "parquet that is none": Bad("a.parquet", text(f"PAR1{SECRET}"), ("a.parquet", "damaged")),
    "parquet with a gap": Bad(
        "a.parquet", parquet(x=[NUMBER, None]), ("a.parquet", "row 1, feature column 0", "missing")
    ),
    "parquet with lists": Bad(
        "a.parquet",
        parquet(x=[[NUMBER]], y=[1]),
        ("a.parquet", "feature column 0 ('x')", "nested"),
        XY,
    ),
    "parquet with a missing label": Bad(
        "a.parquet", parquet(x=[1, 2], y=[SECRET, None]), ("a.parquet", "row 1"), DataColumns(label="y")
    ),
    "parquet with an empty label": Bad(
        "a.parquet",
        parquet(x=[1, 2], y=[SECRET, ""]),
        ("a.parquet", "row 1", "column 'y'", "missing"),
        DataColumns(label="y"),
    ),
    "parquet with a label of NaN": Bad(
        "a.parquet", parquet(x=[1, 2], y=[1.5, float("nan")]), ("row 1", "column 'y'"), DataColumns(label="y")
    ),
    "npz with an empty label": Bad(
        "a.npz",
        npz(features=np.ones((2, 2)), labels=np.array([SECRET, ""])),
        ("a.npz", "row 1", "labels", "missing"),
    ),
    "parquet without rows": Bad("a.parquet", parquet(x=[]), ("a.parquet", "no rows")),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_bad_file_is_named_with_the_place_and_never_quoted(bad: Bad, tmp_path: Path) -> None:
    path = tmp_path / bad.name
    bad.write(path)
    with pytest.raises(DataError) as caught:
        load_dataset(path, bad.columns)
    message = str(caught.value)
    assert [part for part in bad.says if part not in message] == []
    assert SECRET not in message
    assert caught.value.advice
    assert caught.value.exit_code is ExitCode.USAGE
    # A traceback must not print what the parser said: it quotes cells.
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def refused(path: Path, content: str, columns: DataColumns) -> str:
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        load_dataset(path, columns)
    assert "party" not in str(caught.value)
    return str(caught.value)


def test_whoever_names_a_column_that_is_not_there_is_told_those_that_are(tmp_path: Path) -> None:
    said = refused(tmp_path / "a.csv", "age,income,bought\n1,2,3\n", DataColumns(label="Bought"))
    assert "no column 'Bought'; its columns are 'age', 'income', 'bought'" in said


def test_of_many_or_long_names_some_are_told(tmp_path: Path) -> None:
    names = ["x" * 300, *(f"c{place}" for place in range(30))]
    content = ",".join(names) + "\n" + ",".join("1" * len(names)) + "\n"
    said = refused(tmp_path / "a.csv", content, DataColumns(label="y"))
    assert "'c8' and 21 more" in said
    assert "c9" not in said
    assert "x" * 41 not in said


@pytest.mark.parametrize("row", [f"ann,{SECRET}", f"ann;{SECRET}", f"ann|{SECRET}|x"])
def test_what_may_be_a_row_of_data_is_not_told_as_names(row: str, tmp_path: Path) -> None:
    said = refused(tmp_path / "a.csv", f"{row}\n{row}\n", DataColumns(label="kind"))
    assert SECRET not in said
    assert "ann" not in said
    assert "header" in said


def test_a_feature_column_is_told_by_place_and_by_the_name_that_its_file_gives(tmp_path: Path) -> None:
    said = refused(
        tmp_path / "a.csv", "name,age,bought,income\nann,1,0,2\nbob,1,0,\n", DataColumns(label="bought")
    )
    assert "row 1, feature column 1 ('income')" in said
    path = tmp_path / "b.csv"
    path.write_text("name,age,bought,income\nann,1,0,2\nbob,1,0,3\n")
    with pytest.raises(DataError, match=r"row 1, feature column 1 \('income'\) .*out of"):
        check_dataset(load_dataset(path, DataColumns(label="bought")), columns=2, lower=0.0, upper=2.0)


def test_the_name_is_left_out_where_it_may_be_a_value(tmp_path: Path) -> None:
    said = refused(tmp_path / "a.csv", f"ann,{SECRET}\nbob,\n", DataColumns())
    assert "row 0, feature column 0 (both counted" in said
    assert SECRET not in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_this_user_may_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.ones((2, 2)))
    path.chmod(0)
    with pytest.raises(DataError, match="cannot be read by this user"):
        load_dataset(path, DataColumns())


def test_integers_that_turn_into_decimals_late_in_a_csv_are_read(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text(f"{LATE}1,2.5\n")
    dataset = load_dataset(path, DataColumns())
    assert dataset.features.dtype == np.float64
    assert dataset.features[-1].tolist() == [1.0, 2.5]


def test_words_are_no_features_unless_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("name,x,kind,y\nann,1,3,0.5\nbob,2,4,1.5\n")
    dataset = load_dataset(path, DataColumns(label="kind", identifier="name"))
    assert dataset.features.tolist() == [[1.0, 0.5], [2.0, 1.5]]
    assert dataset.labels is not None
    assert dataset.labels.tolist() == [3, 4]
    assert dataset.identifiers is not None
    assert dataset.identifiers.tolist() == ["ann", "bob"]


def test_columns_come_in_the_order_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n")
    assert load_dataset(path, DataColumns(features=("y", "x"))).features.tolist() == [[2, 1]]
    with pytest.raises(DataError, match=r"a\.csv: feature columns are named twice: x\."):
        load_dataset(path, DataColumns(features=("x", "y", "x")))


def test_blanks_around_a_name_in_a_header_are_none_of_it_unless_they_tell_two_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x, y ,kind\n1, 2,a\n")
    dataset = load_dataset(path, DataColumns(features=("y", "x"), label="kind"))
    assert (dataset.features.tolist(), dataset.feature_names) == ([[2, 1]], ("y", "x"))
    path.write_text("x, x\n1,2\n")
    assert load_dataset(path, DataColumns(features=(" x",))).features.tolist() == [[2]]


def test_npy_is_memory_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.ones((5, 2), dtype=np.float32))
    features = load_dataset(path, DataColumns()).features
    assert isinstance(features, np.memmap)
    assert not features.flags.writeable


# -- columns that nobody named ---------------------------------------------------------------------------


MEMBERS: dict[str, list[object]] = {"age": [1, 2], "member": [True, False], "name": ["ann", "bob"]}


@pytest.mark.parametrize("late", [False, True], ids=["early", "late"])
def test_booleans_of_a_csv_are_features_of_0_and_1(tmp_path: Path, late: bool) -> None:
    rows = 400_000 if late else 1
    path = tmp_path / "a.csv"
    # Late: after a block of which all columns were taken for numbers, so that the file is read as text.
    path.write_text("age,member,name\n" + "1,true,7\n" * rows + "2,false,bob\n")
    found = load_dataset(path, DataColumns())
    assert found.feature_names == ("age", "member")
    assert found.features[-2:].tolist() == [[1, 1], [2, 0]]


def test_booleans_of_a_parquet_file_are_features_and_may_be_the_label_as_before(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet(**MEMBERS)(path)
    assert load_dataset(path, DataColumns()).features.tolist() == [[1, 1], [2, 0]]
    labelled = load_dataset(path, DataColumns(label="member"))
    assert labelled.labels is not None
    assert (labelled.features.tolist(), labelled.labels.tolist()) == ([[1], [2]], [1, 0])


def test_the_index_that_pandas_writes_is_a_feature_only_where_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pd.DataFrame({"age": [1, 2, 3], "score": [4, 5, 6]}).iloc[[2, 0, 1]].to_parquet(path)
    index = "__index_level_0__"
    assert index in pq.read_schema(path).names, "or there would be nothing to leave out"
    found = load_dataset(path, DataColumns())
    assert (found.feature_names, found.features.tolist()) == (("age", "score"), [[3, 6], [1, 4], [2, 5]])
    named = load_dataset(path, DataColumns(features=("age", index)))
    assert named.features.tolist() == [[3, 2], [1, 0], [2, 1]]
    by_index = load_dataset(path, DataColumns(identifier=index))
    assert by_index.identifiers is not None
    assert by_index.identifiers.tolist() == [2, 0, 1]
    with pytest.raises(DataError, match="an index of pandas"):
        check_dataset(found, columns=3, lower=0.0, upper=9.0)


def test_a_word_in_a_numeric_column_is_told_by_its_column_where_columns_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"age,score,name\n1,2,ann\n{SECRET}y,3,bob\n3,4,{SECRET}x\n")
    with pytest.raises(DataError) as caught:
        check_dataset(load_dataset(path, DataColumns()), columns=2, lower=0.0, upper=9.0)
    said = str(caught.value)
    assert "a.csv has 1 feature column ('score'), with 'age' (row 1, counted from 0, is not a number)" in said
    assert "'name' (text)" in said
    assert SECRET not in said


def test_a_word_in_the_only_numeric_column_is_told_too(tmp_path: Path) -> None:
    said = refused(tmp_path / "a.csv", f"age,name\n1,ann\n{SECRET}y,bob\n", DataColumns())
    assert "'age' (row 1, counted from 0, is not a number)" in said


@pytest.mark.parametrize("row", [f"ann,{SECRET},1", f"ann;{SECRET},x,1"])
def test_columns_that_were_left_out_are_not_named_by_what_may_be_data(tmp_path: Path, row: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{row}\n{row}\nbob,word,2\n")
    with pytest.raises(DataError) as caught:
        check_dataset(load_dataset(path, DataColumns()), columns=5, lower=0.0, upper=9.0)
    assert SECRET not in str(caught.value)
    assert "ann" not in str(caught.value)


def test_text_of_parquet_that_is_no_text_is_damage(tmp_path: Path) -> None:
    text = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"a\x80"))
    pq.write_table(pa.table({"kind": text}), tmp_path / "d.parquet")
    with pytest.raises(DataError, match="damaged"):
        load_dataset(tmp_path / "d.parquet", DataColumns(features=("kind",)))
