"""docs/errata.md cannot rot: every row names a test that shows it, and every test that is named exists."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.conftest import ROOT

TEXT = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)))
ROWS = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| where")]


@cache
def functions(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_test_that_the_errata_name_exists(path: str, name: str) -> None:
    assert name.startswith("test_")
    assert name in functions(path)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:50])
def test_every_row_is_shown_by_a_test(row: str) -> None:
    cells = row.strip("| ").split(" | ")
    assert len(cells) == 4
    one = r"`tests/[\w/]+\.py::\w+`"
    assert re.fullmatch(rf"{one}(, {one})*", cells[-1])


def test_every_demonstration_is_named() -> None:
    named = {name for path, name in NAMED if path == "tests/unit/project/test_errata.py"}
    there = {name for name in functions("tests/unit/project/test_errata.py") if name.startswith("test_")}
    assert named == there
