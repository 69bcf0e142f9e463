"""`subspace`: the effect of its basis on a guarantee, and on a release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.curator.admission import check_target
from hushbid.protocol import limits
from hushbid.protocol.errors import ConfigError, DataError, LocalProtocolError, RemoteProtocolError
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Prior, Setting, Statistic, release_mechanism
from hushbid.protocol.privacy.releases.statistic import BASIS_BITS
from hushbid.protocol.privacy.releases.subspace import SubspaceRelease
from hushbid.protocol.session.prior import prior_of
from hushbid.protocol.session.session import open_session
from hushbid.protocol.space.features import feature_map
from hushbid.protocol.space.grid import FEATURE_UNIT, Features, features_to_float
from hushbid.protocol.wire.messages import SubspaceTarget, Target
from tests.support.session_files import load

D, SEEDS, F, DELTA = 60, 40, 12, 1e-5
PHI = feature_map("paired", seed=3, dimension=D, gamma=1.0, lower=0.0, upper=1.0, columns=5)
PUBLIC = PHI.hash(np.random.default_rng(0).random((SEEDS, 5)))
PRIOR = Prior.of_features(PUBLIC, F)
TARGET = Setting(dimension=D, releases=1, norm_bound=PHI.space.norm_bound, delta=DELTA)


def build(setting: Setting = TARGET, **parameters: Any) -> SubspaceRelease:
    table: dict[str, Any] = {"neighbours": "substitute-one", "directions": F, "epsilon": 1.0}
    made = release_mechanism("subspace", table | parameters, setting)
    assert isinstance(made, SubspaceRelease)
    return made


def basis_of(prior: Prior) -> npt.NDArray[np.float64]:
    assert prior.basis is not None
    return np.asarray(prior.basis * 2.0**-BASIS_BITS, dtype=np.float64)


# -- the guarantee ------------------------------------------------------------------------------------


@pytest.mark.parametrize("basis", ["honest", "largest", "smallest", "one", "zero", "random"])
def test_no_basis_makes_a_statistic_longer_than_one(basis: str) -> None:
    """Forged bases and forged points, the extremes of int16 among them; lengths in whole numbers."""
    generator = np.random.default_rng(1)
    assert PRIOR.basis is not None
    forged = {
        "honest": PRIOR.basis,
        "largest": np.full((F, D), 2**15 - 1, dtype=np.int16),
        "smallest": np.full((F, D), -(2**15), dtype=np.int16),
        "one": np.eye(F, D, dtype=np.int16),
        "zero": np.zeros((F, D), dtype=np.int16),
        "random": generator.integers(-(2**15), 2**15, (F, D)).astype(np.int16),
    }[basis]
    points = np.vstack(
        [
            PUBLIC,
            np.full((1, D), -(2**15)),
            np.full((1, D), 2**15 - 1),
            generator.integers(-(2**15), 2**15, (200, D)),
        ]
    ).astype(np.int16)
    longest = []
    for radius in (1, PRIOR.radius):
        statistic = Statistic(D, PRIOR.centre, radius, forged).of(points)
        longest.append(max(sum(int(value) ** 2 for value in row) for row in statistic))
    assert max(longest) <= 2**30
    if basis == "honest":  # the control: points are not shrunk to nothing
        assert min(longest) > 0.9 * 2**30


def test_the_widest_basis_is_exact_at_its_extremes() -> None:
    """4096 directions of 4096 coordinates, all at the ends of int16: no sum wraps around."""
    d = limits.MAX_DIMENSION
    ends = np.full((2, d), -(2**15), dtype=np.int16)
    ends[1] = 2**15 - 1
    centre = np.full(d, 2**15, dtype=np.int64)
    made = Statistic(d, centre, 1, np.broadcast_to(ends[:1], (d, d))).of(ends)
    lengths = np.square(made.astype(object)).sum(axis=1)
    assert max(lengths) <= 2**30
    assert (made[0] > 0).all()  # -2^15 - 2^15, times -2^15


def test_noise_and_cost_do_not_depend_on_the_basis_nor_on_the_dimension() -> None:
    wide = replace(TARGET, dimension=2 * D)
    assert build(wide).draws(0) == build().draws(0)
    assert build().draws(0)[0].size == F


def test_fewer_directions_take_no_more_noise() -> None:
    scales = [build(directions=directions).draws(0)[0].scale for directions in (1, F, D)]
    assert scales == sorted(scales)


# -- the basis ----------------------------------------------------------------------------------------


def test_rows_are_orthogonal_and_of_one_length_which_makes_projections_as_long_as_points() -> None:
    basis = basis_of(PRIOR)
    gram = basis @ basis.T
    assert gram == pytest.approx(gram[0, 0] * np.eye(F), abs=2e-3)
    projected = (features_to_float(PUBLIC) - PRIOR.centre * FEATURE_UNIT) @ basis.T
    # Of the points themselves; for another point of the kind the spread is a little larger.
    expected = PRIOR.spread * FEATURE_UNIT * np.sqrt((SEEDS - 1) / (SEEDS + 1))
    assert np.sqrt(np.square(projected).sum(axis=1).mean()) == pytest.approx(expected, rel=2e-3)


def test_leading_directions_hold_more_of_the_points_than_any_others() -> None:
    moved = features_to_float(PUBLIC) - features_to_float(PUBLIC).mean(axis=0)
    axes = basis_of(PRIOR) / np.linalg.norm(basis_of(PRIOR), axis=1, keepdims=True)
    held = np.square(moved @ axes.T).sum()
    random = np.linalg.qr(np.random.default_rng(2).standard_normal((D, F)))[0]
    assert held > 1.5 * np.square(moved @ random).sum()
    again = Prior.of_features(PUBLIC, F).basis
    assert again is not None
    assert np.array_equal(again, PRIOR.basis if PRIOR.basis is not None else [])


def test_too_few_points_for_the_directions_are_refused() -> None:
    with pytest.raises(DataError, match="12 points; 12 directions need 13"):
        Prior.of_features(PUBLIC[:F], F)


@pytest.mark.parametrize("length", [None, 0, 7, 9, 16])
def test_a_curator_takes_a_basis_of_the_right_length_and_no_target_without(length: int | None) -> None:
    """Two directions of four coordinates are 8 numbers. Their values do not matter: y is clipped."""
    release = {"mechanism": "subspace", "epsilon": 1.0, "directions": 2}
    session = open_session(
        load(
            {
                "features.dimension": 4,
                "target": release | {"neighbours": "substitute-one"},
                "summary": release | {"neighbours": "add-remove-one"},
            }
        )
    )
    fields: dict[str, Any] = {
        "embedding": np.zeros(4),
        "size": 3,
        "seed_total": np.zeros(4, dtype=np.int64),
        "seed_size": 20,
        "maps": b"",
        "noise": "simulated",
    }
    good = SubspaceTarget(**fields, basis=np.arange(8, dtype=np.int16))
    check_target(good, session)
    prior = prior_of(good)
    assert prior.basis is not None
    assert prior.basis.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert session.summary.statistic(prior).width == session.summary.width == 2
    if length is None:
        bad = Target(**fields)
    else:
        bad = SubspaceTarget.model_construct(**fields, basis=np.zeros(length, dtype=np.int16))
    with pytest.raises(RemoteProtocolError, match="directions were due"):
        check_target(bad, session)
    with pytest.raises(RemoteProtocolError, match="basis"):  # and no session without directions has one
        check_target(good, open_session(load({"features.dimension": 4})))


@pytest.mark.parametrize(
    ("directions", "dimension", "match"),
    [(D + 1, D, "directions"), (65, 4096, str(limits.MAX_BASIS)), (0, D, "directions")],
)
def test_directions_out_of_range_are_refused(directions: int, dimension: int, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        build(replace(TARGET, dimension=dimension), directions=directions)


def test_a_basis_of_too_few_rows_releases_nothing() -> None:
    short = Prior.of_features(PUBLIC, F - 1)
    with pytest.raises(LocalProtocolError, match="basis"):
        build().statistic(short)


# -- the release --------------------------------------------------------------------------------------


def release(setting: Setting, points: Features, seed: int, **parameters: Any) -> npt.NDArray[np.float64]:
    mechanism = build(setting, **parameters)
    noise = SimulatedNoise(seed, "consumer").draw(mechanism.draws(0)[0])
    total = mechanism.statistic(PRIOR).of(points).sum(axis=0)
    return mechanism.stream(prior=PRIOR).release(0, total, len(points), (noise,))


def seed_weights(embedding: npt.NDArray[np.float64], seeds: Features) -> npt.NDArray[np.float64]:
    """A release as weights of the public points, the form that KME Algorithm 1 publishes.

    Args:
        embedding: Embedding from `SubspaceRelease`, float64 of shape (d,), in units of φ.
        seeds: φ of the seed set that gave the basis, int16 of shape (M, d).

    Returns:
        w, float64 of shape (M,), with sum 1 up to rounding. Σ w_i·φ(z_i) is the point of the seed set's
        affine span nearest to the embedding; of all such weights, these are nearest to 1/M each.
    """
    points = features_to_float(seeds)
    mean = points.mean(axis=0)
    solved = np.linalg.lstsq((points - mean).T, embedding - mean, rcond=None)[0]
    # The solution of least length is orthogonal to what changes nothing, the vector of ones among it.
    return np.asarray(solved + 1.0 / len(points))


def test_a_release_lies_in_the_affine_span_of_the_public_points_and_is_a_weighted_sum_of_them() -> None:
    """As KME Algorithm 1 publishes it. The control, a release in all coordinates, is no such sum."""
    points = PHI.hash(np.random.default_rng(5).random((300, 5)))
    released = release(TARGET, points, 1)
    weights = seed_weights(released, PUBLIC)
    assert weights.sum() == pytest.approx(1.0, abs=1e-9)
    # The centre is rounded to the grid, half a unit a coordinate, and so are the basis' coordinates.
    assert weights @ features_to_float(PUBLIC) == pytest.approx(released, abs=2e-3)
    plain = release_mechanism("gaussian", {"neighbours": "substitute-one", "epsilon": 1.0}, TARGET)
    noise = SimulatedNoise(1, "consumer").draw(plain.draws(0)[0])
    other = plain.stream().release(0, points.sum(axis=0, dtype=np.int64), len(points), (noise,))
    left = seed_weights(other, PUBLIC) @ features_to_float(PUBLIC) - other
    assert np.abs(left).max() > 0.01


def test_with_little_noise_a_release_is_the_projection_of_the_mean_embedding() -> None:
    """Points are clipped, and stretched, to one length: so it is at most a fifth off."""
    points = PHI.hash(0.5 * np.random.default_rng(6).random((500, 5)))
    released = release(TARGET, points, 1, epsilon=None, sigma=1e-3)
    mean = features_to_float(points).mean(axis=0)
    centre = PRIOR.centre * FEATURE_UNIT
    axes = basis_of(PRIOR) / np.linalg.norm(basis_of(PRIOR), axis=1, keepdims=True)
    projected = centre + axes.T @ (axes @ (mean - centre))
    assert np.linalg.norm(released - projected) < 0.2 * np.linalg.norm(projected - centre)


def test_few_directions_have_less_error_than_all_coordinates_where_noise_dominates() -> None:
    """For the mean embedding of points like the public ones, at equal ε, on average over 20 draws."""
    points = PHI.hash(np.random.default_rng(7).random((60, 5)))
    mean = features_to_float(points).mean(axis=0)
    filtered = {"neighbours": "substitute-one", "epsilon": 0.3}
    errors = {"subspace": 0.0, "filtered-gaussian": 0.0}
    for seed in range(20):
        errors["subspace"] += np.square(release(TARGET, points, seed, epsilon=0.3) - mean).sum()
        mechanism = release_mechanism("filtered-gaussian", filtered, TARGET)
        noise = SimulatedNoise(seed, "consumer").draw(mechanism.draws(0)[0])
        total = mechanism.statistic(PRIOR).of(points).sum(axis=0)
        made = mechanism.stream(prior=PRIOR).release(0, total, len(points), (noise,))
        errors["filtered-gaussian"] += np.square(made - mean).sum()
    assert errors["subspace"] < 0.5 * errors["filtered-gaussian"]
