"""Models that the consumer trains on what it bought, to see what it is worth.

scikit-learn is imported where a model is made: it takes longer than all else that a consumer imports, and is
of use only once the points are delivered, to a consumer that has a test set.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocol.errors import ConfigError
from protocol.extras import need

__all__ = [
    "AMOUNTS",
    "MODELS",
    "Labels",
    "accuracy",
    "check_model",
    "known_labels",
    "no_classes",
    "why_no_accuracy",
    "why_none_agree",
    "wilson_interval",
]

Labels: TypeAlias = Sequence[int | float | str | None] | npt.NDArray[Any]
"""One class per point; None where its owner has none."""


_JUDGING: Final = "A model that points are judged by, on test points with labels,"
AMOUNTS: Final = (
    "more than half of the test points' labels are different, as amounts are, and not classes. "
    "`hushbid train --estimator Ridge` fits a model of amounts, and judges it"
)
"""What to say of labels that are `no_classes`."""
_FEW: Final = 20
"""Labels of so many points may all be different, and still be classes: scikit-learn draws the same line."""
_NORMAL: Final = 1.959964
"""Standard normal deviations of 95 %, both sides."""


def _logistic(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000, random_state=seed)


def _linear_svm(seed: int) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(random_state=seed)


def _mlp(seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    # One hidden layer of 32 units, as in DPDS appendix G (without its dropout).
    return MLPClassifier(hidden_layer_sizes=(32,), random_state=seed)


MODELS: Final[Mapping[str, Callable[[int], Any]]] = {
    "logistic": _logistic,
    "linear-svm": _linear_svm,
    "mlp": _mlp,
}
"""Classifiers of scikit-learn by the name that a consumer's file uses; each takes a seed."""


def check_model(name: str, *, trained: bool) -> None:
    """Refuse a downstream model that does not exist.

    Args:
        name: The model's.
        trained: Whether one will be, as there are labels to judge it by: scikit-learn has to be here then.

    Raises:
        ConfigError: There is none of that name, or no scikit-learn to train it.
    """
    if name not in MODELS:
        raise ConfigError(
            f"There is no downstream model named {name!r}.", advice=f"Choose one of: {', '.join(MODELS)}."
        )
    if trained:
        need("sklearn", _JUDGING)


def accuracy(
    model: str,
    train_features: npt.NDArray[np.float64],
    train_labels: Labels,
    test_features: npt.NDArray[np.float64],
    test_labels: Labels,
    *,
    seed: int,
    weights: npt.NDArray[np.float64] | None = None,
) -> float | None:
    """Share of test points whose class the model, trained on the other points, gets right.

    Classes are the same when they are equal in Python: 3 is 3.0, but not "3". Points without a label are
    left out, on both sides; a class that no training point has is always got wrong. Labels that are no
    classes are not judged (`no_classes`).

    Args:
        model: One of `MODELS`.
        train_features: Scaled to [0, 1] (`FeatureMap.scale`), shape (n, c).
        train_labels: n of them.
        test_features: Scaled likewise, shape (k, c).
        test_labels: k of them.
        seed: What the model draws at random follows from it.
        weights: Weights of the training points, shape (n,): scikit-learn's ``sample_weight`` after a factor
            by which the labelled points weigh 1 on average, as models expect; None: equal ones.

    Returns:
        From 0 to 1; None where there is nothing to judge: fewer than two classes to train on, no labelled
        test point, or labels of test points that are no classes.

    Raises:
        ConfigError: There is no such model, or no scikit-learn.
    """
    check_model(model, trained=False)
    classes: dict[int | float | str, int] = {}
    train_rows, train_classes = [], []
    for row, label in enumerate(_plain(train_labels)):
        if label is not None:
            train_rows.append(row)
            train_classes.append(classes.setdefault(label, len(classes)))
    judged = [(row, label) for row, label in enumerate(_plain(test_labels)) if label is not None]
    if len(classes) < 2 or not judged or no_classes([label for _, label in judged]):
        return None
    need("sklearn", _JUDGING)
    from sklearn.exceptions import ConvergenceWarning

    estimator = MODELS[model](seed)
    with warnings.catch_warnings():
        # A model that stopped early is still a model; how good it is shows in its accuracy.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # The test points' labels say whether there are classes; scikit-learn guesses by the bought points'.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        estimator.fit(train_features[train_rows], train_classes, **_sample_weight(weights, train_rows))
    predicted = estimator.predict(test_features[[row for row, _ in judged]])
    truth = [classes.get(label, -1) for _, label in judged]
    return float(np.mean(predicted == np.asarray(truth)))


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """95 % interval of a share of so many test points (Wilson 1927).

    It covers which test points there happen to be, for the one model that there is: neither which points were
    bought, nor the session's noise, nor a test set that is drawn otherwise than what the model will meet.

    Args:
        share: From 0 to 1.
        count: At least 1.
    """
    square = _NORMAL**2 / count
    middle = (share + square / 2.0) / (1.0 + square)
    half = math.sqrt(square * (share * (1.0 - share) + square / 4.0)) / (1.0 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def known_labels(labels: Labels) -> list[int | float | str]:
    """The labels of points that have one, as Python's own numbers and text."""
    return [label for label in _plain(labels) if label is not None]


def no_classes(labels: Labels) -> bool:
    """Whether labels are amounts or names of rows, of which no share can be told or got right.

    They are if more than half of them are different, where there are more than 20, or where a number among
    them is not whole.

    Args:
        labels: One per point; None: it has none, and does not count.
    """
    known = known_labels(labels)
    if 2 * len(set(known)) <= len(known):
        return False
    return len(known) > _FEW or any(isinstance(label, float) and not label.is_integer() for label in known)


def why_no_accuracy(train_labels: Labels, test_labels: Labels) -> str:
    """Why there is no accuracy, or why it is 0, if that follows from the labels; no label is told.

    Args:
        train_labels: Labels of the points that a model learns from.
        test_labels: Labels of the points that it is judged by.

    Returns:
        A sentence without its full stop; empty where labels are no reason.
    """
    if no_classes(test_labels):
        return f"There is no accuracy: {AMOUNTS}"
    why = why_none_agree(train_labels, test_labels)
    return f"The accuracy is 0: {why}" if why else ""


def why_none_agree(train_labels: Labels, test_labels: Labels) -> str:
    """Why no test point can be got right, if that is how labels are written; no label is told.

    Args:
        train_labels: Labels of the points that a model learns from.
        test_labels: Labels of the points that it is judged by.

    Returns:
        A clause; empty where a label is on both sides, where one side has none, or where the labels are
        different however they are written.
    """
    learned, judged = (
        {label for label in _plain(labels) if label is not None} for labels in (train_labels, test_labels)
    )
    if not learned & judged and {_spelled(label) for label in learned} & {
        _spelled(label) for label in judged
    }:
        return (
            "the bought points' labels and the test points' differ only in how they are written, as "
            "numbers and text, or 1 and 1.0 in text: none agree"
        )
    return ""


def _spelled(label: int | float | str) -> float | str:
    """A label however it is written: a number also where it stands in text, and text without its case."""
    try:
        return float(label)
    except (ValueError, OverflowError):
        return str(label).strip().casefold()


def _sample_weight(weights: npt.NDArray[np.float64] | None, rows: Sequence[int]) -> dict[str, Any]:
    if weights is None:
        return {}
    own = weights[list(rows)]
    total = own.sum()
    return {"sample_weight": own * (len(own) / total)} if total > 0 else {}


def _plain(labels: Labels) -> list[int | float | str | None]:
    """The labels as Python's own numbers and text."""
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
