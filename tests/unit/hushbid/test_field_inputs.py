"""Inputs of public reports, if they lie beside the repository: each ends well, or says what to do."""

from __future__ import annotations

import contextlib
import io
import runpy
from pathlib import Path

import pytest

from tests.conftest import ROOT

FIELD = ROOT.parent / "shared" / "field"


def said(name: str, place: Path) -> str:
    script = FIELD / f"{name}.py"
    if not script.is_file():
        pytest.skip(f"{script} is not there")
    output = io.StringIO()
    # Warnings are errors here, as in all tests.
    with contextlib.chdir(place), contextlib.redirect_stdout(output):
        runpy.run_path(str(script), run_name="__main__")
    assert "CRASH" not in output.getvalue()
    return output.getvalue()


def test_each_has_a_test() -> None:
    if not FIELD.is_dir():
        pytest.skip(f"{FIELD} is not there")
    assert {path.stem for path in FIELD.glob("*.py")} <= {"ames", "dependents", "newline", "frames"}


def test_na_is_a_category_of_one_column_and_a_gap_of_another(tmp_path: Path) -> None:
    assert "20 points." in said("ames", tmp_path)


def test_categories_stay_text_whatever_an_owner_has_of_them(tmp_path: Path) -> None:
    found = said("dependents", tmp_path)
    assert "20 points." in found
    assert "Error" not in found
    for value in ('"02134"', '"2020-01-01"', '"true"', '"12:30:00"'):
        assert value in found


def test_line_breaks_and_long_cells_are_read(tmp_path: Path) -> None:
    assert said("newline", tmp_path).count("20 points.") == 3


@pytest.mark.slow
def test_frames_of_all_libraries_are_taken_or_refused_in_words(tmp_path: Path) -> None:
    lines = [line for line in said("frames", tmp_path).splitlines() if line.startswith("REFUSED")]
    assert [line[8:24] for line in lines] == [
        "pandas datetime ", "pandas multiinde", "arrow batch read", "label datetime v", "label nan a: row",
    ]  # fmt: skip
