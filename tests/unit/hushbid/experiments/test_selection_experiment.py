"""The selection experiment: a row for each setting, with what was guaranteed and what came of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hushbid.experiments.selection import Row, selection
from protocol.errors import ConfigError


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return selection("digits", None, epsilons=[1.0, 100.0], points=[20, 100], seeds=[0, 1])


def test_there_is_a_row_for_each_number_of_points_and_epsilon(rows: list[Row]) -> None:
    assert [(row.points, row.epsilon) for row in rows] == [(20, 1.0), (20, 100.0), (100, 1.0), (100, 100.0)]


def test_a_row_states_what_the_accountant_says_of_its_noise(rows: list[Row]) -> None:
    for row in rows:
        assert row.delta == 1e-5
        assert 0.99 * row.epsilon < row.epsilon_owners <= row.epsilon
        assert 0.99 * row.epsilon < row.epsilon_consumer <= row.epsilon


def test_a_row_has_the_mean_of_its_seeds(rows: list[Row]) -> None:
    for row in rows:
        assert len(set(row.mmd2_each)) == 2
        assert row.mmd2 == pytest.approx(sum(row.mmd2_each) / 2)
        assert row.mmd2_greedy > 0


def test_a_selection_under_a_generous_budget_is_far_better_than_chance(rows: list[Row]) -> None:
    """At p = 100: the non-private greedy choice has about 0.026, uniform sampling about 0.07."""
    generous = rows[-1]
    assert generous.mmd2 < 0.6 * generous.mmd2_uniform


def test_the_same_seeds_give_the_same_figures(rows: list[Row]) -> None:
    (again,) = selection("digits", None, epsilons=[1.0], points=[20], seeds=[0, 1])
    assert replace(again, wall_seconds=0.0) == replace(rows[0], wall_seconds=0.0)


def test_a_row_is_json(rows: list[Row]) -> None:
    assert json.loads(json.dumps(rows[0].as_json()))["mmd2"] == rows[0].mmd2


def test_what_runs_is_said() -> None:
    said: list[str] = []
    selection("digits", None, epsilons=[1.0], points=[5], seeds=[3], say=said.append)
    assert said == ["digits, p = 5, ε = 1, seed 3"]


@pytest.mark.parametrize("missing", ["epsilons", "points", "seeds"])
def test_an_experiment_without_settings_is_refused(missing: str) -> None:
    settings = {"epsilons": [1.0], "points": [5], "seeds": [0]} | {missing: []}
    with pytest.raises(ConfigError):
        selection("digits", None, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("setting", [{"epsilons": [0.0]}, {"points": [0]}, {"mechanism": "exact"}], ids=str)
def test_settings_that_cannot_hold_are_refused(setting: dict[str, object]) -> None:
    settings = {"epsilons": [1.0], "points": [5], "seeds": [0]} | setting
    with pytest.raises(ConfigError):
        selection("digits", None, **settings)  # type: ignore[arg-type]
