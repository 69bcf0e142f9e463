"""Any table that a schema allows gives the same bytes from every format, and decodes to its rows."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.data.column import GAP_WORDS
from hushbid.protocol.data.dialect import Dialect
from hushbid.protocol.data.frames import as_arrow
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import DataError
from tests.support.written_tables import (
    FILES,
    FRAMES,
    KINDS,
    TEXTS,
    Written,
    decoded,
    equal,
    of_writer,
    tables,
)

WRITERS = [*FILES, *FRAMES]


def read(table: Written, writer: str) -> npt.NDArray[Any]:
    """The numbers of a table in a party's file or frame."""
    columns = DataColumns(schema=table.schema)
    with tempfile.TemporaryDirectory() as place:
        if writer in FRAMES:
            return table.schema.encode(as_arrow(FRAMES[writer](table, Path(place)), "frame", columns))
        path = Path(place) / writer
        FILES[writer](table, path)
        try:
            return np.array(load_dataset(path, columns).features)
        except DataError as error:
            if "between thousands" not in error.what:
                raise
            declared = DataColumns(schema=table.schema, dialect=Dialect(decimal=","))
            return np.array(load_dataset(path, declared).features)


def check(table: Written, first: str, second: str, cut: int) -> None:
    """Two parties have a part each: each reads the whole's numbers of it, and gets its rows back."""
    for writer, rows in ((first, table.rows[:cut]), (second, table.rows[cut:])):
        part = of_writer(Written(table.columns, rows), writer)
        encoded = read(part, writer)
        assert np.array_equal(encoded, table.schema.encode(as_arrow(part.rows, "rows"))), writer
        assert equal(table.schema.decode(encoded).to_pylist(), decoded(part), table.schema), writer


def writers_of(kind: str) -> list[str]:
    """The writers that can hold it: no text holds images."""
    return [name for name in WRITERS if kind != "image" or name in FRAMES or name.endswith(".parquet")]


def check_of_kind(kind: str, data: st.DataObject) -> None:
    table = data.draw(tables([kind]))
    writers = st.sampled_from(writers_of(kind))
    check(table, data.draw(writers), data.draw(writers), data.draw(st.integers(1, len(table.rows) - 1)))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(data=st.data())
def test_a_column_of_a_kind_is_the_same_from_every_party(kind: str, data: st.DataObject) -> None:
    check_of_kind(kind, data)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=1000)
@given(data=st.data())
def test_a_column_of_a_kind_is_the_same_from_every_party_many_times(kind: str, data: st.DataObject) -> None:
    check_of_kind(kind, data)


@pytest.mark.parametrize("writer", WRITERS)
@settings(max_examples=5)
@given(data=st.data())
def test_a_writer_s_columns_of_several_kinds_come_back(writer: str, data: st.DataObject) -> None:
    kinds = [kind for kind in KINDS if writer in writers_of(kind)]
    table = data.draw(tables(data.draw(st.permutations(kinds))[:4]))
    check(table, writer, writer, 1)


LABELS = TEXTS.filter(lambda text: bool(text.strip()))
IDENTIFIERS = TEXTS.filter(lambda text: text.strip() not in GAP_WORDS)


@settings(max_examples=25)
@given(data=st.data())
def test_declared_labels_and_identifiers_keep_their_text(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 5))
    labels = data.draw(st.lists(LABELS, min_size=count, max_size=count, unique=True))
    names = data.draw(st.lists(IDENTIFIERS, min_size=count, max_size=count, unique=True))
    x = {"name": "x", "kind": "number", "lower": 0, "upper": 1}
    beside = [("label", labels), ("id", names)]
    columns = [{"name": name, "kind": "ordinal", "categories": texts} for name, texts in beside]
    rows = [{"x": 0.5, "label": label, "id": name} for label, name in zip(labels, names, strict=True)]
    read_as = DataColumns(
        label="label", identifier="id", schema=Schema.of([x]), label_kind="text", label_words=tuple(labels)
    )
    writer = data.draw(st.sampled_from([*FILES]))
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / writer
        FILES[writer](Written([x, *columns], rows), path)
        dataset = load_dataset(path, read_as)
    assert dataset.labels is not None
    assert dataset.identifiers is not None
    assert dataset.labels.tolist() == labels, writer
    assert [str(name) for name in dataset.identifiers.tolist()] == names, writer


FOUND = {
    "a gap is an empty line where a file has one column": Written(
        [{"name": "k", "kind": "integer", "lower": 0, "upper": 9, "missing": 0}],
        [{"k": 4}, {"k": None}, {"k": 5}, {"k": None}],
    ),
    "a category of blanks, or a gap word beside blanks, is no gap": Written(
        [{"name": "g", "kind": "category", "categories": ["a", " ", " NA"], "missing": "own"}],
        [{"g": " "}, {"g": "a"}, {"g": " NA"}, {"g": None}],
    ),
    "a column may be named by a number": Written(
        [{"name": "0", "kind": "number", "lower": 0, "upper": 1}], [{"0": 0.25}, {"0": 1.0}]
    ),
    "a name may begin with a blank": Written(
        [{"name": " age", "kind": "number", "lower": 0, "upper": 1}], [{" age": 0.25}, {" age": 1.0}]
    ),
    "fractions of one column have a comma, which separates nothing": Written(
        [{"name": "x", "kind": "number", "lower": 0, "upper": 9}], [{"x": 0.5}, {"x": 1.25}]
    ),
}
"""What was read otherwise by one writer's file than by another's."""


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_stays_mended(name: str) -> None:
    for writer in WRITERS:
        check(FOUND[name], writer, writer, 1)


def test_an_empty_line_of_one_column_is_told_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("k\n4\n\n5\n")
    schema = Schema.of([{"name": "k", "kind": "integer", "lower": 0, "upper": 9}])
    with pytest.raises(DataError, match=r"row 1 \(counted from 0; line 3 of the file\) is missing"):
        load_dataset(path, DataColumns(schema=schema))
    path.write_text("k\n4\n5\n\nsix\n")
    schema = Schema.of([{"name": "k", "kind": "integer", "lower": 0, "upper": 9, "missing": 0}])
    with pytest.raises(DataError, match=r"row 3 \(counted from 0; line 5 of the file\) is not a number"):
        load_dataset(path, DataColumns(schema=schema))
