"""A public schema: rows of a table as numbers within public bounds, and back."""

from __future__ import annotations

import math
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol.data.column import Column
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError, DataError, HushbidError

AGE = {"name": "age", "kind": "integer", "lower": -5, "upper": 2**53}
INCOME = {"name": "income", "kind": "number", "lower": -1.5, "upper": 1e300}
OWNS = {"name": "owns", "kind": "boolean"}
LEVEL = {"name": "level", "kind": "ordinal", "categories": ["low", "mid", "high"]}
GRADE = {"name": "grade", "kind": "ordinal", "categories": [5, 1, 3]}
JOB = {"name": "job", "kind": "category", "categories": ["nurse", "Köchin", ""], "missing": "own"}
CODE = {"name": "code", "kind": "category", "categories": [7, -2]}
SCAN = {"name": "scan", "kind": "image", "size": [3, 2]}
ALL: tuple[dict[str, Any], ...] = (AGE, INCOME, OWNS, LEVEL, GRADE, JOB, CODE)
SCHEMA = Schema.of(ALL)

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "age": st.integers(-5, 2**53),
            "income": st.floats(-1.5, 1e300, allow_nan=False),
            "owns": st.booleans(),
            "level": st.sampled_from(["low", "mid", "high"]),
            "grade": st.sampled_from([5, 1, 3]),
            "job": st.sampled_from(["nurse", "Köchin", "", None]),
            "code": st.sampled_from([7, -2]),
        }
    ),
    min_size=1,
    max_size=20,
)


def table(**columns: Any) -> Any:
    return pa.table(columns)


def refused(schema: Schema, **columns: Any) -> HushbidError:
    with pytest.raises(DataError) as caught:
        schema.encode(table(**columns), name="the owner's table")
    return caught.value


@given(ROWS)
def test_every_row_comes_back_as_it_was(rows: list[dict[str, Any]]) -> None:
    encoded = SCHEMA.encode(pa.Table.from_pylist(rows))
    assert encoded.shape == (len(rows), SCHEMA.width)
    assert (encoded >= SCHEMA.lower).all()
    assert (encoded <= SCHEMA.upper).all()
    assert SCHEMA.decode(encoded).to_pylist() == rows


def test_numbers_are_those_that_the_schema_says() -> None:
    encoded = SCHEMA.encode(
        table(age=[40], income=[2.5], owns=[True], level=["high"], grade=[1], job=[None], code=[7])
    )
    assert encoded.tolist() == [[40.0, 2.5, 1.0, 2.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0]]


@pytest.mark.parametrize("weight", [1.0, 0.5, 0.01])
@pytest.mark.parametrize("column", ALL, ids=lambda column: str(column["name"]))
def test_extremes_are_as_far_apart_as_their_weight(column: dict[str, Any], weight: float) -> None:
    schema = Schema.of([column | {"weight": weight}])
    values = {
        "number": [-1.5, 1e300], "integer": [-5, 2**53], "boolean": [False, True],
    }.get(column["kind"]) or [column["categories"][0], column["categories"][-1]]  # fmt: skip
    encoded = schema.encode(table(**{column["name"]: values}))
    scaled = (encoded - schema.lower) / (np.array(schema.upper) - schema.lower)
    assert math.dist(*scaled) == pytest.approx(weight)


def test_columns_that_the_schema_does_not_name_are_left_out_and_their_order_is_its_own() -> None:
    schema = Schema.of([LEVEL, OWNS])
    encoded = schema.encode(table(other=[1], owns=[False], level=["mid"]))
    assert encoded.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("column", "value", "number"),
    [
        (AGE | {"missing": 30}, 30, 30.0),
        (INCOME | {"missing": 2.5}, 2.5, 2.5),
        (OWNS | {"missing": False}, False, 0.0),
        (LEVEL | {"missing": "mid"}, "mid", 1.0),
        (GRADE | {"missing": 3}, 3, 2.0),
    ],
    ids=str,
)
def test_a_gap_is_what_the_schema_says_that_it_is(column: dict[str, Any], value: Any, number: float) -> None:
    schema = Schema.of([column])
    name = column["name"]
    encoded = schema.encode(table(**{name: [value, None]}))
    assert encoded.tolist() == [[number], [number]]
    assert schema.encode(table(**{name: pa.nulls(1)})).tolist() == [[number]]


