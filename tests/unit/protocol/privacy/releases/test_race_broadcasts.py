"""`race` as a release: the cost of counts with discrete Laplace noise, and what is known for free."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.protocol.errors import ConfigError, LocalProtocolError
from hushbid.protocol.privacy.accounting import (
    ApproximateCost,
    LaplaceCost,
    count_epsilon,
    epsilon_of,
    shifted_count_cost,
)
from hushbid.protocol.privacy.accounting.gaussian import gaussian_mu
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours, Prior, Setting, release_mechanism
from hushbid.protocol.privacy.releases.race import RaceRelease
from hushbid.protocol.space.features import feature_map
from hushbid.protocol.space.features.lsh import row_unit
from hushbid.protocol.space.grid import FEATURE_UNIT, features_to_float

D, CELLS, SEEDS, ROUNDS, DELTA = 80, 4, 150, 400, 1e-5
ROWS = D // CELLS
PHI = feature_map("lsh", seed=3, dimension=D, gamma=1.0, lower=0.0, upper=1.0, columns=5)
PUBLIC = PHI.hash(np.random.default_rng(0).random((SEEDS, 5)))
OFFSET = PUBLIC.sum(axis=0, dtype=np.int64)
TARGET = Setting(
    dimension=D,
    releases=1,
    norm_bound=PHI.space.norm_bound,
    delta=DELTA,
    rows=ROWS,
)
SUMMARY = replace(TARGET, releases=ROUNDS, starts_public=True)
PRIOR = Prior.of_total(OFFSET, SEEDS)


def build(setting: Setting, **parameters: Any) -> RaceRelease:
    neighbours = "add-remove-one" if setting.starts_public else "substitute-one"
    made = release_mechanism("race", {"neighbours": neighbours} | parameters, setting)
    assert isinstance(made, RaceRelease)
    return made


# -- the guarantee ------------------------------------------------------------------------------------


def test_a_shifted_discrete_laplace_is_exactly_randomised_response() -> None:
    """Every value has a likelihood ratio of e^ε or e^-ε: no other loss, where continuous noise has them."""
    scale = 3.7
    values = np.arange(-200, 201)
    losses = (np.abs(values - 1) - np.abs(values)) / scale
    assert np.abs(losses) == pytest.approx(np.full(401, 1.0 / scale), rel=1e-9)
    assert shifted_count_cost(1.0 / scale, 7) == ApproximateCost(epsilon=1.0 / scale, delta=0.0, count=7)


def test_the_cost_is_not_that_of_continuous_laplace_noise_which_is_cheaper() -> None:
    """Charging `LaplaceCost` would state less than what holds."""
    sound = epsilon_of([shifted_count_cost(0.1, 500)], DELTA)
    assert epsilon_of([LaplaceCost(epsilon=0.1, count=500)], DELTA) < 0.99 * sound


def test_one_point_for_another_changes_no_more_counts_than_are_charged() -> None:
    points = PHI.hash(np.random.default_rng(1).random((2000, 5)))
    changed = (points[:1000] != points[1000:]).sum(axis=1)
    assert changed.max() <= 2 * ROWS
    assert changed.max() > ROWS  # two counts of most rows
    (cost,) = build(TARGET, scale=5.0).cost(0, neighbours=Neighbours.SUBSTITUTE_ONE)
    assert cost == ApproximateCost(epsilon=0.2, delta=0.0, count=2 * ROWS)


def test_printed_noise_costs_twice_its_epsilon_under_substitution() -> None:
    """Laplace(R/ε): 2R counts of ε/R each (DESIGN §1), where δ is too small for composition to help."""
    made = build(TARGET, scale=ROWS / 0.5)
    assert made.guarantee(neighbours=Neighbours.SUBSTITUTE_ONE, delta=1e-300).epsilon == pytest.approx(1.0)


def test_a_given_scale_may_not_cost_more_than_a_given_epsilon() -> None:
    needed = build(SUMMARY, epsilon=1.0).scale
    assert build(SUMMARY, epsilon=1.0, scale=1.01 * needed).scale == 1.01 * needed
    with pytest.raises(ConfigError, match="over the budget of 1"):
        build(SUMMARY, epsilon=1.0, scale=0.9 * needed)


@pytest.mark.parametrize(
    ("counts", "epsilon"), [(200, 0.1), (10_000, 1.0), pytest.param(1_000_000, 1.0, marks=pytest.mark.slow)]
)
def test_many_counts_are_calibrated_as_gaussian_noise_nearly_would_be(counts: int, epsilon: float) -> None:
    """The limit of many randomised responses is a Gaussian mechanism; the accountant is within 1 % of it."""
    each = count_epsilon(epsilon, DELTA, counts)
    assert each * math.sqrt(counts) == pytest.approx(gaussian_mu(epsilon, DELTA), rel=0.01)


def test_a_map_without_rows_is_refused_and_mwem_is_on_one_with_rows() -> None:
    with pytest.raises(ConfigError, match="cells") as caught:
        build(replace(TARGET, rows=0), epsilon=1.0)
    assert "lsh" in caught.value.advice
    table = {"neighbours": "substitute-one", "calibration": "sound", "epsilon": 1.0, "steps": 4, "eta": 0.5}
    with pytest.raises(ConfigError, match="lsh"):
        release_mechanism("mwem", table, TARGET)


# -- the release --------------------------------------------------------------------------------------


def release(points: npt.NDArray[np.int16], noise: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    total = points.sum(axis=0, dtype=np.int64)
    return build(TARGET, scale=5.0).stream(prior=PRIOR).release(0, total, len(points), (noise,))


def test_without_noise_the_counts_are_the_sketch() -> None:
    points = PHI.hash(np.random.default_rng(2).random((300, 5)))
    released = release(points, np.zeros(D, dtype=np.int64))
    assert released == pytest.approx(features_to_float(points).mean(axis=0), abs=1e-12)


def test_every_row_has_as_many_points_as_there_are_whatever_the_noise() -> None:
    points = PHI.hash(np.random.default_rng(2).random((300, 5)))
    noise = SimulatedNoise(1, "consumer").draw(build(TARGET, scale=50.0).draws(0)[0])
    rows = release(points, noise).reshape(ROWS, CELLS) / (row_unit(ROWS) * FEATURE_UNIT)
    assert rows.sum(axis=1) == pytest.approx(np.ones(ROWS), abs=1e-9)
    assert np.abs(noise.reshape(ROWS, CELLS).sum(axis=1)).min() > 0  # the control: the noise had other sums


def test_kernel_sums_are_read_off_the_sketch() -> None:
    """g̃·φ(x) is the share of D_v that collides with x, within the noise."""
    points = PHI.hash(np.random.default_rng(3).random((5000, 5)))
    queries = PHI.hash(np.random.default_rng(4).random((50, 5)))
    noise = SimulatedNoise(1, "consumer").draw(build(TARGET, scale=5.0).draws(0)[0])
    shares = ((queries[:, None] > 0) & (points[None] > 0)).sum(axis=2).mean(axis=1) / ROWS
    read = features_to_float(queries) @ release(points, noise) / (row_unit(ROWS) * FEATURE_UNIT) ** 2 / ROWS
    assert np.abs(read - shares).max() < 0.002
    assert shares.max() - shares.min() > 0.1  # the control: there is something to be read


def test_a_total_of_other_features_is_refused() -> None:
    total = OFFSET.copy()
    total[7] += 1
    with pytest.raises(LocalProtocolError, match="no sum"):
        build(TARGET, scale=5.0).stream(prior=PRIOR).release(0, total, SEEDS, (np.zeros(D, dtype=np.int64),))


def test_a_filtered_summary_is_nearer_to_the_truth_than_its_noise() -> None:
    """By at least half the error, at the end of a session, compared with unfiltered counts."""
    points = PHI.hash(0.5 * np.random.default_rng(5).random((ROUNDS, 5)))
    mechanism, source = build(SUMMARY, epsilon=1.0), SimulatedNoise(2, "curator")
    totals = np.vstack([np.zeros(D, dtype=np.int64), np.cumsum(points, axis=0, dtype=np.int64)])
    noise = [tuple(map(source.draw, mechanism.draws(index))) for index in range(ROUNDS)]
    counts = SEEDS + np.arange(ROUNDS)
    stream = mechanism.stream(OFFSET, PRIOR)
    released = [stream.release(i, totals[i], int(counts[i]), noise[i]) for i in range(ROUNDS)]
    truth = (OFFSET + totals[ROUNDS - 1]) * FEATURE_UNIT / counts[-1]
    raw = noise[-1][0] * (row_unit(ROWS) * FEATURE_UNIT) / counts[-1]
    assert np.linalg.norm(released[-1] - truth) < 0.5 * np.linalg.norm(raw)
