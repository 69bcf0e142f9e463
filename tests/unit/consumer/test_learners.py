"""Models by name: short names and scikit-learn's own, classes and amounts, and estimators without weights."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB

from hushbid.consumer.learners import MODELS, Learner, check_model, learner
from hushbid.protocol.errors import ConfigError, DataError

RNG = np.random.default_rng(3)
POINTS = RNG.random((80, 4))
CLASSES = (POINTS[:, 0] > 0.5).astype(np.int64)
AMOUNTS = 3.0 * POINTS[:, 1] - POINTS[:, 2]


def made(model: str, *, amounts: bool = False) -> Learner:
    found = learner(model, seed=0, amounts=amounts)
    assert isinstance(found, Learner)
    return found


@pytest.mark.parametrize("model", [*MODELS, "HistGradientBoostingClassifier", "KNeighborsClassifier"])
def test_a_model_of_classes_learns_them(model: str) -> None:
    learned = made(model).learn(POINTS, CLASSES)
    assert (learned.predicted(POINTS) == CLASSES).mean() > 0.8
    (said, right), (_, wrong) = learned.judged(POINTS, CLASSES), learned.judged(POINTS, 1 - CLASSES)
    assert np.array_equal(said, learned.predicted(POINTS))
    assert right.mean() < wrong.mean()
    assert learned.judged(POINTS[:1], np.array([9]))[1] == pytest.approx(
        -np.log(1e-3) if hasattr(learned.model, "predict_proba") else 1.0
    ), "a class that was never seen"


@pytest.mark.parametrize("model", [*MODELS, "HistGradientBoostingRegressor"])
def test_a_model_of_amounts_learns_them(model: str) -> None:
    learned = made(model, amounts=True).learn(POINTS, AMOUNTS)
    said, losses = learned.judged(POINTS, AMOUNTS)
    assert np.array_equal(said, learned.predicted(POINTS))
    assert losses.mean() < 0.75 * AMOUNTS.var()


def test_short_names_are_a_pair_of_one_kind() -> None:
    assert (made("logistic").name, made("logistic", amounts=True).name) == ("LogisticRegression", "Ridge")


def test_a_model_of_the_other_kind_of_labels_says_so() -> None:
    assert learner("Ridge", seed=0, amounts=False) == "Ridge learns amounts, and the labels are classes"
    assert "learns classes, and the labels are amounts" in str(learner("SVC", seed=0, amounts=True))


def test_one_class_and_one_amount_are_said_always() -> None:
    learned = made("logistic").learn(POINTS[:5], np.full(5, 4))
    assert learned.predicted(POINTS).tolist() == [4] * 80
    assert learned.judged(POINTS[:2], np.array([4, 5]))[1] == pytest.approx([0.0, -np.log(1e-3)])
    one = made("logistic", amounts=True).learn(POINTS[:1], np.array([2.5]))
    assert one.predicted(POINTS[:3]).tolist() == [2.5] * 3


def test_the_unit_of_amounts_does_not_matter() -> None:
    for model in MODELS:
        small, large = (
            made(model, amounts=True).learn(POINTS, unit * AMOUNTS + 7.0 * unit).predicted(POINTS)
            for unit in (1.0, 1e6)
        )
        np.testing.assert_allclose(large, 1e6 * small, rtol=1e-2)


@pytest.mark.parametrize("model", MODELS)
def test_how_wide_the_bounds_are_does_not_matter(model: str) -> None:
    """Bounds thirty times as wide on one column, and ten times on all, do not change a model."""
    wide = 0.45 + 0.1 * POINTS * np.array([1.0, 1.0, 1.0 / 30.0, 1.0])
    for amounts, labels in ((False, CLASSES), (True, AMOUNTS)):
        near, far = (made(model, amounts=amounts).learn(points, labels) for points in (POINTS, wide))
        apart = np.asarray(near.predicted(POINTS) - far.predicted(wide), dtype=np.float64)
        # The narrowest column is divided by a tenth of the widest one's deviation, and so counts for less.
        assert np.sqrt(np.mean(apart**2)) < 0.25 * np.std(labels), model


def test_a_linear_model_learns_columns_that_fill_a_tenth_of_their_bounds() -> None:
    learned = made("logistic").learn(0.45 + 0.1 * POINTS, CLASSES)
    assert (learned.predicted(0.45 + 0.1 * POINTS) == CLASSES).mean() > 0.9


def test_a_column_that_hardly_varies_counts_for_little() -> None:
    """A pixel that is set in one of few rows is no evidence: set elsewhere, it changes little."""
    points, other = POINTS.copy(), POINTS.copy()
    points[:, 3] = other[:, 3] = 0.0
    points[np.flatnonzero(CLASSES)[0], 3] = 0.01
    other[:, 3] = 0.01
    learned = made("logistic").learn(points, CLASSES)
    assert np.mean(learned.predicted(points) != learned.predicted(other)) < 0.05


@pytest.mark.parametrize("searched", [False, True])
def test_an_estimator_of_counts_gets_no_negative_numbers(searched: bool) -> None:
    counting = GridSearchCV(MultinomialNB(), {"alpha": [0.1, 1.0]}) if searched else "MultinomialNB"
    found = learner(counting, seed=0, amounts=False)
    assert isinstance(found, Learner)
    learned = found.learn(POINTS, CLASSES)
    assert [name for name, _ in learned.model.steps] == ["model"]
    assert np.isfinite(learned.judged(POINTS, CLASSES)[1]).all()


def test_rows_without_weight_are_left_out() -> None:
    weights = np.where(CLASSES == 1, 1.0, 0.0)
    assert set(made("logistic").learn(POINTS, CLASSES, weights).predicted(POINTS).tolist()) == {1}


def test_where_no_weights_are_taken_rows_are_repeated_in_their_proportion() -> None:
    points, labels = np.zeros((12, 1)), np.repeat([0.0, 1.0], 6)
    weights = np.repeat([3.0, 1.0], 6)
    neighbours = made("KNeighborsRegressor", amounts=True)
    assert not neighbours.takes_weights
    neighbours.estimator.set_params(n_neighbors=12)
    assert neighbours.learn(points, labels, weights).predicted(points[:1])[0] == pytest.approx(0.25)
    twice = [neighbours.learn(points, labels, weights).predicted(points).tolist() for _ in range(2)]
    assert twice[0] == twice[1], "nothing is drawn"


def test_what_cannot_be_fitted_names_the_model_and_no_label() -> None:
    with pytest.raises(DataError, match="cannot be fitted") as caught:
        made("PoissonRegressor", amounts=True).learn(POINTS, AMOUNTS - 10.0)
    assert "PoissonRegressor" in str(caught.value)


def test_a_model_that_does_not_exist_is_told_what_it_may_be() -> None:
    with pytest.raises(ConfigError, match="no downstream model named 'logistik'") as caught:
        check_model("logistik", trained=False)
    assert "logistic, boosted, linear-svm, mlp" in str(caught.value)
    with pytest.raises(ConfigError, match="Did you mean Ridge"):
        check_model("Rigde", trained=True)
    check_model("Ridge", trained=True)
    with pytest.raises(ConfigError, match="made of other estimators"):
        check_model("VotingClassifier", trained=True)
