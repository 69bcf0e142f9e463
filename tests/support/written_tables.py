"""Any table that a schema allows, and the same rows as libraries and spreadsheets write and hold them."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from hypothesis import strategies as st

from hushbid.protocol.data.column import LISTED, WHOLE, Column
from hushbid.protocol.data.dataset import DataColumns
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.runtime.given_tables import keep_table

__all__ = ["FILES", "FRAMES", "KINDS", "TEXTS", "Rows", "Written", "decoded", "equal", "of_writer", "tables"]

Rows: TypeAlias = list[dict[str, Any]]
Strategy: TypeAlias = st.SearchStrategy[Any]


@dataclass(frozen=True)
class Written:
    """A schema's columns, and rows that it allows; a gap is None."""

    columns: list[dict[str, Any]]
    rows: Rows

    @property
    def schema(self) -> Schema:
        return Schema.of(self.columns)


# --- what a schema allows -------------------------------------------------------------------------------

_TEXT: Final = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
_WORDS: Final = [
    "a", "A", " a", "a ", "NA", "NaN", "null", "0", "00", "1", "1.0", "02134", "3+", "true", "TRUE", "1e3",
    "2020-01-01", "é", "a,b", "a;b", "a\tb", "a|b", 'q"', '"q"', "'q'", "a\nb", "a\r\nb", "a\rb", "=1+1",
    "#N/A", "\\", "-", "?", ".", "1,5", "\ufeff", "a\u2028b", "\\N",
]  # fmt: skip
TEXTS: Final = st.sampled_from(_WORDS) | _TEXT
_NAMES: Final = st.sampled_from(
    [
        "age", "a b", " age", "Größe", "x;y", "x,y", 'x"y', "x\ty", "x\ny", "0", "1.5", "NA", "true", "id",
        "index", "level_0", "__index_level_0__", "Unnamed: 0", "schema", "columns", "'",
    ]
)  # fmt: skip


def _ends(values: Strategy) -> Strategy:
    """Two different values, the smaller first."""
    return st.tuples(values, values).map(sorted).filter(lambda ends: ends[0] < ends[1])


def _short(number: float) -> float:
    """A number of 15 digits, which all programs write in full."""
    return float(f"{number:.15g}")


_AMOUNTS: Final = st.floats(-1e300, 1e300, allow_nan=False, allow_subnormal=False).map(
    _short
) | st.sampled_from([0.0, 1.0, 0.5, 1234.0, 1234.5, 1e6, 1e15, 1e22, 1.234, -1.234, 1e-7])
_WHOLE: Final = st.integers(-WHOLE, WHOLE) | st.integers(-3, 3) | st.sampled_from([1000, 100_000, 1_234_567])
_DAYS: Final = st.dates()
_ENDS: Final = (dt.datetime.fromisoformat("1690-01-01"), dt.datetime.fromisoformat("2250-01-01"))
"""Within them 53 bits count the microseconds."""
_TIMES: Final = st.datetimes(*_ENDS) | st.datetimes(*_ENDS).map(lambda time: time.replace(microsecond=0))


@st.composite
def _number(draw: Any) -> tuple[dict[str, Any], Strategy]:
    lower, upper = draw(_ends(_AMOUNTS))
    return {"kind": "number", "lower": lower, "upper": upper}, st.floats(lower, upper) | st.just(upper)


@st.composite
def _log(draw: Any) -> tuple[dict[str, Any], Strategy]:
    lower, upper = draw(_ends(st.floats(1e-300, 1e300).map(_short)))
    return {"kind": "number", "scale": "log", "lower": lower, "upper": upper}, st.floats(lower, upper)


@st.composite
def _integer(draw: Any) -> tuple[dict[str, Any], Strategy]:
    lower, upper = draw(_ends(_WHOLE))
    return {"kind": "integer", "lower": lower, "upper": upper}, st.integers(lower, upper)


@st.composite
def _boolean(draw: Any) -> tuple[dict[str, Any], Strategy]:
    words = draw(
        st.sampled_from([{}, {"true": ["yes", "Y"], "false": ["no"]}, {"true": ["T"], "false": ["F"]}])
    )
    return {"kind": "boolean", **words}, st.booleans()


