"""How much bought points weigh beside the consumer's own rows when it trains its model.

An own row weighs 1. The bought points' matching weights have sum 1, and say which points matter; what they
come to together is another question, as many that resemble D_v little do harm. The consumer's own rows answer
it, by cross-validation: no bought points at all, or the matching weights times a quarter of their effective
points, times those, or times the points' number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.consumer.learners import Learner
from hushbid.consumer.matching import effective_points
from hushbid.protocol.errors import DataError
from hushbid.protocol.space.mmd import Points, Vector

__all__ = [
    "FOLDS",
    "Kind",
    "Labelled",
    "Share",
    "ShareTrial",
    "default",
    "folds",
    "outcome",
    "scored",
    "shares",
    "tried",
    "union",
    "untried",
]

FOLDS: Final = 5
"""Of cross-validation. With fewer own rows nothing is tried: bought points weigh their effective points."""
_SAME: Final = 1.05
"""Two totals are one if their ratio is less."""

Kind: TypeAlias = Literal["none", "labels", "plain", "equal"]
"""The matching weights: none, as bought points get no weight; those that know labels; those of features
alone; or equal ones, where there are too many points to be weighed.
"""


@dataclass(frozen=True, eq=False, repr=False)
class Labelled:
    """Points with labels, as a learner takes them.

    Attributes:
        points: Scaled, shape (n, columns).
        labels: Amounts, float64, or the numbers of classes, int64; shape (n,).
    """

    points: Points
    labels: npt.NDArray[np.float64] | npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def of(self, rows: npt.NDArray[np.bool_]) -> Labelled:
        return Labelled(self.points[rows], self.labels[rows])


@dataclass(frozen=True, eq=False, repr=False)
class Share:
    """The weights that bought points have beside own rows of weight 1.

    Attributes:
        weights: Shape (n,), with the sum `total`.
    """

    kind: Kind
    total: float
    weights: Vector


@dataclass(frozen=True, eq=False, repr=False)
class ShareTrial:
    """Shares tried by cross-validation on own rows.

    Attributes:
        shares: What was tried.
        losses: Of each share at each own row, by a model that did not learn from it; infinite where the model
            could not be fitted. Shape (shares, rows).
        outcomes: What is judged by, likewise (`outcome`).
        fold: The fold of each row; shape (rows,).
    """

    shares: tuple[Share, ...]
    losses: npt.NDArray[np.float64]
    outcomes: npt.NDArray[np.float64]
    fold: npt.NDArray[np.intp]

    @property
    def best(self) -> Share:
        """The share of the least mean loss; of equal ones the first, which is own rows alone."""
        return self.shares[int(self.losses.mean(axis=1).argmin())]

    def judged(self) -> Vector:
        """The outcome at each row with the share that is best on the rows of the other folds, shape (rows,).

        So no row has a part in the choice by which it is judged.
        """
        found = np.empty(len(self.fold))
        for part in range(int(self.fold.max()) + 1):
            here = self.fold == part
            found[here] = self.outcomes[int(self.losses[:, ~here].mean(axis=1).argmin()), here]
        return found


def shares(weightings: Mapping[Kind, Vector], labelled: npt.NDArray[np.bool_]) -> Iterator[Share]:
    """The shares that are worth a trial: no bought points first, then each kind's with three totals.

    Args:
        weightings: Matching weights by their kind, each of shape (n,) with sum 1, the better kind first.
        labelled: Points with a label; the others get no weight.
    """
    yield Share("none", 0.0, np.zeros(len(labelled)))
    for kind, weights in weightings.items():
        held = np.where(labelled, weights, 0.0)
        if not held.sum() > 0.0:
            continue
        held = held / held.sum()
        last = 0.0
        for total in (effective_points(held) / 4.0, effective_points(held), float(labelled.sum())):
            if total > _SAME * last:
                last = total
                yield Share(kind, total, held * total)


def default(found: tuple[Share, ...]) -> Share:
    """The share where nothing can be tried: the first kind's effective points, or nothing without weights."""
    return found[min(2, len(found) - 1)]


def untried(
    weightings: Mapping[Kind, Vector], labelled: npt.NDArray[np.bool_], *, own: bool
) -> Vector | None:
    """Training weights where no model is judged, shape (n,); None if no point is labelled.

    Args:
        own: Whether there are own rows to stand beside, with weight 1; otherwise weights are 1 on average.
    """
    if not labelled.any():
        return None
    share = default(tuple(shares(weightings, labelled)))
    if own or not share.total:
        return share.weights
    return share.weights * (float(labelled.sum()) / share.total)


def union(own: Labelled, bought: Labelled, share: Vector) -> tuple[Labelled, Vector]:
    """Own rows with weight 1 and bought points with theirs."""
    both = Labelled(np.concatenate([own.points, bought.points]), np.concatenate([own.labels, bought.labels]))
    return both, np.concatenate([np.ones(len(own)), share])


def outcome(learner: Learner, training: Labelled, weights: Vector | None, judged: Labelled) -> Vector:
    """What a model trained on these rows does on others: 1 where a class is right, or the squared error.

    Raises:
        DataError: The model cannot be fitted.
    """
    predicted = learner.learn(training.points, training.labels, weights).predicted(judged.points)
    return scored(predicted, judged.labels, amounts=learner.amounts)


def scored(predicted: npt.NDArray[Any], labels: npt.NDArray[Any], *, amounts: bool) -> Vector:
    """What is judged by, at each row: the squared error of an amount, or 1 where a class is right."""
    found = (predicted - labels) ** 2 if amounts else predicted == labels
    return np.asarray(found, dtype=np.float64)


def tried(
    learner: Learner, own: Labelled, bought: Labelled, found: tuple[Share, ...], seed: int
) -> ShareTrial:
    """Try shares by `FOLDS`-fold cross-validation on own rows, at least as many.

    Args:
        found: Shares of the bought points, which are all in every training.
        seed: Of the folds. Of classes, each fold has its share.
    """
    fold = folds(own.labels, seed, amounts=learner.amounts)
    losses, outcomes = np.full((2, len(found), len(own)), np.inf)
    for part in range(FOLDS):
        here = fold == part
        rest, judged = own.of(~here), own.of(here)
        for place, share in enumerate(found):
            training, weights = union(rest, bought, share.weights)
            try:
                model = learner.learn(training.points, training.labels, weights)
                predicted, losses[place, here] = model.judged(judged.points, judged.labels)
            except DataError:
                continue
            outcomes[place, here] = scored(predicted, judged.labels, amounts=learner.amounts)
    return ShareTrial(found, losses, outcomes, fold)


def folds(
    labels: npt.NDArray[Any], seed: int | np.random.Generator, *, amounts: bool
) -> npt.NDArray[np.intp]:
    """The fold of each row: rows in a drawn order are dealt out, of classes one class after the other.

    Args:
        labels: Shape (rows,).
        seed: Draws the order.
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    if not amounts:
        order = order[np.argsort(labels[order], kind="stable")]
    fold = np.empty(len(labels), dtype=np.intp)
    fold[order] = np.arange(len(labels)) % FOLDS
    return fold
