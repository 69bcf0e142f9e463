"""A scikit-learn model, fitted to delivered points and evaluated on others, for `hushbid train`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import Field
from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.downstream import AMOUNTS, known_labels, no_classes, why_none_agree, wilson_interval
from hushbid.consumer.estimators import is_regressor, made, takes_weights
from hushbid.consumer.judgement import judged
from hushbid.consumer.learners import counted, fit_standardized
from hushbid.consumer.model_figures import ModelFigures, ModelJudge
from hushbid.consumer.training_weights import Kind
from hushbid.protocol.data import DataColumns
from hushbid.protocol.data.dataset import Changes, Outside
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.extras import need
from hushbid.protocol.figures import Figures
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.protocol.session.guarantee import PrivacyStatement
from hushbid.tables.delivery import NOT_OURS, Columns, DeliveredTables, Floats, is_same, writing
from hushbid.text_files import check_file_place

__all__ = ["AmountScores", "ClassScores", "Fitted", "Trained", "train"]

_ENDING: Final = ".skops"
_NO_WEIGHTS: Final = "the delivery has none: `hushbid weigh` makes them"
_NO_OWN_ROWS: Final = ModelFigures(why="no file of own rows was named (`--validation`)")
_FEW_CLASSES: Final = 2
_FEW_NUMBERS: Final = 2

_Rows: TypeAlias = tuple[Floats, npt.NDArray[Any], Floats | None]
"""Points, their labels, and their weights if they have any."""


@figures(frozen=True)
class ClassScores(Figures):
    """A classifier's scores on test points; the interval is Wilson's at 95 %, F1 the mean over classes."""

    accuracy: float
    accuracy_interval: tuple[float, float]
    f1_macro: float


@figures(frozen=True)
class AmountScores(Figures):
    """A regressor's scores on test points, with errors in the labels' unit; None: not a finite number."""

    r2: float | None
    mean_absolute_error: float | None
    root_mean_squared_error: float | None


@figures(frozen=True, eq=False)
class Fitted(Figures):
    """A fitted model and its scores on test points.

    Attributes:
        pipeline: It takes the session's columns of numbers (`Schema.encode` makes them from a table), scales
            them by the session's bounds to [0, 1], and predicts. JSON leaves it out: it is None after reading
            back.
        converged: Whether scikit-learn considered the fit finished; False: it stopped at its iteration limit.
        scores: On the test points; None: there are none.
    """

    pipeline: Any = Field(default=None, exclude=True, repr=False, kw_only=True)
    converged: bool
    scores: ClassScores | AmountScores | None


@figures(frozen=True, eq=False, kw_only=True)
class Trained(Figures):
    """A trained model, and its training data.

    Attributes:
        estimator: The fitted class.
        kind: ``classifier`` or ``regressor``.
        fitted: The model, fitted with weights if there are any and it accepts them.
        weights_why: Why weights were not used; empty if they were.
        without_weights: The same without weights, if requested.
        points: Training points; `unlabelled` ones, without a label, were left out.
        classes: Number of its classes; None: it is a regressor.
        tested: Number of labelled test points; None: there are no test points.
        labels_why: Why no test point can be predicted right (the notation of labels), or why few can (labels
            are amounts); else empty.
        own_rows: Labelled own rows used in training as well; None: no file of own rows was named.
        beside: Whether it is better than one of own rows alone, in JSON ``model``; None: no file of own rows
            was named.
        output: The file that the model was written to.
        outside: What was clipped or dropped of test and own rows, by their files' names.
        privacy: The session's guarantees, as far as the session is known.
    """

    FLAT: ClassVar[frozenset[str]] = frozenset({"fitted"})
    TOLD: ClassVar[Mapping[str, str]] = {"judgement": "sentences"}

    estimator: str
    kind: Literal["classifier", "regressor"]
    fitted: Fitted
    weights_used: bool
    weights_why: str
    without_weights: Fitted | None
    points: int
    unlabelled: int
    classes: int | None
    tested: int | None
    labels_why: str
    own_rows: int | None = None
    beside: Annotated[ModelFigures | None, Field(alias="model")] = None
    output: Path | None
    outside: Mapping[str, Changes] = Field(default_factory=dict)
    privacy: tuple[PrivacyStatement, ...] = ()

    @property
    def sentences(self) -> tuple[str, str]:
        """Whether the model improved on own rows alone, and which guarantee protects whom."""
        return judged(self.beside or _NO_OWN_ROWS, self.privacy)

    @property
    def model(self) -> Any:
        """The fitted pipeline."""
        return self.fitted.pipeline


@one_blas_thread()
def train(
    delivered: Path | str,
    estimator: Any = "LogisticRegression",
    *,
    test: Path | str | None = None,
    validation: Path | str | None = None,
    columns: Columns | DataColumns = (None, None),
    session: Path | str | None = None,
    parameters: Mapping[str, Any] | None = None,
    without_weights: bool = False,
    seed: int = 0,
    output: Path | str | None = None,
    outside: Outside | None = None,
    judgement: ModelFigures | None = None,
) -> Trained:
    """Fit a model to delivered points, with their weights, on columns scaled by the public bounds to [0, 1].

    Points without a label are left out. Weights are scaled to a mean of 1 over the remaining points. With a
    validation set, own rows are used in training as well: each has weight 1, and cross-validation on them
    determines the relative weight of the delivered points (`hushbid.consumer.training_weights`).

    Args:
        delivered: The consumer's ``delivered.npz``.
        estimator: The name of a scikit-learn classifier or regressor; or an instance, which is fitted.
        test: Labelled points for the evaluation, in any format that parties read; None: there are none.
        validation: D_v, own rows of which some have a label; None: train on delivered points alone.
        columns: Feature columns (as in ``a,b,c``) and the label column, of `test` and `validation`; or how
            these tables are read.
        session: The session file, by whose ``[[columns]]``, if any, the test table is read.
        parameters: Parameters of the named estimator.
        without_weights: Fit another one without weights as well, for comparison.
        seed: ``random_state`` of the named estimator, if it has one.
        output: The file to write the model to, ending with ``.skops``; None: it is not written.
        outside: Treatment of rows of `test` and `validation` that do not fit the public bounds; None: they
            are refused.
        judgement: The findings of `weigh` on this estimator, own and test rows when it made the delivery's
            training weights; None: they are computed here, with the delivery's matching weights.

    Raises:
        ConfigError: An option is invalid, an estimator or a parameter does not exist, or a package is not
            installed.
        DataError: A file cannot be read or written, nothing can be learned from the labels, or the estimator
            cannot be fitted to the points.
    """
    place = None if output is None else _checked_output(Path(output), (delivered, test, validation))
    if isinstance(estimator, str):
        model = made(estimator, parameters or {}, seed=seed)
    else:
        need("sklearn", "A model of delivered points")
        if parameters:
            raise ConfigError(
                "Parameters are given, and an estimator that is made already.",
                advice="Give them to the estimator.",
            )
        model = estimator
    name, regressor = type(model).__name__, is_regressor(model)
    found = DeliveredTables.read(delivered, session, columns, outside)
    if found.amounts and not regressor:
        raise ConfigError(
            f"By [labels] of {found.session} labels are amounts, and {name} learns classes.",
            advice="Name a regressor: `hushbid train --estimator Ridge`.",
        )
    held = found.labelled
    labels = _labels(found, name, regressor=regressor)
    tested = None if test is None else _judged(found, Path(test), labels)
    learned, weights, why = found.points[held], None, _NO_WEIGHTS
    own = None if validation is None else _judged(found, Path(validation), labels, label_gaps=True)
    if "weights" in found.arrays:
        weights, why = _mean_one(found.arrays["weights"][held]), ""
        if not takes_weights(model):
            weights, why = None, f"{name} takes no sample weights"
        elif weights is None:
            why = "the points that have a label have no weight"
    both: _Rows = (learned, labels, weights)
    compared, counts = None, len(labels)
    if own is not None:
        compared, share = (
            _shared(found, own, tested, model, regressor=regressor, seed=seed)
            if judgement is None
            else (judgement, found.arrays["training_weights"])
        )
        both = (
            np.concatenate([own[0], learned]),
            np.concatenate([own[1], labels]),
            np.concatenate([np.ones(len(own[1])), share[held]]),
        )
        why = (
            "" if takes_weights(model) else f"{name} takes no sample weights: rows are repeated in proportion"
        )
        counts = int((share[held] > 0.0).sum())
        if not counts:
            why = "by cross-validation on own rows the delivered points deserve no weight"
        weights = both[2] if takes_weights(model) and counts else None
        _check_classes(both, name, regressor=regressor)
    fitted = _fit(model, *both, found.bounds, tested)
    beside = _fit(model, learned, labels, None, found.bounds, tested) if without_weights else None
    if place is not None:
        _write(place, fitted.pipeline, name)
    labels_why = ""
    if tested is not None and not regressor:
        labels_why = AMOUNTS if no_classes(tested[1]) else why_none_agree(labels, tested[1])
    return Trained(
        estimator=name,
        kind="regressor" if regressor else "classifier",
        fitted=fitted,
        weights_used=weights is not None,
        weights_why=why,
        without_weights=beside,
        points=counts,
        unlabelled=len(held) - len(labels),
        classes=None if regressor else len(np.unique(labels)),
        tested=None if tested is None else len(tested[1]),
        labels_why=labels_why,
        own_rows=None if own is None else len(own[1]),
        beside=compared,
        privacy=found.privacy(),
        output=None if place is None else place.resolve(),
        outside=found.outside,
    )


def _checked_output(place: Path, read: tuple[Path | str | None, ...]) -> Path:
    need("skops", "A model that is written")
    if place.suffix != _ENDING:
        raise ConfigError(
            f"{place}: models are not written to files with that ending.",
            advice=f"Name one that ends with {_ENDING}.",
        )
    if any(is_same(place, Path(other)) for other in read if other is not None):
        raise ConfigError(f"{place} would be overwritten.", advice="Name another file with --output.")
    check_file_place(place)
    return place


def _labels(found: DeliveredTables, name: str, *, regressor: bool) -> npt.NDArray[Any]:
    where = found.path.name
    if "labels" not in found.arrays:
        raise DataError(
            f"{where}: no delivered point has a label, and nothing can be learned without.",
            advice="Owners deliver labels if their files name a label's column (`session.labels`).",
        )
    labels: npt.NDArray[Any] = found.arrays["labels"][found.labelled]
    if regressor:
        if labels.dtype.kind not in "fiu":
            raise DataError(
                f"{where}: the labels are text, and {name} learns numbers.", advice="Choose a classifier."
            )
        if len(labels) < _FEW_NUMBERS:
            raise DataError(
                f"{where}: {len(labels)} delivered points have a label, too few to learn from.",
                advice=f"At least {_FEW_NUMBERS} are needed.",
            )
        return labels.astype(np.float64)
    if labels.dtype.kind == "f" and not np.array_equal(labels, np.rint(labels)):
        raise DataError(
            f"{where}: the labels are numbers that are not whole, and {name} learns classes.",
            advice="Choose a regressor.",
        )
    classes = len(np.unique(labels))
    if classes < _FEW_CLASSES:
        raise DataError(
            f"{where}: the delivered points that have a label ({len(labels)}) are of "
            f"{'one class' if classes else 'no class'}, and {name} needs two.",
            advice="Buy more points, or ask owners for labels (`session.labels`).",
        )
    return labels


def _shared(
    found: DeliveredTables,
    own: tuple[Floats, npt.NDArray[Any]],
    judged: tuple[Floats, npt.NDArray[Any]] | None,
    model: Any,
    *,
    regressor: bool,
    seed: int,
) -> tuple[ModelFigures, Floats]:
    """Whether points improve a model of own rows, and their weight beside those."""
    arrays, held = found.arrays, found.labelled
    weightings: dict[Kind, Floats] = {"equal": np.full(len(held), 1.0 / len(held))}
    if "weights" in arrays:
        weightings = {"labels" if float(arrays.get("label_weight", 0.0)) else "plain": arrays["weights"]}
    judge = ModelJudge(own, judged, model, seed, regressor)
    figures, share = judge.judge(found.points, found.known, weightings)
    assert share is not None, "there are labels on both sides"
    return figures, share


def _check_classes(rows: _Rows, name: str, *, regressor: bool) -> None:
    """Refuse weighted rows from which a classifier learns nothing."""
    _, labels, weights = rows
    kept = labels if weights is None else labels[weights > 0.0]
    if not regressor and len(np.unique(kept)) < _FEW_CLASSES:
        raise DataError(
            f"All weighted rows are of one class, and {name} needs two.",
            advice="Name own rows of more classes, which determine the delivered points' weight; or leave "
            "--validation out.",
        )


def _judged(
    found: DeliveredTables, test: Path, learned: npt.NDArray[Any], *, label_gaps: bool = False
) -> tuple[Floats, npt.NDArray[Any]]:
    """Points with labels comparable to the delivered ones; with `label_gaps`, those that have one."""
    held_out, features = found.table(test, label_gaps=label_gaps)
    if held_out.labels is None or not len(known_labels(held_out.labels)):
        raise DataError(f"{held_out.name} has no labels.", advice="Name their column with `--label`.")
    labels = np.asarray(held_out.labels)
    if held_out.labelled is not None:
        features, labels = features[held_out.labelled], labels[held_out.labelled]
    kinds = ["text" if array.dtype.kind == "U" else "numbers" for array in (learned, labels)]
    if kinds[0] != kinds[1]:
        raise DataError(
            f"{test.name}: the labels are {kinds[1]}, and those of the delivered points {kinds[0]}.",
            advice="Save them as the owners have them.",
        )
    return features, labels


def _mean_one(weights: Floats) -> Floats | None:
    """Weights of mean 1, as models expect; None: they are all zero."""
    total = float(weights.sum())
    return weights * (len(weights) / total) if total > 0.0 else None


def _fit(
    estimator: Any,
    points: Floats,
    labels: npt.NDArray[Any],
    weights: Floats | None,
    bounds: Floats,
    judged: tuple[Floats, npt.NDArray[Any]] | None,
) -> Fitted:
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MinMaxScaler

    with one_blas_thread(), warnings.catch_warnings(record=True) as told:  # SciPy's too, just imported
        warnings.simplefilter("always")
        model, name = clone(estimator), type(estimator).__name__
        try:
            points, labels, options = counted(points, labels, weights, takes_weights=takes_weights(model))
            learned = fit_standardized(model, points, labels, **options)
            scores = None if judged is None else _scores(learned, *judged)
        except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
            raise _not_fitted(name, error) from error
    converged = not any(issubclass(each.category, ConvergenceWarning) for each in told)
    # The bounds are all that the scaler learns: it maps them to 0 and 1.
    scaler = MinMaxScaler().fit(bounds)
    return Fitted(converged, scores, pipeline=Pipeline([("scale", scaler), *learned.steps]))


def _not_fitted(name: str, error: Exception) -> ConfigError | DataError:
    """An error that quotes no row: scikit-learn's own may quote labels or values, except about parameters."""
    if type(error).__name__ == "InvalidParameterError":
        return ConfigError(str(error), advice="Correct the parameter.")
    return DataError(
        f"{name} cannot be fitted to these points, or judged on the test points: scikit-learn raised "
        f"{type(error).__name__}.",
        advice="Choose another estimator, or other parameters; `hushbid.train` in Python has scikit-learn's "
        "own message as its cause.",
    )


def _scores(model: Any, points: Floats, truth: npt.NDArray[Any]) -> ClassScores | AmountScores:
    from sklearn import metrics

    predicted = np.asarray(model.predict(points)).reshape(len(truth))
    if is_regressor(model):
        truth = truth.astype(np.float64)
        return AmountScores(
            float(metrics.r2_score(truth, predicted)) if len(truth) > 1 else None,
            float(metrics.mean_absolute_error(truth, predicted)),
            float(metrics.root_mean_squared_error(truth, predicted)),
        )
    right = float(np.mean(predicted == truth))
    f1 = float(metrics.f1_score(truth, predicted, average="macro", zero_division=0))
    return ClassScores(right, wilson_interval(right, len(truth)), f1)


def _write(place: Path, model: Any, name: str) -> None:
    from skops.io import dumps

    try:
        content = dumps(model)
    except Exception as error:  # whatever happens in an estimator's own state
        raise DataError(
            f"{name} cannot be written in the skops format: {type(error).__name__}.",
            advice="Choose another estimator, or keep it in Python (`hushbid.train`).",
        ) from error
    with writing(place, what="the model", advice=NOT_OURS) as stream:
        stream.write(content)
