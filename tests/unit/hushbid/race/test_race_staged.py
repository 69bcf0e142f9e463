"""A classifier that chooses its own size: its costs, its findings, and when it finds nothing."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hushbid.lab.experiments.race import LOGISTIC, race
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.accounting import ApproximateCost
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.race import (
    PoorModelWarning,
    RaceClassifier,
    classifier_rows,
)
from hushbid.race.gaussians import FULL_COLUMNS
from hushbid.race.staged import READINGS, FitBudget, StagedReleases, fit_stages

Points = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

ADD, SUBSTITUTE = Neighbours.ADD_REMOVE_ONE, Neighbours.SUBSTITUTE_ONE


def skewed(count: int = 11_000, seed: int = 0, share: float = 0.092) -> tuple[Points, Labels]:
    """Two normal classes of five correlated columns; one has this share of the points."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(count) < share).astype(np.int64)
    mixing = np.random.default_rng(7).normal(size=(5, 5)) * 0.6 + np.eye(5)
    points = (rng.normal(size=(count, 5)) + 2.0 * labels[:, None]) @ mixing
    return np.clip(points, -20.0, 20.0), labels


def classifier(epsilon: float | None = 1.0, seed: int = 0, **changed: Any) -> RaceClassifier:
    parameters: dict[str, Any] = {
        "lower": -20.0,
        "upper": 20.0,
        "epsilon": epsilon,
        "neighbours": "add-remove-one",
        "classes": [0, 1],
        "random_state": seed,
        "noise": partial(SimulatedNoise, seed, "owner"),
    }
    return RaceClassifier(**parameters | changed)


def staged(x: Points, y: Labels, budget: FitBudget) -> StagedReleases:
    columns = x.shape[1]
    return fit_stages(
        x,
        y,
        2,
        lower=np.full(columns, -20.0),
        upper=np.full(columns, 20.0),
        budget=budget,
        weighed=True,
        sampling="sobol",
        seed=0,
        threads=1,
    )


# What it finds


def test_at_a_small_epsilon_the_default_is_never_much_below_the_largest_class() -> None:
    """Ten splits. With 1,000 rows these classes are told far worse than by the largest alone."""
    x, y = skewed()
    figures, of_thousand = [], []
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(len(x))
        held, rest = order[:2000], order[2000:]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PoorModelWarning)
            figures.append(classifier(0.1, seed).fit(x[rest], y[rest]).score(x[held], y[held]))
        if seed < 3:
            thousand = classifier(0.1, seed, rows=1000).fit(x[rest], y[rest])
            of_thousand.append(thousand.score(x[held[:500]], y[held[:500]]))
    largest = float(np.mean(y == 0))
    assert np.mean(figures) >= largest
    assert min(figures) >= largest - 0.03
    assert np.mean(of_thousand) < largest < np.mean(figures)
    assert min(of_thousand) < largest - 0.1


@pytest.mark.parametrize(
    ("rule", "neighbours"),
    [
        ("auto", "add-remove-one"),
        ("auto", "substitute-one"),
        ("map", "add-remove-one"),
        ("likelihood", "add-remove-one"),
    ],
)
def test_classes_are_told_apart_by_every_rule(rule: Any, neighbours: Any) -> None:
    fitted = classifier(rule=rule, neighbours=neighbours).fit(*skewed())
    assert fitted.model_ in READINGS
    x, y = skewed(4000, seed=1)
    assert fitted.score(x, y) > 0.96
    shares = fitted.predict_proba(x)
    assert np.allclose(shares.sum(axis=1), 1.0)
    if rule == "likelihood":
        assert np.mean(fitted.predict(x)[y == 1]) > 0.85


def test_classes_of_one_mean_are_told_by_their_covariances_or_rows() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-10.0, 10.0, (20_000, 2))
    y = (x[:, 0] * x[:, 1] > 0.0).astype(np.int64)
    fitted = classifier(0.3).fit(x, y)
    assert fitted.model_ in ("own", "rows")
    assert fitted.score(x, y) > 0.9


def test_what_it_says_of_itself_is_what_it_comes_to() -> None:
    fitted = classifier().fit(*skewed())
    assert fitted.accuracy_ is not None
    assert fitted.accuracy_error_ is not None
    assert fitted.accuracy_ == pytest.approx(fitted.score(*skewed()), abs=4.0 * fitted.accuracy_error_)
    kernel = classifier(rows=50).fit(*skewed())
    assert (kernel.model_, kernel.accuracy_, kernel.accuracy_error_) == ("kernel", None, None)


