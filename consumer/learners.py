"""Models that the consumer trains to judge its purchase: of classes, or of amounts.

scikit-learn is imported only when a model is made. Its import takes longer than all others of a consumer, and
only a consumer with labels needs it, after the delivery.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from hushbid.consumer import estimators
from hushbid.consumer.estimators import check_model_seed
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.extras import missing, need

__all__ = [
    "MODELS",
    "Learned",
    "Learner",
    "Training",
    "check_model",
    "counted",
    "fit_standardized",
    "learner",
    "modules_of",
    "train_here",
]

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[Any]
_T = TypeVar("_T")

_JUDGING: Final = "A model that points are judged by, on test points with labels,"
_NARROWEST: Final = 0.1
"""Least standard deviation by which a column is divided, as a share of the largest one: a column that is
almost constant among few rows, as a pixel at an image's edge, says little, and would count for much.
"""
_LEAST: Final = 1e-3
"""Smallest probability of a class that a loss counts with: a model that is sure and wrong is not wrong
without end.
"""

MODELS: Final[Mapping[str, tuple[tuple[str, str, Mapping[str, Any]], tuple[str, str, Mapping[str, Any]]]]] = {
    "logistic": (
        ("sklearn.linear_model", "LogisticRegression", {"max_iter": 1000}),
        ("sklearn.linear_model", "Ridge", {}),
    ),
    "boosted": (
        ("sklearn.ensemble", "HistGradientBoostingClassifier", {}),
        ("sklearn.ensemble", "HistGradientBoostingRegressor", {}),
    ),
    "linear-svm": (("sklearn.svm", "LinearSVC", {}), ("sklearn.svm", "LinearSVR", {})),
    # One hidden layer of 32 units, as in DPDS appendix G (without its dropout).
    "mlp": (
        ("sklearn.neural_network", "MLPClassifier", {"hidden_layer_sizes": (32,)}),
        ("sklearn.neural_network", "MLPRegressor", {"hidden_layer_sizes": (32,), "max_iter": 1000}),
    ),
}
"""Short names of models: the classifier and the regressor of scikit-learn, each with module, class and
options.
"""


class Training(Protocol):
    """Calls a function that trains models: here, or in a process that has imported scikit-learn already."""

    def __call__(self, function: Callable[[], _T], /) -> _T:
        """What it returns. Raises what it raises."""


def train_here(function: Callable[[], _T], /) -> _T:
    """`Training` in this process."""
    return function()


def modules_of(model: Any) -> tuple[str, ...]:
    """What `learner` imports for a model, to be imported ahead."""
    if isinstance(model, str) and model in MODELS:
        return tuple(dict.fromkeys(module for module, _, _ in MODELS[model]))
    return ("sklearn.utils",) if isinstance(model, str) else ()


def check_model(name: str, *, trained: bool) -> None:
    """Refuse a downstream model that does not exist.

    Args:
        name: One of `MODELS`, or the name of a classifier or regressor of scikit-learn.
        trained: Whether a model will be trained, as there are labels to judge it by; that needs scikit-learn.

    Raises:
        ConfigError: There is no such model, or scikit-learn is needed and missing.
    """
    if trained:
        need("sklearn", _JUDGING)
    if name in MODELS:
        return
    if not missing("sklearn"):
        advice = estimators.unknown(name)
        if advice is None:
            estimators.made(name, {}, seed=0)
            return
    else:
        advice = "scikit-learn is not installed, whose estimators could be named as well."
    raise ConfigError(
        f"There is no downstream model named {name!r}.",
        advice=f"Choose one of: {', '.join(MODELS)}; or an estimator of scikit-learn. {advice}",
    )


@dataclass(frozen=True, eq=False, repr=False)
class Learner:
    """An estimator of scikit-learn that is not fitted yet.

    Attributes:
        estimator: It.
        amounts: Whether it learns amounts; otherwise it learns classes, as whole numbers from 0.
        takes_weights: Whether its ``fit`` takes ``sample_weight``. If not, rows are repeated in proportion to
            their weights.
        standardizes: Whether it learns amounts less their mean, over their standard deviation: a network or a
            support vector machine depends on their unit. An estimator that is named gets them as they are.
            Columns are standardized for all that can take them so (`fit_standardized`).
        ranks: Of each class, its place among the sorted labels, shape (classes,): the estimator learns these.
            What a network or a forest draws depends on the order of classes, and a model of the labels
            themselves, such as `hushbid train` writes, has them sorted. None: it learns the classes' numbers.
    """

    estimator: Any
    amounts: bool
    takes_weights: bool
    standardizes: bool = False
    ranks: npt.NDArray[np.int64] | None = None

    @property
    def name(self) -> str:
        return type(self.estimator).__name__

    def learn(self, points: Rows, labels: Rows, weights: Floats | None = None) -> Learned:
        """A model of these rows.

        Args:
            points: Scaled, shape (n, columns), at least one with a weight above 0.
            labels: Shape (n,), float64 amounts or int64 classes.
            weights: Shape (n,); None: all count 1. Rows of weight 0 are left out.

        Raises:
            DataError: The estimator cannot be fitted to them. Names no label.
        """
        from sklearn.base import clone

        points, labels, options = counted(points, labels, weights, takes_weights=self.takes_weights)
        if len(labels) < 2 if self.amounts else bool((labels == labels[0]).all()):
            return Learned(None, self.amounts, labels[0])
        middle, unit = (float(labels.mean()), float(labels.std()) or 1.0) if self.standardizes else (0.0, 1.0)
        if self.standardizes:
            labels = (labels - middle) / unit
        ranked = None
        if self.ranks is not None:
            labels, ranked = self.ranks[labels], np.argsort(self.ranks)
        with _trying(self.name):
            model = fit_standardized(clone(self.estimator), points, labels, **options)
        return Learned(model, self.amounts, None, middle, unit, ranked)


@dataclass(frozen=True, eq=False, repr=False)
class Learned:
    """A fitted pipeline, whose amounts are `middle` + `unit` · what it says; or else always `constant`.

    Attributes:
        ranked: The class of each of `Learner.ranks`; None: it says the class itself.
    """

    model: Any
    amounts: bool
    constant: Any
    middle: float = 0.0
    unit: float = 1.0
    ranked: npt.NDArray[np.int64] | None = None

    def predicted(self, points: Rows) -> Rows:
        """The class or the amount of each point.

        Raises:
            DataError: The model cannot be asked of them.
        """
        if self.model is None:
            return np.full(len(points), self.constant)
        with _trying(type(self.model[-1]).__name__):
            said = self._classes(np.asarray(self.model.predict(points)).reshape(len(points)))
        return self.middle + self.unit * said if self.amounts else said

    def _classes(self, said: Rows) -> Rows:
        return said if self.ranked is None else self.ranked[said]

    def judged(self, points: Rows, labels: Rows) -> tuple[Rows, Floats]:
        """What is `predicted` of each point, and how wrong the model is there.

        Of an amount it loses the squared error, of a class -log of its probability. A classifier without
        probabilities loses 1 where it is wrong. Raises as `predicted`.
        """
        if self.amounts or self.model is None or not hasattr(self.model, "predict_proba"):
            said = self.predicted(points)
            if self.amounts:
                return said, np.asarray((said - labels) ** 2, dtype=np.float64)
            wrong = np.asarray(said != labels, dtype=np.float64)
            return said, wrong if self.model is not None else -np.log(_LEAST) * wrong
        with _trying(type(self.model[-1]).__name__):
            columns = points
            for _, step in self.model.steps[:-1]:  # once for both questions
                columns = step.transform(columns)
            said = self._classes(np.asarray(self.model[-1].predict(columns)).reshape(len(points)))
            chances = np.asarray(self.model[-1].predict_proba(columns))
        places = {label: place for place, label in enumerate(self._classes(self.model.classes_).tolist())}
        asked = np.array([places.get(label, -1) for label in labels.tolist()])
        held = np.where(asked >= 0, chances[np.arange(len(labels)), asked], 0.0)
        return said, np.asarray(-np.log(np.clip(held, _LEAST, 1.0)))


def fit_standardized(model: Any, points: Rows, labels: Rows, **options: Floats) -> Any:
    """Fit a model to standardized columns, or to these if it takes no negative numbers.

    Public bounds say how wide a column could be, and a penalty or a step of a fixed size then depends on how
    carefully they were chosen: a linear model on columns that fill a tenth of their bounds learns too little,
    and any purchase seems to help it.

    Args:
        points: Shape (n, columns), with `labels`, shape (n,), n at least 1.
        options: Of ``fit``: none, or ``sample_weight``, shape (n,), all above 0.

    Returns:
        scikit-learn's pipeline of what standardizes, if anything does, and the model.
    """
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    before = []
    if not _takes_no_negative_numbers(model):
        columns = StandardScaler().fit(points, **options)
        if (widest := float(np.sqrt(columns.var_).max())) > 0.0:
            columns.scale_ = np.maximum(columns.scale_, _NARROWEST * widest)
        before, points = [("standardize", columns)], columns.transform(points)
    return Pipeline([*before, ("model", model.fit(points, labels, **options))])


def _takes_no_negative_numbers(estimator: Any) -> bool:
    """Whether an estimator says so, or the one that it searches parameters of, bags or calibrates."""
    from sklearn.utils import get_tags

    within = getattr(estimator, "estimator", None)
    return bool(get_tags(estimator).input_tags.positive_only) or (
        within is not None and _takes_no_negative_numbers(within)
    )


def learner(model: Any, *, seed: int, amounts: bool) -> Learner | str:
    """The estimator of a name, or why it does not learn such labels.

    Args:
        model: One of `MODELS`, or the name of an estimator of scikit-learn, or one itself.
        seed: Of all draws of one that is named.
        amounts: Whether the labels are amounts.

    Raises:
        ConfigError: There is no such model, the seed is too large, or scikit-learn is missing.
    """
    need("sklearn", _JUDGING)
    check_model_seed(seed)
    short = isinstance(model, str) and model in MODELS
    if short:
        module, name, options = MODELS[model][amounts]
        kind = getattr(import_module(module), name)
        seeded = {"random_state": seed} if "random_state" in kind().get_params() else {}
        estimator = kind(**options, **seeded)
    else:
        estimator = model
        if isinstance(model, str):
            check_model(model, trained=True)
            estimator = estimators.made(model, {}, seed=seed)
        if estimators.is_regressor(estimator) != amounts:
            learns, has = ("classes", "amounts") if amounts else ("amounts", "classes")
            return f"{type(estimator).__name__} learns {learns}, and the labels are {has}"
    return Learner(estimator, amounts, estimators.takes_weights(estimator), short and amounts)


@contextmanager
def _trying(name: str) -> Iterator[None]:
    """Raise what scikit-learn raises as a `DataError` that quotes nothing: it may quote rows and labels.

    Its warnings are dropped: a model that stopped early is still a model, and figures show how good it is.
    """
    # Models here are small. Threads that wait for a processor another program has cost minutes. A driver has
    # limited what was loaded when it began, and not SciPy's BLAS, which comes with scikit-learn.
    with warnings.catch_warnings(), _libraries(len(sys.modules)).limit(limits=1):
        warnings.simplefilter("ignore")
        try:
            yield
        except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
            raise DataError(
                f"{name} cannot be fitted to these points, or asked of others: scikit-learn raised "
                f"{type(error).__name__}.",
                advice="Choose another model.",
            ) from error


@lru_cache(maxsize=1)
def _libraries(_imported: int) -> ThreadpoolController:
    """The process's OpenMP and BLAS. They are searched for anew after imports alone, as that takes 10 ms."""
    return ThreadpoolController()


def counted(
    points: Rows, labels: Rows, weights: Floats | None, *, takes_weights: bool
) -> tuple[Rows, Rows, dict[str, Floats]]:
    """Rows and options for ``fit``: rows of weight 0 are left out, and repeated where no weights are taken.

    Args:
        points: Shape (n, columns), with `labels`, shape (n,).
        weights: Shape (n,), at least one above 0; None: all count 1.
    """
    if weights is None:
        return points, labels, {}
    held = weights > 0.0
    points, labels, weights = points[held], labels[held], weights[held]
    if takes_weights:
        return points, labels, {"sample_weight": weights}
    rows = _repeated(weights)
    return points[rows], labels[rows], {}


def _repeated(weights: Floats) -> npt.NDArray[np.intp]:
    """Rows in proportion to their weights, as many as there are weights (systematic: nothing is drawn)."""
    ends = np.cumsum(weights) * (len(weights) / weights.sum())
    found = np.searchsorted(ends, np.arange(len(weights)) + 0.5, side="left")
    return np.minimum(found, len(weights) - 1)  # the last end may be too low by rounding
