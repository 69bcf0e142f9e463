"""`filtered-gaussian`: the effect of its filter, its cost, and what it may depend on."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.linalg import solve_discrete_are

from hushbid.protocol.errors import ConfigError, LocalProtocolError
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import (
    Neighbours,
    ReleaseMechanism,
    ReleaseStream,
    Setting,
    release_mechanism,
)
from hushbid.protocol.privacy.releases.filtered_gaussian import FilteredGaussianRelease
from hushbid.protocol.privacy.releases.prior import Prior
from hushbid.protocol.privacy.releases.random_walk import STEP_VARIANCE
from hushbid.protocol.space.features import feature_map
from hushbid.protocol.space.grid import FEATURE_UNIT, Features

D, SEEDS, ROUNDS, DELTA = 140, 150, 600, 1e-5
PHI = feature_map("paired", seed=3, dimension=D, gamma=1.0, lower=0.0, upper=1.0, columns=5)
PUBLIC = PHI.hash(np.random.default_rng(0).random((SEEDS, 5)))
OFFSET = PUBLIC.sum(axis=0, dtype=np.int64)
PRIOR = Prior.of_total(OFFSET, SEEDS)

TARGET = Setting(dimension=D, releases=1, norm_bound=PHI.space.norm_bound, delta=DELTA)
SUMMARY = replace(TARGET, releases=ROUNDS, starts_public=True)


def filtered(setting: Setting, **parameters: Any) -> FilteredGaussianRelease:
    neighbours = "add-remove-one" if setting.starts_public else "substitute-one"
    built = release_mechanism("filtered-gaussian", {"neighbours": neighbours} | parameters, setting)
    assert isinstance(built, FilteredGaussianRelease)
    return built


def bought(count: int, seed: int) -> Features:
    """Points from a corner of the cube that seeds are drawn from."""
    return PHI.hash(0.5 + 0.5 * np.random.default_rng(seed).random((count, 5)))


def mean_of(features: Features) -> npt.NDArray[np.float64]:
    return np.asarray(features.mean(axis=0, dtype=np.float64) * FEATURE_UNIT)


def summary(mechanism: ReleaseMechanism) -> ReleaseStream:
    return mechanism.stream(OFFSET, PRIOR)


def session(stream: ReleaseStream, points: Features, seed: int) -> list[npt.NDArray[np.float64]]:
    """All releases of a summary that gains a point each round."""
    source, mechanism = SimulatedNoise(seed, "curator"), stream.mechanism
    values = stream.statistic.of(points)
    totals = np.vstack([np.zeros((1, D), dtype=np.int64), np.cumsum(values, axis=0)])
    return [
        stream.release(index, totals[index], SEEDS + index, tuple(map(source.draw, mechanism.draws(index))))
        for index in range(mechanism.releases)
    ]


def released_target(features: Features, sigma: float, seed: int) -> npt.NDArray[np.float64]:
    mechanism = filtered(TARGET, sigma=sigma)
    source = SimulatedNoise(seed, "consumer")
    total = mechanism.statistic(PRIOR).of(features).sum(axis=0)
    stream = mechanism.stream(prior=PRIOR)
    return stream.release(0, total, len(features), tuple(map(source.draw, mechanism.draws(0))))


# -- the filter ---------------------------------------------------------------------------------------


def test_the_variance_settles_at_the_solution_of_the_riccati_equation() -> None:
    """For a random walk observed with noise, as SciPy solves it."""
    sigma, step = 40.0, STEP_VARIANCE / D
    stream = summary(filtered(SUMMARY, sigma=sigma))
    session(stream, bought(ROUNDS, 1), seed=1)
    one = np.eye(1)
    before = float(solve_discrete_are(one, one, step * one, sigma**2 * one)[0, 0])
    after = before * sigma**2 / (before + sigma**2)
    settled = math.sqrt(after) * PRIOR.spread * FEATURE_UNIT
    assert stream.deviation == pytest.approx(settled, rel=1e-6)


def test_a_response_to_a_lasting_change_is_that_of_the_gain() -> None:
    """Two sessions with the same noise differ by the filtered difference of their totals."""
    sigma, rounds = 40.0, 4
    setting = replace(SUMMARY, releases=rounds)
    source = SimulatedNoise(1, "curator")
    mechanism = filtered(setting, sigma=sigma)
    one, other = summary(mechanism), summary(mechanism)
    noise = [tuple(map(source.draw, mechanism.draws(index))) for index in range(rounds)]
    zero = np.zeros(D, dtype=np.int64)
    step = zero + 2**14
    variance, through = 0.0, 0.0
    for index in range(rounds):
        total = step if index else zero
        count = SEEDS + index
        moved = other.release(index, total, count, noise[index]) - one.release(
            index, zero, count, noise[index]
        )
        if index:
            predicted = variance + STEP_VARIANCE / D
            gain = predicted / (predicted + sigma**2)
            variance = (1.0 - gain) * predicted
            through += gain * (0.5 - through)
        assert moved == pytest.approx(through * PRIOR.spread * FEATURE_UNIT / count, abs=1e-12)


def test_a_filtered_summary_is_nearer_to_the_truth_than_a_noisy_one() -> None:
    """By at least half the error, at equal ε, at the end of a session; its window is about 40 rounds."""
    points = bought(ROUNDS, 2)
    truth = mean_of(np.concatenate([PUBLIC, points[: ROUNDS - 1]]))
    errors = []
    for name in ("filtered-gaussian", "gaussian"):
        mechanism = release_mechanism(name, {"neighbours": "add-remove-one", "epsilon": 3.0}, SUMMARY)
        errors.append(float(np.linalg.norm(session(summary(mechanism), points, seed=1)[-1] - truth)))
    assert errors[0] < 0.5 * errors[1]


def test_without_noise_a_summary_follows_with_a_lag_and_no_other_error_but_clipping() -> None:
    points = bought(ROUNDS, 3)
    released = session(summary(filtered(SUMMARY, sigma=1e-3)), points, seed=1)
    for index in (0, 1, 5, ROUNDS - 1):
        truth = mean_of(np.concatenate([PUBLIC, points[:index]]))
        assert np.linalg.norm(released[index] - truth) < 0.05


# -- a single release --------------------------------------------------------------------------------


def test_a_target_with_little_noise_is_the_mean_embedding_but_for_clipping() -> None:
    points = bought(300, 4)
    error = np.linalg.norm(released_target(points, 1e-3, seed=1) - mean_of(points))
    shift = np.linalg.norm(mean_of(points) - mean_of(PUBLIC))
    assert error < 0.15 * shift


def test_a_target_is_not_pulled_towards_the_seed_set() -> None:
    """Whatever the noise: the mean of 400 draws is as far off as the exact release, to 5 standard errors."""
    points, sigma = bought(300, 5), 60.0
    exact = released_target(points, 1e-3, seed=1)
    shift = exact - mean_of(PUBLIC)
    along = [
        float((released_target(points, sigma, seed) - exact) @ shift) / float(shift @ shift)
        for seed in range(400)
    ]
    error = sigma * PRIOR.spread * FEATURE_UNIT / 300 / float(np.linalg.norm(shift)) / 20
    assert abs(np.mean(along)) < 5 * error < 0.5


def test_the_noise_of_a_target_is_what_its_sigma_says() -> None:
    """In units of φ: σ·ρ/m a coordinate. 140·40 draws: 4 standard errors are 4 %."""
    points, sigma = bought(300, 6), 5.0
    exact = released_target(points, 1e-3, seed=0)
    drawn = np.array([released_target(points, sigma, seed) - exact for seed in range(40)])
    assert drawn.std() == pytest.approx(sigma * PRIOR.spread * FEATURE_UNIT / 300, rel=0.04)


# -- privacy -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [TARGET, SUMMARY], ids=["target", "summary"])
def test_draws_do_not_depend_on_what_was_released(setting: Setting) -> None:
    """Nor on the seed set, of which a mechanism knows nothing."""
    fresh, used = filtered(setting, epsilon=1.0), filtered(setting, epsilon=1.0)
    if setting.starts_public:
        session(summary(used), bought(ROUNDS, 7), seed=1)
    for index in (0, setting.releases - 1):
        assert fresh.draws(index) == used.draws(index)


def test_the_first_release_of_a_summary_shows_the_seed_set_exactly_and_is_free() -> None:
    mechanism = filtered(SUMMARY, epsilon=1.0)
    assert mechanism.draws(0) == ()
    assert mechanism.cost(0, neighbours=Neighbours.ADD_REMOVE_ONE) == ()
    released = summary(mechanism).release(0, np.zeros(D, dtype=np.int64), SEEDS, ())
    assert np.abs(released - mean_of(PUBLIC)).max() < 1e-15


@pytest.mark.parametrize(("setting", "charged"), [(TARGET, 1), (SUMMARY, ROUNDS - 1)], ids=["1", "many"])
def test_noise_is_that_of_a_gaussian_mechanism_of_sensitivity_2(setting: Setting, charged: int) -> None:
    """σ = 2·√n/μ, with μ = 0.26805 the parameter of Gaussian DP at ε = 1, δ = 1e-5."""
    mechanism = filtered(setting, epsilon=1.0)
    assert mechanism.sigma == pytest.approx(2.0 * math.sqrt(charged) / 0.268051, rel=1e-4)
    for neighbours in Neighbours:
        assert mechanism.guarantee(neighbours=neighbours, delta=DELTA).epsilon == pytest.approx(1.0, abs=1e-6)


def test_one_forged_point_moves_a_total_by_no_more_than_its_sensitivity() -> None:
    mechanism = filtered(SUMMARY, epsilon=1.0)
    forged = np.array([[-(2**15)] * D, [2**15 - 1] * D], dtype=np.int16)
    one, other = mechanism.statistic(PRIOR).of(forged)
    assert np.linalg.norm((one - other) * FEATURE_UNIT) <= mechanism.sensitivity


def test_releases_are_a_function_of_the_noisy_totals_alone() -> None:
    """So the filter is post-processing: data and noise with the same sum give the same release."""
    setting = replace(SUMMARY, releases=3)
    one, other = (summary(filtered(setting, sigma=9.0)) for _ in range(2))
    zero = np.zeros(D, dtype=np.int64)
    rng = np.random.default_rng(0)
    for index in range(3):
        moved = rng.integers(-(2**20), 2**20, D)
        noise = () if index == 0 else (moved,)
        swapped = () if index == 0 else (zero,)
        first = one.release(index, zero, SEEDS + index, noise)
        again = other.release(index, zero if index == 0 else moved, SEEDS + index, swapped)
        assert first.tobytes() == again.tobytes()


# -- what is refused ---------------------------------------------------------------------------------


def test_without_the_seed_set_there_is_a_guarantee_but_no_statistic() -> None:
    mechanism = filtered(SUMMARY, epsilon=1.0)
    assert mechanism.guarantee(neighbours=Neighbours.ADD_REMOVE_ONE, delta=DELTA).epsilon is not None
    with pytest.raises(LocalProtocolError, match="seed set"):
        mechanism.statistic(None)


def test_totals_and_noise_of_another_shape_are_refused_and_leave_the_filter_as_it_was() -> None:
    stream, untouched = (summary(filtered(SUMMARY, epsilon=1.0)) for _ in range(2))
    total = np.zeros(D, dtype=np.int64)
    noise = (total + 2**15,)
    for wrong_total, wrong_noise in (
        (total[1:], noise),
        (total.astype(np.float64), noise),
        (total, ()),
        (total, (total[1:],)),
        (total, (total.astype(np.float64),)),
    ):
        with pytest.raises(LocalProtocolError):
            stream.release(1, wrong_total, SEEDS + 1, wrong_noise)  # type: ignore[arg-type]
    one, other = (each.release(1, total, SEEDS + 1, noise) for each in (stream, untouched))
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": 0.0},
        {"sigma": -1.0},
        {},
        {"epsilon": 1.0, "radius": 0.5},
        {"epsilon": 1e-3, "sigma": 1.0},
    ],
    ids=str,
)
def test_parameters_that_cannot_hold_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        filtered(SUMMARY, **parameters)


def test_neighbours_have_to_be_named() -> None:
    with pytest.raises(ConfigError, match="neighbours"):
        release_mechanism("filtered-gaussian", {"epsilon": 1.0}, SUMMARY)
