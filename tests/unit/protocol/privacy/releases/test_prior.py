"""Public facts from the seed set: where points lie and how far apart, as whole numbers."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol import limits
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.privacy.releases.prior import ONE, SMALLEST_SPREAD, Prior
from hushbid.protocol.space.features import feature_map
from hushbid.protocol.space.grid import FEATURE_UNIT, Features

D = 140


def seed_features(count: int, *, width: float = 1.0, seed: int = 0, map_name: str = "paired") -> Features:
    """φ of points drawn uniformly from a cube of that width."""
    phi = feature_map(map_name, seed=7, dimension=D, gamma=1.0, lower=0.0, upper=1.0, columns=5)
    return phi.hash(width * np.random.default_rng(seed).random((count, 5)))


def prior_of(features: Features) -> Prior:
    return Prior.of_total(features.sum(axis=0, dtype=np.int64), len(features))


@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_the_centre_is_the_mean_within_half_a_grid_unit(count: int, seed: int) -> None:
    features = np.random.default_rng(seed).integers(-(2**15), 2**15, (count, 12), dtype=np.int16)
    centre = prior_of(features).centre
    assert np.abs(centre - features.mean(axis=0, dtype=np.float64)).max() <= 0.5


@pytest.mark.parametrize("map_name", ["paired", "cosine"])
def test_the_spread_is_how_far_other_points_lie_from_the_centre(map_name: str) -> None:
    """Within 5 %: ‖φ‖ is 1 for `paired`, and on average over phases for `cosine`."""
    prior = prior_of(seed_features(150, map_name=map_name))
    others = seed_features(4000, seed=1, map_name=map_name)
    distances = np.linalg.norm((others - prior.centre) * FEATURE_UNIT, axis=1)
    assert prior.spread * FEATURE_UNIT == pytest.approx(math.sqrt((distances**2).mean()), rel=0.05)


def test_of_a_few_points_the_spread_allows_for_the_error_of_their_mean() -> None:
    """Three points lie nearer to their own mean than others do: by 4/2 in the square."""
    squares = [prior_of(seed_features(3, seed=seed)).spread ** 2 * FEATURE_UNIT**2 for seed in range(2, 202)]
    others = seed_features(2000, seed=1).astype(np.float64) * FEATURE_UNIT
    centres = [prior_of(seed_features(3, seed=seed)).centre * FEATURE_UNIT for seed in range(2, 202)]
    wanted = np.mean([((others - centre) ** 2).sum(axis=1).mean() for centre in centres])
    assert np.mean(squares) == pytest.approx(wanted, rel=0.05)
    assert np.mean(squares) / 2 < 0.6 * wanted, "without the allowance it would be half"


@pytest.mark.parametrize("count", [1, 2, 50])
def test_equal_points_leave_the_smallest_spread(count: int) -> None:
    prior = prior_of(np.repeat(seed_features(1), count, axis=0))
    assert prior.spread == SMALLEST_SPREAD
    assert 0 < prior.radius < prior.spread


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_every_seed_set_has_a_usable_radius(count: int, seed: int) -> None:
    features = np.random.default_rng(seed).integers(-(2**15), 2**15, (count, 12), dtype=np.int16)
    prior = prior_of(features)
    assert SMALLEST_SPREAD <= prior.spread <= 2 * ONE
    assert 1 <= prior.radius < prior.spread


def test_a_prior_follows_from_the_total_and_the_number_of_points() -> None:
    """A curator has these: no point of the seed set is needed."""
    features = seed_features(150)
    shuffled = features[np.random.default_rng(0).permutation(150)]
    one, other = prior_of(features), prior_of(shuffled)
    assert (one.size, one.spread, one.centre.tolist()) == (other.size, other.spread, other.centre.tolist())


BAD: dict[str, tuple[npt.NDArray[np.int64], int]] = {
    "no points": (np.zeros(D, dtype=np.int64), 0),
    "a table": (np.zeros((2, D), dtype=np.int64), 2),
    "a mean above what features have": (np.full(D, 3 * ONE, dtype=np.int64), 2),
    "a mean below what features have": (np.full(D, -3 * ONE, dtype=np.int64), 2),
    "too many coordinates": (np.zeros(limits.MAX_DIMENSION + 1, dtype=np.int64), 2),
}


@pytest.mark.parametrize("total_and_size", BAD.values(), ids=list(BAD))
def test_what_is_no_total_of_features_is_refused(total_and_size: tuple[npt.NDArray[np.int64], int]) -> None:
    with pytest.raises(LocalProtocolError):
        Prior.of_total(*total_and_size)
