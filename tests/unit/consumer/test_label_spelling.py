"""An accuracy of 0 that comes from the labels' spelling is explained."""

from __future__ import annotations

import numpy as np
import pytest

from hushbid.consumer.appraisal import Judge, Judgement
from hushbid.consumer.cli import quality_lines
from hushbid.consumer.downstream import Labels, why_none_agree

SAME = [
    pytest.param(np.array([7351, 2]), np.array(["7351", "2"]), id="a number and text"),
    pytest.param(np.array(["7351", "2"]), np.array(["7351.0", "2.0"]), id="two texts of one number"),
    pytest.param(np.array(["Cat", "Dog"]), np.array(["cat", "dog"]), id="capitals"),
]
OTHER = [
    pytest.param(np.array([1, 2]), np.array([1.0, 3.0]), id="the same in Python"),
    pytest.param(np.array([1, 2]), np.array([3, 4]), id="other classes"),
    pytest.param(np.array(["1", "2"]), np.array(["2", "2.0"]), id="one in common"),
    pytest.param([None, None], np.array(["1"]), id="none on one side"),
]


@pytest.mark.parametrize(("learned", "judged"), SAME)
def test_labels_that_differ_in_how_they_are_written_alone_are_said_to(
    learned: Labels, judged: Labels
) -> None:
    said = why_none_agree(learned, judged)
    assert "how they are written" in said
    assert "7351" not in said, "no label is told"


@pytest.mark.parametrize(("learned", "judged"), OTHER)
def test_other_labels_are_not(learned: Labels, judged: Labels) -> None:
    assert why_none_agree(learned, judged) == ""


def test_a_judgement_says_it_to_programs_and_people() -> None:
    points = np.linspace(0.0, 1.0, 8).reshape(4, 2)
    judge = Judge(points, 1.0, test=(points, np.array(["0", "1", "0", "1"])))
    judgement = judge.judge(points, np.array([0, 1, 0, 1]))
    assert judgement.plain.accuracy == 0.0
    found = judgement.as_json()
    assert "how they are written" in found["labels_why"]
    assert Judgement.from_json(found) == judgement
    assert quality_lines(judgement)["labels"] == found["labels_why"]
    assert judge.judge(points, np.array(["0", "1", "0", "1"])).labels_why == ""


def test_a_result_from_before_has_nothing_to_say() -> None:
    found = Judgement().as_json()
    del found["labels_why"]
    assert Judgement.from_json(found) == Judgement()
