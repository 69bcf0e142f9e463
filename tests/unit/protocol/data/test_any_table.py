"""Any table that a schema allows is read to the same bytes from every format, and decoded to what it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.data.schema import Schema

SCHEMA = Schema.of(
    [
        {"name": "whole", "kind": "integer", "lower": -(2**53), "upper": 2**53},
        {"name": "amount", "kind": "number", "lower": -1e300, "upper": 1e300},
        {"name": "owns", "kind": "boolean"},
        {"name": "zip", "kind": "category", "categories": ["02134", "2134", "3+", "NA", "true", "a;b", 'q"']},
        {"name": "level", "kind": "ordinal", "categories": ["low", "é\nhigh"]},
        {"name": "code", "kind": "category", "categories": [7, -2], "missing": "own"},
    ]
)  # fmt: skip

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "whole": st.integers(-(2**53), 2**53),
            "amount": st.floats(-1e300, 1e300, allow_nan=False),
            "owns": st.booleans(),
            "zip": st.sampled_from(SCHEMA.columns[3].categories or ()),
            "level": st.sampled_from(SCHEMA.columns[4].categories or ()),
            "code": st.sampled_from([7, -2, None]),
        }
    ),
    min_size=1,
    max_size=12,
)


def arrow(rows: list[dict[str, Any]]) -> Any:
    return pa.Table.from_pylist(rows, schema=SCHEMA.decode(SCHEMA.drawn(1, np.random.default_rng(0))).schema)


def excel(rows: list[dict[str, Any]], path: Path) -> None:
    """As Excel saves CSV where a comma stands before fractions."""
    frame = pd.DataFrame(rows).astype({"code": "Int64"})
    frame.to_csv(path, sep=";", decimal=",", index=False, encoding="utf-8-sig", lineterminator="\r\n")


def polars(rows: list[dict[str, Any]]) -> Any:
    return pl.from_arrow(arrow(rows))


FORMATS: dict[str, Callable[[list[dict[str, Any]], Path], object]] = {
    "pandas.csv": lambda rows, path: pd.DataFrame(rows).to_csv(path),
    "pandas.parquet": lambda rows, path: pd.DataFrame(rows).to_parquet(path),
    "pandas.csv.gz": lambda rows, path: pd.DataFrame(rows).to_csv(path, index=False),
    "polars.csv": lambda rows, path: polars(rows).write_csv(path),
    "polars.tsv": lambda rows, path: polars(rows).write_csv(path, separator="\t"),
    "polars.parquet": lambda rows, path: polars(rows).write_parquet(path),
    "arrow.csv": lambda rows, path: pacsv.write_csv(arrow(rows), path),
    "arrow.parquet": lambda rows, path: pq.write_table(arrow(rows), path),
    "excel.csv": excel,
}


@pytest.mark.parametrize("name", FORMATS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(rows=ROWS)
def test_it_comes_back_as_it_was(name: str, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / name
    FORMATS[name](rows, path)
    encoded = load_dataset(path, DataColumns(schema=SCHEMA)).features
    assert np.array_equal(encoded, SCHEMA.encode(arrow(rows)))
    assert SCHEMA.decode(encoded).to_pylist() == rows
