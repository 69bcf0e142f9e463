"""``[labels]`` of a session file: its values, its refusals, and that no error shows a label."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hushbid.protocol.config.labels import reading
from hushbid.protocol.config.meaning import encoded_meaning
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import DataColumns, Dataset
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.session.session import open_session
from tests.support.session_files import load

CLASSES: dict[str, Any] = {"labels.classes": [3, 4]}
AMOUNTS: dict[str, Any] = {"labels.lower": 0.0, "labels.upper": 10.0}


def test_a_session_without_the_table_means_what_it_meant() -> None:
    file = load({})
    assert b"labels" not in encoded_meaning(file.in_force(), file.owners)
    assert open_session(file).space.labels is None
    file.check_labels(rows(None))
    file.check_wanted_labels(rows(None))


def test_all_of_it_is_in_the_digest_however_a_number_is_written() -> None:
    made = [
        load(CLASSES),
        load({"labels.classes": [4, 3]}),
        load({"labels.classes": ["3", "4"]}),
        load(CLASSES | {"labels.similarity": 0.4}),
        load(AMOUNTS),
        load(AMOUNTS | {"labels.upper": 11.0}),
        load({}),
    ]
    assert len({file.digest() for file in made}) == len(made)
    assert load(CLASSES | {"labels.similarity": 0.5}).digest() == made[0].digest()
    assert load({"labels.lower": 0, "labels.upper": 10}).digest() == made[4].digest()


@pytest.mark.parametrize("declared", [True, False])
def test_rows_are_not_compared_by_the_label_that_a_model_learns(declared: bool) -> None:
    schema = Schema.of([{"name": name, "kind": "number", "lower": 0, "upper": 1} for name in ("a", "b")])
    columns = DataColumns(features=None if declared else ("a", "b"), label="c")
    given = schema if declared else None
    assert reading(columns, given, None, None, (0.0, 1.0)).label == "c"
    with pytest.raises(ConfigError, match="Column 'b' is the label, and rows are compared by it") as caught:
        reading(replace(columns, label="b"), given, None, None, (0.0, 1.0))
    assert "Leave it out of the columns" in caught.value.advice


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"labels.similarity": 0.5}, "either classes, or lower and upper"),
        (CLASSES | AMOUNTS, "either classes, or lower and upper"),
        ({"labels.lower": 0.0}, "both lower and upper"),
        ({"labels.classes": [3]}, "one only"),
        ({"labels.classes": [3, 4, 3]}, "a class twice"),
        ({"labels.classes": [3, "4"]}, "all whole numbers or all text"),
        ({"labels.classes": [3.5, 4.5]}, "labels.classes.*number 1 of the list is neither.*lower and upper"),
        ({"labels.classes": [True, False]}, "labels.classes.*whole number of 64 bits or text"),
        ({"labels.classes": [0, 2**63]}, "labels.classes.*number 2 of the list is neither"),
        ({"labels.lower": 1.0, "labels.upper": 1.0}, "no range"),
        (CLASSES | {"labels.similarity": 0.0}, "labels.similarity"),
        (CLASSES | {"labels.similarity": 1.0}, "labels.similarity"),
        (CLASSES | {"labels.strength": 0.5}, "unknown key"),
        (CLASSES | {"features.map": "lsh", "features.dimension": 8}, "no place for labels"),
    ],
)
def test_what_is_refused(values: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        open_session(load(values))


@pytest.mark.parametrize(("values", "amounts"), [({}, None), (CLASSES, False), (AMOUNTS, True)])
def test_whether_labels_are_amounts_is_what_the_section_says(
    values: dict[str, Any], amounts: bool | None
) -> None:
    assert load(values).labels_are_amounts is amounts


def rows(labels: list[Any] | None) -> Dataset:
    """Three rows, None where one has no label."""
    features = np.zeros((3, 2))
    if labels is None:
        return Dataset.from_arrays("rows.csv", features)
    there = np.array([label is not None for label in labels])
    known = next(label for label in labels if label is not None)
    values = np.array([known if label is None else label for label in labels])
    return Dataset.from_arrays("rows.csv", features, values, labelled=there)


@pytest.mark.parametrize(
    ("section", "labels", "expected"),
    [
        (CLASSES, None, r"rows\.csv has no labels, and labels have a part in the choice"),
        (CLASSES, [3, None, 4], r"rows\.csv: row 1 .*has no label"),
        (CLASSES, [3, 4, 951], r"rows\.csv: row 2 .*no class of the session's list"),
        (CLASSES, ["3", "4", "4"], r"rows\.csv: row 0 .*no class"),
        (CLASSES, [0.951, 3.0, 4.0], r"rows\.csv: row 0 .*no class"),
        (AMOUNTS, [1.0, 951.0, 2.0], r"rows\.csv: row 1 .*outside of the range"),
        (AMOUNTS, ["951", "1", "2"], r"rows\.csv: row 0 .*text where the session has amounts"),
    ],
)
def test_an_owner_whose_labels_are_not_those_of_the_choice(
    section: dict[str, Any], labels: list[Any] | None, expected: str
) -> None:
    with pytest.raises(DataError, match=expected) as caught:
        load(section).check_labels(rows(labels))
    assert "951" not in str(caught.value)
    assert (
        "Or leave [labels] out" in caught.value.advice
        or "labels.classes" in str(caught.value)
        or ("labels.lower" in caught.value.advice)
    )


def test_a_consumer_may_lack_labels_of_some_rows_but_not_of_all() -> None:
    file: SessionFile = load(CLASSES)
    file.check_wanted_labels(rows([3, None, None]))
    file.check_wanted_labels(rows([3, 3, 3]))
    with pytest.raises(DataError, match="has no labels"):
        file.check_wanted_labels(rows(None))
    with pytest.raises(DataError, match=r"row 2 .*no class"):
        file.check_wanted_labels(rows([3, None, 5]))
