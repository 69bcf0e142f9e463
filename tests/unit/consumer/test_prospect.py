"""What own rows tell about a purchase beforehand: whether the model will get better, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hushbid.consumer.prospect import FEW, LITTLE, prospect
from hushbid.consumer.verdict import Prospect, Rehearsal, Staged, Verdict
from hushbid.protocol.errors import ConfigError

NOTHING_CHOSEN = Rehearsal((Staged("some", 2.0, 1.0, 2.0, 1.0),) * 4, 0.5)
FAR_BETTER = Rehearsal((Staged("some", 0.1, 1.0, 0.1, 1.0),) * 4, 0.5)


def rows(count: int, seed: int = 0, columns: int = 6) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random((count, columns))


def classes(points: Any, noise: float, seed: int = 1) -> list[str]:
    drawn = np.random.default_rng(seed).normal(0.0, noise, len(points))
    wanted = points @ np.arange(1, points.shape[1] + 1) - 10.5 + drawn > 0.0
    return ["yes" if each else "no" for each in wanted]


def told(points: Any, labels: Any, p: int = 300, model: Any = "logistic") -> Prospect:
    return prospect(points, labels, p=p, model=model, seed=0)


def test_many_rows_of_an_easy_question_are_enough() -> None:
    points = rows(400, columns=2)
    found = told(points, np.where(points[:, 0] > 0.5, 1, 0))
    assert found.word == "hopeless"
    assert found.why.startswith("own rows are enough")
    assert found.metric == "accuracy"
    assert found.own is not None
    assert found.own > 0.95
    assert found.gain_high is not None
    assert found.gain_high < LITTLE


def test_few_rows_whose_labels_follow_the_columns_are_not_enough() -> None:
    points = rows(40)
    found = told(points, classes(points, 1.0))
    assert found.word == "good"
    assert (found.rows, found.metric) == (40, "accuracy")
    assert found.chance is not None
    assert found.chance < 0.1


def test_a_model_that_still_learns_gains_from_more_rows() -> None:
    points = rows(FEW + 30, columns=30)
    noise = np.random.default_rng(3).normal(0.0, 0.5, FEW + 30)
    found = told(points, points @ np.random.default_rng(2).normal(size=30) + noise)
    assert (found.word, found.metric) == ("good", "r2")
    assert found.gain is not None
    assert found.gain > 0.01


@pytest.mark.parametrize("count", [10, 300])
def test_labels_that_follow_nothing_are_nothing_to_buy_for(count: int) -> None:
    words = []
    for seed in range(4):
        labels = np.random.default_rng([seed, 5]).integers(0, 2, count)
        words.append(told(rows(count, seed), labels).word)
    assert words.count("good") <= 1


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (None, "no own row has a label"),
        ([None] * 30, "no own row has a label"),
        ([1, 2, 1, 2, *[None] * 26], "too few own rows have a label"),
        ([3] * 30, "all have the same"),
    ],
)
def test_too_few_labels_tell_nothing(labels: Any, expected: str) -> None:
    found = told(rows(30), labels)
    assert found.word is None
    assert expected in found.why
    assert found.own is None


def test_rows_without_a_label_have_no_part() -> None:
    points = rows(240)
    labels: list[Any] = classes(points, 1.0)
    kept = np.flatnonzero(np.arange(240) % 12)
    with_gaps = [label if place % 12 else None for place, label in enumerate(labels)]
    assert told(points, with_gaps) == told(points[kept], [labels[place] for place in kept])


def test_a_model_that_learns_something_else_tells_nothing() -> None:
    points = rows(60)
    assert told(points, classes(points, 1.0), model="Ridge").why.startswith("Ridge learns amounts")
    with pytest.raises(ConfigError, match="no downstream model"):
        told(points, classes(points, 1.0), model="nonesuch")


@pytest.mark.parametrize("model", ["boosted", "KNeighborsClassifier"])
def test_any_model_of_a_consumer_is_tried_and_twice_gives_the_same(model: str) -> None:
    points = rows(220)
    first, second = (told(points, classes(points, 1.0), model=model) for _ in range(2))
    assert first == second
    assert first.word is not None
    assert Prospect.from_json(first.as_json()) == first


def test_whole_numbers_are_amounts_where_the_session_says_so() -> None:
    points = rows(300)
    scores = np.rint(10.0 * points @ np.arange(1, 7) + np.random.default_rng(3).normal(0.0, 10.0, 300))
    found = prospect(points, scores.astype(np.int64), p=300, model="logistic", seed=0, amounts=True)
    assert found.metric == "r2"
    assert found.own is not None
    assert found.own > 0.8
    assert told(points, scores.astype(np.int64)).metric == "accuracy", "by their values they could be classes"


def test_classes_of_a_session_are_classes_however_many_there_are() -> None:
    points = rows(40)
    labels = [float(row) for row in range(30)] + [0.0] * 10
    assert told(points, labels).metric == "r2"
    assert prospect(points, labels, p=300, model="logistic", seed=0, amounts=False).metric == "accuracy"


def test_a_model_that_is_no_better_than_a_guess_is_not_called_enough() -> None:
    labels = np.random.default_rng(8).random(1000) < 0.02
    found = told(rows(1000, columns=2), labels.astype(np.int64), p=20)
    assert found.word == "hopeless"
    assert found.why.startswith("no model of own rows is better than a constant guess")


def test_few_rows_are_no_reason_to_say_that_nothing_is_gained() -> None:
    found = replace(GOOD, rows=11, gain=0.0, gain_high=0.0)
    assert found.figures() == "70 % right with 11 own rows, too few to say how much more would add"
    assert replace(found, metric="r2").figures().startswith("R² 0.70 with 11 own rows, too few")
    assert GOOD.figures() == "70 % right with 40 own rows, +5.0 points expected, +10.0 at most"


# -- together with a rehearsal --------------------------------------------------------------------------

GOOD = Prospect("good", "it learns", "accuracy", 40, 0.7, 0.6, 0.8, 0.5, 0.05, 0.1, 0.001)
ENOUGH = replace(GOOD, word="hopeless", why="own rows are enough")
UNKNOWN = Prospect(None, "no own row has a label")


@pytest.mark.parametrize(
    ("rehearsal", "own", "word", "refused"),
    [
        (FAR_BETTER, ENOUGH, "hopeless", False),
        (FAR_BETTER, GOOD, "good", False),
        (FAR_BETTER, UNKNOWN, "good", False),
        (NOTHING_CHOSEN, GOOD, "hopeless", True),
        (NOTHING_CHOSEN, UNKNOWN, "hopeless", True),
        (None, ENOUGH, "hopeless", False),
        (None, UNKNOWN, None, False),
        (FAR_BETTER, None, "good", False),
    ],
)
def test_own_rows_decide_unless_noise_would_choose(
    rehearsal: Rehearsal | None, own: Prospect | None, word: str | None, refused: bool
) -> None:
    verdict = Verdict(rehearsal, "it was not played" if rehearsal is None else "", prospect=own)
    assert (verdict.word, verdict.refused) == (word, refused)
    if verdict.by_model:
        assert verdict.sentence().startswith("Do not buy: " if word == "hopeless" else "Buying is likely")
        assert verdict.summary().startswith(f"{word}: {verdict.reason} (70 % right with 40 own rows")
    read = Verdict.from_json(verdict.as_json())
    assert (read.word, read.reason, read.refused) == (word, verdict.reason, refused)
    found = verdict.as_json()["verdict"]
    assert (found is None) is (word is None)
    if found is not None:
        assert (found["verdict"], found["why"]) == (word, verdict.reason)


def test_a_record_from_before_own_rows_were_asked_is_read() -> None:
    older = Verdict(FAR_BETTER).as_json()
    del older["verdict"]["prospect"]
    assert Verdict.from_json(older).word == "good"
