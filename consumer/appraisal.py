"""A judgement of the purchase by the consumer's own private data. It never leaves the consumer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field
from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.balance import Group
from hushbid.consumer.downstream import Labels, accuracy, known_labels, why_no_accuracy, wilson_interval
from hushbid.consumer.events import Delivered
from hushbid.consumer.label_part import label_part
from hushbid.consumer.matching import Matching, match
from hushbid.consumer.model_figures import NO_MODEL, ModelFigures, ModelJudge
from hushbid.consumer.training_weights import Kind
from hushbid.protocol.config.party import LABEL_WEIGHT, RIDGE
from hushbid.protocol.data import Dataset, read_attributes
from hushbid.protocol.errors import DataError
from hushbid.protocol.figures import Figures
from hushbid.protocol.names import MODEL
from hushbid.protocol.session.points import within_bounds
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.mmd import Points, Vector, kernel_means

__all__ = ["Evaluation", "Judge", "Judgement", "Quality", "Weighted", "appraise", "usable"]


@figures(frozen=True, slots=True)
class Quality(Figures):
    """How good a set of points is for a consumer, each point counted by its weight.

    Attributes:
        mmd2: MMD² against D_v, by the exact kernel on scaled points; None if there are no points, or if one
            lies too far outside the public bounds.
        mmd2_test: The same against the test set; None without one.
        accuracy: Accuracy on the test set of a downstream model trained on the points; None without a test
            set, or if there is nothing to judge (`hushbid.consumer.downstream.accuracy`).
        effective_points: 1/Σw², which is the number of points if their weights are equal.
        accuracy_interval: 95 % interval of the accuracy (`hushbid.consumer.downstream.wilson_interval`).
    """

    mmd2: float | None = None
    mmd2_test: float | None = None
    accuracy: float | None = None
    effective_points: float | None = None
    accuracy_interval: tuple[float, float] | None = None


@figures(frozen=True, slots=True)
class Weighted(Figures):
    """The same points with matching weights.

    Attributes:
        ridge: λ (`hushbid.consumer.matching.match`).
        gap: How far the weights' objective may be above the least.
        label_weight: Strength of labels beside features; 0: there were none.
    """

    FLAT: ClassVar[frozenset[str]] = frozenset({"quality"})

    quality: Quality
    ridge: float
    gap: float
    label_weight: float = 0.0


@figures(frozen=True, slots=True)
class Judgement(Figures):
    """How good a choice of points is, without weights and with matching weights.

    Attributes:
        weighted: None if there are no weights.
        why: Why there are no weights; empty if there are, or if there are no points.
        labels_why: Why there is no accuracy, or an accuracy of 0, if labels are the reason
            (`why_no_accuracy`).
    """

    FLAT: ClassVar[frozenset[str]] = frozenset({"plain"})

    plain: Quality = Quality()
    weighted: Weighted | None = None
    why: Annotated[str, Field(alias="weighted_why")] = ""
    labels_why: str = ""

    @property
    def best(self) -> Quality:
        """With weights if there are any."""
        return self.plain if self.weighted is None else self.weighted.quality


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What a consumer evaluates its purchase with.

    Attributes:
        validation: D_v.
        test: Points to judge by, and a downstream model if they have labels; None if there is no test set.
        model: One of `hushbid.consumer.learners.MODELS`, with its `seed`.
        ridge: λ of the weights.
        label_weight: Strength of labels in them (`hushbid.consumer.label_part`).
        models: As `Judge` has it.
    """

    validation: Dataset
    test: Dataset | None
    model: str
    seed: int
    ridge: float = RIDGE
    label_weight: float = LABEL_WEIGHT
    models: bool = True

    def judge(self, session: Session) -> Judge:
        space, test = session.space, self.test
        return Judge(
            space.scale(self.validation.features),
            space.gamma,
            None if test is None else (space.scale(test.features), test.known),
            self.model,
            self.seed,
            self.ridge,
            self.validation.known,
            self.label_weight,
            session.file.labels_are_amounts,
            self.models,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Judge:
    """The data that judges choices of points.

    Attributes:
        wanted: D_v, scaled, shape (m, columns).
        test: Held-out points, scaled, and their labels if they have any.
        model: One of `hushbid.consumer.learners.MODELS`, with its `seed`.
        ridge: λ of the weights.
        wanted_labels: Labels of D_v, None where a row has none; None: it has none.
        label_weight: Their strength in the weights.
        amounts: Whether labels are amounts; None: what their values say.
        models: Whether `model_figures` trains any model, which takes longer than all else.
    """

    wanted: Points
    gamma: float
    test: tuple[Points, Labels | None] | None = None
    model: str = MODEL
    seed: int = 0
    ridge: float = RIDGE
    wanted_labels: Labels | None = None
    label_weight: float = LABEL_WEIGHT
    amounts: bool | None = None
    models: bool = True

    def judge(self, points: Points, labels: Labels) -> Judgement:
        """Judge a choice of points, all within the public bounds.

        Args:
            points: Scaled, shape (n, columns).
            labels: One for each point; None where a point has none.
        """
        if not len(points):
            return Judgement()
        return self.weighed(self.quality(points, labels), points, labels)[0]

    def weighed(
        self, plain: Quality, points: Points, labels: Labels, *, groups: Sequence[Group] = ()
    ) -> tuple[Judgement, Matching | None]:
        """Judge points as `judge` does, given their quality without weights, and return the weights too.

        Args:
            groups: Sets of points whose weights have a fixed sum (`hushbid.consumer.balance`).
        """
        try:
            part = label_part(labels, self.wanted_labels, self.label_weight, amounts=self.amounts)
            matching = match(points, self.wanted, self.gamma, ridge=self.ridge, groups=groups, labels=part)
        except DataError as error:
            return Judgement(plain, None, error.what, self._labels_why(labels)), None
        right = self._accuracy(points, labels, matching.weights)
        quality = Quality(
            matching.mmd2,
            self._to_test(points, matching.square, matching.weights),
            right,
            matching.effective_points,
            self._interval(right),
        )
        made = Weighted(quality, matching.ridge, matching.gap, matching.label_weight)
        return Judgement(plain, made, labels_why=self._labels_why(labels)), matching

    def model_figures(
        self, points: Points, labels: Labels, matching: Matching | None
    ) -> tuple[ModelFigures, Vector | None]:
        """How good the consumer's model is with and without points, and their weights in its training.

        Args:
            points: Scaled, shape (n, columns), with these labels and these matching weights, if any.

        Returns:
            The figures, and training weights where an own row weighs 1; None if there are no labels.
        """
        if not (self.models and len(points)):
            return NO_MODEL, None
        found: dict[Kind, Vector] = {}
        if matching is None:
            found["equal"] = np.full(len(points), 1.0 / len(points))
        elif matching.label_weight:
            plain = match(points, self.wanted, self.gamma, ridge=self.ridge)
            found |= {"labels": matching.weights, "plain": plain.weights}
        else:
            found["plain"] = matching.weights
        return self.of_models.judge(points, labels, found)

    @cached_property
    def of_models(self) -> ModelJudge:
        own = None if self.wanted_labels is None else (self.wanted, self.wanted_labels)
        test = None if self.test is None or self.test[1] is None else (self.test[0], self.test[1])
        return ModelJudge(own, test, self.model, self.seed, self.amounts)

    def quality(
        self, points: Points, labels: Labels, *, learned: npt.NDArray[np.bool_] | None = None
    ) -> Quality:
        """The quality of points without weights.

        Args:
            points: Scaled, at least one.
            labels: Labels of the points that the model learns from.
            learned: Those points; None for all.
        """
        count = len(points)
        with np.errstate(over="ignore", invalid="ignore"):
            square = float(kernel_means(points, points, self.gamma).mean())
            distance = square - 2.0 * float(kernel_means(points, self.wanted, self.gamma).mean())
        right = self._accuracy(points if learned is None else points[learned], labels, None)
        return Quality(
            None if math.isnan(distance) else max(0.0, distance + self._spread),
            self._to_test(points, square, np.full(count, 1.0 / count)),
            right,
            float(count),
            self._interval(right),
        )

    def _to_test(self, points: Points, square: float, weights: Vector) -> float | None:
        """MMD² of weighted points against the test set; `square`: their mean kernel value."""
        if self.test is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            cross = weights @ kernel_means(points, self.test[0], self.gamma)
        distance = float(square + self._test_spread - 2.0 * cross)
        return None if math.isnan(distance) else max(0.0, distance)

    def _accuracy(self, points: Points, labels: Labels, weights: Vector | None) -> float | None:
        if self.test is None or self.test[1] is None or self.amounts:
            return None
        judged, truth = self.test[0], self.test[1]
        try:
            return accuracy(self.model, points, labels, judged, truth, seed=self.seed, weights=weights)
        except DataError:  # the model's own figures say why (`model_figures`), and a purchase is kept
            return None

    def _interval(self, right: float | None) -> tuple[float, float] | None:
        if right is None or self.test is None or self.test[1] is None:
            return None
        return wilson_interval(right, len(known_labels(self.test[1])))

    def _labels_why(self, labels: Labels) -> str:
        if self.test is None or self.test[1] is None:
            return ""
        return why_no_accuracy(labels, self.test[1], amounts=self.amounts)

    @cached_property
    def _spread(self) -> float:
        """Mean kernel value between points of D_v, the same for every choice."""
        return float(kernel_means(self.wanted, self.wanted, self.gamma).mean())

    @cached_property
    def _test_spread(self) -> float:
        test = self.test
        return 0.0 if test is None else float(kernel_means(test[0], test[0], self.gamma).mean())


def appraise(
    session: Session, delivered: Sequence[Delivered], by: Evaluation
) -> tuple[Judgement, Matching | None]:
    """Judge a delivery, and weigh its usable points.

    Without weights, disputed points count if they are readable, as they were chosen. They get no weights.

    Returns:
        The judgement, and the weights of the undisputed points in order, if there are any.

    Raises:
        ConfigError: There is no such model, or λ is invalid.
        DataError: The test set has other columns than the session.
    """
    readable = [entry for entry in delivered if entry.candidate is not None]
    if not readable:
        return Judgement(), None
    space, judge = session.space, by.judge(session)
    candidates = [entry.candidate for entry in readable if entry.candidate is not None]
    # Owners may hold the same columns in different number types.
    points = np.stack([np.asarray(candidate.point, dtype=np.float64) for candidate in candidates])
    with np.errstate(over="ignore"):
        bought = space.scale(points)
    # A model would learn only from one point far away. Each point is judged in its own number type.
    inside = np.array([within_bounds(space, candidate.point[None])[0] for candidate in candidates])
    labels = [read_attributes(candidate.attributes).label for candidate in candidates]
    plain = judge.quality(bought, _of(labels, inside), learned=inside)
    kept = np.array([not entry.dispute for entry in readable])
    if not kept.any():
        return Judgement(plain, None, "all delivered points are disputed"), None
    return judge.weighed(plain, bought[kept], _of(labels, kept))


def usable(session: Session, delivered: Sequence[Delivered]) -> tuple[Points, Labels, list[str]]:
    """The undisputed points: scaled, shape (n, columns), with their labels and sellers."""
    kept = [(entry, entry.candidate) for entry in delivered if entry.candidate and not entry.dispute]
    if not kept:
        return np.empty((0, session.space.columns)), [], []
    points = np.stack([np.asarray(candidate.point, dtype=np.float64) for _, candidate in kept])
    labels = [read_attributes(candidate.attributes).label for _, candidate in kept]
    return session.space.scale(points), labels, [entry.owner for entry, _ in kept]


def _of(labels: Sequence[int | float | str | None], chosen: npt.NDArray[np.bool_]) -> Labels:
    return [label for label, counts in zip(labels, chosen, strict=True) if counts]
