"""Rows that do not fit what is public: refused by default, clipped or dropped where their party says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.party import DataSection
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset, load_dataset
from hushbid.protocol.data.dataset import Changes, Outside
from hushbid.protocol.errors import ConfigError, DataError
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


def read(file: SessionFile, path: Path, outside: Outside, **columns: Any) -> Dataset:
    section = DataSection.model_validate({"outside": outside, **columns})
    dataset = load_dataset(path, file.reading(section.columns()))
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
    with pytest.raises(DataError, match=r"Column 'age': row 1 .* out of bounds.*Column 'job': row 2"):
        read(file, rows, "refuse", label="y")


def test_they_are_dropped_and_counted(rows: Path) -> None:
    file = session(rows.parent, COLUMNS, labels=LABELS)
    found = read(file, rows, "drop", label="y")
    assert found.features.tolist() == [[30, 1, 0]]
    assert found.labels is not None
    assert found.labels.tolist() == ["no"]
    assert found.changes == Changes({}, 5)
    assert found.changes.said == "5 rows were dropped"
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
    assert found.changes.said == "2 values of column 'age' were clipped"


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
    assert dropped.changes == Changes({}, 2)


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