def _listed(kind: str, values: Strategy) -> Strategy:
    @st.composite
    def column(draw: Any) -> tuple[dict[str, Any], Strategy]:
        categories = draw(st.lists(values, min_size=2, max_size=4, unique=True))
        return {"kind": kind, "categories": categories}, st.sampled_from(categories)

    return column()


@st.composite
def _moments(draw: Any, kind: str, values: Strategy) -> tuple[dict[str, Any], Strategy]:
    found = draw(st.lists(values, min_size=2, max_size=5, unique_by=_utc).filter(lambda each: len(each) > 1))
    ends = sorted(found, key=_utc)
    bounds = {"lower": _utc(ends[0]).isoformat(), "upper": _utc(ends[-1]).isoformat()}
    return {"kind": kind, **bounds}, st.sampled_from(found)


def _utc(moment: dt.date) -> dt.date:
    if isinstance(moment, dt.datetime) and moment.tzinfo is not None:
        return moment.astimezone(dt.UTC).replace(tzinfo=None)
    return moment


@st.composite
def _image(draw: Any) -> tuple[dict[str, Any], Strategy]:
    size, channels = draw(st.sampled_from([([2, 1], 1), ([1, 1], 3), ([2, 2], 1)]))
    pixels = size[0] * size[1] * channels
    values = st.lists(st.integers(0, 255), min_size=pixels, max_size=pixels)
    return {"kind": "image", "size": size, "channels": channels}, values


KINDS: Final[Mapping[str, Strategy]] = {
    "number": _number(),
    "log": _log(),
    "integer": _integer(),
    "boolean": _boolean(),
    "ordinal": _listed("ordinal", TEXTS),
    "category": _listed("category", TEXTS),
    "codes": _listed("category", st.integers(-WHOLE, WHOLE) | st.integers(-3, 30)),
    "date": _moments("date", _DAYS),
    "datetime": _moments("datetime", _TIMES),
    "zoned": _moments("datetime", st.datetimes(*_ENDS, timezones=st.just(dt.UTC))),
    "image": _image(),
}
"""Of each kind of column: its keys but its name, and its values."""


@st.composite
def tables(draw: Any, kinds: Sequence[str]) -> Written:
    """A table with a column of each of these kinds."""
    columns, values = [], {}
    names = draw(st.lists(_NAMES, min_size=len(kinds), max_size=len(kinds), unique_by=str.strip))
    for name, kind in zip(names, kinds, strict=True):
        column, cells = draw(KINDS[kind])
        gaps = draw(st.booleans())
        if gaps and not (
            kind in ("category", "ordinal") and any(not each.strip() for each in column["categories"])
        ):
            own = column["kind"] == "category" and draw(st.booleans())
            column["missing"] = (
                "own" if own else _shown(draw(cells)) if kind != "image" else draw(st.integers(0, 255))
            )
            cells = cells | st.none()
            if kind != "image" and draw(st.booleans()):
                column["gaps"] = draw(st.sampled_from([["NA"], ["NA", "?"], ["NA", "-", ".", "n/a"]]))
        columns.append({"name": name, **column})
        values[name] = cells
    rows = draw(st.lists(st.fixed_dictionaries(values), min_size=2, max_size=6))
    return Written(columns, rows)


def _shown(value: Any) -> Any:
    return _utc(value).isoformat() if isinstance(value, dt.date) else value


def decoded(table: Written) -> Rows:
    """The rows as they come back: gaps filled, and times in UTC."""
    found = []
    for row in table.rows:
        back = {}
        for column in table.schema.columns:
            value = row[column.name]
            if value is None and not column.own_gap:
                value = _filled(column)
            back[column.name] = _utc(value) if isinstance(value, dt.date) else value
        found.append(back)
    return found


def _filled(column: Column) -> Any:
    if column.kind == "image":
        return [column.missing] * column.width
    if column.kind == "date":
        return dt.date(1970, 1, 1) + dt.timedelta(days=int(column.missing or 0))
    if column.kind == "datetime":
        return dt.datetime.fromisoformat("1970-01-01") + dt.timedelta(microseconds=int(column.missing or 0))
    return column.missing


