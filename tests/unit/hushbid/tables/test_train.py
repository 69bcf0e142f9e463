"""`hushbid train`: a model of scikit-learn on delivered points, with their weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner, Result

import hushbid
from hushbid.cli.app import app
from hushbid.consumer.estimators import SUGGESTED, made, takes_weights
from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.tables.training import ClassScores

LOWER, UPPER = -1.0, np.array([3.0, 1.0])
RNG = np.random.default_rng(4)
POINTS = LOWER + RNG.random((80, 2)) * (UPPER - LOWER)
NOISE = RNG.normal(0, 0.15, 80)
SCALED = (POINTS - LOWER) / (UPPER - LOWER)
LABELS = (SCALED[:, 0] + NOISE > 0.5).astype(np.int64)
WEIGHTS = RNG.random(80)
TEST = LOWER + RNG.random((50, 2)) * (UPPER - LOWER)
TEST_SCALED = (TEST - LOWER) / (UPPER - LOWER)
TRUTH = (TEST_SCALED[:, 0] > 0.5).astype(np.int64)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A delivery, two of whose points have no label, and labelled test points."""
    write(tmp_path)
    np.savez(tmp_path / "test.npz", features=TEST, labels=TRUTH)
    return tmp_path


def write(place: Path, **changes: Any) -> None:
    labelled = np.ones(80, dtype=bool)
    labelled[[7, 9]] = False
    arrays: dict[str, Any] = {
        "features": POINTS, "labels": LABELS, "labelled": labelled, "identified": np.zeros(80, dtype=bool),
        "owners": np.array(["heron", "magpie"] * 40), "rounds": np.arange(1, 81), "weights": WEIGHTS / 80,
        "gamma": np.float64(2.0), "lower": np.float64(LOWER), "upper": UPPER,
    }  # fmt: skip
    arrays |= changes
    kept = {name: value for name, value in arrays.items() if value is not None}
    np.savez(place / "delivered.npz", **kept)


def train(place: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["train", str(place / "delivered.npz"), *options])


def told(place: Path, *options: str) -> dict[str, Any]:
    done = train(place, *options, "--json")
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(place: Path, *options: str) -> str:
    done = train(place, *options)
    assert done.exit_code == 4, (done.stdout, done.stderr)
    return done.stderr


def test_the_model_is_scikit_learns_on_scaled_points_with_weights_of_mean_one(place: Path) -> None:
    held = np.delete(np.arange(80), [7, 9])
    weights = WEIGHTS[held] * (78 / WEIGHTS[held].sum())

    def fitted(weights: np.ndarray | None) -> Any:
        columns = StandardScaler().fit(SCALED[held], sample_weight=weights)
        model = LogisticRegression(max_iter=1000, random_state=0)
        return make_pipeline(columns, model.fit(columns.transform(SCALED[held]), LABELS[held], weights))

    own, plain = fitted(weights), fitted(None)
    found = told(place, "--test", str(place / "test.npz"), "--without-weights")
    assert found["scores"]["accuracy"] == pytest.approx(own.score(TEST_SCALED, TRUTH))
    assert found["without_weights"]["scores"]["accuracy"] == pytest.approx(plain.score(TEST_SCALED, TRUTH))
    low, high = found["scores"]["accuracy_interval"]
    assert low <= found["scores"]["accuracy"] <= high
    assert (found["points"], found["unlabelled"], found["classes"], found["tested"]) == (78, 2, 2, 50)
    assert (found["kind"], found["weights_used"], found["weights_why"]) == ("classifier", True, "")
    trained = hushbid.train(place / "delivered.npz")
    assert np.allclose(trained.model[-1].coef_, own[-1].coef_)
    assert not np.allclose(trained.model[-1].coef_, plain[-1].coef_), "the weights would go unseen"


def test_the_written_model_takes_raw_rows_and_is_loaded_without_trust(place: Path) -> None:
    output = place / "model.skops"
    found = told(place, "--estimator", "SVC", "--parameter", "C=3", "--output", str(output))
    assert found["output"] == str(output.resolve())
    assert output.stat().st_mode & 0o077 == 0
    assert skops.io.get_untrusted_types(file=output) == []
    loaded = skops.io.load(output)
    assert loaded[-1].C == 3
    own = hushbid.train(place / "delivered.npz", "SVC", parameters={"C": 3}).model
    assert np.array_equal(loaded.predict(TEST), own.predict(TEST))
    assert np.array_equal(own.predict(TEST), own[1:].predict(TEST_SCALED))


