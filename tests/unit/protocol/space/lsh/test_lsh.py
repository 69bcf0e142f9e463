"""Hash families: reachable cells, exact projections, digests, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.protocol.errors import ConfigError, DataError, LocalProtocolError
from hushbid.protocol.space.lsh import FAMILIES, AsymmetricFamily, HashFamily, L1Family, L2Family
from hushbid.protocol.space.lsh.projection import MAX_REACH, ExactProjection
from hushbid.protocol.space.lsh.signed import SignedFamily

COMMON: dict[str, Any] = {"rows": 7, "width": 64, "lower": [-0.5] * 3, "upper": [0.5] * 3, "seed": 1}

MAKE: dict[str, Callable[..., HashFamily]] = {
    "l2": lambda **changed: L2Family(**COMMON | {"bandwidth": 0.3} | changed),
    "l1": lambda **changed: L1Family(**COMMON | {"bandwidth": 0.3} | changed),
    "srp": lambda **changed: SignedFamily(**COMMON | changed),
    "asymmetric-srp": lambda **changed: AsymmetricFamily(**COMMON | changed),
}


def points(count: int = 200, seed: int = 0) -> npt.NDArray[np.float64]:
    return np.random.default_rng(seed).uniform(-0.5, 0.5, (count, 3))


def test_every_family_is_tested() -> None:
    assert set(MAKE) == set(FAMILIES)


@pytest.mark.parametrize("sampling", ["independent", "sobol"])
@pytest.mark.parametrize("power", [1, 3])
@pytest.mark.parametrize("name", MAKE)
def test_points_within_the_bounds_reach_only_cells_that_there_are(
    name: str, power: int, sampling: str
) -> None:
    family = MAKE[name](power=power, sampling=sampling)
    corners = np.array(np.meshgrid(*[[-0.5, 0.5]] * 3)).reshape(3, -1).T
    cells = family.hash(np.vstack([corners, points()]))
    assert cells.shape == (208, 7)
    assert cells.dtype == np.int32
    assert (cells >= 0).all()
    assert (cells < family.cells).all()
    assert (family.cells <= 64).all()


@pytest.mark.parametrize("name", MAKE)
def test_a_code_does_not_depend_on_the_other_points_or_on_their_order(name: str) -> None:
    family = MAKE[name](power=2)
    together = family.hash(points())
    apart = np.vstack([family.hash(row[None]) for row in points()])
    assert np.array_equal(together, apart)
    assert np.array_equal(together[::-1], family.hash(points()[::-1]))


@pytest.mark.parametrize("name", MAKE)
def test_the_same_arguments_make_the_same_functions(name: str) -> None:
    one, other = MAKE[name](), MAKE[name]()
    assert one.digest == other.digest
    assert np.array_equal(one.hash(points()), other.hash(points()))


@pytest.mark.parametrize(
    "changed",
    [{"seed": 2}, {"rows": 8}, {"width": 65}, {"power": 2}, {"upper": 0.6}, {"sampling": "sobol"}],
    ids=str,
)
@pytest.mark.parametrize("name", MAKE)
def test_the_digest_tells_other_functions(name: str, changed: dict[str, Any]) -> None:
    assert MAKE[name](**changed).digest != MAKE[name]().digest


def test_the_digest_tells_what_another_library_draws_of_the_same_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = {name: MAKE[name]().digest for name in MAKE}
    normals = HashFamily._normals
    monkeypatch.setattr(HashFamily, "_normals", lambda self, columns: normals(self, columns)[::-1])
    assert {name for name in MAKE if MAKE[name]().digest != before[name]} == {"l2", "srp", "asymmetric-srp"}


def test_the_digest_tells_families_and_bandwidths() -> None:
    digests = {MAKE[name]().digest for name in MAKE}
    assert len(digests | {MAKE["l2"](bandwidth=0.31).digest}) == 5


@pytest.mark.parametrize(
    "changed",
    [
        {"rows": 0},
        {"width": 1},
        {"power": 0},
        {"seed": -1},
        {"sampling": "even"},
        {"lower": 0.5},
        {"upper": [0.5, np.inf, 0.5]},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", MAKE)
def test_functions_that_cannot_be_are_refused(name: str, changed: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=name):
        MAKE[name](**changed)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, np.nan, 1e-12])
def test_a_bandwidth_that_cannot_be_is_refused(bandwidth: float) -> None:
    with pytest.raises(ConfigError, match="bandwidth"):
        MAKE["l2"](bandwidth=bandwidth)


@pytest.mark.parametrize("value", [0.6, -0.51, np.nan, np.inf])
@pytest.mark.parametrize("name", MAKE)
def test_points_out_of_bounds_are_counted_and_refused(name: str, value: float) -> None:
    bad = points(5)
    bad[3, 1] = value
    with pytest.raises(DataError, match="1 of 5 points lie outside"):
        MAKE[name]().hash(bad)


@pytest.mark.parametrize("bad", [np.zeros((2, 4)), np.zeros(3), np.zeros((2, 3), dtype=np.float32)], ids=str)
def test_points_of_another_shape_or_type_are_refused(bad: npt.NDArray[Any]) -> None:
    with pytest.raises(DataError, match=r"shape \(n, 3\)"):
        MAKE["l2"]().hash(bad)


def test_asymmetric_points_lie_in_the_unit_ball_and_queries_anywhere_but_at_0() -> None:
    family = AsymmetricFamily(rows=5, width=4, lower=[-1.0] * 2, upper=[1.0] * 2, seed=0, power=2)
    with pytest.raises(DataError, match="1 of 2 points lie outside of the unit ball"):
        family.hash(np.array([[0.6, 0.8], [0.9, 0.9]]))
    queries = np.array([[3.0, 4.0], [1e-3, 0.0]])
    assert np.array_equal(family.hash_queries(queries), family.hash_queries(7.0 * queries))
    with pytest.raises(DataError, match="not all 0"):
        family.hash_queries(np.zeros((1, 2)))


def test_a_projection_is_exact_in_any_order_of_summation() -> None:
    rng = np.random.default_rng(0)
    projection = ExactProjection(rng.standard_cauchy((9, 33)), reach=50.0)
    x = rng.uniform(-50.0, 50.0, (40, 33))
    found = projection.of(x)
    order = rng.permutation(33)
    again = ExactProjection(projection.directions[:, order], reach=50.0)
    assert np.array_equal(found, again.of(np.ascontiguousarray(x[:, order])))
    exact = x @ projection.directions.T
    assert np.abs(found - exact).max() < 33 * 2.0**-18 * np.abs(projection.directions).max()


@pytest.mark.parametrize("columns", [1, 4096, 2**16])
def test_corners_of_many_columns_reach_only_cells_that_there_are(columns: int) -> None:
    # Neither bound is a multiple of what points are rounded to, and a corner is rounded outwards throughout.
    family = L2Family(
        rows=20, width=2**20, bandwidth=0.7, lower=[-1.0] * columns, upper=[1.0] * columns, seed=1
    )
    corners = np.where(family._projection.directions > 0.0, 1.0, -1.0)
    cells = family.hash(np.vstack([corners, -corners]))
    assert not family.spread.any()
    assert (cells >= 0).all()
    assert (cells < family.cells).all()


@pytest.mark.parametrize("reach", [2.0**-40, 2.0**-800])
def test_directions_of_short_points_are_told_apart_as_those_of_long_ones(reach: float) -> None:
    x = np.random.default_rng(1).uniform(-0.5, 0.5, (40, 3))
    near = MAKE["srp"](lower=[-reach / 2.0] * 3, upper=[reach / 2.0] * 3)
    # Scaled by a power of two, they have the same bits.
    assert np.array_equal(near.hash(x * reach), MAKE["srp"]().hash(x))


def test_points_that_hardly_reach_anywhere_have_cells() -> None:
    family = MAKE["srp"](lower=[-5e-324] * 3, upper=[5e-324] * 3)
    assert np.isin(family.hash(np.array([[5e-324, 0.0, -5e-324]])), [0, 1]).all()


def test_a_projection_refuses_what_it_could_not_hold() -> None:
    with pytest.raises(ConfigError, match="bandwidths"):
        ExactProjection(np.ones((1, 2)), reach=2 * MAX_REACH)
    with pytest.raises(LocalProtocolError):
        ExactProjection(np.full((1, 2), np.nan), reach=1.0)
    with pytest.raises(LocalProtocolError, match="farther out"):
        ExactProjection(np.ones((1, 2)), reach=1.0).of(np.array([[0.0, 1.5]]))


def test_rows_that_are_spread_out_have_a_mean_nearer_to_the_kernel() -> None:
    x = points(20)

    def error(sampling: str) -> float:
        found = []
        for seed in range(20):
            family = MAKE["l2"](rows=200, seed=seed, sampling=sampling)
            cells = family.hash(x)
            rates = (cells[:, None] == cells[None]).mean(axis=2)
            found.append(np.mean((rates - family.kernel(x, x)) ** 2))
        return float(np.mean(found))

    # The ratio is 0.58 over 400 seeds; over 20 it varies by 0.035.
    assert error("sobol") < 0.7 * error("independent")


def test_a_row_of_more_coordinates_than_the_sequence_has_is_refused() -> None:
    wide = {"lower": [0.0] * 8000, "upper": [1.0] * 8000, "power": 3, "sampling": "sobol"}
    with pytest.raises(ConfigError, match="independent sampling"):
        MAKE["srp"](**wide)
