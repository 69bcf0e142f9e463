"""docs/report.md names every figure of a report."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from hushbid.report.curves import BASELINES, Curve, Quality
from hushbid.report.figures import Figures, SessionFacts, TranscriptFacts
from hushbid.report.incidents import Incident, Incidents
from hushbid.report.missing import Missing
from hushbid.report.owners import OwnerFigures
from hushbid.report.plots import STATE_NAMES
from hushbid.report.rounds import SHOWN_ROUNDS, CuratorSeries, RoundFigures, RoundMap
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")


def fields(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def section(title: str) -> str:
    found = re.search(rf"^### {re.escape(title)}\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S)
    assert found, f"no section {title}"
    return found[1]


def stated(title: str) -> set[str]:
    """The names in the first column of the table under a heading."""
    rows = re.findall(r"^\| (`[^|]+) \|", section(title), re.M)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("`session`", SessionFacts),
        ("`transcripts`", TranscriptFacts),
        ("`quality`", Quality),
        ("`rounds`", RoundFigures),
        ("`owners`", OwnerFigures),
    ],
    ids=["session", "transcripts", "quality", "rounds", "owners"],
)
def test_the_fields_of_a_part_are_there(title: str, kind: Any) -> None:
    assert stated(title) == fields(kind)


def test_every_part_is_there() -> None:
    parts = stated("The others") | {"session", "transcripts", "quality", "rounds", "owners"}
    assert parts == fields(Figures)


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("`rounds`", CuratorSeries),
        ("`rounds`", RoundMap),
        ("`quality`", Curve),
        ("The others", Incidents),
        ("The others", Incident),
        ("The others", Missing),
    ],
    ids=["curator", "map", "curve", "incidents", "incident", "missing"],
)
def test_what_is_within_a_part_is_there(title: str, kind: Any) -> None:
    assert fields(kind) <= set(re.findall(r"`(\w+)`", section(title)))


def test_the_letters_of_the_map_are_there() -> None:
    assert set(re.findall(r"`(\w|-)` ", section("`rounds`"))) == set(STATE_NAMES)


def test_the_limit_and_the_evaluation_s_keys_are_those_of_the_code() -> None:
    assert f"up to {SHOWN_ROUNDS:,} rounds" in PAGE
    assert all(f'"{key}"' in PAGE for key in BASELINES)