def test_a_regressor_learns_numbers(place: Path) -> None:
    numbers = SCALED @ np.array([2.0, -1.0])
    write(place, labels=numbers)
    np.savez(place / "test.npz", features=TEST, labels=TEST_SCALED @ np.array([2.0, -1.0]))
    found = told(place, "--estimator", "LinearRegression", "--test", str(place / "test.npz"))
    assert (found["kind"], found["classes"]) == ("regressor", None)
    assert found["scores"]["r2"] == pytest.approx(1.0)
    assert found["scores"]["mean_absolute_error"] == pytest.approx(0.0, abs=1e-9)
    assert "not whole" in refused(place, "--estimator", "LinearSVC")
    given = hushbid.train(place / "delivered.npz", Ridge(alpha=1e-9))
    assert given.estimator == "Ridge"
    with pytest.raises(ConfigError, match="made already"):
        hushbid.train(place / "delivered.npz", Ridge(), parameters={"alpha": 1.0})


def test_a_classifier_of_amounts_is_said_to_be_the_wrong_kind(place: Path) -> None:
    write(place, labels=np.arange(80))
    np.savez(place / "test.npz", features=TEST, labels=np.arange(50))
    assert "--estimator Ridge" in told(place, "--test", str(place / "test.npz"))["labels_why"]
    fitted = told(place, "--estimator", "Ridge", "--test", str(place / "test.npz"))
    assert (fitted["kind"], fitted["labels_why"]) == ("regressor", "")


def test_text_labels_are_classes(place: Path) -> None:
    names = np.array(["benign", "malignant"])
    write(place, labels=names[LABELS])
    np.savez(place / "test.npz", features=TEST, labels=names[TRUTH])
    assert told(place, "--test", str(place / "test.npz"))["scores"]["accuracy"] > 0.8
    assert "text, and Ridge learns numbers" in refused(place, "--estimator", "Ridge")
    np.savez(place / "test.npz", features=TEST, labels=np.array(["Benign", "Malignant"])[TRUTH])
    odd = told(place, "--test", str(place / "test.npz"))
    assert odd["scores"]["accuracy"] == 0.0
    assert "none agree" in odd["labels_why"]
    np.savez(place / "test.npz", features=TEST, labels=TRUTH)
    assert "labels are numbers" in refused(place, "--test", str(place / "test.npz"))


def test_an_estimator_that_takes_no_weights_says_so(place: Path) -> None:
    found = told(place, "--estimator", "KNeighborsClassifier")
    assert (found["weights_used"], found["weights_why"]) == (
        False, "KNeighborsClassifier takes no sample weights",
    )  # fmt: skip
    assert "not used: KNeighborsClassifier takes no sample weights" in train(
        place, "--estimator", "KNeighborsClassifier"
    ).stdout  # fmt: skip
    write(place, weights=None)
    assert "hushbid weigh" in told(place)["weights_why"]


