"""Whether a model gets better: figures with and without a purchase, and the sentences about them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from hushbid.consumer.downstream import wilson_interval
from hushbid.consumer.model_figures import (
    NO_MODEL,
    Figure,
    ModelCourse,
    ModelFigures,
    ModelJudge,
    TrainingWeights,
)

RNG = np.random.default_rng(4)


def drawn(count: int, *, turned: bool = False) -> tuple[np.ndarray, list[Any]]:
    points = RNG.random((count, 3))
    return points, [int(told) for told in (points[:, 0] + 0.3 * points[:, 1] > 0.65) != turned]


OWN, TEST, BOUGHT = drawn(20), drawn(300), drawn(200)
EQUAL = np.full(200, 1 / 200)


def judged(own: Any = OWN, test: Any = TEST, bought: tuple[Any, Any] = BOUGHT, **more: Any) -> ModelFigures:
    return ModelJudge(own, test, **more).judge(*bought, {"plain": EQUAL})[0]


def test_own_rows_bought_points_and_both_are_judged_on_test_rows() -> None:
    found = judged()
    assert (found.metric, found.estimator, found.judged_on, found.judged) == (
        "accuracy", "LogisticRegression", "test", 300,
    )  # fmt: skip
    assert found.own_rows == 20
    figures = [found.own, found.bought, found.own_and_bought, found.trivial, found.gain]
    for figure in figures:
        assert figure is not None
        assert figure.low <= figure.value <= figure.high
    assert found.own is not None
    assert found.own_and_bought is not None
    assert found.trivial is not None
    assert found.own_and_bought.value > found.own.value > found.trivial.value
    assert (found.own.low, found.own.high) == pytest.approx(wilson_interval(found.own.value, 300))
    assert found.word == "better"
    assert found.sentence().startswith("The model gets better: ")
    assert found.training_weights is not None
    assert found.training_weights.total > 0.0


@pytest.mark.parametrize(
    ("metric", "low", "high", "word"),
    [
        ("r2", 0.0004, 0.0004, "same"),
        ("r2", -0.0004, -0.0004, "same"),
        ("r2", 0.0006, 0.02, "better"),
        ("r2", -0.02, -0.0006, "worse"),
        ("accuracy", 0.0004, 0.02, "same"),
        ("accuracy", 0.0006, 0.02, "better"),
        ("accuracy", -0.02, -0.0004, "same"),
    ],
)
def test_a_gain_that_is_nothing_in_the_digits_that_are_shown_is_none(
    metric: Literal["accuracy", "r2"], low: float, high: float, word: str
) -> None:
    figure = Figure(0.9999, 0.99, 1.0)
    gain = Figure((low + high) / 2.0, low, high)
    found = ModelFigures(metric=metric, judged=60, own=figure, own_and_bought=figure, gain=gain)
    assert found.word == word
    assert ("not measurably better" in found.sentence()) == (word == "same")


def test_the_order_in_which_classes_are_met_is_nothing_to_a_model() -> None:
    """A network's draws depend on the order of classes: it is that of the labels, sorted."""
    bought, found = (BOUGHT[0][:40], BOUGHT[1][:40]), []
    for first in (0, 1):
        order = np.argsort([label != first for label in TEST[1]], kind="stable")
        test = TEST[0][order], [TEST[1][row] for row in order]
        judge = ModelJudge(None, test, model="mlp")
        found.append(judge.judge(*bought, {"equal": np.full(40, 1 / 40)})[0].bought)
    assert found[0] == found[1]
    assert found[0] is not None


def test_points_that_mislead_leave_the_model_as_it_is() -> None:
    found = judged(bought=drawn(200, turned=True))
    assert (found.training_weights, found.word) == (TrainingWeights("none", 0.0), "same")
    assert found.own == found.own_and_bought
    assert "bought points deserve no weight" in found.sentence()


def test_training_weights_are_of_every_point_and_of_labelled_ones_alone() -> None:
    points, labels = BOUGHT
    some = [label if row % 2 else None for row, label in enumerate(labels)]
    figures, training = ModelJudge(OWN, TEST).judge(points, some, {"plain": EQUAL})
    assert training is not None
    assert training.shape == (200,)
    assert not training[::2].any()
    assert figures.training_weights is not None
    assert training.sum() == pytest.approx(figures.training_weights.total)


