"""Labels that are amounts, as in a regression: there is no accuracy, and no class share."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from hushbid.consumer.appraisal import Judge, Judgement
from hushbid.consumer.cli import quality_lines
from hushbid.consumer.downstream import no_classes
from hushbid.consumer.label_part import label_part
from hushbid.consumer.own_figures import LabelShares, Unbought
from hushbid.protocol.data import Dataset
from tests.unit.consumer.test_own_figures import entry, figures, points

RNG = np.random.default_rng(5)
POINTS = RNG.random((60, 2))
AMOUNTS = np.round(100 * POINTS[:, 0] + 30 * RNG.random(60), 1)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.arange(21), True),
        (np.arange(20), False),
        ([1.5, 2.5, 3.5], True),
        ([1.0, 2.0, 3.0], False),
        ([0.5, 1.5] * 20, False),
        ([f"P{row}" for row in range(21)], True),
        (["a", "b"] * 20, False),
        ([*range(21), *[None] * 40], True),
        ([None, None], False),
        ([], False),
    ],
)
def test_labels_of_which_most_are_different_are_no_classes(labels: list[float], expected: bool) -> None:
    assert no_classes(labels) is expected


def test_amounts_are_judged_by_no_classifier_and_a_sentence_says_why() -> None:
    judge = Judge(POINTS, 1.0, test=(POINTS[:30], AMOUNTS[:30]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        judgement = judge.judge(POINTS[30:], AMOUNTS[30:])
    assert judgement.weighted is not None
    assert (judgement.plain.accuracy, judgement.weighted.quality.accuracy) == (None, None)
    assert judgement.plain.mmd2_test is not None
    found = judgement.as_json()
    assert "no accuracy" in found["labels_why"]
    assert "--estimator Ridge" in quality_lines(judgement)["labels"]
    assert Judgement.from_json(found) == judgement


def test_whole_numbers_that_a_session_calls_amounts_have_no_accuracy_and_a_model_of_amounts() -> None:
    scores = np.rint(9.0 * POINTS[:, 0]).astype(np.int64)
    own, bought, labels = scores[:30], POINTS[30:], scores[30:]
    judge = Judge(POINTS[:30], 1.0, test=(POINTS[:30], own), wanted_labels=own, amounts=True)
    found, matching = judge.weighed(judge.quality(bought, labels), bought, labels)
    assert found.plain.accuracy is None
    assert "no accuracy" in found.as_json()["labels_why"]
    assert judge.model_figures(bought, labels, matching)[0].metric == "r2"
    part = label_part(labels, own, amounts=True)
    assert part is not None
    assert part.amounts is not None
    by_values = replace(judge, amounts=None)
    assert by_values.model_figures(bought, labels, matching)[0].metric == "accuracy"


def test_bought_labels_of_many_kinds_warn_nobody_where_the_test_points_have_classes() -> None:
    judge = Judge(POINTS, 1.0, test=(POINTS[:30], np.arange(30) % 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert judge.judge(POINTS[30:], np.arange(30)).plain.accuracy is not None


def test_amounts_have_no_shares_and_no_class_that_is_most_bought() -> None:
    rows = points(0.8, 40)
    found = figures(
        [entry("alpha", row, 0.7 + 0.2 * number) for number, row in enumerate(points(0.8, 30))],
        validation=Dataset("validation", rows, np.linspace(0.5, 9.7, 40)),
        test=Dataset("test", rows, np.linspace(0.5, 9.7, 40)),
    )
    assert found.baselines == Unbought()
    assert (found.label_shares, found.label_shares.line(10)) == (LabelShares(), "")
    assert found.by_owner, "what owners added is told all the same"