def test_a_model_that_stopped_early_says_so(place: Path) -> None:
    found = told(place, "--parameter", "max_iter=1")
    assert not found["converged"]
    assert told(place)["converged"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--estimator", "logisticregresion"], "Did you mean LogisticRegression"),
        (["--estimator", "qqqq"], "Name one of: LogisticRegression"),
        (["--estimator", "VotingClassifier"], "made of other estimators (estimators)"),
        (["--parameter", "c=1"], "Did you mean C"),
        (["--parameter", "C=-1"], "'C' parameter of LogisticRegression"),
        (["--parameter", "C"], "NAME=VALUE"),
        (["--parameter", "C=" + "[" * 3000], "'C' parameter of LogisticRegression"),
        (["--estimator", "SVC", "--parameter", "verbose=true"], "among the results"),
        (["--output", "model.pkl"], "ends with .skops"),
        (["--estimator", "IsotonicRegression"], "cannot be fitted to these points"),
        (["--test", "gone.npz"], "gone.npz"),
        (["--seed", str(2**32)], "Set seed to a whole number from 0 to 4294967295"),
    ],
    ids=[
        "near", "far", "meta", "parameter", "value", "no value", "deep", "verbose", "ending", "unfit", "gone",
        "seed",
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(place: Path, options: list[str], said: str) -> None:
    text = refused(place, *options)
    assert said in text
    assert "Traceback" not in text


def test_a_seed_is_looked_at_where_a_model_has_one(place: Path) -> None:
    assert told(place, "--estimator", "KNeighborsClassifier", "--seed", str(2**32))["converged"]


def test_too_few_labels_are_refused(place: Path) -> None:
    write(place, labels=np.zeros(80, dtype=np.int64))
    assert "one class, and LogisticRegression needs two" in refused(place)
    write(place, labels=None)
    assert "no delivered point has a label" in refused(place)
    write(place, labelled=np.zeros(80, dtype=bool))
    assert "no class" in refused(place)
    assert "too few to learn from" in refused(place, "--estimator", "Ridge")


def test_a_table_needs_the_sessions_columns(place: Path) -> None:
    rows = "".join(f"{a},{b},{c}\n" for (a, b), c in zip(TEST, TRUTH, strict=True))
    (place / "test.csv").write_text(f"east,north,wanted\n{rows}")
    test = ["--test", str(place / "test.csv")]
    assert "3 feature columns" in refused(place, *test)
    assert "`--label`" in refused(place, *test, "--features", "east,north")
    assert "south" in refused(place, *test, "--features", "east,south", "--label", "wanted")
    named = told(place, *test, "--features", " east, north", "--label", "wanted")
    np.savez(place / "test.npz", features=TEST, labels=TRUTH)
    assert named["scores"] == told(place, "--test", str(place / "test.npz"))["scores"]
    assert load_dataset(place / "test.csv", DataColumns(("east", "north"), "wanted")).labels is not None


def test_no_error_quotes_a_row_or_a_label(place: Path) -> None:

    class Telling(LogisticRegression):  # type: ignore[misc]
        def fit(self, points: Any, labels: Any, sample_weight: Any = None) -> Any:
            raise ValueError(f"Class {labels[0]} is unknown.")

    write(place, labels=LABELS + 424242)
    with pytest.raises(DataError) as raised:
        hushbid.train(place / "delivered.npz", Telling())
    assert "42424" in str(raised.value.__cause__)
    assert "42424" not in f"{raised.value.what}{raised.value.advice}"


def test_all_that_is_suggested_is_there_and_takes_weights() -> None:
    assert all(takes_weights(made(name, {}, seed=0)) for name in SUGGESTED)
    shown = " ".join(
        CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "120"}).stdout.replace("│", " ").split()
    )
    assert all(name in shown for name in SUGGESTED)


@pytest.mark.slow
def test_every_estimator_is_fitted_or_refused(place: Path) -> None:
    from hushbid.consumer.estimators import _estimators

    fitted, refusals = set(), set()
    for name in _estimators():
        try:
            hushbid.train(place / "delivered.npz", name, test=place / "test.npz")
            fitted.add(name)
        except (ConfigError, DataError):
            refusals.add(name)
    assert len(fitted) >= 70, refusals


def own_rows(place: Path, *, turned: bool = False) -> None:
    """24 own rows, of which 20 have a label."""
    features = LOWER + np.random.default_rng(9).random((24, 2)) * (UPPER - LOWER)
    labels = (((features[:, 0] - LOWER) / 4.0 > 0.5) != turned).astype(np.int64)
    np.savez(place / "own.npz", features=features, labels=labels, labelled=np.arange(24) < 20)


def test_own_rows_are_learned_from_with_weight_one_and_points_as_they_say(place: Path) -> None:
    own_rows(place)
    options = ("--validation", str(place / "own.npz"), "--test", str(place / "test.npz"))
    found = told(place, *options)
    assert (found["own_rows"], found["weights_used"], found["weights_why"]) == (20, True, "")
    model = found["model"]
    assert model["estimator"] == "LogisticRegression"
    assert model["own_and_bought"]["value"] == found["scores"]["accuracy"]
    assert model["training_weights"]["total"] > 0.0
    assert model["sentence"] in " ".join(train(place, *options).stdout.split())
    own_rows(place, turned=True)
    misled = told(place, *options)
    assert misled["model"]["training_weights"] == {"kind": "none", "total": 0.0}
    assert misled["model"]["own"]["value"] == misled["scores"]["accuracy"] < 0.5
    assert told(place)["model"] is None


