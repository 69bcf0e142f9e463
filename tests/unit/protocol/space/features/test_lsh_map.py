"""The feature map `lsh`: its inner products, and what it admits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.space.features import feature_map
from hushbid.protocol.space.features.lsh import LshMap, LshSpace, row_unit
from hushbid.protocol.space.grid import features_to_float
from hushbid.protocol.space.lsh import FAMILIES

COLUMNS = 4
PARAMETERS: dict[str, Any] = {
    "dimension": 4096,
    "gamma": 0.25,
    "lower": np.array([0.0, -1.0, 10.0, 0.0]),
    "upper": np.array([1.0, 1.0, 20.0, 255.0]),
    "columns": COLUMNS,
}


def build(*, seed: int | bytes = 5, options: dict[str, Any] | None = None, **changes: Any) -> LshMap:
    made = feature_map("lsh", seed=seed, options=options, **(PARAMETERS | changes))
    assert isinstance(made, LshMap)
    return made


def points(n: int, seed: int = 1) -> npt.NDArray[np.float64]:
    lower, upper = PARAMETERS["lower"], PARAMETERS["upper"]
    return np.asarray(lower + (upper - lower) * np.random.default_rng(seed).random((n, COLUMNS)))


@pytest.mark.parametrize("family", ["l2", "l1"])
def test_inner_products_approach_the_familys_collision_kernel(family: str) -> None:
    """4096 coordinates in rows of 8: of 780 pairs the largest error is below 0.11, at five standard errors.

    With bandwidth 2 no row of `l2` has more than 8 codes. `l1` spreads the codes of many rows over 8 cells,
    and there a chance of 1/8 comes on top.
    """
    phi = build(options={"family": family, "cells": 8, "bandwidth": 2.0})
    sample = points(40)
    values, scaled = features_to_float(phi.hash(sample)), phi.space.scale(sample)
    functions = FAMILIES[family](
        rows=512,
        width=8,
        lower=np.zeros(COLUMNS),
        upper=np.ones(COLUMNS),
        seed=5,
        bandwidth=2.0,  # type: ignore[call-arg]
    )
    kernel = functions.kernel(scaled, scaled)
    expected = kernel + functions.spread.mean() * (1.0 - kernel) / 8
    off_diagonal = ~np.eye(40, dtype=bool)
    assert np.abs(values @ values.T - expected)[off_diagonal].max() < 0.11
    # The control: the kernel of half the bandwidth is told apart.
    closer = functions.kernel(2.0 * scaled, 2.0 * scaled)
    assert np.abs(values @ values.T - closer)[off_diagonal].max() > 0.15


def test_every_point_has_one_coordinate_of_the_unit_in_each_row() -> None:
    phi = build(dimension=60, options={"cells": 5})
    rows = phi.hash(points(200)).reshape(200, 12, 5)
    assert ((rows != 0).sum(axis=2) == 1).all()
    assert set(np.unique(rows)) == {0, row_unit(12)}
    assert phi.space.rows == 12
    norm = np.sqrt(np.square(rows.astype(np.int64)).sum(axis=(1, 2))) * 2.0**-15
    assert norm.max() <= phi.space.norm_bound == pytest.approx(norm.max(), rel=1e-12)


@pytest.mark.parametrize("change", ["none", "two", "half", "negative", "double", "one short"])
def test_what_is_not_one_cell_a_row_is_not_admitted(change: str) -> None:
    phi = build(dimension=60, options={"cells": 5})
    unit = row_unit(12)
    forged = phi.hash(points(2))
    row = {
        "none": [0, 0, 0, 0, 0],
        "two": [unit, unit, 0, 0, 0],
        "half": [unit // 2, unit // 2, 0, 0, 0],
        "negative": [-unit, 0, 0, 0, 0],
        "double": [2 * unit, -unit, 0, 0, 0],
        "one short": [unit - 1, 0, 0, 0, 0],
    }[change]
    forged[1, 5:10] = row
    assert phi.space.admits(forged).tolist() == [True, False]


def test_the_bandwidth_follows_from_gamma_unless_it_is_given() -> None:
    assert build().space.bandwidth == 2.0
    assert build(options={"bandwidth": 0.7}).space.bandwidth == 0.7
    assert (
        build(options={"bandwidth": 0.7}).digest != build().digest == build(options={"bandwidth": 2.0}).digest
    )


def test_a_point_at_a_bound_that_was_rounded_outwards_is_that_of_the_bound() -> None:
    """float32 bounds are slightly off; the checks let such points pass."""
    phi = build()
    ends = np.vstack([PARAMETERS["lower"], PARAMETERS["upper"]])
    outwards = np.nextafter(ends, np.array([[-np.inf], [np.inf]]))
    assert np.array_equal(phi.hash(ends), phi.hash(outwards))


def test_cells_are_the_same_alone_and_among_others_to_the_last_bit() -> None:
    phi, sample = build(), points(60)
    alone = np.vstack([phi.hash(row[None]) for row in sample])
    assert np.array_equal(alone, phi.hash(sample))


@pytest.mark.parametrize(
    ("options", "dimension"),
    [
        ({"family": "srp"}, 60),
        ({"cells": 1}, 60),
        ({"cells": 7}, 60),
        ({"cells": 60}, 60),
        ({"bandwidth": 0.0}, 60),
        ({"bandwidth": 1e-9}, 60),
    ],
    ids=str,
)
def test_options_out_of_range_are_refused(options: dict[str, Any], dimension: int) -> None:
    with pytest.raises(ConfigError) as caught:
        build(dimension=dimension, options=options)
    assert caught.value.advice


def test_what_is_public_of_a_secret_map_does_not_depend_on_its_seed() -> None:
    """The curator has the space: no hash function is made before there is a seed."""
    space = LshSpace(**PARAMETERS)
    assert not any(isinstance(value, LshMap) or hasattr(value, "digest") for value in vars(space).values())
    first, second = (space.map(bytes([number]) * 32) for number in (1, 2))
    assert first.digest != second.digest
    assert not np.array_equal(first.hash(points(20)), second.hash(points(20)))
