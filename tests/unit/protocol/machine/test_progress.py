"""A session's progress: the recent rate, the remaining time, and the line that carries it."""

from __future__ import annotations

import json

import pytest

from hushbid.protocol.machine.progress import Pace, Progress

SEEN = Progress(
    party="curator", phase="rounds", round=12, rounds=50, points=44, points_planned=200,
    points_per_second=2.5, seconds_left=62.0, owners_connected=2, owners=4, missing=("heron", "magpie"),
)  # fmt: skip


def test_a_line_carries_the_whole_picture_and_may_have_more() -> None:
    line = SEEN.as_line()
    assert line.endswith(b"\n")
    assert Progress.from_line(line) == SEEN
    assert Progress.from_line(json.dumps(json.loads(line) | {"of a later version": 1}).encode()) == SEEN


def test_nothing_is_said_of_a_pace_before_a_round_is_decided() -> None:
    pace = Pace()
    assert (pace.points_per_second, pace.seconds_left(50)) == (None, None)
    pace.note(100.0, 0, 0)
    pace.note(103.0, 0, 0)
    assert (pace.points_per_second, pace.seconds_left(50)) == (None, None)


def test_a_steady_pace_is_found_from_the_first_round_on_and_ends_with_the_last() -> None:
    pace = Pace()
    for number in range(11):
        pace.note(7.0 + 2.0 * number, number, 4 * number)
    assert pace.points_per_second == pytest.approx(2.0)
    assert pace.seconds_left(50) == pytest.approx(80.0)
    assert pace.seconds_left(10) is None


def test_a_pause_slows_the_pace_and_is_forgotten_after_sixty_rounds() -> None:
    pace = Pace()
    for number in range(5):
        pace.note(float(number), number, number)
    pace.note(604.0, 4, 4)
    assert pace.points_per_second == pytest.approx(4 / 604)
    for number in range(5, 70):
        pace.note(600.0 + number, number, number)
    assert pace.points_per_second == pytest.approx(1.0)


def test_quick_rounds_are_averaged_over_half_a_minute() -> None:
    pace = Pace()
    for number in range(20_000):
        pace.note(number / 100, number, number)
    # Sixty marks, half a second apart; the last mark may be up to half a second old.
    assert pace.points_per_second == pytest.approx(100.0)
    pace.note(200.0 + 29.5, 19_999, 19_999)
    assert pace.points_per_second == pytest.approx(50.0, rel=0.02)
