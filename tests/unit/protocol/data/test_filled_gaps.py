"""Gaps that a session's columns fill are counted for their owner, and named with their value."""

from __future__ import annotations

from pathlib import Path

from hushbid.plan.verdict import gaps_filled
from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.data.column import Column
from hushbid.protocol.data.dataset import Changes, Filled
from hushbid.protocol.data.schema import Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="number", lower=0.0, upper=100.0, missing=50.0),
        Column(name="shop", kind="category", categories=("a", "b"), missing="own"),
        Column(name="size", kind="number", lower=0.0, upper=9.0),
    )
)


def table(place: Path, text: str) -> Path:
    path = place / "rows.csv"
    path.write_text(f"age,shop,size\n{text}")
    return path


def test_filled_gaps_are_counted_by_column_and_say_with_what(tmp_path: Path) -> None:
    path = table(tmp_path, "1,a,1\n,,2\n,b,3\n7,a,4\n")
    found = load_dataset(path, DataColumns(schema=SCHEMA))
    assert found.changed.filled == {"age": Filled(2, 50.0), "shop": Filled(1, "own")}
    assert not found.changed.outside  # so that nothing of it is logged
    said = "filled 2 gaps in column 'age' with 50.0, 1 gap in column 'shop' with a category of its own"
    assert found.changed.said == said
    assert gaps_filled({"north": [found]}) == [f"north, rows.csv: {said}."]
    assert Changes.from_json(found.changed.as_json()) == found.changed


def test_clipping_beside_them_keeps_the_count(tmp_path: Path) -> None:
    path = table(tmp_path, ",a,1\n3,b,99\n")
    found = load_dataset(path, DataColumns(schema=SCHEMA, outside="clip"))
    assert found.changed.clipped == {"size": 1}
    assert found.changed.filled == {"age": Filled(1, 50.0)}
    assert found.changed.outside


def test_without_gaps_nothing_is_said(tmp_path: Path) -> None:
    found = load_dataset(table(tmp_path, "1,a,1\n"), DataColumns(schema=SCHEMA))
    assert found.changes is None
    assert gaps_filled({"north": [found]}) == []
