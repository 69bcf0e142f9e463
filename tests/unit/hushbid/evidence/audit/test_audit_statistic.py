"""How an attack is fitted: on any kind of evidence, in either direction, and on the first half only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.evidence.audit.bounds import epsilon_lower
from hushbid.evidence.audit.statistic import Observations, fit

RUNS = 1000


def evidence(values: npt.NDArray[np.float64], shapes: npt.NDArray[np.int64] | None = None) -> Observations:
    """One reading for each column, in one round."""
    return Observations(
        values[:, None, :], np.zeros(len(values), dtype=np.int64) if shapes is None else shapes
    )


def normal(seed: int, *means: float) -> npt.NDArray[np.float64]:
    shape = (RUNS, len(means))
    return np.asarray(np.random.default_rng(seed).normal(means, 1.0, shape), dtype=np.float64)


def shares(
    first: Observations, second: Observations, fresh: tuple[Observations, Observations]
) -> tuple[float, float]:
    """How often the fitted event occurs in fresh runs on D and on D'."""
    event = fit(first, second, delta=0.0, confidence=0.95)
    return event.count(fresh[0]) / RUNS, event.count(fresh[1]) / RUNS


def found(*means: float) -> float:
    """The ε of fresh runs whose values are normal, about 0 on D, and about these means on D'."""
    runs = [evidence(normal(seed, *m)) for seed, m in enumerate(2 * [[0.0] * len(means), list(means)])]
    alarms, hits = (np.array([round(share * RUNS)]) for share in shares(runs[0], runs[1], (runs[2], runs[3])))
    return float(epsilon_lower(hits, alarms, RUNS, delta=0.0, confidence=0.95)[0])


@pytest.mark.parametrize("shift", [4.0, -4.0])
def test_a_shift_is_found_in_either_direction(shift: float) -> None:
    assert found(shift) > 4.0


def test_shifts_of_several_values_are_added_up() -> None:
    """Eight values that each tell little: together as much as one shift by √8."""
    assert found(1.0) < 2.0
    assert found(*[1.0, -1.0] * 4) > 3.0


def test_nothing_is_found_where_there_is_nothing() -> None:
    assert found(0.0, 0.0, 0.0) == 0.0


def test_what_is_seen_in_the_shape_of_a_view_is_found() -> None:
    rng = np.random.default_rng(1)
    usual, sometimes = np.full(RUNS, 17), np.where(rng.random(RUNS) < 0.4, -3, 17)
    nothing = np.zeros((RUNS, 0))
    fresh = evidence(nothing, usual), evidence(nothing, sometimes)
    alarms, hits = shares(*fresh, fresh)
    assert alarms == 0.0
    assert hits == pytest.approx(0.4, abs=0.05)


def test_a_shape_that_was_never_seen_before_speaks_for_neither() -> None:
    nothing = np.zeros((RUNS, 0))
    usual, other = np.full(RUNS, 17), np.full(RUNS, -3)
    event = fit(evidence(nothing, usual), evidence(nothing, other), delta=0.0, confidence=0.95)
    unseen = evidence(nothing, np.full(RUNS, 99))
    assert event.count(evidence(nothing, other)) == RUNS
    assert set(event.statistic(unseen)) == {0.0}


def test_evidence_that_never_varies_is_no_evidence() -> None:
    same = evidence(np.ones((RUNS, 3)))
    event = fit(same, same, delta=0.0, confidence=0.95)
    assert event.count(same) in (0, RUNS)


def test_runs_are_cut_and_joined_in_order() -> None:
    whole = evidence(normal(1, 0.0, 0.0), np.arange(RUNS))
    again = Observations.joined([whole.part(0, 10), whole.part(10, RUNS)])
    assert np.array_equal(again.values, whole.values)
    assert np.array_equal(again.shapes, whole.shapes)
    assert len(whole.part(3, 7)) == 4


# -- what a projection alone does not show --------------------------------------------------------------

ROUNDS, READINGS = 4, 6


def broadcasts(seed: int, difference: npt.NDArray[np.float64], noise: str) -> Observations:
    """Noise of standard deviation 20 on every reading of every round, except for the fault."""
    rng = np.random.default_rng(seed)
    values = rng.normal(0.0, 20.0, (RUNS, ROUNDS, READINGS))
    if noise == "missing from one reading":
        values[:, :, 4] = 0.0
    elif noise == "missing from one round":
        values[:, 2] = 0.0
    elif noise == "the same in every round":
        values[:] = values[:, :1]
    elif noise == "the same in every reading":
        values[:] = values[:, :, :1]
    elif noise == "bounded":
        values = np.clip(values, -10.0, 10.0)
    return evidence_of(values + difference)


def evidence_of(values: npt.NDArray[np.float64]) -> Observations:
    return Observations(values, np.zeros(len(values), dtype=np.int64))


def share_told_apart(noise: str) -> float:
    """How much more often the fitted event occurs on D' than on D, in fresh runs."""
    nothing = np.zeros((ROUNDS, READINGS))
    one = np.random.default_rng(9).uniform(0.5, 1.5, (ROUNDS, READINGS))
    runs = [broadcasts(seed, difference, noise) for seed, difference in enumerate([nothing, one] * 2)]
    alarms, hits = shares(runs[0], runs[1], (runs[2], runs[3]))
    return hits - alarms


@pytest.mark.parametrize(
    "noise",
    [
        "missing from one reading",
        "missing from one round",
        "the same in every round",
        "the same in every reading",
        "bounded",
    ],
)
def test_noise_that_is_wrong_in_one_place_is_found_there(noise: str) -> None:
    assert share_told_apart(noise) > 0.95


def test_the_same_difference_is_hidden_by_noise_that_is_right() -> None:
    assert share_told_apart("right") < 0.25