def test_without_test_rows_own_rows_are_judged_by_models_that_did_not_learn_from_them() -> None:
    found = judged(own=drawn(60), test=None)
    assert (found.judged_on, found.judged) == ("validation", 60)
    assert None not in (found.own, found.bought, found.own_and_bought, found.gain)
    assert "60 own rows" in found.sentence()


def test_own_rows_without_labels_leave_bought_points_alone() -> None:
    for own in (None, (OWN[0], [None] * 20)):
        figures, training = ModelJudge(own, TEST).judge(*BOUGHT, {"plain": EQUAL})
        assert (figures.own, figures.own_and_bought, figures.gain, figures.word) == (
            None,
            None,
            None,
            "unknown",
        )
        assert figures.bought is not None
        assert "as these have no labels" in figures.sentence()
        assert training is not None
        assert training == pytest.approx(np.ones(200)), "of mean 1"


def test_own_rows_of_which_some_have_a_label_are_those_that_are_learned_from() -> None:
    points, labels = drawn(100)
    some = [label if row < 20 else None for row, label in enumerate(labels)]
    assert judged(own=(points, some)) == judged(own=(points[:20], labels[:20]))


def test_amounts_have_an_r2() -> None:
    def amounts(count: int) -> tuple[np.ndarray, list[float]]:
        points = RNG.random((count, 3))
        return points, (5 * points[:, 0] - 2 * points[:, 2] + 0.2 * RNG.standard_normal(count)).tolist()

    own, test = amounts(30), amounts(200)
    found = judged(own, test, amounts(200))
    assert (found.metric, found.estimator) == ("r2", "Ridge")
    assert found.own is not None
    assert found.own_and_bought is not None
    assert found.trivial is not None
    assert found.gain is not None
    from sklearn.linear_model import Ridge
    from sklearn.metrics import r2_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    alone = r2_score(test[1], make_pipeline(StandardScaler(), Ridge()).fit(*own).predict(test[0]))
    assert found.own.value == pytest.approx(alone, abs=1e-6)
    assert found.own.low < found.own.value < found.own.high < 1.0
    assert found.trivial.value <= 0.0
    assert found.gain.value == pytest.approx(found.own_and_bought.value - found.own.value)
    assert "R² 0." in found.sentence()
    whole = judged(own, test, amounts(200), model="BayesianRidge")
    assert whole.estimator == "BayesianRidge"


def test_the_interval_of_an_r2_covers_what_other_test_rows_give() -> None:
    """95 % of such intervals hold the R² of a very large test set, or nearly so."""
    from sklearn.linear_model import Ridge
    from sklearn.metrics import r2_score

    def amounts(count: int) -> tuple[np.ndarray, np.ndarray]:
        points = RNG.random((count, 2))
        return points, points[:, 0] + 0.3 * RNG.standard_normal(count)

    own, many = amounts(50), amounts(50_000)
    truth = r2_score(many[1], Ridge().fit(*own).predict(many[0]))
    held = 0
    for _ in range(100):
        test = amounts(150)
        found = ModelJudge((own[0], own[1].tolist()), (test[0], test[1].tolist())).judge(
            own[0][:1], [None], {"plain": np.ones(1)}
        )[0]
        assert found.own is not None
        held += found.own.low <= truth <= found.own.high
    assert held >= 88


def test_an_interval_of_a_gain_is_no_point_where_no_row_differs() -> None:
    found = judged(bought=drawn(200, turned=True)).gain
    assert found is not None
    assert found.low < found.value == 0.0 < found.high


@pytest.mark.parametrize(
    ("own", "test", "labels", "why"),
    [
        (None, None, [1] * 200, "neither the validation set nor test rows have labels"),
        ((OWN[0][:4], OWN[1][:4]), None, BOUGHT[1], "too few for cross-validation"),
        (None, TEST, [None] * 200, "neither bought points nor the validation set have labels"),
        ((OWN[0], [f"row {n}" for n in range(20)]), (TEST[0], [f"row {n}" for n in range(300)]), BOUGHT[1],
         "as names of rows are"),
    ],
    ids=["nothing", "few", "none to learn from", "names"],
)  # fmt: skip
def test_what_cannot_be_told_says_why(own: Any, test: Any, labels: Any, why: str) -> None:
    found = judged(own, test, (BOUGHT[0], labels))
    assert why in found.why
    assert why in found.sentence()
    assert found.metric is None


