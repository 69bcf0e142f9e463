"""Models that the consumer trains on its purchase to judge it.

scikit-learn is imported only when a model is made. Its import takes longer than all others of a consumer
together, and only a consumer with a test set needs it, after the delivery.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
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
    "check_model_seed",
    "known_labels",
    "no_classes",
    "why_no_accuracy",
    "why_none_agree",
    "wilson_interval",
]

Labels: TypeAlias = Sequence[int | float | str | None] | npt.NDArray[Any]
"""One class per point; None where its owner gave none."""


_JUDGING: Final = "A model that points are judged by, on test points with labels,"
AMOUNTS: Final = (
    "more than half of the test points' labels are different, as amounts are, and not classes. "
    "`hushbid train --estimator Ridge` fits a model of amounts, and judges it"
)
"""The explanation for labels that are `no_classes`."""
_FEW: Final = 20
"""Up to this many labels may all differ and still be classes; scikit-learn uses the same threshold."""
_NORMAL: Final = 1.959964
"""Standard normal quantile of a two-sided 95 % interval."""


MODELS: Final[Mapping[str, tuple[str, str, Mapping[str, Any]]]] = {
    "logistic": ("sklearn.linear_model", "LogisticRegression", {"max_iter": 1000}),
    "linear-svm": ("sklearn.svm", "LinearSVC", {}),
    # One hidden layer of 32 units, as in DPDS appendix G (without its dropout).
    "mlp": ("sklearn.neural_network", "MLPClassifier", {"hidden_layer_sizes": (32,)}),
}
"""Classifiers of scikit-learn by the name that a consumer's file uses: module, class and options."""


def check_model(name: str, *, trained: bool) -> None:
    """Refuse a downstream model that does not exist.

    Args:
        trained: Whether a model will be trained, as there are labels to judge it by; that needs scikit-learn.

    Raises:
        ConfigError: There is no such model, or scikit-learn is needed and missing.
    """
    if name not in MODELS:
        raise ConfigError(
            f"There is no downstream model named {name!r}.", advice=f"Choose one of: {', '.join(MODELS)}."
        )
    if trained:
        need("sklearn", _JUDGING)


def check_model_seed(seed: int) -> None:
    """Refuse a model's seed that scikit-learn does not take.

    Raises:
        ConfigError: It is no number of 32 bits.
    """
    if not 0 <= seed < 2**32:
        raise ConfigError(
            f"The model's seed is {seed}.", advice=f"Set seed to a whole number from 0 to {2**32 - 1}."
        )


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
    """Share of test points that a model trained on the other points classifies correctly.

    Classes are the same if they are equal in Python: 3 equals 3.0, but not "3". Points without a label are
    left out on both sides. A test class without training points is always misclassified.

    Args:
        model: One of `MODELS`, with the `seed` of all its draws.
        train_features: Scaled to [0, 1] (`FeatureMap.scale`), shape (n, c).
        train_labels: n labels.
        test_features: Scaled likewise, shape (k, c).
        test_labels: k labels.
        weights: Weights of the training points, shape (n,); None for equal ones. scikit-learn gets them as
            ``sample_weight``, rescaled to average 1 over the labelled points, as models expect.

    Returns:
        From 0 to 1; None if there is nothing to judge: fewer than two training classes, no labelled test
        point, or test labels that are not classes (`no_classes`).

    Raises:
        ConfigError: There is no such model, the seed is too large, or scikit-learn is missing.
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
    check_model_seed(seed)
    from sklearn.exceptions import ConvergenceWarning

    module, name, options = MODELS[model]
    estimator = getattr(import_module(module), name)(**options, random_state=seed)
    with warnings.catch_warnings():
        # A model that stopped early is still a model; its accuracy shows how good it is.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # The test labels decide whether there are classes; scikit-learn guesses from the bought points.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        estimator.fit(train_features[train_rows], train_classes, **_sample_weight(weights, train_rows))
    predicted = estimator.predict(test_features[[row for row, _ in judged]])
    truth = [classes.get(label, -1) for _, label in judged]
    return float(np.mean(predicted == np.asarray(truth)))


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """95 % interval of a share (0 to 1) of this many test points, at least 1 (Wilson 1927).

    It covers the choice of test points for this one model. It covers neither the choice of bought points, nor
    the session's noise, nor a test set whose distribution differs from what the model will meet.
    """
    square = _NORMAL**2 / count
    middle = (share + square / 2.0) / (1.0 + square)
    half = math.sqrt(square * (share * (1.0 - share) + square / 4.0)) / (1.0 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def known_labels(labels: Labels) -> list[int | float | str]:
    """The labels of labelled points, as Python numbers and text."""
    return [label for label in _plain(labels) if label is not None]


def no_classes(labels: Labels) -> bool:
    """Whether labels are amounts or row names, so that shares and accuracy have no meaning.

    This holds if more than half of more than 20 labels are different, or if any number among them is not
    whole. Points with None do not count.
    """
    known = known_labels(labels)
    if 2 * len(set(known)) <= len(known):
        return False
    return len(known) > _FEW or any(isinstance(label, float) and not label.is_integer() for label in known)


def why_no_accuracy(train_labels: Labels, test_labels: Labels) -> str:
    """Why there is no accuracy, or why it is 0, if labels are the reason.

    Returns:
        A sentence without its full stop, which reveals no label; empty if labels are not the reason.
    """
    if no_classes(test_labels):
        return f"There is no accuracy: {AMOUNTS}"
    why = why_none_agree(train_labels, test_labels)
    return f"The accuracy is 0: {why}" if why else ""


def why_none_agree(train_labels: Labels, test_labels: Labels) -> str:
    """Why no test point can be right, if the spelling of labels is the reason.

    Returns:
        A clause that reveals no label; empty if both sides share a label, if one side has none, or if the
        labels differ in any spelling.
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
    """A label regardless of spelling: text that is a number becomes one, and other text loses its case."""
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
    """The labels as Python numbers and text."""
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
