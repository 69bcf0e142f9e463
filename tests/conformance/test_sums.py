"""Every sum over records that gets noise: one more record adds its own whole numbers, and no more.

The sum of any records equals the sum of each one's own, bit for bit, in any order and memory layout. Records
lie next to rounding boundaries. Sums of sessions are tested in `test_row_independence` (φ) and here
(`Statistic`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.catalogue.kme import KmeRelease, feature_map_of
from hushbid.catalogue.race import HashSection, exact_counts, hash_family_of
from hushbid.kme.kernels import kernel
from hushbid.kme.mechanisms import FeatureMechanism
from hushbid.kme.subspace import KERNEL_BITS, span
from hushbid.protocol.config.session import FeatureSection
from hushbid.protocol.data import Dataset
from hushbid.protocol.privacy.noise import Draw
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.privacy.releases.statistic import ONE, Statistic
from hushbid.protocol.space.lsh import FAMILIES, StableFamily
from hushbid.race import counts
from hushbid.race.counts import count_cells
from hushbid.race.estimator import make_family
from hushbid.race.marginals import measure_marginals
from hushbid.race.reference import in_ball
from hushbid.race.release import calibrate
from tests.boundaries import Hash, at_boundaries, views
from tests.conformance.float_maps import TurningSpace

Points = npt.NDArray[Any]
Sum = Callable[[Points], npt.NDArray[Any]]

COLUMNS: Final = 24
PAIRS: Final = 20
FEATURES: Final = FeatureSection(dimension=60, gamma=2.0, seed=3, columns=COLUMNS)
CELLS: Final = HashSection(family="l1", rows=40, width=64, bandwidth=0.4, seed=3, columns=COLUMNS)
PRIVACY: Final[dict[str, Any]] = {"neighbours": Neighbours.ADD_REMOVE_ONE, "epsilon": 1.0, "delta": 1e-5}


class NoNoise:
    """A source whose noise is all 0: the release is the sum itself."""

    name, protects = "none", False

    def draw(self, request: Draw) -> npt.NDArray[np.int64]:
        return np.zeros(request.size, dtype=np.int64)


def points(seed: int, count: int = PAIRS) -> Points:
    return np.random.default_rng(seed).uniform(size=(count, COLUMNS))


def entry_of_features() -> tuple[Sum, Hash]:
    calibration = KmeRelease.calibration(FEATURES, **PRIVACY)

    def total(records: Points) -> Points:
        dataset = Dataset.from_arrays("records", records)
        released = KmeRelease.of(dataset, FEATURES, calibration, NoNoise())  # type: ignore[arg-type]
        return np.append(released.total, released.count)

    return total, feature_map_of(FEATURES).hash


def entry_of_counts() -> tuple[Sum, Hash]:
    family = hash_family_of(CELLS)
    return lambda records: exact_counts(family, Dataset.from_arrays("records", records)), family.hash


def algorithm_1() -> tuple[Sum, Hash]:
    found = span(points(5, 6), 0.3, np.random.default_rng(1))
    pivots = found.points[found.pivots]
    return found.kernel_sums, lambda x: np.rint(kernel(x, pivots, found.gamma) * 2.0**KERNEL_BITS)


def algorithm_2() -> tuple[Sum, Hash]:
    found = FeatureMechanism(
        COLUMNS, gamma=2.0, dimension=60, count=4, norm=1.0, weights="optimised", seed=3, **PRIVACY
    )
    return found.totals, found.map.hash


def sketch(name: str) -> tuple[Sum, Hash]:
    parameters: dict[str, Any] = {"bandwidth": 0.4} if issubclass(FAMILIES[name], StableFamily) else {}
    parameters |= {"lower": np.zeros(COLUMNS), "upper": np.ones(COLUMNS)}
    family = make_family(name, rows=40, width=64, seed=3, power=2, **parameters)
    if name == "asymmetric-srp":  # as regression sketches have it
        return lambda x: count_cells(family, in_ball(x)), lambda x: family.hash(in_ball(x))
    return lambda x: count_cells(family, x), family.hash


def histograms() -> tuple[Sum, Hash]:
    """The histograms of regressions, read off the marginals made of them: of some, as columns are alike."""
    steps, columns = 33, 8
    calibration = calibrate(
        rows=columns, cells=columns * steps, neighbours=Neighbours.SUBSTITUTE_ONE, epsilon=1e6
    )

    def bins(x: Points) -> Points:
        return np.array(np.rint(x[:, :columns] * (steps - 1)))

    def total(x: Points) -> Points:
        marginals, _ = measure_marginals(2.0 * x[:, :columns] - 1.0, steps, calibration, NoNoise())  # type: ignore[arg-type]
        shares = np.diff(marginals.cumulative, axis=1, prepend=0.0)
        return np.rint(shares * len(x)).astype(np.int64)

    return total, bins


SUMS: Final[dict[str, Callable[[], tuple[Sum, Hash]]]] = {
    "entry of features": entry_of_features,
    "entry of counts": entry_of_counts,
    "algorithm 1": algorithm_1,
    "algorithm 2": algorithm_2,
    "histograms": histograms,
    **{f"sketch, {name}": lambda name=name: sketch(name) for name in FAMILIES},  # type: ignore[misc]
}


def wrong_views(total: Sum, hash: Hash) -> list[str]:
    """Records whose sum differs from the sum of their own."""
    records = at_boundaries(hash, points(1), points(2))
    alone = np.stack([total(record[None]) for record in records])
    found = [
        f"{count} records"
        for count in range(1, len(records) + 1)
        if not np.array_equal(total(records[:count]), alone[:count].sum(axis=0))
    ]
    return found + [
        what
        for what, view, rows in views(records)
        if not np.array_equal(total(view), alone[rows].sum(axis=0))
    ]


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_is_that_of_each_record_by_itself(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Chunks of 7 rows: many of them end with a row or two.
    monkeypatch.setattr(counts, "CHUNK_CODES", 7 * 40)
    assert wrong_views(*SUMS[name]()) == []


def test_sums_of_a_map_whose_arithmetic_turns_with_the_number_of_rows_are_found_out() -> None:
    space = TurningSpace(dimension=60, gamma=2.0, lower=0.0, upper=1.0, columns=COLUMNS)
    hash = space.map(3).hash
    found = wrong_views(lambda x: hash(x).sum(axis=0, dtype=np.int64), hash)
    assert set(found) & {f"{count} records" for count in range(18, 2 * PAIRS + 1)}
    assert not set(found) & {f"{count} records" for count in range(1, 18)}


@pytest.mark.parametrize("kind", ["identity", "clipped", "in a basis"])
def test_a_statistic_follows_from_its_own_features_whatever_they_are(kind: str) -> None:
    """Including forged ones: any 16-bit numbers."""
    dimension, generator = 60, np.random.default_rng(4)
    centre = None if kind == "identity" else generator.integers(-ONE // 8, ONE // 8, dimension)
    basis = generator.integers(-(2**14), 2**14, (9, dimension)).astype(np.int16)
    statistic = Statistic(dimension, centre, ONE // 2, basis if kind == "in a basis" else None)
    features = np.concatenate(
        [
            generator.integers(-(2**15), 2**15, (40, dimension)),
            generator.integers(-ONE // 16, ONE // 16, (40, dimension)),
            np.full((1, dimension), -(2**15)),
        ]
    ).astype(np.int16)
    together = statistic.of(features)
    for what, view, rows in views(features):
        assert np.array_equal(statistic.of(view), together[rows]), what
