"""Tables as libraries hold them: read with the requested columns, or refused with what to pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hushbid.protocol.data import DataColumns
from hushbid.protocol.data.frames import as_arrow
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import DataError
from hushbid.tables.frames import like

SCHEMA = Schema.of(
    [
        {"name": "x", "kind": "number", "lower": 0, "upper": 1},
        {"name": "g", "kind": "category", "categories": ["é", "北京", "c d"], "missing": "own"},
    ]
)
READ = DataColumns(schema=SCHEMA)
X = [0.25, 0.5, 1.0]
G = ["é", None, "c d"]
ENCODED = [[0.25, 1, 0, 0, 0], [0.5, 0, 0, 0, 1], [1.0, 0, 0, 1, 0]]

PANDAS = pd.DataFrame({"x": X, "g": G})
POLARS = pl.DataFrame({"x": X, "g": G})
ARROW = pa.table({"x": X, "g": G})

TAKEN: dict[str, Callable[[], Any]] = {
    "pandas": lambda: PANDAS,
    "pandas categories": lambda: PANDAS.astype({"g": "category"}),
    "pandas arrow text": lambda: PANDAS.astype({"g": "string[pyarrow]"}),
    "pandas index": lambda: PANDAS.set_index("g"),
    "pandas two levels of rows": lambda: PANDAS.set_index([[1, 1, 2], [1, 2, 1]]),
    "pandas mixed objects": lambda: PANDAS.assign(k=[1, "a", {3}]),
    "pandas periods": lambda: PANDAS.assign(k=pd.period_range("2020", periods=3)),
    "pandas complex": lambda: PANDAS.assign(k=1j),
    "pandas two of one name": lambda: pd.DataFrame(
        [[*row, 1, 2] for row in zip(X, G, strict=True)], columns=["x", "g", "d", "d"]
    ),
    "pandas numbers for names": lambda: PANDAS.assign(**{"k": 1}).rename(columns={"k": 0}),
    "polars": lambda: POLARS,
    "polars enum": lambda: POLARS.with_columns(pl.col("g").cast(pl.Enum(["é", "北京", "c d"]))),
    "polars lazy": POLARS.lazy,
    "polars objects": lambda: POLARS.with_columns(pl.Series("k", [object()] * 3, dtype=pl.Object)),
    "arrow": lambda: ARROW,
    "arrow batch": lambda: ARROW.to_batches()[0],
    "arrow dictionary": lambda: pa.table({"x": X, "g": pa.array(G).dictionary_encode()}),
    "arrow view": lambda: pa.table({"x": X, "g": pa.array(G, pa.string_view())}),
    "arrow two of one name": lambda: pa.Table.from_arrays(
        [pa.array(X), pa.array(G), pa.nulls(3), pa.nulls(3)], names=["x", "g", "d", "d"]
    ),
    "columns": lambda: {"x": X, "g": G, "k": [1]},
    "columns of series": lambda: {"x": PANDAS["x"], "g": PANDAS["g"]},
    "dictionaries": lambda: [{"x": 0.25, "g": "é", "k": 1}, {"x": 0.5}, {"g": "c d", "x": 1.0}],
    "a structured array": lambda: np.array(
        [(0.25, "é"), (0.5, "北京"), (1.0, "c d")], dtype=[("x", "f8"), ("g", "U5")]
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_table_of_any_library_is_taken_without_what_nobody_asks_for(name: str) -> None:
    table = as_arrow(TAKEN[name](), "north", READ)
    expected = ENCODED if name != "a structured array" else [ENCODED[0], [0.5, 0, 1, 0, 0], ENCODED[2]]
    assert SCHEMA.encode(table).tolist() == expected
    assert SCHEMA.encode(TAKEN[name]()).tolist() == expected, "as it is"


@pytest.mark.parametrize("column", [PANDAS["x"], POLARS["x"]], ids=["pandas", "polars"])
def test_a_column_with_a_name_is_a_table_of_it(column: Any) -> None:
    schema = Schema.of([SCHEMA.columns[0]])
    table = as_arrow(column, "validation", DataColumns(schema=schema))
    assert schema.encode(table).tolist() == [[0.25], [0.5], [1.0]]
    with pytest.raises(DataError, match="validation has no column 'g'; its only column is 'x'"):
        as_arrow(column, "validation", READ)


@pytest.mark.parametrize(
    ("frame", "what", "advice"),
    [
        (pd.Series(X), "is a Series without a name", "DataFrame"),
        (pl.Series(X), "is a Series without a name", "DataFrame"),
        (ARROW.to_reader(), "can be read only once", "read_all"),
        (np.ones((3, 2)), "is a ndarray, and no table", "DataFrame"),
        ([1, 2], "is a list, and no table", "list of dictionaries"),
        ([], "is a list, and no table", "list of dictionaries"),
        (5, "is an int, and no table", "DataFrame"),
        (None, "is a NoneType, and no table", "DataFrame"),
    ],
    ids=["pandas", "polars", "reader", "array", "numbers", "nothing", "number", "none"],
)
def test_what_is_no_table_is_refused_with_what_to_pass(frame: Any, what: str, advice: str) -> None:
    with pytest.raises(DataError) as caught:
        as_arrow(frame, "north", READ)
    assert what in caught.value.what
    assert advice in (caught.value.advice or "")


@pytest.mark.parametrize("kind", ["datetime64[ns]", "datetime64[us]", "datetime64[s]"])
def test_dates_come_back_in_the_type_of_times_that_pandas_gave_them(kind: str) -> None:
    schema = Schema.of([{"name": "since", "kind": "date", "lower": "2000-01-01", "upper": "9999-12-31"}])
    given = pd.DataFrame({"since": np.array(["2020-01-05", "2021-07-09"], dtype=kind)})
    table = schema.decode(schema.encode(as_arrow(given, "rows", DataColumns(schema=schema))))
    pd.testing.assert_frame_equal(like(given, table), given)
    assert like(given.astype(str), table)["since"].dtype == object, "as text, they come back as dates"
    late = pa.table({"since": pa.array(["9999-12-31"]).cast(pa.date32())})
    assert str(like(given, late)["since"].iloc[0]).startswith("9999-12-31")
