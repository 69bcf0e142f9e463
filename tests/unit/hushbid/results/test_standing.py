"""A result says in one sentence whether it is better than a random choice."""

from __future__ import annotations

import pytest

from hushbid.consumer.appraisal import Judgement, Quality, Weighted
from hushbid.results.standing import beside_uniform


def judgement(plain: float | None, weighted: float | None = None, points: float = 50.0) -> Judgement:
    quality = Quality(mmd2=plain, effective_points=100.0)
    if weighted is None:
        return Judgement(quality)
    return Judgement(quality, Weighted(Quality(mmd2=weighted, effective_points=points), 1.0, 0.0))


@pytest.mark.parametrize(
    ("bought", "rank", "words"),
    [
        (0.4, "closer", "are closer to what the consumer wants than as many at random"),
        (0.9, "alike", "about as close"),
        (1.5, "farther", "are FARTHER from what the consumer wants"),
    ],
)
def test_what_counts_is_the_choice_with_weights(bought: float, rank: str, words: str) -> None:
    found = beside_uniform(judgement(9.0, bought, 97.2), judgement(1.0, 1.0, 68.4))
    assert found is not None
    assert (found.rank, found.ratio, found.weighted) == (rank, bought, True)
    assert words in found.sentence()
    assert " with weights is " in found.sentence()
    assert found.as_json()["rank"] == rank


def test_without_weights_of_both_it_is_the_choice_as_it_is() -> None:
    found = beside_uniform(judgement(0.5, 0.1), judgement(1.0))
    assert found is not None
    assert (found.ratio, found.weighted) == (0.5, False)
    assert found.sentence().endswith("their MMD² to the validation set is 0.50 times as large.")


@pytest.mark.parametrize(("ratio", "said"), [(0.082, "0.082"), (1.0, "1.0"), (12.3, "12")])
def test_a_ratio_has_two_digits(ratio: float, said: str) -> None:
    found = beside_uniform(judgement(ratio), judgement(1.0))
    assert found is not None
    assert f" is {said} times as large" in found.sentence()


def test_what_was_held_out_counts_where_there_is_any() -> None:
    bought = Judgement(Quality(mmd2=0.1, mmd2_test=0.6, effective_points=100.0))
    found = beside_uniform(bought, Judgement(Quality(mmd2=1.0, mmd2_test=1.2, effective_points=100.0)))
    assert found is not None
    assert (found.ratio, found.held_out) == (0.5, True)
    assert "their MMD² to held-out points is 0.50 times" in found.sentence()


def test_test_points_that_are_unlike_what_is_wanted_do_not_count() -> None:
    bought = Judgement(Quality(mmd2=0.1, mmd2_test=1.5, effective_points=100.0))
    uniform = Judgement(Quality(mmd2=1.0, mmd2_test=1.0, effective_points=100.0))
    assert (found := beside_uniform(bought, uniform)) is not None
    assert found.rank == "farther", "what was said before"
    found = beside_uniform(bought, uniform, unlike=True)
    assert found is not None
    assert (found.rank, found.ratio, found.held_out) == ("closer", 0.1, False)
    assert "to the validation set (which the test points are unlike) is 0.10 times" in found.sentence()
    assert found.as_json()["test_unlike"] is True
    assert (nothing := beside_uniform(judgement(0.1), judgement(1.0), unlike=True)) is not None
    assert not nothing.unlike, "there are no test points"


def test_where_all_points_are_alike_nothing_is_claimed() -> None:
    found = beside_uniform(judgement(1e-5, 1e-6), judgement(1e-4, 1e-5))
    assert found is not None
    assert found.rank == "unmeasured"
    assert found.sentence().endswith("all points are alike, so its bounds or its gamma are wrong.")


def test_where_a_figure_is_missing_nothing_is_said() -> None:
    assert beside_uniform(judgement(None), judgement(1.0)) is None
    assert beside_uniform(judgement(0.5), judgement(0.0)) is None
