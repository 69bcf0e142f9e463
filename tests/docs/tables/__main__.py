"""Rewrite the generated tables of all documents: `make docs`."""

from __future__ import annotations

from tests.conftest import ROOT
from tests.docs.tables.markers import TODO, written
from tests.docs.tables.registry import PAGES

for name, made in PAGES.items():
    page = ROOT / name
    before = page.read_text(encoding="utf-8")
    after = written(before, made)
    page.write_text(after, encoding="utf-8")
    if after != before:
        print(f"{name} is written anew." + (f" Write what it has {TODO} for." if TODO in after else ""))