# --- how programs write it ------------------------------------------------------------------------------


def _arrow(table: Written) -> Any:
    types = {
        "number": pa.float64(), "integer": pa.int64(), "boolean": pa.bool_(), "date": pa.date32(),
        "image": pa.list_(pa.uint8()),
    }  # fmt: skip
    arrays = {}
    for column in table.schema.columns:
        values = [row[column.name] for row in table.rows]
        if column.kind in LISTED:
            kind = pa.string() if isinstance((column.categories or ("",))[0], str) else pa.int64()
        elif column.kind == "datetime":
            zoned = any(value is not None and value.tzinfo is not None for value in values)
            kind = pa.timestamp("us", "UTC" if zoned else None)
        else:
            kind = types[column.kind]
        arrays[column.name] = pa.array(values, kind)
    return pa.table(arrays)


def _pandas(table: Written) -> pd.DataFrame:
    """As `DataFrame(records)` makes it: whole numbers with gaps become floats."""
    return pd.DataFrame(table.rows)


def _nullable(table: Written) -> pd.DataFrame:
    """With the nullable types of pandas, in which whole numbers with gaps stay whole."""
    whole = [
        column.name
        for column in table.schema.columns
        if column.kind == "integer" or (column.categories and isinstance(column.categories[0], int))
    ]
    frame = pd.DataFrame(table.rows, columns=list(table.schema.names), dtype=object)
    for name in whole:
        frame[name] = pd.array(frame[name].tolist(), dtype="Int64")
    return frame


def _polars(table: Written) -> Any:
    return pl.from_arrow(_arrow(table))


def _without_last_digits(table: Written) -> Written:
    """As Excel and R have the numbers: 15 digits; and times to the second."""

    def cut(value: Any) -> Any:
        if isinstance(value, float):
            return _short(value)
        return value

    return Written(table.columns, [{name: cut(value) for name, value in row.items()} for row in table.rows])


def _iso(value: dt.date) -> str:
    """Four digits of a year, which `strftime` lacks."""
    return value.isoformat(sep=" ") if isinstance(value, dt.datetime) else value.isoformat()


def _excel(table: Written, path: Path) -> None:
    """As Excel saves it with decimal commas: with a byte order mark, TRUE and FALSE."""

    def cell(value: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool):
            return str(value).upper()
        if isinstance(value, float):
            return f"{value:.15g}".replace(".", ",").replace("e", "E")
        return _iso(value) if isinstance(value, dt.date) else value

    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.writer(stream, delimiter=";", lineterminator="\r\n")
        writer.writerow(table.schema.names)
        writer.writerows([cell(row[name]) for name in table.schema.names] for row in table.rows)