def test_too_few_own_rows_try_nothing_and_say_so() -> None:
    figures, training = ModelJudge((OWN[0][:4], OWN[1][:4]), TEST).judge(*BOUGHT, {"plain": EQUAL})
    assert training is not None
    assert training.sum() == pytest.approx(200.0), "as many as effective points"
    assert "was not tried: 4 own rows with a label are too few" in figures.sentence()
    nine = (drawn(9), drawn(200, turned=True))
    assert judged(own=nine[0], bought=nine[1]).training_weights == TrainingWeights("none", 0.0), (
        "nine are enough to see harm"
    )


def test_one_class_of_own_rows_is_said_always_and_helped_by_bought_points() -> None:
    found = judged(own=(OWN[0], [1] * 20))
    assert found.own is not None
    assert found.own == found.trivial
    assert found.own_and_bought is not None
    assert "was not tried: own rows have one class" in found.sentence()
    alone = judged(own=(OWN[0], [1] * 20), test=None)
    assert alone.own_and_bought is not None


def test_labels_that_differ_in_spelling_are_told() -> None:
    found = judged(bought=(BOUGHT[0], [str(label) for label in BOUGHT[1]]))
    assert "differ only in how they are written" in found.why
    assert found.why in found.sentence()
    other = judged(
        bought=(BOUGHT[0], [f"{label} " for label in BOUGHT[1]]), own=(OWN[0], [str(one) for one in OWN[1]])
    )
    assert "of own rows differ only in how they are written" in other.why
    assert (
        "no label of test rows is among those"
        in judged(bought=(BOUGHT[0], [label + 7 for label in BOUGHT[1]])).why
    )


def test_amounts_are_known_by_all_labels_where_own_ones_are_few() -> None:
    points = RNG.random((230, 2))
    whole = np.rint(900 * points[:, 0]).astype(int).tolist()
    found = judged((points[:12], whole[:12]), (points[12:30], whole[12:30]), (points[30:], whole[30:]))
    assert found.metric == "r2"


def test_a_model_that_fails_when_it_is_asked_is_told() -> None:
    found = judged(model="RadiusNeighborsClassifier", test=(TEST[0] + 50.0, TEST[1]))
    assert "RadiusNeighborsClassifier cannot be fitted to these points, or asked of others" in found.why
    assert found.own_and_bought is None


def test_a_model_of_the_other_kind_is_told_and_so_is_one_that_cannot_be_fitted() -> None:
    assert judged(model="Ridge").metric == "r2", "who names a regressor says that labels are amounts"
    spread = (OWN[0], np.linspace(0.5, 9.5, 20))
    assert "the model learns classes" in judged(own=spread, model="SVC", test=None).why
    points = RNG.random((60, 2))
    found = judged(
        (points[:20], np.linspace(-9, 9, 20) + 0.5), (points[20:], np.linspace(-9, 9, 40) + 0.25),
        (RNG.random((200, 2)), np.linspace(-9, 9, 200)), model="PoissonRegressor",
    )  # fmt: skip
    assert "PoissonRegressor cannot be fitted" in found.why
    assert found.own is None


def test_a_machine_without_scikit_learn_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushbid.consumer.model_figures.missing", lambda module: module == "sklearn")
    assert "pip install 'hushbid[operator]'" in judged().why


def test_figures_are_the_same_after_their_json() -> None:
    for found in (judged(), judged(own=None), NO_MODEL, judged().beside(judged())):
        assert ModelFigures.from_json(found.as_json()) == found
        assert found.as_json()["sentence"] == found.sentence()


def test_a_uniform_choice_stands_beside() -> None:
    mine, other = judged(), judged(bought=drawn(200))
    found = mine.beside(other)
    assert (found.uniform, found.own_and_uniform) == (other.bought, other.own_and_bought)
    assert "; as many at random: " in found.sentence()


def test_what_is_worse_is_said_loudly() -> None:
    figure = Figure(0.5, 0.4, 0.6)
    found = ModelFigures(
        metric="accuracy", judged_on="test", judged=90, own=figure, own_and_bought=figure,
        gain=Figure(-0.2, -0.3, -0.1), training_weights=TrainingWeights("plain", 5.0),
    )  # fmt: skip
    assert found.word == "worse"
    assert "WORSE" in found.sentence()
    assert "-20.0 points, 95 % interval -30.0 to -10.0" in found.sentence()


