"""`[[columns]]` of a session file: features follow, the digest covers them, and files are read by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from hushbid.protocol.config.loading import validated
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.errors import ConfigError, DataError
from tests.support.session_files import SESSION

AGE: dict[str, Any] = {"name": "age", "kind": "integer", "lower": 18, "upper": 99, "missing": 40}
HEIGHT: dict[str, Any] = {"name": "height", "kind": "number", "lower": 0, "upper": 3, "missing": 2}
JOB: dict[str, Any] = {"name": "job", "kind": "category", "categories": ["clerk", "nurse"], "weight": 0.5}


def session(*columns: dict[str, Any], **features: Any) -> SessionFile:
    given = dict(SESSION["features"])
    for key in ("columns", "lower", "upper"):
        given.pop(key, None)
    values = {**SESSION, "features": given | features} | ({"columns": list(columns)} if columns else {})
    return validated(SessionFile, values, where="session.toml")


def test_features_follow_from_columns() -> None:
    file = session(AGE, JOB)
    assert file.features.columns == 3
    assert file.features.lower == [18.0, 0.0, 0.0]
    assert file.features.upper == pytest.approx([99.0, *[2.0**0.5 / 0.5] * 2])
    assert file.bounds_keys == "`lower`, `upper` of `[[columns]]`", "an advice names what can be changed"
    written = file.model_dump(mode="json", exclude_none=True)
    assert validated(SessionFile, written, where="copy.toml") == file


def test_features_that_say_the_same_are_no_contradiction_and_others_are() -> None:
    assert session(HEIGHT, columns=1, lower=0.0, upper=[3.0]).digest() == session(HEIGHT).digest()
    for wrong in ({"columns": 2, "lower": 0.0, "upper": 3.0}, {"lower": 1.0}, {"upper": [4.0]}):
        with pytest.raises(ConfigError, match=r"\[\[columns\]\] say: leave it out"):
            session(HEIGHT, **wrong)


def test_without_columns_features_are_needed_as_ever() -> None:
    with pytest.raises(ConfigError, match=r"features\.columns: is missing"):
        session()


@pytest.mark.parametrize(
    "other",
    [
        AGE | {"name": "years"}, AGE | {"kind": "number"}, AGE | {"lower": 17}, AGE | {"upper": 98},
        AGE | {"missing": 41}, {key: value for key, value in AGE.items() if key != "missing"},
        AGE | {"weight": 0.5}, AGE | {"gaps": ["?"]},
    ],
    ids=str,
)  # fmt: skip
def test_the_digest_changes_with_every_key_of_a_column(other: dict[str, Any]) -> None:
    assert session(other).digest() != session(AGE).digest()


def test_words_kinds_and_scales_are_in_the_digest() -> None:
    flag = {"name": "flag", "kind": "boolean"}
    day = {"name": "day", "kind": "date", "lower": "2000-01-01", "upper": "2030-01-01"}
    paid = {"name": "paid", "kind": "number", "lower": 1, "upper": 9}
    for column, other in (
        (flag, flag | {"true": ["yes"]}),
        (flag, flag | {"false": ["no"]}),
        (day, day | {"upper": "2030-01-02"}),
        (day, day | {"kind": "datetime"}),
        (paid, paid | {"scale": "log"}),
    ):
        assert session(column).digest() != session(other).digest()
    assert session(day).digest() == session(day | {"lower": 10957}).digest()


def test_the_digest_depends_on_what_columns_mean_and_not_on_how_they_are_written() -> None:
    assert session(HEIGHT | {"missing": 2.0, "lower": 0.0, "weight": 1}).digest() == session(HEIGHT).digest()
    assert session(AGE, JOB).digest() != session(JOB, AGE).digest()
    assert session(JOB).digest() != session(JOB | {"categories": ["nurse", "clerk"]}).digest()
    plain = session(columns=1, lower=0.0, upper=3.0)
    assert plain.digest() != session(HEIGHT).digest()


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ([AGE, AGE], "two columns have one name"),
        ([{"name": "age", "kind": "integer"}], "lower and upper are needed"),
    ],
    ids=["names", "bounds"],
)
def test_columns_that_are_none_are_refused(columns: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(ConfigError, match=r"session\.toml") as caught:
        session(*columns)
    assert says in caught.value.what


def test_a_party_s_table_is_read_by_the_session_s_columns(tmp_path: Path) -> None:
    table = {"bought": [0, 1], "job": ["nurse", "clerk"], "note": ["x", "y"], "age": [None, 30]}
    pacsv.write_csv(pa.table(table), tmp_path / "rows.csv")
    file = session(AGE, JOB)
    read = load_dataset(tmp_path / "rows.csv", file.reading(DataColumns(label="bought")))
    assert read.features.tolist() == [[40.0, 0.0, 1.0], [30.0, 1.0, 0.0]]
    assert read.labels is not None
    assert read.labels.tolist() == [0, 1]
    np.savez(tmp_path / "rows.npz", features=read.features)
    encoded = load_dataset(tmp_path / "rows.npz", file.reading(DataColumns()))
    assert np.array_equal(encoded.features, read.features), "arrays are encoded already"
    assert session(columns=1).reading(DataColumns()) == DataColumns()


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (DataColumns(features=("age",)), "feature columns are named"),
        (DataColumns(label="sold"), "has no column 'sold'"),
        (
            DataColumns(),
            "rows.csv: column 'age': row 1 (counted from 0; line 3 of the file) is out of bounds",
        ),
    ],
    ids=["features", "label", "value"],
)
def test_a_table_that_does_not_fit_is_refused(tmp_path: Path, columns: DataColumns, says: str) -> None:
    pacsv.write_csv(pa.table({"age": [30, 17]}), tmp_path / "rows.csv")
    with pytest.raises(DataError) as caught:
        load_dataset(tmp_path / "rows.csv", session(AGE).reading(columns))
    assert says in caught.value.what
    assert "17" not in caught.value.what
