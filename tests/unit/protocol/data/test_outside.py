"""Rows that do not fit what is public: refused by default, clipped or dropped on their party's request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w

from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.party import DataSection
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.crypto.sealing import pack_content
from hushbid.protocol.data import Dataset, dataset_digest, load_dataset
from hushbid.protocol.data.attributes import unpack_attributes
from hushbid.protocol.data.dataset import Changes, Outside
from hushbid.protocol.data.formats import ENDINGS
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.session.boxes import boxed
from hushbid.protocol.session.session import open_session
from tests.support.session_files import changed

COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "kind": "integer", "lower": 18, "upper": 90, "weight": 0.5},
    {"name": "job", "kind": "category", "categories": ["clerk", "nurse"]},
]
ROWS = "age,job,y\n30,clerk,no\n7,nurse,yes\n40,pilot,no\n,nurse,no\n99,clerk,yes\n50,nurse,maybe\n"
OUTSIDE: tuple[Outside, ...] = ("clip", "drop")
LABELS = {"classes": ["no", "yes"]}


def session(place: Path, columns: Any = None, **changes: Any) -> SessionFile:
    values = changed({"session.allow_nonprivate": True, **changes})
    if columns is not None:
        values = values | {"columns": columns}
        for key in ("columns", "lower", "upper"):
            values["features"].pop(key, None)
    (place / "session.toml").write_text(tomli_w.dumps(values))
    return load_toml(SessionFile, place / "session.toml")


def read(file: SessionFile, path: Path, outside: Outside, *, sold: bool = False, **columns: Any) -> Dataset:
    section = DataSection.model_validate({"outside": outside, **columns})
    dataset = load_dataset(path, file.reading(section.columns(), sold=sold))
    file.check_points(dataset)
    file.check_labels(dataset)
    return dataset


def known(dataset: Dataset) -> list[Any]:
    return [] if dataset.known is None else list(dataset.known)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    (tmp_path / "rows.csv").write_text(ROWS)
    return tmp_path / "rows.csv"


def test_by_default_they_are_refused(rows: Path) -> None:
    file = session(rows.parent, COLUMNS, labels=LABELS)
    with pytest.raises(
        DataError, match=r"Column 'age': row 1 .* out of bounds.*Column 'job': row 2"
    ) as caught:
        read(file, rows, "refuse", label="y")
    assert caught.value.advice.index("--categories") < caught.value.advice.rindex("`outside`")


def test_they_are_dropped_and_counted(rows: Path) -> None:
    file = session(rows.parent, COLUMNS, labels=LABELS)
    found = read(file, rows, "drop", label="y")
    assert found.features.tolist() == [[30, 1, 0]]
    assert found.labels is not None
    assert found.labels.tolist() == ["no"]
    assert found.changes == Changes({}, 5, {"age": 3, "job": 1, "y": 1})
    assert found.changes.said == "5 rows were dropped (3 by column 'age', 1 by column 'job', 1 by column 'y')"
    assert not found.features.flags.writeable


def test_numbers_are_clipped_and_what_is_none_is_refused(rows: Path) -> None:
    file = session(rows.parent, COLUMNS)
    with pytest.raises(DataError, match="Column 'job': row 2") as caught:
        read(file, rows, "clip")
    assert "out of bounds" not in caught.value.what
    rows.write_text("age,job\n30,clerk\n7,nurse\n99999999999999999999,clerk\n")
    found = read(file, rows, "clip")
    assert found.features.tolist() == [[30, 1, 0], [18, 0, 1], [90, 1, 0]]
    assert found.changes == Changes({"age": 2}, 0)
    assert found.changes.said == "2 values were clipped in column 'age'"
    assert Changes({"age": 1}, 0).said == "1 value was clipped in column 'age'"


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("mapped", [False, True])
def test_arrays_are_clipped_and_dropped_by_the_session_s_bounds(
    tmp_path: Path, dtype: Any, mapped: bool
) -> None:
    file = session(tmp_path, **{"features.lower": -1.5, "features.upper": 2.5})
    path = tmp_path / ("rows.npy" if mapped else "rows.npz")
    array = np.array([[0, 1, 2], [-9, 0, 1], [1, 7, 1]], dtype=dtype)
    if mapped:
        np.save(path, array)
    else:
        np.savez(path, features=array)
    low, high = (-1, 2) if dtype == np.int16 else (-1.5, 2.5)
    clipped = read(file, path, "clip")
    assert clipped.features.dtype == dtype
    assert clipped.features.tolist() == [[0, 1, 2], [low, 0, 1], [1, high, 1]]
    assert clipped.changes == Changes({"feature column 0": 1, "feature column 1": 1}, 0)
    assert np.array_equal(np.load(path) if mapped else np.load(path)["features"], array), "the file stays"
    dropped = read(file, path, "drop")
    assert dropped.features.tolist() == [[0, 1, 2]]
    assert dropped.changes == Changes({}, 2, {"feature column 0": 1, "feature column 1": 1})


def test_rows_that_fit_are_as_they_are(tmp_path: Path) -> None:
    file = session(tmp_path)
    np.save(tmp_path / "rows.npy", np.full((4, 3), 0.5))
    for outside in OUTSIDE:
        found = read(file, tmp_path / "rows.npy", outside)
        assert isinstance(found.features, np.memmap)
        assert found.changes is None


def test_labels_are_clipped_where_they_are_amounts_and_dropped_where_they_are_none(tmp_path: Path) -> None:
    features = np.full((4, 3), 0.5)
    np.savez(tmp_path / "rows.npz", features=features, labels=np.array([1.0, 5.0, -2.0, 2.0]))
    file = session(tmp_path, labels={"lower": 0, "upper": 3})
    clipped = read(file, tmp_path / "rows.npz", "clip")
    assert known(clipped) == [1.0, 3.0, 0.0, 2.0]
    assert clipped.changes == Changes({"labels": 2}, 0)
    assert known(read(file, tmp_path / "rows.npz", "drop")) == [1.0, 2.0]
    np.savez(tmp_path / "rows.npz", features=features, labels=np.array([0, 1, 2, 0]))
    classes = session(tmp_path, labels={"classes": [0, 1]})
    with pytest.raises(DataError, match="no class of the session"):
        read(classes, tmp_path / "rows.npz", "clip")
    assert known(read(classes, tmp_path / "rows.npz", "drop")) == [0, 1, 0]


def test_rows_without_a_label_are_dropped_by_an_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("age,job,y\n30,clerk,no\n40,nurse,\n")
    file = session(tmp_path, COLUMNS)
    assert len(read(file, path, "drop", label="y")) == 1
    own = file.reading(DataSection(label="y", outside="drop").columns()).with_gaps()
    assert known(load_dataset(path, own)) == ["no", None]


# -- labels, identifiers and boxes -----------------------------------------------------------------------

PEOPLE = [
    {"age": 30, "job": "clerk", "y": "1", "id": "a"},
    {"age": 31, "job": "nurse", "y": "2", "id": "b" * 90},
    {"age": 32, "job": "clerk", "y": "3" * 90, "id": "c"},
    {"age": 33, "job": "nurse", "y": "4", "id": None},
    {"age": 34, "job": "clerk", "y": None, "id": "e"},
    {"age": 35, "job": "nurse", "y": "6" * 5000, "id": "f"},
    {"age": 36, "job": "clerk", "y": "7", "id": "g" * 5000},
    {"age": 99, "job": "nurse", "y": "x", "id": "h"},
    {"age": 38, "job": "clerk", "y": "9" * 50, "id": "i"},
    {"age": 39, "job": "nurse", "y": "10", "id": "j" * 50},
]
SEALED = {"acquisition": {"rule": "sealed", "box_bytes": 96}, "features.seed": None}
"""A box has room for some sixty bytes of label and identifier."""
GONE = {"age": 1, "y": 3, "id": 3}


def written(place: Path, ending: str, rows: list[dict[str, Any]], schema: SessionFile) -> Path:
    path = place / f"rows{ending}"
    table = pa.Table.from_pylist(rows)
    if ending == ".npz":
        assert schema.rows is not None
        ages = [min(row["age"], 90) for row in rows]
        features = schema.rows.encode(table.set_column(0, "age", pa.array(ages)), name="rows")
        features[:, 0] = [row["age"] for row in rows]
        np.savez(path, features=features, labels=[row["y"] or "" for row in rows],
                 identifiers=[row["id"] or "" for row in rows])  # fmt: skip
    else:
        with path.open("wb") as stream:
            WRITE[ending](table, stream)
    return path


WRITE = {ending: format_.write for ending, format_ in ENDINGS.items() if format_.write is not None}


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz"])
def test_a_row_whose_label_or_identifier_cannot_travel_is_dropped_with_all_that_it_has(
    tmp_path: Path, ending: str
) -> None:
    file = session(tmp_path, COLUMNS, **SEALED)
    names = {} if ending == ".npz" else {"label": "y", "identifier": "id"}
    path = written(tmp_path, ending, PEOPLE, file)
    whole = open_session(file)
    found = boxed(whole, read(file, path, "drop", sold=True, **names))
    assert found.features[:, 0].tolist() == [30, 38, 39]
    assert known(found) == ["1", "9" * 50, "10"]
    assert found.identifiers is not None
    assert found.identifiers.tolist() == ["a", "i", "j" * 50]
    assert found.changed.dropped == 7
    by = {"age": 1, "labels": 3, "identifiers": 3} if ending == ".npz" else GONE
    assert found.changed.dropped_by == by
    # A point goes into a box, though the longest label and the longest identifier together would not.
    assert found.attribute_length < 50 + 50
    for row in range(3):
        _ = pack_content(found.features[row], found.attributes(row), whole.box_bytes)
    assert [unpack_attributes(found.attributes(row)).label for row in range(3)] == ["1", "9" * 50, "10"]
    alone = [row for row in PEOPLE if row["age"] in (30, 38, 39)]
    kept = read(file, written(tmp_path, ending, alone, file), "refuse", sold=True, **names)
    assert dataset_digest(kept) == dataset_digest(found), "it is as if the others had never been there"


def test_what_is_left_decides_in_which_type_labels_are_read(tmp_path: Path) -> None:
    file = session(tmp_path, COLUMNS, **SEALED)
    rows = [row for row in PEOPLE if row["age"] != 38]
    found = read(file, written(tmp_path, ".csv", rows, file), "drop", sold=True, label="y", identifier="id")
    assert known(found) == [1, 10], "no text is left among them"


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_labels_of_another_kind_than_declared_are_dropped(tmp_path: Path, ending: str) -> None:
    file = session(tmp_path, COLUMNS, **{"session.labels": "integer"})
    rows = [{"age": 30 + row, "job": "clerk", "y": y} for row, y in enumerate([1.0, 2.5, None, 4.0, 1e30])]
    found = read(file, written(tmp_path, ending, rows, file), "drop", label="y")
    assert known(found) == [1, 4]
    assert found.labels is not None
    assert found.labels.dtype == np.int64
    assert found.changed.dropped_by == {"y": 3}


def test_identifiers_that_a_gap_made_floats_of_are_whole_numbers_again(tmp_path: Path) -> None:
    file = session(tmp_path, COLUMNS, **{"session.identifiers": "integer"})
    rows = [{"age": 30, "job": "clerk", "id": each} for each in (7.0, None, 9.0)]
    path = written(tmp_path, ".parquet", rows, file)
    with pytest.raises(DataError, match="column 'id' is missing"):
        read(file, path, "refuse", identifier="id")
    found = read(file, path, "drop", identifier="id")
    assert found.identifiers is not None
    assert found.identifiers.tolist() == [7, 9]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_rows_with_gaps_and_words_are_dropped_where_a_session_has_no_columns(
    tmp_path: Path, ending: str
) -> None:
    file = session(tmp_path)
    if ending == ".csv":
        (tmp_path / "rows.csv").write_text("a,b,c,y\n0,1,0,u\n,1,0,v\n0,many,0,w\n1,7,1,x\n1,1,1,z\n")
    else:
        table = {"a": [0, None, 1], "b": [1, 1, 1], "c": [0, 0, 1], "y": ["u", "v", "z"]}
        pq.write_table(pa.table(table), tmp_path / "rows.parquet")
    found = read(file, tmp_path / f"rows{ending}", "drop", features=["a", "b", "c"], label="y")
    assert found.features.tolist() == [[0, 1, 0], [1, 1, 1]]
    assert found.features.dtype == np.int64
    assert known(found) == ["u", "z"]
    columns = {"feature column 0 ('a')": 1, "feature column 1 ('b')": 1, "b": 1}
    assert found.changed.dropped == (3 if ending == ".csv" else 1)
    assert found.changed.dropped_by.items() <= columns.items()


def test_a_clipped_table_keeps_refusing_what_cannot_be_clipped(tmp_path: Path) -> None:
    file = session(tmp_path, COLUMNS, **SEALED)
    path = written(tmp_path, ".csv", PEOPLE[:2], file)
    with pytest.raises(DataError, match="a point with its label takes"):
        boxed(open_session(file), read(file, path, "clip", sold=True, label="y", identifier="id"))


def test_the_consumer_s_rows_need_not_fit_into_boxes(tmp_path: Path) -> None:
    file = session(tmp_path, COLUMNS, **SEALED)
    path = written(tmp_path, ".csv", PEOPLE[:3], file)
    assert len(read(file, path, "drop", label="y")) == 3


# -- identifiers that are wanted -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "identifiers", "says"),
    [
        ("any", [1, 2], None),
        ("any", ["a", "b"], None),
        ("integer", [1, 2], None),
        ("text", ["a", "b"], None),
        ("any", None, r'requires them \(session.identifiers = "any"\)'),
        ("integer", ["a", "b"], "identifiers are text where the session declares whole numbers"),
        ("text", [1, 2], "identifiers are whole numbers where the session declares text"),
    ],
)
def test_a_session_may_require_identifiers(
    tmp_path: Path, declared: str, identifiers: Any, says: str | None
) -> None:
    file = session(tmp_path, **{"session.identifiers": declared})
    given: dict[str, Any] = {} if identifiers is None else {"identifiers": np.array(identifiers)}
    np.savez(tmp_path / "rows.npz", features=np.full((2, 3), 0.5), **given)
    if says is None:
        assert read(file, tmp_path / "rows.npz", "refuse").unidentified == 0
    else:
        with pytest.raises(DataError, match=says):
            read(file, tmp_path / "rows.npz", "refuse")


def test_identifiers_of_csv_are_read_as_declared(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b,c,id\n0,1,0,01\n0,1,1,2\n")
    for declared, expected in (("text", ["01", "2"]), ("integer", [1, 2]), ("any", ["01", "2"])):
        file = session(tmp_path, **{"session.identifiers": declared})
        found = read(file, tmp_path / "rows.csv", "refuse", features=["a", "b", "c"], identifier="id")
        assert found.identifiers is not None
        assert found.identifiers.tolist() == expected


def test_a_session_that_declares_no_identifiers_is_the_one_that_it_was(tmp_path: Path) -> None:
    digests = {
        session(tmp_path, **{"session.identifiers": declared}).digest() for declared in (None, "any", "text")
    }
    assert len(digests) == 3
    assert session(tmp_path).digest() == session(tmp_path, **{"session.identifiers": None}).digest()


def test_a_file_of_which_nothing_fits_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("age,job\n1,clerk\n2,nurse\n")
    with pytest.raises(DataError, match="no row fits the session's public columns"):
        read(session(tmp_path, COLUMNS), path, "drop")


def test_an_option_goes_before_the_party_s_file_and_is_checked() -> None:
    section = DataSection(outside="drop", label="y")
    assert section.with_options(outside=None) == section
    assert section.with_options(outside="clip").outside == "clip"
    with pytest.raises(ConfigError, match="outside"):
        section.with_options(outside="forget")


# -- labels that are required ----------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [np.array([0, 1]), np.array(["a", "b"]), np.array([0.5, 1.5])], ids=str)
def test_a_session_may_require_labels_of_any_type(tmp_path: Path, labels: Any) -> None:
    file = session(tmp_path, **{"session.labels": "any"})
    np.savez(tmp_path / "rows.npz", features=np.full((2, 3), 0.5), labels=labels)
    assert read(file, tmp_path / "rows.npz", "refuse").unlabelled == 0
    for missing in ({}, {"labels": labels, "labelled": np.array([True, False])}):
        np.savez(tmp_path / "rows.npz", features=np.full((2, 3), 0.5), **missing)
        with pytest.raises(DataError, match=r'requires labels \(session.labels = "any"\)'):
            read(file, tmp_path / "rows.npz", "refuse")


def test_points_without_a_label_are_counted(tmp_path: Path) -> None:
    features = np.full((3, 3), 0.5)
    held = np.array([True, False, False])
    assert Dataset.from_arrays("a", features).unlabelled == 3
    assert Dataset.from_arrays("a", features, np.arange(3)).unlabelled == 0
    assert Dataset.from_arrays("a", features, np.arange(3), labelled=held).unlabelled == 2


@pytest.mark.parametrize("outside", ["drop", "clip", "refuse"])
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz", ".npy"])
def test_an_owner_that_drops_keeps_as_many_of_its_first_rows_as_a_commitment_has_room_for(
    tmp_path: Path, ending: str, outside: Outside
) -> None:
    file = session(
        tmp_path, **{"acquisition": {"rule": "sealed", "commitment_depth": 2}, "features.seed": None}
    )
    path, features = tmp_path / f"rows{ending}", np.arange(18).reshape(6, 3) / 18
    features[1] = 9.0 if outside == "drop" else 1.0
    labels = np.array(["1", "2", "3", "4", "5", "sixth"])
    columns: dict[str, Any] = (
        {} if ending in (".npz", ".npy") else {"features": ["a", "b", "c"], "label": "y"}
    )
    if ending == ".npy":
        np.save(path, features)
    elif ending == ".npz":
        np.savez(path, features=features, labels=labels)
    else:
        table = {name: features[:, place] for place, name in enumerate("abc")} | {"y": labels.tolist()}
        with path.open("wb") as stream:
            WRITE[ending](pa.table(table), stream)
    found = read(file, path, outside, sold=True, **columns)
    if outside != "drop":
        assert len(found) == 6
        with pytest.raises(DataError, match="more rows than the session's tree has room for, which is 4"):
            open_session(file).check_rows(len(found), found.name)
        return
    assert found.features.tolist() == features[[0, 2, 3, 4]].tolist()
    assert (found.changed.dropped, found.changed.over, sum(found.changed.dropped_by.values())) == (2, 1, 3)
    assert "the last 1, for which a commitment has no room" in found.changed.said
    assert found.changed.as_json()["over"] == 1
    if ending == ".csv":
        assert known(found) == [1, 3, 4, 5], "the last row's label does not make texts of all"
    elif ending != ".npy":
        assert found.labels is not None
        assert found.labels.dtype == np.dtype("<U1")
    assert len(read(file, path, outside, **columns)) == 5, "nobody commits to what is not for sale"


def test_the_first_rows_of_a_mapped_array_stay_mapped(tmp_path: Path) -> None:
    file = session(
        tmp_path, **{"acquisition": {"rule": "sealed", "commitment_depth": 2}, "features.seed": None}
    )
    np.save(tmp_path / "rows.npy", np.full((6, 3), 0.5))
    found = read(file, tmp_path / "rows.npy", "drop", sold=True)
    assert isinstance(found.features, np.memmap)
    assert found.changes == Changes({}, 2, {}, 2)


def test_rows_of_which_none_fits_are_no_rows(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b,c\n,1,0\nmany,1,1\n")
    with pytest.raises(DataError, match="no row fits"):
        read(session(tmp_path), tmp_path / "rows.csv", "drop", features=["a", "b", "c"])


def test_numbers_of_a_committed_csv_file_are_floats_for_who_sells_them(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b,c,y\n0,1,0,3\n1,0,1,4\n")
    columns: dict[str, Any] = {"features": ["a", "b", "c"], "label": "y"}
    for depth, kind in ((2, np.dtype(np.float64)), (None, np.dtype(np.int64))):
        rule = {"rule": "sealed"} | ({} if depth is None else {"commitment_depth": depth})
        file = session(tmp_path, **{"acquisition": rule, "features.seed": None, "session.labels": "number"})
        found = read(file, path, "refuse", sold=True, **columns)
        assert found.labels is not None
        assert (found.features.dtype, found.labels.dtype) == (kind, kind)
        assert read(file, path, "refuse", **columns).features.dtype == np.int64
