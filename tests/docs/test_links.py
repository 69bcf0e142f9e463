"""Links between documents lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "configs" / "README.md"])


def text_of(page: Path) -> str:
    """The page without code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings on the web."""
    headings = re.findall(r"^#+ (.+)$", text_of(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def broken(page: Path, text: str) -> list[str]:
    """The links of a page's text to missing files or headings."""
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if ":" in path:
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert broken(page, text_of(page)) == []


@pytest.mark.parametrize("link", ["nowhere.md", "design.md#no-such-heading", "#no-such-heading"])
def test_a_link_that_leads_nowhere_would_be_noticed(link: str) -> None:
    assert broken(ROOT / "docs" / "wire.md", f"see [there]({link})") == [link]


def test_headings_with_marks_have_the_anchors_that_links_use() -> None:
    assert "what-run-and-simulate-return" in anchors(ROOT / "docs" / "results.md")
    assert "target-and-summary" in anchors(ROOT / "docs" / "configuration.md")
