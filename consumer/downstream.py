"""Labels of points, and the accuracy of a model on test points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.consumer.learners import learner
from hushbid.protocol.space.labels import Labels, listed_labels

__all__ = [
    "AMOUNTS",
    "NORMAL",
    "Labels",
    "accuracy",
    "are_amounts",
    "known_labels",
    "listed_labels",
    "no_classes",
    "why_no_accuracy",
    "why_none_agree",
    "wilson_interval",
]


AMOUNTS: Final = (
    "more than half of the test points' labels are different, as amounts are, and not classes. "
    "`hushbid train --estimator Ridge` fits a model of amounts, and judges it"
)
"""The explanation for labels that are `no_classes`."""
_FEW: Final = 20
"""Up to this many labels may all differ and still be classes; scikit-learn uses the same threshold."""
NORMAL: Final = 1.959964
"""Standard normal quantile of a two-sided 95 % interval."""


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
        model: As `hushbid.consumer.learners.learner` takes it, with the `seed` of all its draws.
        train_features: Scaled to [0, 1] (`FeatureMap.scale`), shape (n, c).
        train_labels: n labels.
        test_features: Scaled likewise, shape (k, c).
        test_labels: k labels.
        weights: Weights of the training points, shape (n,); None for equal ones. scikit-learn gets them as
            ``sample_weight``, rescaled to average 1 over the labelled points, as models expect.

    Returns:
        From 0 to 1; None if there is nothing to judge: fewer than two training classes, no labelled test
        point, test labels that are not classes (`no_classes`), or a model of amounts.

    Raises:
        ConfigError: There is no such model, the seed is too large, or scikit-learn is missing.
        DataError: The model cannot be fitted to the points.
    """
    classes: dict[int | float | str, int] = {}
    train_rows, train_classes = [], []
    for row, label in enumerate(listed_labels(train_labels)):
        if label is not None:
            train_rows.append(row)
            train_classes.append(classes.setdefault(label, len(classes)))
    judged = [(row, label) for row, label in enumerate(listed_labels(test_labels)) if label is not None]
    if len(classes) < 2 or not judged or no_classes([label for _, label in judged]):
        return None
    found = learner(model, seed=seed, amounts=False)
    if isinstance(found, str):
        return None
    learned = found.learn(train_features[train_rows], np.array(train_classes), _mean_one(weights, train_rows))
    predicted = learned.predicted(test_features[[row for row, _ in judged]])
    truth = [classes.get(label, -1) for _, label in judged]
    return float(np.mean(predicted == np.asarray(truth)))


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """95 % interval of a share (0 to 1) of this many test points, at least 1 (Wilson 1927).

    It covers the choice of test points for this one model. It covers neither the choice of bought points, nor
    the session's noise, nor a test set whose distribution differs from what the model will meet.
    """
    square = NORMAL**2 / count
    middle = (share + square / 2.0) / (1.0 + square)
    half = math.sqrt(square * (share * (1.0 - share) + square / 4.0)) / (1.0 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def known_labels(labels: Labels) -> list[int | float | str]:
    """The labels of labelled points, as Python numbers and text."""
    return [label for label in listed_labels(labels) if label is not None]


def no_classes(labels: Labels) -> bool:
    """Whether labels are amounts or row names, so that shares and accuracy have no meaning.

    They are if more than half of more than 20 labels are different, or if any number among them is not whole.
    Points with None do not count.
    """
    known = known_labels(labels)
    if 2 * len(set(known)) <= len(known):
        return False
    return len(known) > _FEW or any(isinstance(label, float) and not label.is_integer() for label in known)


def are_amounts(labels: Labels, others: Labels = ()) -> bool:
    """Whether labels are amounts: `no_classes`, by the others' labels too where these are too few to tell."""
    known = known_labels(labels)
    return no_classes(known) or (len(known) <= _FEW and no_classes([*known, *known_labels(others)]))


def why_no_accuracy(train_labels: Labels, test_labels: Labels, *, amounts: bool | None = None) -> str:
    """Why there is no accuracy, or why it is 0, if labels are the reason.

    Args:
        amounts: Whether they are amounts; None: what the test points' values say.

    Returns:
        A sentence without its full stop, which reveals no label; empty if labels are not the reason.
    """
    if amounts:
        return "There is no accuracy: by [labels] of the session, labels are amounts, and R² judges the model"
    if amounts is None and no_classes(test_labels):
        return f"There is no accuracy: {AMOUNTS}"
    why = why_none_agree(train_labels, test_labels)
    return f"The accuracy is 0: {why}" if why else ""


def why_none_agree(train_labels: Labels, test_labels: Labels) -> str:
    """Why no test point can be right, if the spelling of labels is the reason.

    Returns:
        A clause that reveals no label; empty if both sides share a label, if one side has none, or if the
        labels differ in any spelling.
    """
    learned, judged = (set(known_labels(labels)) for labels in (train_labels, test_labels))
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


def _mean_one(weights: npt.NDArray[np.float64] | None, rows: Sequence[int]) -> npt.NDArray[np.float64] | None:
    """Weights of these rows, of mean 1 as models expect; None: there are none, or all are 0."""
    own = None if weights is None else weights[list(rows)]
    return None if own is None or not own.sum() > 0.0 else own * (len(own) / own.sum())
