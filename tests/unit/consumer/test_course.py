"""The course of a purchase: that it moved away from the target, and which rounds brought nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hushbid.consumer.course import ClosenessCourse, course_of
from hushbid.consumer.events import Delivered
from hushbid.protocol.wire.messages import Candidate


def bought(*rounds: int) -> list[Delivered]:
    candidate = Candidate(point=np.zeros(1), features=np.zeros(2, dtype=np.int16), attributes=b"")
    return [Delivered("alpha", number, candidate, "") for number in rounds]


def test_the_closest_round_is_that_after_which_mmd2_is_least() -> None:
    found = course_of(4, bought(1, 1, 2, 2, 4), np.array([0.9, 0.5, 0.1, 0.3, 0.2]))
    assert found == ClosenessCourse(rounds=4, last=4, closest=4, mmd2_closest=0.2, mmd2_end=0.2)
    assert found is not None
    assert not found.warnings()


@pytest.mark.parametrize(
    ("closest", "end", "away"), [(15, 0.024, True), (15, 0.0239, False), (40, 0.1, True), (41, 0.1, False)]
)
def test_a_purchase_moved_away_if_ten_rounds_took_back_a_fifth(closest: int, end: float, away: bool) -> None:
    found = ClosenessCourse(rounds=50, last=50, closest=closest, mmd2_closest=0.02, mmd2_end=end)
    assert found.moved_away is away
    assert bool(found.warnings()) is away


def test_the_round_is_named_from_which_on_it_moved_away() -> None:
    (said,) = ClosenessCourse(rounds=50, last=50, closest=14, mmd2_closest=0.012, mmd2_end=0.02).warnings()
    assert said.startswith("From round 15 on the purchase moved away from the target")
    assert "0.0120" in said
    assert "0.0200" in said


@pytest.mark.parametrize(("last", "words"), [(30, "Rounds 31 to 50 brought no"), (49, "Round 50 brought no")])
def test_rounds_that_brought_nothing_are_named(last: int, words: str) -> None:
    (said,) = ClosenessCourse(rounds=50, last=last, closest=last, mmd2_closest=0.1, mmd2_end=0.1).warnings()
    assert said.startswith(words)


def test_points_that_cannot_be_read_have_no_figure_but_a_round() -> None:
    unread = Delivered("alpha", 3, None, "its box does not open")
    found = course_of(3, [*bought(1), unread], np.array([0.5]))
    assert found == ClosenessCourse(rounds=3, last=3, closest=1, mmd2_closest=0.5, mmd2_end=0.5)


def test_nothing_is_told_where_nothing_can_be_compared() -> None:
    assert course_of(3, [], None) is None


def test_it_travels_as_json() -> None:
    found = ClosenessCourse(rounds=50, last=50, closest=1, mmd2_closest=0.1, mmd2_end=0.5)
    values = json.loads(json.dumps(found.as_json()))
    assert values["moved_away"] is True
    assert ClosenessCourse.from_json(values) == found
    assert values["warnings"] == found.warnings()