@pytest.mark.parametrize("rule", ["auto", "map"])
def test_labels_that_say_nothing_are_said_to(rule: Any) -> None:
    x, _ = skewed()
    y = (np.random.default_rng(5).random(len(x)) < 0.1).astype(np.int64)
    with pytest.warns(PoorModelWarning, match="largest class alone"):
        fitted = classifier(rule=rule).fit(x, y)
    if rule == "auto":
        assert fitted.score(x, y) > np.mean(y == 0) - 0.01


def test_a_class_that_noise_hides_is_never_told_and_one_class_alone_always() -> None:
    x, y = skewed()
    y[y == 1] = 2
    y[:3] = 1
    fitted = classifier(classes=[0, 1, 2]).fit(x, y)
    assert len(fitted.sketches_) == 3
    assert set(fitted.predict(x).tolist()) == {0, 2}
    assert (fitted.predict_proba(x)[:, 1] == 0.0).all()
    with pytest.warns(PoorModelWarning, match="One class alone"):
        alone = classifier(classes=[0, 1, 2]).fit(x, np.full(len(x), 2))
    assert alone.model_ == "largest"
    assert set(alone.predict(x).tolist()) == {2}
    assert alone.privacy_ is not None
    assert alone.privacy_.epsilon == pytest.approx(0.1)
    assert alone.accuracy_ == pytest.approx(1.0, abs=5.0 * (alone.accuracy_error_ or 0.0))


def test_many_columns_have_variances_alone() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 5000)
    x = np.clip(rng.normal(size=(5000, FULL_COLUMNS + 4)) + y[:, None], -20.0, 20.0)
    assert classifier(3.0).fit(x, y).score(x, y) > 0.95


def test_without_privacy_it_chooses_its_size_too() -> None:
    x, y = skewed(2000)
    fitted = classifier(None, neighbours=None, classes=None).fit(x, y)
    assert fitted.privacy_ is None
    assert fitted.score(x, y) > 0.97
    assert fitted.sketches_[0].family.rows == classifier_rows(5, 100.0, None, neighbours=ADD)


# What it spends


@pytest.mark.parametrize(("neighbours", "changed"), [(ADD, 1), (SUBSTITUTE, 2)])
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 3.0])
@pytest.mark.filterwarnings("ignore::hushbid.race.PoorModelWarning")
def test_the_four_releases_cost_epsilon_together(
    neighbours: Neighbours, changed: int, epsilon: float
) -> None:
    fitted = classifier(epsilon, neighbours=neighbours.value).fit(*skewed())
    privacy = fitted.privacy_
    assert privacy is not None
    assert privacy.neighbours is neighbours
    assert 0.999 * epsilon < privacy.epsilon <= epsilon
    rows = fitted.sketches_[0].family.rows
    counts = [cost.count for cost in privacy.costs if isinstance(cost, ApproximateCost)]
    assert sorted(counts)[:2] == [changed, changed]
    assert counts[-1] == changed * rows
    assert privacy.cells[0].scale == pytest.approx(changed * rows / (0.5 * epsilon))
    assert privacy.sizes[0].scale == pytest.approx(changed / (0.1 * epsilon))
    assert fitted.sketches_[1].privacy == privacy


def test_with_a_delta_it_costs_no_more_than_was_asked_for() -> None:
    privacy = classifier(delta=1e-6).fit(*skewed()).privacy_
    assert privacy is not None
    assert privacy.delta == 1e-6
    assert privacy.epsilon <= 1.0


def test_noise_that_protects_is_the_default_and_no_draw_is_used_twice() -> None:
    drawn = []

    class Drawing(SimulatedNoise):
        def draw(self, request: Any) -> Any:
            drawn.append(request)
            return super().draw(request)

    sources = []

    def source() -> SimulatedNoise:
        sources.append(Drawing(1, "owner"))
        return sources[-1]

    fitted = classifier(noise=source).fit(*skewed())
    cells = len(fitted.sketches_[0].counts)
    assert len(sources) == 1
    assert next(request.size for request in drawn) == 2
    assert sorted(request.size for request in drawn)[:2] == [2, 2 ** len(READINGS)]
    assert len(drawn) == 4
    assert 2 * cells in [request.size for request in drawn]
    x, y = skewed(3000)
    secure = RaceClassifier(lower=-20, upper=20, epsilon=5.0, neighbours="add-remove-one", classes=[0, 1])
    privacy = secure.fit(x, y).privacy_
    assert privacy is not None
    assert privacy.protects


def test_what_is_read_of_a_record_has_the_same_bits_whatever_stands_beside_it() -> None:
    x, y = skewed(4000)
    found = staged(x, y, FitBudget(epsilon=1.0, source=SimulatedNoise(0, "owner")))
    assert found.whitening is not None
    for reading in READINGS:
        scores = found.scores(x, reading, weighed=True)
        for part in (slice(0, 1), slice(3, 5), slice(11, 1000)):
            assert found.scores(x[part], reading, weighed=True).tobytes() == scores[part].tobytes()
        backwards = found.scores(np.asfortranarray(x[::-1]), reading, weighed=True)
        assert np.array_equal(backwards[::-1], scores)
    cells = found.sketches[0].family.hash(found.whitening(x))
    assert np.array_equal(found.sketches[0].family.hash(found.whitening(x[7:9])), cells[7:9])


