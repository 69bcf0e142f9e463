"""Rivals: DP-MERF re-derived, releases for training, and rivals that are not installed."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from hushbid.lab.experiments import compression
from hushbid.lab.experiments.merf import COUNT_UNIT, fitted_points, merf, noisy_sums
from hushbid.lab.experiments.rivals import RIVALS, RivalRow, rivals
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting.gaussian import gaussian_epsilon

CLASSES = np.array([0, 1, 2])


def records(count: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(1)
    labels = generator.integers(2, size=count)  # of the third class there is no record
    return np.clip(0.3 + 0.4 * labels[:, None] + 0.05 * generator.normal(size=(count, 4)), 0.0, 1.0), labels


def released(count: int, epsilon: float) -> Any:
    points, labels = records(60)
    waves = np.random.default_rng(2).normal(size=(4, 50))
    sums, sizes = noisy_sums(
        points[:count], labels[:count], CLASSES, waves, epsilon, 1e-5, np.random.default_rng(3)
    )
    return np.concatenate([sums.ravel(), COUNT_UNIT * sizes])


def test_one_record_moves_the_whole_release_by_what_the_noise_is_made_for() -> None:
    """With the same noise in both, the difference is the record's, of one class, and its count's."""
    assert np.linalg.norm(released(60, 1.0) - released(59, 1.0)) == pytest.approx(
        math.sqrt(1.0 + COUNT_UNIT**2)
    )


@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_the_noise_has_the_stated_epsilon(epsilon: float) -> None:
    noise = released(60, epsilon) - released(60, 1e9)
    sigma = noise[:-3].std()  # of 300 values: a standard error of 4 %
    mu = math.sqrt(1.0 + COUNT_UNIT**2) / sigma
    assert gaussian_epsilon(mu, 1e-5) == pytest.approx(epsilon, rel=0.2)


def test_fitted_points_have_the_mean_that_they_are_fitted_to() -> None:
    points, _ = records(60)
    waves = np.random.default_rng(2).normal(size=(4, 50))

    def mean(rows: Any) -> Any:
        return np.concatenate([np.cos(rows @ waves), np.sin(rows @ waves)], axis=1).mean(axis=0) / math.sqrt(
            50
        )

    made = fitted_points(mean(points), waves, 40, np.random.default_rng(4))
    drawn = np.random.default_rng(4).random((40, 4))
    assert np.linalg.norm(mean(made) - mean(points)) < 0.05 * np.linalg.norm(mean(drawn) - mean(points))
    assert ((made >= 0.0) & (made <= 1.0)).all()


def test_synthetic_points_of_a_class_lie_where_its_records_do() -> None:
    points, labels = records(400)
    made, of = merf(
        points,
        labels,
        CLASSES,
        gamma=2.0,
        count=50,
        epsilon=50.0,
        delta=1e-5,
        generator=np.random.default_rng(5),
    )
    assert made.shape == (50, 4)
    assert np.bincount(of, minlength=3).tolist() == pytest.approx([25, 25, 0], abs=4)
    for label in (0, 1):
        assert made[of == label].mean() == pytest.approx(points[labels == label].mean(), abs=0.03)


@pytest.fixture(scope="module")
def rows() -> dict[str, RivalRow]:
    names = ["private", "uniform", "dp-merf", "race-classifier", "goodpoints"]
    found = rivals("digits", rivals=names, epsilons=[20.0], points=[40], owner_points=60, seeds=1)
    return {row.rival: row for row in found}


def test_each_rival_is_judged_alike(rows: dict[str, RivalRow]) -> None:
    assert {name: row.kind for name, row in rows.items()} == {
        "private": "buy",
        "uniform": "buy",
        "dp-merf": "publish",
        "race-classifier": "publish",
        "goodpoints": "compress",
    }
    for name in ("private", "uniform", "dp-merf"):
        row = rows[name]
        assert row.mmd2 is not None
        assert row.mmd2_weighted is not None
        assert row.mmd2_weighted < row.mmd2
        assert len(row.accuracy_each) == 1
    assert rows["race-classifier"].mmd2 is None
    assert rows["race-classifier"].accuracy is not None
    assert rows["uniform"].epsilon is None


@pytest.mark.skipif(find_spec("goodpoints") is not None, reason="goodpoints is installed")
def test_what_is_not_installed_is_left_out_and_said(rows: dict[str, RivalRow]) -> None:
    assert rows["goodpoints"].note == "goodpoints is not installed: pip install 'hushbid[rivals]'"
    assert rows["goodpoints"].accuracy is None


@pytest.mark.parametrize("name", compression.COMPRESSED)
def test_a_library_keeps_as_many_different_rows_as_are_asked_for(name: str) -> None:
    pytest.importorskip(name, reason=f"{name} is not installed: pip install 'hushbid[rivals]'")
    points = np.random.default_rng(6).random((200, 3))
    kept = compression.COMPRESSED[name](points, 40, 1.0, 0)
    assert len(set(kept.tolist())) == 40


def test_an_unknown_rival_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no rival oracle.*Rivals are: private"):
        rivals("digits", rivals=["oracle"])
    assert len(set(RIVALS)) == len(RIVALS)