@pytest.mark.parametrize(
    ("estimator", "parameters"),
    [("RandomForestClassifier", {"n_estimators": 2}), ("MLPClassifier", {"max_iter": 5})],
)
def test_the_model_that_is_judged_is_the_one_that_is_written(
    place: Path, estimator: str, parameters: dict[str, int]
) -> None:
    """What these draw depends on the order of classes, of which the judge meets "yes" first."""
    words, noisy = np.array(["no", "yes"]), (TEST_SCALED[:, 0] + NOISE[:50] > 0.5).astype(np.int64)
    write(place, labels=words[LABELS])
    first = np.argsort(-noisy[:20], kind="stable")
    np.savez(place / "own.npz", features=TEST[first], labels=words[noisy[first]])
    np.savez(place / "test.npz", features=TEST[20:], labels=words[noisy[20:]])
    found = hushbid.train(
        place / "delivered.npz",
        estimator,
        parameters=parameters,
        validation=place / "own.npz",
        test=place / "test.npz",
    )
    right = float(np.mean(found.model.predict(TEST[20:]) == words[noisy[20:]]))
    assert isinstance(found.fitted.scores, ClassScores)
    assert found.beside is not None
    assert found.beside.own_and_bought is not None
    assert found.beside.own_and_bought.value == found.fitted.scores.accuracy == right


def test_an_estimator_without_weights_gets_rows_repeated(place: Path) -> None:
    own_rows(place)
    found = told(place, "--validation", str(place / "own.npz"), "--estimator", "KNeighborsClassifier")
    assert found["weights_used"] is False
    assert found["weights_why"] == (
        "KNeighborsClassifier takes no sample weights: rows are repeated in proportion"
    )
    assert found["model"]["judged_on"] == "validation"


def test_own_rows_without_a_label_are_refused(place: Path) -> None:
    np.savez(place / "own.npz", features=TEST, labels=TRUTH, labelled=np.zeros(50, dtype=bool))
    assert "own.npz has no labels" in refused(place, "--validation", str(place / "own.npz"))
    np.savez(place / "own.npz", features=TEST, labels=TRUTH.astype(str))
    assert "the labels are text" in refused(place, "--validation", str(place / "own.npz"))


def test_amounts_are_learned_with_own_rows(place: Path) -> None:
    write(place, labels=3.0 * SCALED[:, 0] + 0.25)
    np.savez(place / "own.npz", features=TEST[:25], labels=3.0 * TEST_SCALED[:25, 0] + 0.25)
    np.savez(place / "test.npz", features=TEST[25:], labels=3.0 * TEST_SCALED[25:, 0] + 0.25)
    found = told(
        place,
        "--estimator",
        "Ridge",
        "--validation",
        str(place / "own.npz"),
        "--test",
        str(place / "test.npz"),
    )
    assert found["model"]["metric"] == "r2"
    assert found["model"]["own_and_bought"]["value"] == pytest.approx(found["scores"]["r2"])
    assert found["model"]["gain"]["value"] > 0.0


def test_own_rows_of_one_class_are_told_and_an_estimator_that_fails_is_no_bug(place: Path) -> None:
    np.savez(place / "own.npz", features=TEST[:20], labels=np.ones(20, dtype=int))
    found = told(place, "--validation", str(place / "own.npz"), "--test", str(place / "test.npz"))
    assert "own rows have one class" in found["model"]["why"]
    own_rows(place, turned=True)
    options = ("--validation", str(place / "own.npz"), "--test", str(place / "test.npz"))
    misled = told(place, *options)
    assert (misled["points"], misled["weights_used"]) == (0, False)
    assert "deserve no weight" in misled["weights_why"]
    failing = refused(
        place, *options, "--estimator", "KNeighborsClassifier", "--parameter", "n_neighbors=500"
    )
    assert "KNeighborsClassifier cannot be fitted" in failing