def test_the_ballot_counts_the_fitted_points() -> None:
    x, y = skewed(4000)
    found = staged(x, y, FitBudget(epsilon=None))
    for reading in READINGS:
        told = found.present[found.scores(x, reading, weighed=True).argmax(axis=1)]
        assert found.shares[reading] == np.mean(told == y)
    assert found.share_error == 0.0


def test_rows_follow_from_epsilon_the_smallest_class_and_the_relation() -> None:
    rows = partial(classifier_rows, 8, neighbours=ADD)
    assert rows(1e6, 1.0) == rows(1.0, None) == 88
    assert 16 == rows(10.0, 0.1) < rows(5_000.0, 0.05) < rows(5_000.0, 0.1) < 88
    assert classifier_rows(8, 5_000.0, 0.1, neighbours=SUBSTITUTE) < rows(5_000.0, 0.1)
    assert classifier_rows(1, 1e6, 1.0, neighbours=ADD) == 32
    sizes = [classifier(epsilon).fit(*skewed()).sketches_[0].family.rows for epsilon in (0.3, 0.45, 0.6)]
    assert sizes == sorted(set(sizes))


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"epsilon": -1.0}, ConfigError),
        ({"epsilon": math.inf}, ConfigError),
        ({"delta": 1.0}, ConfigError),
        ({"neighbours": None}, ConfigError),
        ({"classes": None}, ConfigError),
        ({"upper": 1.0}, DataError),
        ({"upper": -20.0}, ConfigError),
    ],
)
def test_what_cannot_be_is_refused(changed: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        classifier(**changed).fit(*skewed(500))


def test_points_out_of_bounds_are_clipped_when_asked_for() -> None:
    x, y = skewed(3000)
    x[:5, 0] = 30.0
    with pytest.raises(DataError, match="5 of 3000 points"):
        classifier(5.0).fit(x, y)
    fitted = classifier(5.0, out_of_bounds="clip").fit(x, y)
    assert fitted.n_clipped_ == 5
    assert len(fitted.predict(x)) == 3000


def test_streams_need_rows_and_are_not_added_to_a_fit_in_stages() -> None:
    x, y = skewed(2000)
    with pytest.raises(ConfigError, match="private stream"):
        classifier(bandwidth=2.0).partial_fit(x, y)
    assert not hasattr(classifier(5.0).fit(x, y), "partial_fit")
    with pytest.raises(AttributeError) as refused:
        classifier().partial_fit(x, y)
    assert "rows" in str(refused.value.__cause__)
    stream = classifier(rows=60).partial_fit(x, y).partial_fit(x, y)
    assert stream.model_ == "kernel"
    assert stream.fit(x, y).model_ == "kernel"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::hushbid.race.PoorModelWarning")
@parametrize_with_checks([RaceClassifier(lower=-100.0, upper=100.0, epsilon=None, out_of_bounds="clip")])
def test_the_conventions_of_scikit_learn_hold(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


# The experiment


@pytest.mark.parametrize("name", ["occupancy", pytest.param("skin", marks=pytest.mark.slow)])
def test_a_default_classifier_is_as_good_as_private_logistic_regression(
    name: str, shared_data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two splits; docs/race.md has ten, which the test below uses."""
    for other in set(LOGISTIC) - {name}:
        monkeypatch.delitem(LOGISTIC, other)
    rows = race(["defaults"], shared_data(f"{name}.npz").parent, epsilons=[0.1, 1.0], seeds=[0, 1])
    assert [row.epsilon for row in rows] == [None, 0.1, 1.0]
    for row in rows:
        assert row.largest is not None
        assert min(row.figure_each) > row.largest
    assert rows[2].balanced is not None
    assert rows[2].logistic is not None
    assert rows[2].balanced > rows[2].logistic - 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", ["skin", "occupancy", "codrna"])
def test_ten_splits_are_never_below_the_largest_class(
    name: str, shared_data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in set(LOGISTIC) - {name}:
        monkeypatch.delitem(LOGISTIC, other)
    for row in race(
        ["defaults"], shared_data(f"{name}.npz").parent, epsilons=[0.1, 1.0, 10.0], seeds=range(10)
    ):
        assert row.largest is not None
        assert row.balanced is not None
        assert row.figure > row.largest
        assert min(row.figure_each) > row.largest - 0.03
        if row.epsilon is not None and row.epsilon >= 1.0:
            assert row.logistic is not None
            assert row.balanced > row.logistic - 0.02