def test_points_have_training_weights_where_no_model_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone they have mean 1; beside own rows they sum to their effective points."""
    half = [label if row % 2 else None for row, label in enumerate(BOUGHT[1])]

    def total(own: Any, labels: Any) -> float:
        training = ModelJudge(own, None).judge(BOUGHT[0], labels, {"plain": EQUAL})[1]
        assert training is not None
        assert not training[[label is None for label in labels]].any()
        return float(training.sum())

    assert total(None, BOUGHT[1]) == pytest.approx(200.0)
    assert total(None, half) == pytest.approx(100.0)
    monkeypatch.setattr("hushbid.consumer.model_figures.missing", lambda _module: True)
    assert total(OWN, half) == pytest.approx(100.0)
    weights = np.where(np.arange(200) < 50, 1 / 50, 0.0)
    training = ModelJudge(OWN, None).judge(*BOUGHT, {"plain": weights})[1]
    assert training is not None
    assert training.sum() == pytest.approx(50.0)
    assert ModelJudge(OWN, None).judge(BOUGHT[0], [None] * 200, {"plain": EQUAL})[1] is None


# -- the first of the points --------------------------------------------------------------------------------


@pytest.mark.parametrize("amounts", [False, True])
def test_the_course_begins_with_own_rows_and_ends_with_the_figure_of_all_points(amounts: bool) -> None:
    judge = ModelJudge(OWN, TEST, amounts=amounts)
    figures, training = judge.judge(*BOUGHT, {"plain": EQUAL})
    assert training is not None
    found = judge.course(*BOUGHT, training, (0, 1, 50, 200))
    assert isinstance(found, ModelCourse)
    assert found.figures[0] == figures.own
    assert found.figures[-1] == figures.own_and_bought
    assert (found.metric, found.judged_on, found.judged, found.own_rows) == (
        "r2" if amounts else "accuracy", "test", 300, 20,
    )  # fmt: skip
    points, labels = BOUGHT
    alone = judge.course(points[:50], labels[:50], training[:50], (50,))
    assert isinstance(alone, ModelCourse)
    assert alone.figures[0] == found.figures[2], "later points have no part in it"
    assert found.figures[2] != found.figures[-1], "the control"


def test_the_course_of_bought_points_alone_ends_with_their_figure() -> None:
    judge = ModelJudge(None, TEST)
    points, labels = BOUGHT
    weights = np.linspace(1.0, 3.0, 200) / 400.0
    figures, training = judge.judge(points, [None, *labels[1:]], {"plain": weights})
    assert training is not None
    found = judge.course(points, [None, *labels[1:]], training, (0, 1, 30, 200))
    assert isinstance(found, ModelCourse)
    assert found.figures[:2] == (None, None), "nothing has a label yet"
    assert found.figures[2] is not None
    assert found.figures[-1] == figures.bought


def test_the_course_without_test_rows_is_cross_validated_on_own_rows() -> None:
    judge = ModelJudge(drawn(60), None)
    figures, training = judge.judge(*BOUGHT, {"plain": EQUAL})
    assert training is not None
    found = judge.course(*BOUGHT, training, (0, 200))
    assert isinstance(found, ModelCourse)
    assert (found.judged_on, found.judged) == ("validation", 60)
    assert found.figures[0] == figures.own
    (last,) = found.figures[1:]
    assert last is not None
    assert figures.own_and_bought is not None
    # The weights are chosen by all own rows here, and there without the row that is judged.
    assert last.value >= figures.own_and_bought.value - 0.05


def test_a_course_without_a_figure_says_why() -> None:
    points, labels = BOUGHT
    training = np.ones(200)
    assert ModelJudge(None, None).course(points, labels, training, (0,)) == (
        "neither the validation set nor test rows have labels"
    )
    few = ModelJudge((OWN[0][:3], OWN[1][:3]), None).course(points, labels, training, (0,))
    assert few == "there are no test rows, and 3 labelled rows are too few for cross-validation"


def test_points_without_weight_leave_the_course_as_it_was() -> None:
    found = ModelJudge(OWN, TEST).course(*BOUGHT, np.zeros(200), (0, 100, 200))
    assert isinstance(found, ModelCourse)
    assert len(set(found.figures)) == 1
