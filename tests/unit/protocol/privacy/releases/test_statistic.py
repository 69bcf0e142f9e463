"""The integer vector that each point adds to a total: no longer than 1, for any int16 vector."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hushbid.protocol import limits
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.privacy.releases.statistic import ONE, Statistic
from hushbid.protocol.space.grid import Features, Totals

LOWEST, HIGHEST = -(2**15), 2**15 - 1


@st.composite
def adversarial(draw: st.DrawFn) -> tuple[Statistic, Features]:
    """Centres, radii and rows of any kind: extremes, near the centre, on the radius, random."""
    dimension = draw(st.sampled_from([1, 2, 5, 140, limits.MAX_DIMENSION]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([1, 100, ONE]))
    centre = rng.integers(-scale, scale + 1, dimension)
    radius = draw(st.one_of(st.sampled_from([1, ONE, 2 * ONE]), st.integers(1, 2 * ONE)))
    near = np.clip(centre + rng.integers(-3, 4, dimension), LOWEST, HIGHEST)
    offset = rng.standard_normal(dimension)
    on_the_radius = np.clip(centre + np.rint(offset * (radius / np.linalg.norm(offset))), LOWEST, HIGHEST)
    rows = [
        np.full(dimension, LOWEST),
        np.full(dimension, HIGHEST),
        np.where(centre > 0, LOWEST, HIGHEST),
        rng.integers(LOWEST, HIGHEST + 1, dimension),
        np.clip(centre, LOWEST, HIGHEST),
        near,
        on_the_radius,
    ]
    return Statistic(dimension, centre, radius), np.array(rows).astype(np.int16)


def squared_norms(values: Totals) -> list[int]:
    """In Python's whole numbers, which do not overflow."""
    return [sum(int(value) ** 2 for value in row) for row in values]


def in_python(statistic: Statistic, row: Features) -> list[int]:
    """The definition, with exact arithmetic throughout."""
    assert statistic.centre is not None
    moved = [int(value) - int(middle) for value, middle in zip(row, statistic.centre, strict=True)]
    square = sum(value * value for value in moved)
    root = math.isqrt(square)
    length = max(root + (root * root < square), statistic.radius)
    return [math.trunc(Fraction(value * ONE, length)) for value in moved]


@given(adversarial())
def test_no_statistic_is_longer_than_1(case: tuple[Statistic, Features]) -> None:
    statistic, features = case
    assert max(squared_norms(statistic.of(features))) <= ONE * ONE


@given(adversarial())
def test_one_point_for_another_changes_a_total_by_at_most_2(case: tuple[Statistic, Features]) -> None:
    statistic, features = case
    values = statistic.of(features)
    for value in values:
        assert max(squared_norms(values - value)) <= (2 * ONE) ** 2


def test_the_bound_of_2_is_reached() -> None:
    """No smaller sensitivity could be claimed."""
    statistic = Statistic(2, np.zeros(2, dtype=np.int64), 1000)
    there, back = statistic.of(np.array([[20000, 0], [-20000, 0]], dtype=np.int16))
    assert squared_norms(np.array([there - back])) == [(2 * ONE) ** 2]


def test_rounding_to_the_nearest_would_break_the_bound() -> None:
    """Control: why values are truncated and the norm is rounded up."""
    rows = np.random.default_rng(0).integers(-9000, 9000, (200, 140)).astype(np.int64)
    nearest = np.rint(rows * ONE / np.linalg.norm(rows, axis=1)[:, None]).astype(np.int64)
    assert max(squared_norms(nearest)) > ONE * ONE
    statistic = Statistic(140, np.zeros(140, dtype=np.int64), 1)
    assert max(squared_norms(statistic.of(rows.astype(np.int16)))) <= ONE * ONE


@given(adversarial())
def test_it_is_exact(case: tuple[Statistic, Features]) -> None:
    statistic, features = case
    if statistic.width > 140:
        statistic = Statistic(140, statistic.centre[:140], statistic.radius)  # type: ignore[index]
        features = features[:, :140]
    assert statistic.of(features).tolist() == [in_python(statistic, row) for row in features]


@given(st.integers(0, 2**32 - 1))
@example(0)
def test_within_the_radius_it_is_linear_and_beyond_it_has_length_1(seed: int) -> None:
    rng = np.random.default_rng(seed)
    centre = rng.integers(-2000, 2001, 140)
    direction = rng.standard_normal(140) / math.sqrt(140)
    statistic = Statistic(140, centre, ONE // 2)
    for length, wanted in ((0.1, 0.2), (0.25, 0.5), (0.7, 1.0), (1.5, 1.0)):
        unit = direction / np.linalg.norm(direction)
        row = (centre + np.rint(unit * length * ONE)).astype(np.int16)
        value = statistic.of(row[None])[0] / ONE
        assert np.abs(value - wanted * unit).max() < 1e-3


def test_rows_do_not_depend_on_each_other() -> None:
    rows = np.random.default_rng(0).integers(LOWEST, HIGHEST + 1, (50, 12), dtype=np.int16)
    statistic = Statistic(12, np.arange(12, dtype=np.int64), 20000)
    alone = [statistic.of(row[None])[0].tolist() for row in rows]
    assert statistic.of(rows).tolist() == alone
    assert statistic.of(rows[:0]).shape == (0, 12)


def test_identity_is_the_feature_itself() -> None:
    rows = np.random.default_rng(0).integers(LOWEST, HIGHEST + 1, (5, 12), dtype=np.int16)
    values = Statistic.identity(12).of(rows)
    assert values.dtype == np.int64
    assert values.tolist() == rows.tolist()


ROWS: dict[str, npt.NDArray[np.generic]] = {
    "another width": np.zeros((3, 11), dtype=np.int16),
    "one row without its axis": np.zeros(12, dtype=np.int16),
    "another dtype": np.zeros((3, 12), dtype=np.int64),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=list(ROWS))
@pytest.mark.parametrize("centre", [None, np.zeros(12, dtype=np.int64)], ids=["identity", "clipped"])
def test_other_features_are_refused(rows: npt.NDArray[np.int16], centre: Totals | None) -> None:
    with pytest.raises(LocalProtocolError):
        Statistic(12, centre).of(rows)


@pytest.mark.parametrize("radius", [0, -1, 2 * ONE + 1])
def test_another_radius_is_refused(radius: int) -> None:
    with pytest.raises(LocalProtocolError):
        Statistic(12, np.zeros(12, dtype=np.int64), radius)


CENTRES: dict[str, npt.NDArray[np.generic]] = {
    "another width": np.zeros(11, dtype=np.int64),
    "float": np.zeros(12),
    "further out than features": np.full(12, ONE + 1, dtype=np.int64),
    "the lowest int64": np.full(12, -(2**63), dtype=np.int64),
}


@pytest.mark.parametrize("centre", CENTRES.values(), ids=list(CENTRES))
def test_a_centre_that_is_no_mean_of_features_is_refused(centre: Totals) -> None:
    with pytest.raises(LocalProtocolError):
        Statistic(12, centre, ONE)
