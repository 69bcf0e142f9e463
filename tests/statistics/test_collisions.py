"""Points collide as often as the families' closed-form kernels say.

A family of many rows is as many independent functions. For each pair of points the number of rows in which
they collide is binomial with the kernel's probability. Everything is seeded: these tests pass always or
never. With other seeds each would fail with a probability under PAIRS·ALPHA = 10⁻⁵. Controls, with the kernel
of a slightly different bandwidth or of another power, must fail at the same ALPHA and sample size.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from hushbid.protocol.space.lsh import AsymmetricFamily, HashFamily, L1Family, L2Family
from hushbid.protocol.space.lsh.signed import SignedFamily

PAIRS: Final = 10
ALPHA: Final = 1e-6
ROWS: Final = 20_000

FAMILIES: Final[dict[str, tuple[type[HashFamily], dict[str, Any], dict[str, Any]]]] = {
    # The class, its parameters, and what the control takes instead.
    "l2": (L2Family, {"bandwidth": 0.5}, {"bandwidth": 0.55}),
    "l2, power 3": (L2Family, {"bandwidth": 1.0, "power": 3}, {"bandwidth": 1.1, "power": 3}),
    "l1": (L1Family, {"bandwidth": 0.7}, {"bandwidth": 0.8}),
    "l1, power 2": (L1Family, {"bandwidth": 1.5, "power": 2}, {"bandwidth": 1.5, "power": 1}),
    "srp": (SignedFamily, {}, {"power": 2}),
    "srp, power 4": (SignedFamily, {"power": 4}, {"power": 3}),
    "asymmetric-srp": (AsymmetricFamily, {"power": 2}, {"power": 1}),
}


def family(
    name: str, *, control: bool = False, width: int = 2**20, rows: int = ROWS, sampling: Any = "independent"
) -> HashFamily:
    kind, parameters, other = FAMILIES[name]
    chosen = {"sampling": sampling} | (other if control else parameters)
    return kind(rows=rows, width=width, lower=[-0.5] * 3, upper=[0.5] * 3, seed=5, **chosen)


def pairs() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Ten pairs at distances from 0.01 to about 1."""
    rng = np.random.default_rng(1)
    points = rng.uniform(-0.5, 0.5, (PAIRS, 3))
    towards = rng.uniform(-0.5, 0.5, (PAIRS, 3)) - points
    steps = np.geomspace(0.02, 1.0, PAIRS)[:, None]
    return points, points + steps * towards


@cache
def counted(name: str, width: int, sampling: str) -> tuple[tuple[int, ...], float]:
    """In how many rows each pair collides; and how often one that is far apart does by chance."""
    drawn = family(name, width=width, sampling=sampling)
    points, queries = pairs()
    collided = np.count_nonzero(drawn.hash(points) == drawn.hash_queries(queries), axis=1)
    # Rows that spread collide by chance besides; the others do not.
    chance = float(np.mean(np.where(drawn.spread, 1.0 / drawn.cells, 0.0)))
    return tuple(collided.tolist()), chance


def smallest_pvalue(
    name: str, *, control: bool = False, width: int = 2**20, sampling: str = "independent"
) -> float:
    collided, chance = counted(name, width, sampling)
    probabilities = np.diag(family(name, control=control, rows=1).kernel(*pairs()))
    if not control:
        probabilities = probabilities + (1.0 - probabilities) * chance
    return min(
        float(stats.binomtest(count, ROWS, min(float(probability), 1.0)).pvalue)
        for count, probability in zip(collided, probabilities, strict=True)
    )


@pytest.mark.parametrize("sampling", ["independent", "sobol"])
@pytest.mark.parametrize("name", FAMILIES)
def test_collisions_are_as_frequent_as_the_kernel_says(name: str, sampling: str) -> None:
    """Sobol rows are not independent; being spread out, they stray less than binomial counts."""
    assert smallest_pvalue(name, sampling=sampling) > ALPHA


@pytest.mark.parametrize("sampling", ["independent", "sobol"])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_kernel_of_another_bandwidth_or_power_is_found_out(name: str, sampling: str) -> None:
    assert smallest_pvalue(name, control=True, sampling=sampling) < ALPHA


@pytest.mark.parametrize("name", ["l2, power 3", "srp, power 4"])
def test_spread_rows_collide_by_chance_once_in_as_many_as_they_have_cells(name: str) -> None:
    assert family(name, width=5, rows=50).spread.all()
    kind, parameters, _ = FAMILIES[name]
    assert smallest_pvalue(name, width=5) > ALPHA
    collided, _ = counted(name, 5, "independent")
    without_chance = np.diag(
        kind(rows=1, width=5, lower=[-0.5] * 3, upper=[0.5] * 3, seed=5, **parameters).kernel(*pairs())
    )
    assert stats.binomtest(collided[-1], ROWS, float(without_chance[-1])).pvalue < ALPHA


@pytest.mark.parametrize("name", FAMILIES)
def test_a_kernel_is_a_probability_and_1_of_a_point_with_itself(name: str) -> None:
    points, queries = pairs()
    chosen = family(name, rows=1)
    kernel = chosen.kernel(points, queries)
    assert kernel.shape == (PAIRS, PAIRS)
    assert ((kernel >= 0.0) & (kernel <= 1.0)).all()
    if "asymmetric" not in name:
        assert np.allclose(np.diag(chosen.kernel(points, points)), 1.0, atol=1e-6)
