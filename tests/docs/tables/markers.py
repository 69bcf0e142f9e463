"""The places of a document's generated parts, and how each is rewritten.

A part is between ``<!-- generated: NAME -->`` and ``<!-- end -->``. Its function returns the whole text, or
the rows of a table. A row has the cells that follow from the code, and `OWN` for those that people write:
these, like the head, stay as they are. A row is recognised by its first cells, so its sentence moves with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

OWN: Final = None
"""A cell that people write. Cells after the last that a row gives are such cells too."""
TODO: Final = "TODO"
"""What stands in such a cell of a new row, until somebody writes it."""
_PART: Final = re.compile(r"(?<=^<!-- generated: )(.+?) -->\n(.*?)(?=^<!-- end -->$)", re.M | re.S)

Row: TypeAlias = Sequence[str | None]


class Table(NamedTuple):
    """The rows of a table."""

    rows: Iterable[Row]
    keys: int = 1
    """How many cells tell one row from another."""
    ordered: bool = True
    """Whether rows stand in this order; else in the page's, those that are new at the end."""
    chosen: bool = False
    """Whether the page has some of the rows only, in its order."""


Made: TypeAlias = Callable[[], Table | str]


def code(name: object) -> str:
    """A name in backquotes."""
    return f"`{name}`"


def codes(names: Iterable[object]) -> str:
    return ", ".join(map(code, names))


def either(names: Iterable[object]) -> str:
    *most, last = map(code, names)
    return f"{', '.join(most)} or {last}" if most else last


def first_cells(names: Iterable[object], *, ordered: bool = True) -> Table:
    """A row for each name."""
    return Table([(code(name),) for name in names], ordered=ordered)


def parts(text: str) -> dict[str, str]:
    """The generated parts of a page as they are, by name."""
    found = _PART.findall(text)
    assert len(dict(found)) == len(found), "a name stands there twice"
    return dict(found)


def written(text: str, made: dict[str, Made]) -> str:
    """The page with its parts rewritten."""
    return _PART.sub(lambda part: f"{part[1]} -->\n{renewed(part[2], made[part[1]]())}", text)


def renewed(part: str, made: Table | str) -> str:
    """A part from the code, with the cells that are the page's own."""
    if isinstance(made, str):
        return made
    head, rule, *lines = part.splitlines()
    width = len(_cells(head))
    there = {tuple(cells[: made.keys]): cells for cells in map(_cells, lines)}
    place = {key: number for number, key in enumerate(there)}
    rows = {tuple(map(str, row[: made.keys])): row for row in made.rows}
    order = list(rows) if made.ordered else sorted(rows, key=lambda key: place.get(key, len(place)))
    if made.chosen:
        order = [key for key in there if key in rows]
    found = [head, rule]
    for key in order:
        row, own = rows[key], there.get(key, [TODO] * width)
        cells = [
            *(kept if cell is OWN else cell for cell, kept in zip(row, own, strict=False)),
            *own[len(row) :],
        ]
        found.append("|" + "".join(f" {cell} |" if cell else " |" for cell in cells))
    return "\n".join(found) + "\n"


def _cells(line: str) -> list[str]:
    """The cells of a row; an escaped bar is part of its cell."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