def test_whole_numbers_with_gaps_may_be_floats_as_pandas_has_them() -> None:
    schema = Schema.of([AGE | {"missing": 0}, CODE | {"missing": "own"}])
    encoded = schema.encode(table(age=[3.0, math.nan], code=[7.0, math.nan]))
    assert encoded.tolist() == [[3.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        (AGE, [0, 0, None], "row 2 (counted from 0) is missing"),
        (AGE, [0, -6], "row 1 (counted from 0) is out of bounds"),
        (AGE, [0, 2**53 + 1], "row 1 (counted from 0) is out of bounds"),
        (AGE, [0.5], "row 0 (counted from 0) is no whole number"),
        (AGE, ["33344"], "holds values of type string, where the schema has an integer"),
        (INCOME, [0.0, math.inf], "row 1 (counted from 0) is out of bounds"),
        (INCOME, [0.0, math.nan], "row 1 (counted from 0) is missing"),
        (INCOME, [True], "holds values of type bool"),
        (OWNS, [0, 2], "row 1 (counted from 0) is out of bounds"),
        (LEVEL, ["low", "33344", "33344"], "row 1 (counted from 0) is of no category, and those of 1 more"),
        (LEVEL, [1], "holds values of type int64, where its categories are text"),
        (GRADE, ["33344"], "where its categories are integers"),
        (GRADE, [1.5], "where its categories are integers"),
        (CODE, [7, None], "row 1 (counted from 0) is missing"),
        (CODE, [7, 2**53 + 33344], "row 1 (counted from 0) is out of bounds"),
        (GRADE, pa.array([5, 2**64 - 1], pa.uint64()), "row 1 (counted from 0) is out of bounds"),
        (AGE, [Decimal(2**53 + 1)], "row 0 (counted from 0) is no whole number"),
        (AGE, [Decimal("1.00000000000000000001")], "row 0 (counted from 0) is no whole number"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_named_by_column_and_row_and_no_value_is_quoted(
    column: dict[str, Any], values: list[Any], says: str
) -> None:
    error = refused(Schema.of([column]), **{column["name"]: values})
    assert f"column {column['name']!r}" in error.what
    assert says in error.what
    assert error.advice
    assert "33344" not in error.what + error.advice


def test_what_a_gap_can_stand_for_is_said() -> None:
    numbers = refused(Schema.of([AGE]), age=[20, None]).advice
    assert numbers == "Fill it in, or say by the column's `missing` what a gap stands for."
    job = {"name": "job", "kind": "category", "categories": ["clerk", "nurse"]}
    assert '`missing = "own"`' in refused(Schema.of([job]), job=["clerk", None]).advice


def test_empty_text_is_said_to_be_empty_and_no_gap() -> None:
    job = {"name": "job", "kind": "category", "categories": ["clerk", "nurse"], "missing": "own"}
    error = refused(Schema.of([job]), job=["33344", "", None, ""])
    said = (
        "row 1 (counted from 0) is empty text, which is no gap and of no category, and those of 1 more rows."
    )
    assert said in error.what
    assert "null (None): that is a gap" in error.advice
    assert "33344" not in error.what
    assert Schema.of([JOB]).encode(table(job=["", None]), name="x").tolist() == [[0, 0, 1, 0], [0, 0, 0, 1]]


def test_a_column_that_is_not_there_or_twice_is_named() -> None:
    schema = Schema.of([OWNS])
    assert "no column 'owns'" in refused(schema, other=[1]).what
    twice = pa.Table.from_arrays([pa.array([True])] * 2, names=["owns", "owns"])
    with pytest.raises(DataError, match="column 'owns' is there several times"):
        schema.encode(twice)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ([], "at least 1 item"),
        ([OWNS, OWNS], "two columns have one name"),
        ([{"name": "age", "kind": "integer"}], "lower and upper are needed, and must be public"),
        ([AGE | {"lower": 2, "upper": 2}], "lower has to be below upper"),
        ([AGE | {"upper": 2.5}], "bounds of integers are whole numbers"),
        ([AGE | {"upper": 2.0**54}], "up to 2^53"),
        ([INCOME | {"upper": math.inf}], "both finite"),
        ([OWNS | {"lower": 0.0}], "bounds are for numbers and integers"),
        ([OWNS | {"categories": ["a", "b"]}], "categories are for ordinals and categories"),
        ([LEVEL | {"categories": None}], "has to list different values"),
        ([LEVEL | {"categories": ["a", "a"]}], "has to list different values"),
        ([LEVEL | {"categories": ["a"]}], "one category alone"),
        ([LEVEL | {"missing": "own"}], "has to be a value of the column"),
        ([AGE | {"missing": -6}], "has to be a value of the column"),
        ([AGE | {"missing": 1.5}], "has to be a value of the column"),
        ([AGE | {"missing": True}], "has to be a value of the column"),
        ([OWNS | {"missing": 1}], "has to be a value of the column"),
        ([AGE | {"missing": 10**400}], "has to be a value of the column"),
        ([INCOME | {"missing": 10**400}], "has to be a value of the column"),
        ([CODE | {"categories": [1, 2**53 + 1]}], "whole numbers up to 2^53"),
        ([INCOME | {"lower": -1e308, "upper": 1e308}], "too far apart"),
        ([INCOME | {"weight": 1e-20}], "too far apart"),
        ([OWNS | {"weight": 0.0}], "greater than 0"),
        ([OWNS | {"weight": 1.5}], "less than or equal to 1"),
        ([OWNS | {"kind": "picture"}], "kind"),
        ([OWNS | {"kind": "image"}], "size is needed"),
        ([OWNS | {"size": [2, 2]}], "size and channels are for images"),
        ([SCAN | {"size": [0, 2]}], "greater than or equal to 1"),
        ([SCAN | {"size": [2.0, 2]}], "size"),
        ([SCAN | {"size": [400, 300]}], "an image becomes 120000 numbers, more than 100000"),
        ([SCAN | {"channels": 2}], "channels"),
        ([SCAN | {"missing": 256}], "has to be a value of the column"),
        ([SCAN | {"missing": 1.5}], "has to be a value of the column"),
        ([SCAN | {"lower": 0}], "bounds are for numbers and integers"),
        ([OWNS | {"extra": 1}], "extra: unknown key"),
    ],
    ids=str,
)
def test_what_is_no_schema_is_refused(columns: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(ConfigError, match="the schema: ") as caught:
        Schema.of(columns)
    assert says in caught.value.what


@pytest.mark.parametrize("columns", [5, "age", None, {"age": 1}])
def test_what_is_no_list_of_columns_is_refused(columns: Any) -> None:
    with pytest.raises(ConfigError, match="columns are a list, not "):
        Schema.of(columns)


def test_numbers_of_another_schema_are_refused() -> None:
    schema = Schema.of([LEVEL, CODE])
    good = schema.encode(table(level=["mid"], code=[7]))
    assert schema.decode(good).num_rows == 1
    for place, value in ((0, 0.5), (0, 3.0), (0, math.nan), (1, 0.0), (2, 1.0), (1, 0.5)):
        other = good.copy()
        other[0, place] = value
        with pytest.raises(DataError, match=r"row 0 \(counted from 0\), are those of no"):
            schema.decode(other)
    with pytest.raises(DataError, match="has no rows of 3 numbers"):
        schema.decode(good[:, 1:])


def test_a_whole_number_that_no_float_holds_every_neighbour_of_is_no_integer() -> None:
    with pytest.raises(DataError, match=r"column 'age', row 1 .* are those of no integer"):
        Schema.of([AGE]).decode(np.array([[3.0], [1e300]]))


@pytest.mark.parametrize(
    ("column", "values", "held"),
    [
        pytest.param(
            {"kind": "number", "lower": 0.1, "upper": 2}, [0.1, 2, 0, 2.1, nan, inf], 2, id="number"
        ),
        pytest.param({"kind": "number", "lower": 0, "upper": 2, "weight": 0.5}, [2, 2.5, 4], 1, id="weighed"),
        pytest.param(
            {"kind": "integer", "lower": -1, "upper": 2}, [-1, 2, 1.5, 3, nan, -inf], 2, id="integer"
        ),
        pytest.param({"kind": "boolean"}, [0, 1, 0.5, 2, -1, nan], 2, id="boolean"),
        pytest.param({"kind": "ordinal", "categories": [5, 9, 7]}, [0, 2, 3, 0.5, -1, nan], 2, id="ordinal"),
    ],
)
def test_numbers_are_a_value_or_not_whatever_their_type(
    column: dict[str, Any], values: list[float], held: int
) -> None:
    schema = Schema.of([column | {"name": "it"}])
    expected = [place < held for place in range(len(values))]
    for dtype in (np.float64, np.float32):
        numbers = np.array(values, dtype=dtype)[:, None]
        assert schema.holds(numbers)[:, 0].tolist() == expected
        for row, whole in zip(numbers, expected, strict=True):
            if whole and dtype is np.float64:
                assert schema.decode(row[None]).num_rows == 1
            elif not whole:
                with pytest.raises(DataError, match="are those of no"):
                    schema.decode(row[None])
    whole_numbers = np.array([[0], [1], [-7]], dtype=np.int16)
    if column["kind"] == "boolean":
        assert schema.holds(whole_numbers)[:, 0].tolist() == [True, True, False]


def test_a_category_is_one_of_its_numbers_and_no_part_of_several() -> None:
    schema = Schema.of([{"name": "it", "kind": "category", "categories": ["a", "b"], "missing": "own"}])
    rows = [[1, 0, 0], [0, 0, 1], [0, 0, 0], [1, 1, 0], [0.5, 0.5, 0], [2, 0, 0], [1, nan, 0], [1, -1, 1]]
    assert schema.holds(np.array(rows))[:, 0].tolist() == [True, True, *[False] * 6]


def test_decimals_become_the_same_numbers_as_their_text() -> None:
    values = [Decimal(number) / 10**6 for number in range(-1_000_000, 999_000_000, 997_123)]
    encoded = Schema.of([INCOME | {"missing": 2.5}]).encode(
        table(income=pa.array([*map(abs, values), None], pa.decimal128(20, 6)))
    )
    assert encoded[:, 0].tolist() == [*(float(str(abs(value))) for value in values), 2.5]


def test_drawn_rows_are_rows_of_the_schema_and_take_every_value() -> None:
    schema = Schema.of([AGE | {"upper": 3}, INCOME | {"upper": 2.0}, *ALL[2:]])
    drawn = schema.drawn(400, np.random.default_rng(0))
    rows = schema.decode(drawn)
    assert np.array_equal(schema.encode(rows), drawn)
    assert set(rows["age"].to_pylist()) == set(range(-5, 4))
    assert set(rows["owns"].to_pylist()) == {False, True}
    assert set(rows["level"].to_pylist()) == {"low", "mid", "high"}
    assert set(rows["job"].to_pylist()) == {"nurse", "Köchin", "", None}
    income = rows["income"].to_numpy()
    assert -1.5 <= income.min() < -1.4
    assert 1.9 < income.max() <= 2.0


def test_a_schema_is_read_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text('[[columns]]\nname = "owns"\nkind = "boolean"\nweight = 0.5\n')
    assert Schema.read(path).columns == (Column(name="owns", kind="boolean", weight=0.5),)
    invited = path.read_text().replace("[[columns]]", "[[configuration.columns]]")
    path.write_text(f'format = "hushbid-invitation"\n{invited}')
    assert Schema.read(path).columns == (Column(name="owns", kind="boolean", weight=0.5),)
    for text, says in (("columns = 1", "should be a list"), ("[[columns", "is not TOML"), ("", "columns")):
        path.write_text(text)
        with pytest.raises(ConfigError, match=says) as caught:
            Schema.read(path)
        assert str(path) in caught.value.what
    path.write_text('[[columns]]\nname = "owns"\nkind = "number"\nlower = ?\n')
    with pytest.raises(ConfigError, match=r"is not TOML: .*line 4") as caught:
        Schema.read(path)
    assert "fill in what is marked by ?" in caught.value.advice
    with pytest.raises(ConfigError, match="cannot be read"):
        Schema.read(tmp_path / "none.toml")
