"""docs/contributing.md names files, verbs and names that there are."""

from __future__ import annotations

import re

import pytest
from typer.main import get_command

from hushbid.cli.app import app
from tests.conftest import ROOT

TEXT = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`]+)`", TEXT)
WORDS = {word.rstrip("/") for code in CODE for word in code.split() if "NAME" not in word}
PATHS = sorted(word for word in WORDS if re.fullmatch(r"[\w.]+(/[\w.]+)+", word))


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_is_named_is_there(path: str) -> None:
    assert (ROOT / path).exists()


def test_there_are_paths() -> None:
    assert len(PATHS) > 30


def test_a_verb_that_is_named_is_there() -> None:
    named = [code.split()[1:3] for code in CODE if code.startswith("hushbid ") and code != "hushbid --help"]
    assert len(named) > 8
    verbs = get_command(app).commands  # type: ignore[attr-defined]
    for verb, *more in named:
        below = getattr(verbs[verb], "commands", None)
        assert below is None or more[0] in below


def test_a_name_that_is_said_to_be_in_a_file_is_there() -> None:
    found = re.findall(r"`([A-Z_]+)` \(`([\w/]+\.py)`\)", TEXT)
    found += [(name, path) for path, name in re.findall(r"`([\w/]+\.py)`, `(\w+)`", TEXT)]
    found += re.findall(r"`(\w+)` in `([\w/]+\.py)`", TEXT)
    assert len(found) >= 6
    for name, path in found:
        assert re.search(rf"\b{name}\b", (ROOT / path).read_text(encoding="utf-8"))
