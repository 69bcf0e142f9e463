"""A document's text under a heading, for checks of parts that are not generated (`tests.docs.tables`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.conftest import ROOT


@dataclass(frozen=True)
class Page:
    """A document, by its path from the root."""

    path: str

    @property
    def text(self) -> str:
        return (ROOT / self.path).read_text(encoding="utf-8")

    @property
    def on_one_line(self) -> str:
        """The text on one line, for phrases that may be broken anywhere."""
        return " ".join(self.text.split())

    def section(self, title: str, *, below: bool = False) -> str:
        """The text under a heading up to the next heading; optionally with the sections below it."""
        found = re.search(rf"^(#+) {re.escape(title)}\n", self.text, re.M)
        assert found, f"no section {title}"
        level = f"{{1,{len(found[1])}}}" if below else "+"
        return re.split(rf"^#{level} ", self.text[found.end() :], maxsplit=1, flags=re.M)[0]

    def rows(self, title: str, *, below: bool = False) -> list[list[str]]:
        """The cells of the tables under a heading without their heads; an escaped bar is part of its cell."""
        lines = re.findall(r"^\|.*\|$", self.section(title, below=below), re.M)
        rules = [number for number, line in enumerate(lines) if re.fullmatch(r"\|(-+\|)+", line)]
        body = [line for number, line in enumerate(lines) if number not in rules and number + 1 not in rules]
        return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in body]

    def first_names(self, title: str) -> list[str]:
        """The names in the first cells of the tables under a heading."""
        return [name for row in self.rows(title) for name in names_in(row[0])]


def names_in(text: str) -> list[str]:
    """The names between backquotes in a text."""
    return re.findall(r"`([\w./-]+)`", text)
