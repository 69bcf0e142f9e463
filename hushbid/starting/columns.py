"""The columns of a new session from tables: kinds, bounds and categories, and which follow from rows."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tomli_w

from hushbid.protocol.data.cells import numbers_of
from hushbid.protocol.data.column import MEASURED, MOMENTS
from hushbid.protocol.data.csv_files import source_of
from hushbid.protocol.data.moments import moments_of
from hushbid.protocol.data.names import is_index
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.data.table_faults import ColumnFault, refusal
from hushbid.protocol.data.tables import has_codes, typed_by_values
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.tables.drafting import MOST_CATEGORIES, kind_of_values
from hushbid.tables.frames import ArrowTable, as_arrow

__all__ = ["Given", "Proposed", "given_bounds", "given_categories", "propose", "read_table"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ONE_TEXT: Final = "it has 1 different text"
_ONE_NUMBER: Final = "it has one value alone"
_MORE: Final = {_ONE_TEXT: "categories", _ONE_NUMBER: "bounds"}
"""The option that keeps a constant column, by why it is left out."""
_FEW: Final = 20
"""Rows from which an integer that never repeats is taken for an identifier."""


@dataclass(frozen=True)
class Given:
    """People's statements about columns, which are then not read off rows.

    Attributes:
        label, identifier: Columns that are not compared by; None: there are none.
        without: Columns that are left out.
        bounds: By name of a column.
        categories: By name of a column.
    """

    label: str | None
    identifier: str | None
    without: Collection[str]
    bounds: Mapping[str, tuple[float, float] | tuple[str, str]]
    categories: Mapping[str, tuple[str, ...]]

    @property
    def no_numbers(self) -> set[str | None]:
        """Columns whose cells need not be numbers, whatever they look like."""
        return {self.label, self.identifier, *self.without, *self.categories}


@dataclass(frozen=True)
class Proposed:
    """Columns of a session.

    Attributes:
        columns: Each as in ``[[columns]]``.
        read: For each column with any, what was read off rows: "bounds", "categories", "gaps".
        left_out: Why each other column was left out.
    """

    columns: tuple[dict[str, Any], ...]
    read: Mapping[str, tuple[str, ...]]
    left_out: Mapping[str, str]

    @property
    def schema(self) -> Schema:
        return Schema.of(self.columns)

    @property
    def constant(self) -> dict[str, str]:
        """The option that keeps each column that was left out for being constant."""
        return {name: _MORE[why] for name, why in self.left_out.items() if why in _MORE}

    def toml(self) -> str:
        """The columns as tables of a session file, each with a note of what was read off rows."""
        parts = []
        for column in self.columns:
            read = self.read.get(str(column["name"]))
            note = "" if read is None else f"  # {' and '.join(read)} follow from rows"
            parts.append(f"[[columns]]{note}\n{tomli_w.dumps(column)}")
        return "\n".join(parts)


def read_table(path: Path, given: Given) -> ArrowTable:
    """A CSV or Parquet file, its text typed by its values.

    Raises:
        DataError: It cannot be read, has no rows, or two of its columns have one name; or a number among
            others is too large.
    """
    cells = as_arrow(path, path.name)
    if cells.num_rows == 0:
        raise DataError(f"{path.name} holds no rows.", advice="Give a file with at least one row.")
    table = typed_by_values(cells, codes=True)
    if len(set(table.column_names)) != table.num_columns:
        raise DataError(
            f"{path.name} has two columns of one name.", advice="Give every column a name of its own."
        )
    _check_numbers(path, cells, table, given)
    return table


def _check_numbers(path: Path, cells: ArrowTable, typed: ArrowTable, given: Given) -> None:
    """Refuse a column of numbers that a few too large ones would make a column of texts.

    Where most are too large, they are codes, and such a column holds texts.
    """
    source = source_of(cells)
    if source is None:
        return
    faults = []
    for name in typed.column_names:
        column = typed.column(name)
        text = pa.types.is_string(column.type) and not has_codes(cells.column(name))
        if name in given.no_numbers or not text:
            continue
        found = numbers_of(column, decimal=source.dialect.decimal or ".")
        large = int(np.count_nonzero(found.inexact))
        if large and not found.wrong.any() and 2 * large <= len(column) - column.null_count:
            advice = f"Correct it: a number has 53 bits. Or leave the column out: `--without {name}`."
            what = "is a number that would be changed, as it has too many digits"
            faults.append(ColumnFault(name, what, advice, found.inexact))
    if faults:
        raise refusal(faults, path.name, typed.column_names, source)


def given_bounds(texts: Iterable[str]) -> dict[str, tuple[float, float] | tuple[str, str]]:
    """``NAME=LOW:HIGH`` of options, by name: numbers, or dates and times as text.

    Raises:
        ConfigError: Anything else.
    """
    found: dict[str, tuple[float, float] | tuple[str, str]] = {}
    for text in texts:
        name, _, ends = text.rpartition("=")
        parts = ends.split(":")  # times contain colons of their own
        low, high = (":".join(half) for half in (parts[: len(parts) // 2], parts[len(parts) // 2 :]))
        if name and _is_range(low, high, float):
            found[name] = float(low), float(high)
        elif name and _is_range(low, high, datetime.fromisoformat):
            found[name] = low, high
        else:
            raise ConfigError(
                f"--bounds: {text!r} is no range.",
                advice="Write it as in age=0:120, and for dates as in born=1900-01-01:2020-12-31.",
            )
    return found


def _is_range(low: str, high: str, read: Callable[[str], Any]) -> bool:
    try:
        lower, upper = read(low), read(high)
    except ValueError:
        return False
    return bool(lower < upper) and not {str(lower), str(upper)} & {"-inf", "inf"}


def given_categories(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """``NAME=A,B,C`` of options, quoted as in a CSV file, by name; raises `ConfigError` for anything else."""
    found = {}
    for text in texts:
        name, _, listed = text.partition("=")
        try:
            values = tuple(
                each.strip() for line in csv.reader([listed], skipinitialspace=True) for each in line
            )
        except csv.Error:  # a line break
            values = ()
        if not name or not all(values) or not 1 < len(set(values)) == len(values):
            raise ConfigError(
                f"--categories: {text!r} is no list.",
                advice="Write it as in sort=a,b,c, and a text with a comma as in 'sort=a,\"b, c\"'.",
            )
        found[name] = values
    return found


def propose(tables: Mapping[str, ArrowTable], given: Given) -> Proposed:
    """Columns that cover the values of all tables.

    Args:
        tables: By name, for messages; the first determines the columns and their order.

    Raises:
        ConfigError: A named column is not in the first table, or has no use for an option that is given.
        DataError: A table lacks a column, or has values of another kind in it; or no column is left.
    """
    first = next(iter(tables))
    names = tables[first].column_names
    named = [each for each in (given.label, given.identifier) if each is not None]
    for name in (*named, *given.without, *given.bounds, *given.categories):
        if name not in names:
            raise ConfigError(f"{first} has no column {name!r}.", advice=f"It has {', '.join(names)}.")
    for name in named:
        if name in given.bounds or name in given.categories:
            raise ConfigError(f"Rows are not compared by {name!r}.", advice="Give no other option for it.")
    columns, read, left_out = [], {}, {}
    for name in names:
        if name in named:
            continue
        values, found, why = _column(name, tables, given)
        if values is None:
            left_out[name] = why
            continue
        columns.append(values)
        if found:
            read[name] = found
    if not columns:
        raise DataError(
            f"{first} has no column to compare rows by.",
            advice="; ".join(f"{name}: {why}" for name, why in left_out.items()) or "Name another table.",
        )
    unused = (given.bounds.keys() | given.categories.keys()) & left_out.keys()
    if unused:
        name = min(unused)
        raise ConfigError(f"{name!r} is left out: {left_out[name]}.", advice="Give no other option for it.")
    made = Proposed(tuple(columns), read, left_out)
    _check_fit(made.schema, tables)
    return made


def _column(
    name: str, tables: Mapping[str, ArrowTable], given: Given
) -> tuple[dict[str, Any] | None, tuple[str, ...], str]:
    """A column, what was read off rows for it, and why it is left out if it is."""
    if name in given.without:
        return None, (), "it was to be left out"
    if is_index(name):
        return None, (), "it is an index written by pandas"
    parts = _parts(name, tables)
    kind = "category" if name in given.categories else _kind(name, dict(zip(tables, parts, strict=True)))
    if kind is None:
        return None, (), "its values have no kind of column here: `hushbid schema draft` knows images"
    if name not in given.bounds and _is_identifier(kind, parts):
        return None, (), "no value stands twice, as in an identifier: `--identifier` names one"
    values: dict[str, Any] = {"name": name, "kind": kind}
    read: list[str] = []
    if name in given.bounds and kind not in MEASURED:
        raise ConfigError(
            f"--bounds: column {name!r} is of kind {kind}, which has none.", advice="Leave it out."
        )
    if kind in MEASURED:
        ends = given.bounds.get(name) or _ends(kind, parts)
        if ends is None:
            return None, (), _ONE_NUMBER
        if isinstance(ends[0], str) is not (kind in MOMENTS):
            form = f"{name}=1900-01-01:2020-12-31" if kind in MOMENTS else f"{name}=0:120"
            raise ConfigError(
                f"--bounds: column {name!r} is of kind {kind}, and {ends[0]} is not.",
                advice=f"Write it as in {form}.",
            )
        values["lower"], values["upper"] = ends
        read += [] if name in given.bounds else ["bounds"]
    elif kind == "category":
        told = given.categories.get(name)
        found = told or _texts(parts)
        if told is None and not 1 < len(found) <= MOST_CATEGORIES:
            return None, (), _ONE_TEXT if len(found) == 1 else f"it has {len(found)} different texts"
        values["categories"] = list(found)
        read += [] if told else ["categories"]
    if any(bool(pc.any(pc.is_null(part, nan_is_null=True)).as_py()) for part in parts):
        values["missing"] = _filler(values)
        read.append("gaps")
    return values, tuple(read), ""


def _kind(name: str, parts: Mapping[str, pa.ChunkedArray]) -> str | None:
    """The kind that the tables agree on; None: there is none."""
    kinds = {table: found for table, part in parts.items() if (found := kind_of_values(part)) is not None}
    different = set(kinds.values())
    if different == {"integer", "number"}:
        return "number"
    if len(different) > 1:
        tables = "; ".join(
            f"{kind} in {', '.join(table for table in kinds if kinds[table] == kind)}"
            for kind in sorted(different)
        )
        raise DataError(
            f"The tables have values of different kinds in {name!r}: {tables}.",
            advice=f"Save it as one kind everywhere, or leave it out: `--without {name}`.",
        )
    return None if not different or different == {"image"} else different.pop()


def _texts(parts: list[Any]) -> tuple[str, ...]:
    return tuple(sorted({str(each) for part in parts for each in pc.unique(part.drop_null()).to_pylist()}))


def _parts(name: str, tables: Mapping[str, ArrowTable]) -> list[Any]:
    parts = []
    for table, held in tables.items():
        if name not in held.column_names:
            raise DataError(
                f"{table} has no column {name!r}.",
                advice=f"Add it, or leave it out: `--without {name}`.",
            )
        parts.append(held.column(name))
    return parts


def _is_identifier(kind: str, parts: list[Any]) -> bool:
    return kind == "integer" and all(
        len(part) >= _FEW and len(pc.unique(part)) == len(part) for part in parts
    )


def _ends(kind: str, parts: list[Any]) -> tuple[Any, Any] | None:
    """Bounds beyond all values, at round numbers, so that no row's own value is in a public file."""
    if kind in MOMENTS:
        found = [moments_of(part.drop_null()).microseconds for part in parts]
        years = [
            (_EPOCH + timedelta(microseconds=int(end))).year
            for each in found
            if len(each)
            for end in (each.min(), each.max())
        ]
        if not years:
            return None
        lower, upper = f"{min(years):04}-01-01", f"{max(years) + 1:04}-01-01"
        return (lower, upper) if kind == "date" else (f"{lower}T00:00:00", f"{upper}T00:00:00")
    numbers = [part if pa.types.is_integer(part.type) else part.cast(pa.float64()) for part in parts]
    numbers = [each.filter(pc.is_finite(each)) for each in numbers]
    ends = [(pc.min(each).as_py(), pc.max(each).as_py()) for each in numbers if len(each)]
    if not ends:
        return None
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    return None if low == high else _rounded(low, high, whole=kind == "integer")


