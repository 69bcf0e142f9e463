"""Text and columns of very many values, sorted into buckets by a public hash."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.data.encoding import bucket_of
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.tables.frames import as_arrow

STREET: dict[str, Any] = {"name": "street", "kind": "hashed", "buckets": 7}
SCHEMA = Schema.of([STREET])
TEXTS = ["Elm Road", "Hauptstraße 7", "02134", "a,b", "x"]


def test_a_bucket_is_what_the_documents_say() -> None:
    digest = hashlib.sha256(b"hushbid hashed text 1\0" + "Hauptstraße 7".encode()).digest()
    assert bucket_of("Hauptstraße 7", 7) == int.from_bytes(digest[:8], "big") % 7
    assert [bucket_of(text, 1000) for text in TEXTS] == [563, 245, 893, 862, 46]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=20))
def test_every_text_has_one_bucket_and_equal_ones_the_same(texts: list[str]) -> None:
    encoded = SCHEMA.encode(as_arrow({"street": texts}, "rows"), name="rows")
    assert encoded.shape == (len(texts), 7)
    assert SCHEMA.holds(encoded).all()
    assert encoded.argmax(axis=1).tolist() == [bucket_of(text, 7) for text in texts]
    assert SCHEMA.decode(encoded).column("street").to_pylist() == encoded.argmax(axis=1).tolist()


def test_every_party_reads_the_same_whatever_wrote_its_table(tmp_path: Path) -> None:
    frame = pd.DataFrame({"street": TEXTS, "beside": range(5)})
    frame.to_csv(tmp_path / "comma.csv", index=False)
    frame.to_csv(tmp_path / "semicolon.csv", index=False, sep=";", encoding="utf-8-sig")
    frame.to_parquet(tmp_path / "pandas.parquet")
    pl.DataFrame({"street": TEXTS}).write_parquet(tmp_path / "polars.parquet")
    found = [load_dataset(path, DataColumns(schema=SCHEMA)).features for path in sorted(tmp_path.iterdir())]
    assert len(found) == 4
    for each in found:
        assert np.array_equal(each, found[0])


def test_whole_numbers_are_hashed_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("street\n12\n7\n")
    of_text = load_dataset(tmp_path / "rows.csv", DataColumns(schema=SCHEMA)).features
    for frame in ({"street": [12, 7]}, pd.DataFrame({"street": [12.0, 7.0]})):
        assert np.array_equal(SCHEMA.encode(as_arrow(frame, "rows"), name="rows"), of_text)
    with pytest.raises(DataError, match="where the schema has text to hash"):
        SCHEMA.encode(as_arrow({"street": [0.5, 1.5]}, "rows"), name="rows")


def test_a_gap_is_refused_or_a_bucket_of_its_own() -> None:
    table = pa.table({"street": ["Elm Road", None]})
    with pytest.raises(DataError, match=r"'street': row 1 .* is missing"):
        SCHEMA.encode(table, name="rows")
    own = Schema.of([STREET | {"missing": "own"}])
    encoded = own.encode(table, name="rows")
    assert encoded.argmax(axis=1).tolist() == [bucket_of("Elm Road", 7), 7]
    assert own.decode(encoded).column("street").to_pylist() == [bucket_of("Elm Road", 7), None]
    with pytest.raises(DataError, match="empty text"):
        SCHEMA.encode(pa.table({"street": [""]}), name="rows")


def test_two_buckets_are_the_column_s_weight_apart_and_seeds_are_drawn_of_all() -> None:
    schema = Schema.of([STREET | {"weight": 0.5}])
    one, other = np.eye(7)[:2] / np.subtract(schema.upper, schema.lower)
    assert np.linalg.norm(one - other) == pytest.approx(0.5)
    drawn = schema.drawn(500, np.random.default_rng(0))
    assert schema.holds(drawn).all()
    assert {*drawn.argmax(axis=1).tolist()} == {*range(7)}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"buckets": None}, "buckets are for hashed columns, which need them"),
        ({"buckets": 1}, "buckets"),
        ({"kind": "category", "categories": ["a", "b"]}, "buckets are for hashed columns"),
        ({"missing": "Elm Road"}, 'missing of a hashed column is "own"'),
        ({"lower": 0, "upper": 1}, "bounds are for numbers"),
        ({"categories": ["a", "b"]}, "categories are for ordinals and categories"),
    ],
)
def test_a_column_that_cannot_be_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Schema.of([{key: value for key, value in (STREET | changes).items() if value is not None}])
