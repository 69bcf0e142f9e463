"""Any bytes of a user's file are read or refused by a typed error: never a bug (exit code 5)."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import HushbidError
from hushbid.tables.drafting import draft
from tests.support.examples import examples

SCHEMA = Schema.of(
    [
        {"name": "a", "kind": "number", "lower": 0, "upper": 9},
        {"name": "b", "kind": "category", "categories": ["x", "y"], "missing": "own"},
        {"name": "c", "kind": "datetime", "lower": "2000-01-01", "upper": "2030-01-01"},
    ]
)
GOOD = b'a;b;c;d\r\n1,5;x;2024-01-01;u\r\n2;"y";2024-01-02 10:00;007\r\n;NA;;\r\n'
PIECES = st.sampled_from(
    [
        b",", b";", b"\t", b"|", b'"', b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf",
        b"1", b"-0", b"1e999", b"1e-999999999", b"inf", b"nan", b"9" * 400, b"2024-02-30", b"0000-01-01",
        b"9999-12-31T23:59:60", b"2024-01-01T00:00+99:99", b"true", b"a", b"b", b"c", b" ",
        "é".encode(), "é".encode("latin-1"),
        b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1", b"PK\x03\x04",
    ]
)  # fmt: skip


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A good file with pieces of it replaced."""
    content = bytearray(GOOD)
    for _ in range(draw(st.integers(0, 4))):
        first = draw(st.integers(0, len(content)))
        content[first : first + draw(st.integers(0, 6))] = draw(PIECES)
    return bytes(content)


FILES = broken() | st.lists(PIECES, max_size=12).map(b"".join) | st.binary(max_size=40)


def look_at(path: Path) -> None:
    """All readers of a table: each ends well, or with an explanation."""
    with contextlib.suppress(HushbidError):
        load_dataset(path, DataColumns(label="d", schema=SCHEMA))
    with contextlib.suppress(HushbidError):
        load_dataset(path, DataColumns(label="d", identifier="b"))
    for public in (False, True):
        with contextlib.suppress(HushbidError):
            drafted = draft(path, public=public, fill=public)
            if public and "[[columns]]" in drafted:
                schema = path.with_suffix(".toml")
                schema.write_text(drafted, encoding="utf-8")
                load_dataset(path, DataColumns(schema=Schema.read(schema)))


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".parquet"])
@examples(60)
@given(content=FILES)
def test_any_bytes_are_read_or_refused(ending: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / f"table{ending}"
        path.write_bytes(content)
        look_at(path)


@examples(60)
@given(data=st.data())
def test_a_damaged_parquet_file_is_read_or_refused(data: st.DataObject) -> None:
    stream = pa.BufferOutputStream()
    pq.write_table(
        pa.table({"a": [1.0, None], "b": ["x", None], "c": ["2024-01-01", ""], "d": [1, 2]}), stream
    )
    content = bytearray(stream.getvalue())
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "table.parquet"
        path.write_bytes(
            bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
        )
        look_at(path)