def _rounded(low: float, high: float, *, whole: bool) -> tuple[float, float]:
    """The next multiples of half the range's power of ten, outwards."""
    step = 10.0 ** math.floor(math.log10(high - low)) / 2.0
    step = max(1.0, math.floor(step)) if whole else step
    places = max(0, 2 - math.floor(math.log10(step)))
    lower = round(math.floor(low / step) * step, places)
    upper = round(math.ceil(high / step) * step, places)
    return (int(lower), int(upper)) if whole else (lower, upper)


def _filler(values: Mapping[str, Any]) -> Any:
    """What a gap stands for: the middle of public bounds, or a category of its own."""
    if values["kind"] == "category":
        return "own"
    if values["kind"] == "boolean":
        return False
    if isinstance(values["lower"], str):
        return values["lower"]
    middle = (values["lower"] + values["upper"]) / 2
    return round(middle) if values["kind"] == "integer" else middle


def _check_fit(schema: Schema, tables: Mapping[str, ArrowTable]) -> None:
    """Refuse tables that do not fit people's statements about columns."""
    for name, table in tables.items():
        try:
            schema.encode(table, name=name)
        except DataError as error:
            raise DataError(
                error.what,
                advice=f"{error.advice} Here: wider --bounds NAME=LOW:HIGH, all --categories NAME=A,B, or "
                "leave the column out with --without NAME.",
            ) from None
