"""The contract of every registered feature map. A new map is tested once it is registered."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.protocol import limits
from hushbid.protocol.errors import ConfigError, DataError, LocalProtocolError
from hushbid.protocol.privacy.releases.base import largest_coordinate, largest_norm
from hushbid.protocol.space.features import (
    FEATURE_SPACES,
    SEED_BYTES,
    FeatureMap,
    FeatureSpace,
    feature_map,
    feature_space,
)
from hushbid.protocol.space.features import base as features_base
from hushbid.protocol.space.features.fourier import FourierSpace
from hushbid.protocol.space.grid import FEATURE_UNIT, features_to_float

COLUMNS = 6
PARAMETERS: dict[str, Any] = {
    "seed": 5,
    "dimension": 140,
    "gamma": 0.3,
    "lower": np.array([0.0, -1.0, 10.0, 0.0, 0.0, -50.0]),
    "upper": np.array([1.0, 1.0, 20.0, 255.0, 1e-3, 50.0]),
    "columns": COLUMNS,
}

every_map = pytest.mark.parametrize("name", sorted(FEATURE_SPACES))
every_fourier_map = pytest.mark.parametrize(
    "name", sorted(name for name, kind in FEATURE_SPACES.items() if issubclass(kind, FourierSpace))
)
"""Maps whose inner products approach the RBF kernel; for `lsh` see test_lsh_map.py."""
every_dimension = pytest.mark.parametrize("dimension", ["least", 12, 140, limits.MAX_DIMENSION])


def least_dimension(name: str) -> int:
    """The smallest dimension that the map accepts."""
    for dimension in range(limits.MIN_DIMENSION, 140):
        try:
            space_of(name, dimension=dimension)
        except ConfigError:
            continue
        return dimension
    raise LookupError


def build(name: str, **changes: Any) -> FeatureMap:
    if changes.get("dimension") == "least":
        changes["dimension"] = least_dimension(name)
    return feature_map(name, **(PARAMETERS | changes))


def space_of(name: str, **changes: Any) -> FeatureSpace:
    parameters = PARAMETERS | changes
    return feature_space(name, **{key: value for key, value in parameters.items() if key != "seed"})


def points(n: int, seed: int = 1) -> npt.NDArray[np.float64]:
    lower, upper = PARAMETERS["lower"], PARAMETERS["upper"]
    return np.asarray(lower + (upper - lower) * np.random.default_rng(seed).random((n, COLUMNS)))


@every_map
@every_dimension
def test_honest_features_are_admitted_and_within_the_bounds(name: str, dimension: Any) -> None:
    phi = build(name, dimension=dimension)
    hashed = phi.hash(points(500))
    assert hashed.dtype == np.int16
    assert hashed.shape == (500, phi.space.dimension)
    assert phi.space.admits(hashed).all()
    values = features_to_float(hashed)
    assert np.linalg.norm(values, axis=1).max() <= phi.space.norm_bound
    assert np.abs(values).max() <= phi.space.coordinate_bound


@every_map
@every_dimension
def test_what_a_forger_gets_admitted_is_within_the_bounds(name: str, dimension: Any) -> None:
    """Coordinates are pushed outwards one unit at a time, until nothing more is admitted."""
    phi = build(name, dimension=dimension)
    row = phi.hash(points(1)).astype(np.int64)
    for step in (1000, 100, 10, 1):
        for i in range(0, phi.space.dimension, max(1, phi.space.dimension // 16)):
            while True:
                pushed = row.copy()
                pushed[0, i] += step if row[0, i] >= 0 else -step
                if np.abs(pushed).max() > 2**15 - 1 or not phi.space.admits(pushed.astype(np.int16))[0]:
                    break
                row = pushed
    assert np.linalg.norm(row * FEATURE_UNIT) <= phi.space.norm_bound
    assert np.abs(row).max() * FEATURE_UNIT <= phi.space.coordinate_bound


@every_map
@every_dimension
def test_the_bounds_are_no_larger_than_what_releases_assume(name: str, dimension: Any) -> None:
    phi = build(name, dimension=dimension)
    assert phi.space.norm_bound <= largest_norm(phi.space.dimension)
    assert phi.space.norm_bound <= math.sqrt(2) * 1.002
    assert phi.space.coordinate_bound < 1.0


@every_fourier_map
@every_dimension
def test_coordinates_of_cosines_are_no_larger_than_what_releases_assume(name: str, dimension: Any) -> None:
    phi = build(name, dimension=dimension)
    dimension = phi.space.dimension
    assert phi.space.coordinate_bound == pytest.approx(math.sqrt(2 / dimension), rel=0.002)
    assert phi.space.coordinate_bound <= largest_coordinate(dimension) * FEATURE_UNIT


@every_map
@pytest.mark.parametrize("value", [-(2**15), 2**15 - 1])
def test_a_coordinate_at_the_end_of_int16_is_not_admitted(name: str, value: int) -> None:
    phi = build(name)
    forged = phi.hash(points(4))
    forged[1, 0] = value
    forged[3, :] = value
    assert phi.space.admits(forged).tolist() == [True, False, True, False]


@every_map
def test_admits_takes_features_of_its_own_shape_only(name: str) -> None:
    space = space_of(name)
    for wrong in (np.zeros((2, 139), np.int16), np.zeros(140, np.int16), np.zeros((2, 140), np.int32)):
        with pytest.raises(LocalProtocolError):
            space.admits(wrong)  # type: ignore[arg-type]


@every_fourier_map
def test_inner_products_approach_the_rbf_kernel(name: str) -> None:
    """4096 features: the largest error of 1225 pairs is below 0.06, at five standard errors."""
    phi = build(name, dimension=limits.MAX_DIMENSION)
    sample = points(50)
    values, scaled = features_to_float(phi.hash(sample)), phi.space.scale(sample)
    squared = ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2)
    off_diagonal = ~np.eye(50, dtype=bool)
    errors = np.abs(values @ values.T - np.exp(-PARAMETERS["gamma"] * squared))[off_diagonal]
    assert errors.max() < 0.06
    # The control: a kernel of another width is told apart.
    assert np.abs(values @ values.T - np.exp(-2.0 * squared))[off_diagonal].max() > 0.2


@every_map
def test_one_seed_gives_one_map_and_another_another(name: str) -> None:
    sample = points(3)
    first, again, other = build(name), build(name), build(name, seed=6)
    assert first.digest == again.digest != other.digest
    assert len(first.digest) == hashlib.sha256().digest_size
    assert np.array_equal(first.hash(sample), again.hash(sample))
    assert not np.array_equal(first.hash(sample), other.hash(sample))
    assert build(name, seed=2**255).digest != first.digest


@every_map
def test_a_space_makes_the_map_of_any_seed(name: str) -> None:
    space, sample = space_of(name), points(3)
    made = space.map(PARAMETERS["seed"])
    assert made.space is space
    assert (made.digest, made.hash(sample).tobytes()) == (
        build(name).digest,
        build(name).hash(sample).tobytes(),
    )


@every_map
def test_a_space_without_a_map_knows_all_that_is_public_and_hashes_nothing(name: str) -> None:
    """A curator has this of a secret map: it does not depend on the seed, and detects forgeries."""
    space, public = (
        space_of(name),
        {"name", "dimension", "columns", "gamma", "norm_bound", "coordinate_bound"},
    )
    for seed in (5, bytes(range(SEED_BYTES))):
        phi = build(name, seed=seed)
        assert {key: getattr(space, key) for key in public} == {
            key: getattr(phi.space, key) for key in public
        }
        hashed = phi.hash(points(20))
        assert space.admits(hashed).all()
        assert np.array_equal(space.scale(points(20)), phi.space.scale(points(20)))
    assert not hasattr(space, "hash")
    assert not hasattr(space, "digest")


# -- secret seeds ------------------------------------------------------------------------------------


@every_map
def test_every_bit_of_a_secret_seed_makes_another_map(name: str) -> None:
    """256 bits are secret only if all of them matter: each bit must change the map."""
    seeds = [bytes(SEED_BYTES)]
    seeds += [(1 << bit).to_bytes(SEED_BYTES, "little") for bit in range(8 * SEED_BYTES)]
    space = space_of(name, dimension=least_dimension(name))
    assert len({space.map(seed).digest for seed in seeds}) == 8 * SEED_BYTES + 1


@every_map
def test_a_secret_seed_is_none_of_the_numbers_that_a_session_file_may_have(name: str) -> None:
    """Even with the same bits: a secret map must not be among those that anybody can list."""
    space = space_of(name)
    for number in (0, 1, 2**63 - 1):
        assert space.map(number.to_bytes(SEED_BYTES, "little")).digest != space.map(number).digest


@every_map
def test_a_secret_seed_gives_one_map_and_honest_features(name: str) -> None:
    seed = bytes(range(SEED_BYTES))
    first, again = build(name, seed=seed), space_of(name).map(seed)
    assert first.digest == again.digest
    hashed = first.hash(points(50))
    assert np.array_equal(hashed, again.hash(points(50)))
    assert first.space.admits(hashed).all()


@every_map
@pytest.mark.parametrize("length", [0, 16, SEED_BYTES - 1, SEED_BYTES + 1, 64])
def test_a_secret_seed_of_another_length_is_refused_and_not_shown(name: str, length: int) -> None:
    with pytest.raises(LocalProtocolError, match=f"of {length} bytes") as caught:
        build(name, seed=b"\x51" * length)
    assert "QQ" not in str(caught.value)


@every_map
@pytest.mark.parametrize(
    "change", [{"dimension": 144}, {"gamma": 0.30001}, {"columns": 5, "lower": 0.0, "upper": 1.0}]
)
def test_the_digest_tells_maps_of_other_parameters_apart(name: str, change: dict[str, Any]) -> None:
    assert build(name, **change).digest != build(name).digest


def test_maps_of_different_names_have_different_digests() -> None:
    assert len({build(name).digest for name in FEATURE_SPACES}) == len(FEATURE_SPACES)


@every_map
def test_points_are_scaled_by_the_public_bounds(name: str) -> None:
    phi = build(name)
    ends = np.vstack([PARAMETERS["lower"], PARAMETERS["upper"]])
    assert phi.space.scale(ends) == pytest.approx(np.vstack([np.zeros(COLUMNS), np.ones(COLUMNS)]))
    unit = build(name, lower=0.0, upper=1.0)
    sample = points(20)
    difference = phi.hash(sample).astype(int) - unit.hash(phi.space.scale(sample)).astype(int)
    assert np.abs(difference).max() <= 1


@every_map
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.7e308])
def test_a_value_that_is_not_finite_is_refused_by_row(
    name: str, bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    phi = build(name)
    sample = points(20)
    sample[13, 4] = bad
    for chunk in (features_base.CHUNK_VALUES, 5 * COLUMNS):
        monkeypatch.setattr(features_base, "CHUNK_VALUES", chunk)
        with pytest.raises(DataError, match="Row 13"):
            phi.hash(sample)


@every_map
@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((3, COLUMNS + 1)),
        np.zeros(COLUMNS),
        np.zeros((3, COLUMNS), complex),
        np.full((3, COLUMNS), "a"),
    ],
)
def test_points_of_another_shape_or_kind_are_refused(name: str, wrong: Any) -> None:
    for method in (build(name).hash, space_of(name).scale):
        with pytest.raises(DataError, match="shape"):
            method(wrong)


@every_map
@pytest.mark.parametrize(
    "change",
    [
        {"seed": -1},
        {"dimension": limits.MIN_DIMENSION - 2},
        {"dimension": limits.MAX_FEATURES + 2},
        {"gamma": 0.0},
        {"gamma": math.nan},
        {"gamma": math.inf},
        {"columns": 0, "lower": 0.0, "upper": 1.0},
        {"columns": limits.MAX_COLUMNS + 1, "lower": 0.0, "upper": 1.0},
        {"lower": 1.0, "upper": 1.0},
        {"lower": math.nan},
        {"upper": math.inf},
        {"lower": -1.7e308, "upper": 1.7e308},
        {"lower": np.zeros(COLUMNS + 1)},
    ],
    ids=str,
)
def test_a_parameter_out_of_range_is_refused(name: str, change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        build(name, **change)


def test_bounds_that_enclose_nothing_are_refused_by_column() -> None:
    upper = PARAMETERS["upper"].copy()
    upper[3] = 0.0
    with pytest.raises(ConfigError, match="column 3"):
        build("paired", upper=upper)


def test_paired_needs_an_even_dimension() -> None:
    with pytest.raises(ConfigError, match="odd"):
        build("paired", dimension=141)
    assert space_of("cosine", dimension=141).dimension == 141


def test_an_unknown_map_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigError, match="paired"):
        build("sine")


def test_paired_has_unit_norm_and_cosine_does_not() -> None:
    paired, cosine = (features_to_float(build(name).hash(points(200))) for name in ("paired", "cosine"))
    assert np.linalg.norm(paired, axis=1) == pytest.approx(np.ones(200), abs=2e-4)
    norms = np.linalg.norm(cosine, axis=1)
    assert norms.max() - norms.min() > 0.1
    assert space_of("cosine").norm_bound == pytest.approx(math.sqrt(2), rel=1e-3)


@every_map
def test_a_key_that_is_another_maps_is_refused(name: str) -> None:
    foreign = {"family", "cells", "bandwidth"} - FEATURE_SPACES[name].options
    for key in foreign:
        with pytest.raises(ConfigError, match=key) as caught:
            space_of(name, options={key: 4})
        assert "features" in caught.value.advice


@every_map
def test_random_features_are_admitted(name: str) -> None:
    space = space_of(name)
    made = space.random_features(30, np.random.default_rng(1))
    assert made.shape == (30, space.dimension)
    assert made.dtype == np.int16
    assert space.admits(made).all()
    assert len(np.unique(made, axis=0)) == 30
