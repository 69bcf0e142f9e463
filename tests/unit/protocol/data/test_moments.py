"""Dates and times between public bounds, and amounts by their order of magnitude; all decoded back."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError, DataError

DAY: dict[str, Any] = {"name": "day", "kind": "date", "lower": "2000-01-01", "upper": "2030-12-31"}
TIME: dict[str, Any] = {"name": "at", "kind": "datetime", "lower": "2000-01-01", "upper": "2030-12-31"}
AMOUNT: dict[str, Any] = {"name": "paid", "kind": "number", "lower": 0.01, "upper": 1e6, "scale": "log"}
moment = dt.datetime.fromisoformat
ZONES = dt.timezone(dt.timedelta(hours=2))


def test_bounds_are_one_schema_however_they_are_written(tmp_path: Path) -> None:
    schema = Schema.of([DAY, TIME])
    assert (schema.columns[0].lower, schema.columns[0].upper) == (10957, 22279)
    assert schema.columns[1].lower == 10957 * 86_400e6
    as_dates = {"lower": dt.date(2000, 1, 1), "upper": dt.date(2030, 12, 31)}
    (tmp_path / "schema.toml").write_text(tomli_w.dumps({"columns": [DAY | as_dates, TIME | as_dates]}))
    assert Schema.read(tmp_path / "schema.toml") == schema
    assert Schema.of(schema.model_dump(mode="json", exclude_none=True)["columns"]) == schema
    noon = Schema.of([TIME | {"upper": moment("2030-01-01T12:00"), "missing": "2001-01-01T00:00:00Z"}])
    assert noon.columns[0].missing == 11323 * 86_400_000_000


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "day": st.dates(dt.date(2000, 1, 1), dt.date(2030, 12, 31)),
            "at": st.datetimes(moment("2000-01-01"), moment("2030-12-31")),
        }
    ),
    min_size=1,
    max_size=9,
)


@given(ROWS)
def test_moments_come_back_as_they_were(rows: list[dict[str, Any]]) -> None:
    schema = Schema.of([DAY, TIME])
    encoded = schema.encode(pa.Table.from_pylist(rows))
    assert (encoded >= schema.lower).all()
    assert (encoded <= schema.upper).all()
    assert schema.decode(encoded).to_pylist() == rows
    as_text = pa.table(
        {"day": [str(row["day"]) for row in rows], "at": [row["at"].isoformat() for row in rows]}
    )
    assert np.array_equal(schema.encode(as_text), encoded)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (DAY, ["2024-02-29"]),
        (DAY, ["2024-02-29 00:00:00"]),
        (DAY, pa.array([moment("2024-02-29")])),
        (DAY, pd.to_datetime(["2024-02-29"])),
        (TIME, ["2024-02-29"]),
        (TIME, ["2024-02-29T00:00"]),
        (TIME, ["2024-02-29 00:00:00.000000000"]),
        (TIME, ["2024-02-29T02:00:00+02:00"]),
        (TIME, ["2024-02-29 00:00:00Z"]),
        (TIME, pa.array([dt.date(2024, 2, 29)])),
        (TIME, pa.array([dt.datetime(2024, 2, 29, 2, tzinfo=ZONES)])),
        (TIME, pa.array([1709164800], pa.timestamp("s"))),
    ],
    ids=str,
)
def test_a_moment_is_the_same_however_a_table_has_it(column: dict[str, Any], values: Any) -> None:
    expected = 19782 * (1 if column is DAY else 86_400_000_000)
    assert Schema.of([column]).encode(pa.table({column["name"]: values})).tolist() == [[expected]]


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        (DAY, ["2024-02-29", "2023-02-29"], "row 1 (counted from 0) is no date"),
        (DAY, ["29.02.2024"], "row 0 (counted from 0) is no date"),
        (DAY, ["2024-02-29 12:00"], "has a time of day"),
        (DAY, ["1999-12-31"], "is out of bounds"),
        (DAY, [None], "is missing"),
        (DAY, [19782], "holds values of type int64, where the schema has a date"),
        (TIME, ["now"], "is no time"),
        (TIME, ["2024-02-29 00:00:00.123456789"], "is finer than a microsecond"),
        (TIME, pa.array([1], pa.timestamp("ns")), "is finer than a microsecond"),
    ],
    ids=str,
)
def test_what_is_no_moment_of_the_column_is_named(column: dict[str, Any], values: Any, says: str) -> None:
    with pytest.raises(DataError) as caught:
        Schema.of([column]).encode(pa.table({column["name"]: values}))
    assert says in caught.value.what
    assert "29" not in caught.value.what


def test_dates_of_csv_are_read_and_their_gaps_filled(tmp_path: Path) -> None:
    schema = Schema.of([DAY | {"missing": "2001-01-01", "gaps": ["?"]}, TIME])
    path = tmp_path / "rows.csv"
    path.write_text("day,at\n2024-02-29,2024-02-29 10:00\n?,2024-02-29\n")
    found = load_dataset(path, DataColumns(schema=schema)).features
    assert schema.decode(found).to_pylist() == [
        {"day": dt.date(2024, 2, 29), "at": moment("2024-02-29T10:00")},
        {"day": dt.date(2001, 1, 1), "at": moment("2024-02-29")},
    ]
    pacsv.write_csv(schema.decode(found), path)
    assert np.array_equal(load_dataset(path, DataColumns(schema=schema)).features, found)


def test_drawn_rows_are_moments_and_amounts_within_their_bounds() -> None:
    schema = Schema.of([DAY, TIME, AMOUNT])
    drawn = schema.drawn(200, np.random.default_rng(1))
    rows = schema.decode(drawn)
    assert min(rows["day"].to_pylist()) >= dt.date(2000, 1, 1)
    paid = rows["paid"].to_numpy()
    assert 0.01 <= paid.min() < 1 < 1e4 < paid.max() <= 1e6


# -- amounts ---------------------------------------------------------------------------------------------


@given(st.decimals("0.01", "1000000", places=2))
def test_an_amount_comes_back_to_14_digits(amount: Any) -> None:
    schema = Schema.of([AMOUNT])
    encoded = schema.encode(pa.table({"paid": [float(amount)]}))
    assert schema.holds(encoded).all()
    assert schema.decode(encoded)["paid"].to_pylist() == [float(amount)]


def test_amounts_count_by_their_order_of_magnitude() -> None:
    schema = Schema.of([AMOUNT])
    encoded = schema.encode(pa.table({"paid": [0.01, 1.0, 2.0, 3.0, 4.0, 1e6]}))[:, 0]
    assert encoded[1:5].tolist() == [0.0, 1.0, 1.5, 2.0]
    assert (encoded[0], encoded[-1]) == (schema.lower[0], schema.upper[0])
    assert np.abs(encoded - np.log2([0.01, 1, 2, 3, 4, 1e6])).max() < 0.09
    with pytest.raises(DataError, match="is out of bounds"):
        schema.encode(pa.table({"paid": [0.0]}))
    gap = Schema.of([AMOUNT | {"missing": 2.0}])
    assert gap.encode(pa.table({"paid": [None, 4.0]})).tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (AMOUNT | {"lower": 0}, "lower is above 0"),
        (AMOUNT | {"kind": "integer", "lower": 1}, "lower is above 0"),
        ({"name": "a", "kind": "boolean", "scale": "log"}, "scale is for numbers"),
        (DAY | {"lower": "01.02.2000"}, "written as 2024-12-31"),
        (DAY | {"lower": "today"}, "written as 2024-12-31"),
        (DAY | {"missing": "1999-01-01"}, "has to be a value of the column"),
        (TIME | {"upper": "2400-01-01"}, "times are from 1684-07-29 to 2255-06-05"),
    ],
    ids=str,
)
def test_bounds_that_cannot_be_are_refused(column: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Schema.of([column])
    assert says in caught.value.what


def test_dates_are_written_as_people_write_them() -> None:
    day = {
        "name": "day",
        "kind": "date",
        "lower": "1999-12-31",
        "upper": "2020-03-01",
        "missing": "2020-02-29",
    }
    columns = [day, TIME]
    written = [column.written() for column in Schema.of(columns).columns]
    assert written[0]["missing"] == "2020-02-29"
    assert all("-" in each["lower"] and "-" in each["upper"] for each in written)
    assert Schema.of(written) == Schema.of(columns)
