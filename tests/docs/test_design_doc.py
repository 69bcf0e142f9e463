"""docs/design.md has every section, and every paragraph by name, that the source cites as "DESIGN §n"."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.test_layout import project_files, pyproject, text_of

PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\d)\. [^\n]+\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
CITATION = re.compile(r'DESIGN\s+§(\d)(?:(?:\s+and\s+|,\s+)§(\d))*(?:,\s+"([^"]+)")?')


def citations(text: str) -> list[tuple[str, str]]:
    """(section, name of a paragraph or nothing) of each citation in a text."""
    found = []
    for match in CITATION.finditer(text):
        found += [(number, match[3] or "") for number in re.findall(r"§(\d)", match[0])]
    return found


CITED = sorted(
    {
        (str(path.relative_to(ROOT)), *citation)
        for path in project_files()
        if path.suffix in (".py", ".toml") and path != Path(__file__).resolve()
        for citation in citations(text_of(path))
    }
)


def test_the_sections_are_numbered_from_1_to_8() -> None:
    assert list(SECTIONS) == [str(number) for number in range(1, 9)]


@pytest.mark.parametrize(("path", "number", "name"), CITED)
def test_what_the_source_cites_is_there(path: str, number: str, name: str) -> None:
    assert number in SECTIONS, path
    if name:
        assert re.search(rf"\*\*{re.escape(name)}\.?\*\*", SECTIONS[number]), path


def test_the_source_cites_sections_and_paragraphs() -> None:
    assert len(CITED) > 20
    assert {name for _, _, name in CITED} > {"", "Exact scores", "No feedback"}


def floors(container: str) -> list[str]:
    """The floors of a package, as import-linter checks them."""
    contracts = pyproject()["tool"]["importlinter"]["contracts"]
    [layers] = [each["layers"] for each in contracts if each.get("containers") == [container]]
    return list(layers)


def test_the_floors_are_those_that_the_linter_checks() -> None:
    [drawn] = re.findall(r"```text\n(.*?)```", SECTIONS["5"], re.S)
    assert drawn.splitlines() == floors("hushbid") + [f"    {floor}" for floor in floors("hushbid.protocol")]


def test_every_package_has_a_line_in_the_table_of_rooms() -> None:
    table = "".join(re.findall(r"^\|.*\n", SECTIONS["5"], re.M))
    named = {name.strip("/").rpartition("/")[2] for name in re.findall(r"`([\w/]+/)`", table)}
    standing = {
        init.parent.name
        for place in (ROOT / "hushbid", ROOT / "protocol")
        for init in place.glob("*/__init__.py")
    }
    assert standing - named == set()
    assert len(standing) > 20


def test_a_citation_is_read_whole() -> None:
    assert citations('(DESIGN §3, "No feedback")') == [("3", "No feedback")]
    assert citations("the invariants (DESIGN §1 and §3).") == [("1", ""), ("3", "")]
    assert citations("DESIGN §9") == [("9", "")]