def _r(table: Written, path: Path, separator: str, decimal: str) -> None:
    """As R writes it by `write.csv` and `write.csv2`: names of rows, all text in quotes, NA, TRUE and FALSE.

    Where NA is a category, gaps have to be empty (`na = ""`): that word has one meaning in a column.
    """
    words = [column.gap_words(typed=False) for column in table.schema.columns]
    gap = "NA" if all("NA" in each for each in words) else ""

    def quoted(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    def cell(value: Any) -> str:
        if value is None:
            return gap
        if isinstance(value, str):
            return quoted(value)
        if isinstance(value, bool):
            return str(value).upper()
        if isinstance(value, float):
            return f"{value:.15g}".replace(".", decimal)
        return _iso(value) if isinstance(value, dt.date) else str(value)

    lines = [separator.join(quoted(name) for name in ("", *table.schema.names))]
    for number, row in enumerate(table.rows, 1):
        lines.append(separator.join([quoted(str(number)), *(cell(row[name]) for name in table.schema.names)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")


def _by_hand(table: Written, path: Path) -> None:
    """As people type it: each word that a column declares, blanks, a plus, exponents, dates with zones."""

    def cell(column: Column, place: int, value: Any) -> str:
        if value is None:
            words = sorted(column.gap_words(typed=False))
            return words[place % len(words)]
        if isinstance(value, bool):
            words = [*((column.true if value else column.false) or ()), str(value), str(int(value))]
            return words[place % len(words)]
        if isinstance(value, int):
            return [f"{value}", f"{value:+}", f" {value} ", f"{value}.0", f"{value}e0"][place % 5]
        if isinstance(value, float):
            return [repr(value), f"{value:.17e}", f" {value!r}", f"{value:+.17g}"][place % 4]
        if isinstance(value, dt.datetime):
            moment = value.isoformat(sep="T")
            return moment if value.tzinfo else [moment, f"{moment}Z", f"{moment}+00:00"][place % 3]
        return value.isoformat() if isinstance(value, dt.date) else value

    stream = io.StringIO(newline="")
    writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
    writer.writerow(table.schema.names)
    for place, row in enumerate(table.rows):
        writer.writerow([cell(column, place, row[column.name]) for column in table.schema.columns])
    path.write_bytes(gzip.compress(stream.getvalue().encode()))


def _directory(table: Written, path: Path) -> None:
    """Parquet files of one row each."""
    path.mkdir()
    held = _arrow(table)
    for row in range(held.num_rows):
        pq.write_table(held.slice(row, 1), path / f"part-{row}.parquet")


FILES: Final[Mapping[str, Callable[[Written, Path], object]]] = {
    # With "\n" alone pandas leaves a lone "\r" in a cell without quotes, which everybody reads as two rows.
    "pandas.csv": lambda table, path: _pandas(table).to_csv(path, lineterminator="\r\n"),
    "pandas.csv.gz": lambda table, path: _nullable(table).to_csv(
        path, index=False, quoting=csv.QUOTE_NONNUMERIC
    ),
    "pandas.parquet": lambda table, path: _pandas(table).to_parquet(path),
    "polars.csv": lambda table, path: _polars(table).write_csv(path),
    "polars.tsv": lambda table, path: _polars(table).write_csv(path, separator="\t"),
    "polars.parquet": lambda table, path: _polars(table).write_parquet(path),
    "arrow.csv": lambda table, path: pacsv.write_csv(_arrow(table), path),
    "arrow.parquet": lambda table, path: pq.write_table(_arrow(table), path),
    "directory.parquet": _directory,
    "excel.csv": _excel,
    "r.csv": lambda table, path: _r(table, path, ",", "."),
    "r2.csv": lambda table, path: _r(table, path, ";", ","),
    "hand.csv.gz": _by_hand,
}
"""Files: by the name of the file, which says its writer and its format."""

_ROUNDED: Final = frozenset({"excel.csv", "r.csv", "r2.csv"})


def _kept(table: Written, place: Path) -> Path:
    """The file that a Python party keeps of a DataFrame."""
    path = place / "kept.parquet"
    keep_table(_nullable(table), path, DataColumns(schema=table.schema), what="data")
    return path


FRAMES: Final[Mapping[str, Callable[[Written, Path], object]]] = {
    "pandas": lambda table, _: _pandas(table),
    "pandas with nullable types": lambda table, _: _nullable(table),
    "polars": lambda table, _: _polars(table),
    "polars, a query": lambda table, _: _polars(table).lazy(),
    "arrow": lambda table, _: _arrow(table),
    "lists": lambda table, _: {name: [row[name] for row in table.rows] for name in table.schema.names},
    "dictionaries": lambda table, _: table.rows,
    "kept": _kept,
}
"""What is given in place of a file."""


def of_writer(table: Written, writer: str) -> Written:
    """The table that a writer can write: some have only 15 digits."""
    return _without_last_digits(table) if writer in _ROUNDED else table


def equal(found: Rows, expected: Rows, schema: Schema) -> bool:
    """Whether rows are the same; numbers with a scale to 13 digits."""
    logs = {column.name for column in schema.columns if column.scale is not None}
    return len(found) == len(expected) and all(
        math.isclose(ours[name], theirs[name], rel_tol=1e-13) if name in logs else ours[name] == theirs[name]
        for ours, theirs in zip(found, expected, strict=True)
        for name in schema.names
    )
