"""docs/report.md names every figure of a report."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from hushbid.report.curves import BASELINES, Curve, QualityCurves
from hushbid.report.figures import ReportFigures, SessionFacts, TranscriptFacts
from hushbid.report.incidents import Incident, Incidents
from hushbid.report.missing import Missing
from hushbid.report.own_rows import Image
from hushbid.report.owners import OwnerFigures
from hushbid.report.pictures import (
    BARS,
    MAP_POINTS,
    MOST_COLUMNS,
    MOST_WORDS,
    Distribution,
    Pictures,
    PrincipalMap,
    Sheet,
    WeightFigures,
)
from hushbid.report.plots import STATE_NAMES
from hushbid.report.rounds import SHOWN_ROUNDS, CuratorSeries, RoundFigures, RoundMap
from tests.docs.pages import Page, names_in

PAGE = Page("docs/report.md")


def fields(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("`session`", SessionFacts),
        ("`transcripts`", TranscriptFacts),
        ("`quality`", QualityCurves),
        ("`rounds`", RoundFigures),
        ("`owners`", OwnerFigures),
    ],
    ids=["session", "transcripts", "quality", "rounds", "owners"],
)
def test_the_fields_of_a_part_are_there(title: str, kind: Any) -> None:
    assert set(PAGE.first_names(title)) == fields(kind)


def test_the_fields_of_the_pictures_are_there() -> None:
    assert set(PAGE.first_names("`pictures`")) == fields(Pictures) - {"pixels"}


def test_the_limits_of_pictures_are_those_of_the_code() -> None:
    told = PAGE.section("Pictures of what was bought")
    for limit in (
        f"the {MOST_COLUMNS} columns that differ most",
        f"{BARS} bars between",
        f"the {MOST_WORDS - 1} most wanted words",
        f"{MAP_POINTS:,} of each kind",
    ):
        assert limit in told


def test_every_part_is_there() -> None:
    parts = {*PAGE.first_names("The others")} | {"session", "transcripts", "quality", "rounds", "owners"}
    assert parts == fields(ReportFigures)


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("`rounds`", CuratorSeries),
        ("`rounds`", RoundMap),
        ("`quality`", Curve),
        ("`pictures`", Image),
        ("`pictures`", Sheet),
        ("`pictures`", Distribution),
        ("`pictures`", PrincipalMap),
        ("`pictures`", WeightFigures),
        ("The others", Incidents),
        ("The others", Incident),
        ("The others", Missing),
    ],
    ids=[
        "curator",
        "map",
        "curve",
        "image",
        "sheet",
        "distribution",
        "principal",
        "weights",
        "incidents",
        "incident",
        "missing",
    ],
)
def test_what_is_within_a_part_is_there(title: str, kind: Any) -> None:
    assert fields(kind) <= set(names_in(PAGE.section(title)))


def test_the_letters_of_the_map_are_there() -> None:
    assert {name for name in names_in(PAGE.section("`rounds`")) if len(name) == 1} == set(STATE_NAMES)


def test_the_limit_and_the_evaluation_s_keys_are_those_of_the_code() -> None:
    assert f"up to {SHOWN_ROUNDS:,} rounds" in PAGE.text
    assert all(f'"{key}"' in PAGE.text for key in BASELINES)
