"""The generated tables of the documents are what the code makes of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hushbid.protocol.machine.base import Machine, TransitionTable, fired, received
from hushbid.protocol.wire.messages import Hello
from tests.conftest import ROOT
from tests.docs.tables.diagrams import mermaid
from tests.docs.tables.markers import OWN, TODO, Table, parts, renewed, written
from tests.docs.tables.registry import PAGES

PARTS = {page: parts((ROOT / page).read_text(encoding="utf-8")) for page in PAGES}
TABLE = "| key | default | |\n|---|---|---|\n| `a` | 1 | first \\| last |\n| `b` | 2 | |\n"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_the_parts_that_are_made_for_it(page: str) -> None:
    assert PARTS[page].keys() == PAGES[page].keys()


@pytest.mark.parametrize(("page", "name"), [(page, name) for page, found in PARTS.items() for name in found])
def test_a_part_is_what_the_code_makes(page: str, name: str) -> None:
    there = PARTS[page][name]
    assert there == renewed(there, PAGES[page][name]()), "`make docs` writes it anew"
    assert TODO not in there


def test_pages_without_generated_parts_have_no_marker() -> None:
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")}
    assert pages > PAGES.keys()
    others = {*pages, "README.md"} - PAGES.keys()
    assert not [page for page in others if "<!-- generated" in (ROOT / page).read_text("utf-8")]


def tables_twice(text: str) -> list[str]:
    """Handwritten tables, by their first lines, that occur in a text more than once."""
    written_by_people = re.sub(r"^<!-- generated.*?^<!-- end -->$", "", text, flags=re.M | re.S)
    tables = re.findall(r"(?:^\|.*\n){3,}", written_by_people, re.M)
    return sorted({table.splitlines()[0] for table in tables if tables.count(table) > 1})


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_no_table_stands_on_a_page_twice(page: Path) -> None:
    assert tables_twice(page.read_text(encoding="utf-8")) == []


def test_a_table_that_stands_twice_would_be_noticed() -> None:
    assert tables_twice(f"before\n\n{TABLE}\n{TABLE}") == ["| key | default | |"]
    assert tables_twice(f"{TABLE}\n{TABLE.replace('| 1 |', '| 2 |')}") == []
    assert tables_twice(f"<!-- generated: x -->\n{TABLE}<!-- end -->\n" * 2) == []


def test_pages_written_twice_stay_as_they_are() -> None:
    for page, made in PAGES.items():
        once = written((ROOT / page).read_text(encoding="utf-8"), made)
        assert written(once, made) == once


def test_cells_of_the_page_stay_with_their_row_and_the_others_are_made() -> None:
    made = Table([("`b`", "3"), ("`c`", "4"), ("`a`", OWN)])
    assert renewed(TABLE, made).splitlines()[2:] == [
        "| `b` | 3 | |",
        f"| `c` | 4 | {TODO} |",
        "| `a` | 1 | first \\| last |",
    ]


def test_rows_may_stand_in_the_order_of_the_page() -> None:
    made = Table([("`c`", "4", ""), ("`b`", "2"), ("`a`", "1")], ordered=False)
    assert renewed(TABLE, made) == TABLE + "| `c` | 4 | |\n"


def test_only_what_is_between_the_markers_is_written() -> None:
    page = f"before\n\n<!-- generated: x -->\n{TABLE}<!-- end -->\n\nafter\n"
    assert parts(page) == {"x": TABLE}
    assert written(page, {"x": lambda: "other\n"}) == page.replace(TABLE, "other\n")


def test_a_changed_table_changes_the_diagram() -> None:
    def on_hello(machine: Machine, peer: str, hello: Hello) -> None: ...

    def on_enrolment_over(machine: Machine) -> None: ...

    small: TransitionTable[Machine] = TransitionTable(
        phases=("a", "b"),
        rows=(*received("a", Hello, on_hello, "a", "b"), *fired("a", "enrolment", on_enrolment_over, "b")),
    )
    assert mermaid(small).splitlines() == [
        "stateDiagram-v2",
        "    [*] --> a",
        "    a --> a: received hello",
        "    a --> b: received hello, timer enrolment",
        "    b --> [*]",
    ]
