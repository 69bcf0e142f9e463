"""Kept results are read back as records; what is none is refused, by name and without its content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hushbid.protocol.errors import DataError
from hushbid.results.files import read_result
from tests.conftest import ROOT

RECORDED = ROOT / "tests" / "golden" / "results"


@pytest.mark.parametrize("kind", ["run", "simulate", "consumer", "curator", "owner"])
def test_what_was_printed_is_read_back(kind: str) -> None:
    path = RECORDED / f"{kind}.json"
    found = read_result(path, session="digits")
    values, again = json.loads(path.read_text(encoding="utf-8")), found.as_json()
    assert gained(again, values) == values


def gained(found: Any, before: Any) -> Any:
    """What stands in both, where the pinned one has fewer fields."""
    if isinstance(found, dict) and isinstance(before, dict):
        return {name: gained(found.get(name), value) for name, value in before.items()}
    return found


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"role": "cook"}', '{"role": []}', '{"role": "owner"}', "\\xff"]
)
def test_what_is_no_result_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(DataError, match="is not the result of a session"):
        read_result(path)


def test_another_session_s_and_a_missing_one_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is the result of digits, and not of mnist"):
        read_result(RECORDED / "run.json", session="mnist")
    with pytest.raises(DataError, match="cannot read the result"):
        read_result(tmp_path / "none.json")
