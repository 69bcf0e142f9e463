"""Whether a purchase makes the consumer's model better: on own rows alone, on bought points, and on both.

The consumer computes all of it from its own rows and its purchase, and tells nobody.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, PlainSerializer
from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.downstream import (
    NORMAL,
    Labels,
    are_amounts,
    known_labels,
    listed_labels,
    why_none_agree,
    wilson_interval,
)
from hushbid.consumer.estimators import is_regressor, made
from hushbid.consumer.learners import MODELS, Learner, learner
from hushbid.consumer.training_weights import (
    FOLDS,
    Kind,
    Labelled,
    Share,
    ShareTrial,
    default,
    outcome,
    scored,
    shares,
    tried,
    union,
    untried,
)
from hushbid.protocol.errors import DataError
from hushbid.protocol.extras import missing
from hushbid.protocol.figures import Figures
from hushbid.protocol.names import MODEL
from hushbid.protocol.space.mmd import Points, Vector

__all__ = ["NO_MODEL", "Figure", "ModelCourse", "ModelFigures", "ModelJudge"]

Metric: TypeAlias = Literal["accuracy", "r2"]
JudgedOn: TypeAlias = Literal["test", "validation", ""]

_FEW: Final = 2
"""Test rows with an amount that R² needs."""


@figures(frozen=True, slots=True)
class Figure(Figures):
    """A figure and its 95 % interval: of which rows it was judged on, for the one model."""

    value: float
    low: float
    high: float


@figures(frozen=True, slots=True)
class TrainingWeights(Figures):
    """How bought points weigh in the training, where an own row weighs 1.

    Attributes:
        kind: The matching weights that they are made of.
        total: Their sum.
    """

    kind: Kind
    total: float


_TOLD: Final = (BeforeValidator(lambda text: text or ""), PlainSerializer(lambda text: text or None))
"""A text that is null in JSON where there is none."""


@figures(frozen=True, slots=True, kw_only=True)
class ModelFigures(Figures):
    """How good the consumer's model is with what it learns from.

    Attributes:
        metric: ``accuracy`` of classes, or ``r2`` of amounts; None if nothing can be told.
        estimator: The class of scikit-learn that learns; empty if there is nothing to learn.
        judged_on: ``test``: the test rows. ``validation``: D_v's labelled rows, each by a model that did not
            learn from it.
        judged: How many rows these are.
        own_rows: D_v's rows with a label.
        own: Own rows alone; None if D_v has no labels.
        bought: Bought points alone, with matching weights.
        own_and_bought: Both, with the training weights (`hushbid.consumer.training_weights`).
        uniform: As many points at random, with matching weights; None if only an operator could know.
        own_and_uniform: Own rows and these, likewise.
        trivial: Always the most frequent class, or the mean amount, of own rows, or of bought points if those
            have no labels.
        gain: `own_and_bought` less `own`, with the interval of the difference on the same rows.
        training_weights: The bought points' part in it; None if nothing was bought that has a label.
        why: Why something could not be told; empty if all was.
    """

    TOLD: ClassVar[Mapping[str, str]] = {"sentence": "sentence"}

    metric: Metric | None = None
    estimator: Annotated[str, *_TOLD] = ""
    judged_on: Annotated[JudgedOn, *_TOLD] = ""
    judged: int = 0
    own_rows: int = 0
    own: Figure | None = None
    bought: Figure | None = None
    own_and_bought: Figure | None = None
    uniform: Figure | None = None
    own_and_uniform: Figure | None = None
    trivial: Figure | None = None
    gain: Figure | None = None
    training_weights: TrainingWeights | None = None
    why: str = ""

    @property
    def word(self) -> Literal["better", "same", "worse", "unknown"]:
        """Whether the model gets better with the purchase, beyond the interval of the gain as it is shown."""
        if self.gain is None:
            return "unknown"
        if float(self._change(self.gain.low)) > 0.0:
            return "better"
        return "worse" if float(self._change(self.gain.high)) < 0.0 else "same"

    def beside(self, uniform: ModelFigures) -> ModelFigures:
        """These figures with those of as many points at random, which were judged as if they were bought."""
        return replace(self, uniform=uniform.bought, own_and_uniform=uniform.own_and_bought)

    def sentence(self) -> str:
        """Whether the model gets better, and by how much, for people; beside as many at random."""
        random = self.own_and_uniform or self.uniform
        return self._sentence("" if random is None else f"; as many at random: {self._told(random)}")

    def alone(self) -> str:
        """The same without what only an operator could know: whoever has the purchase says it so."""
        return self._sentence("")

    def beside_random(self) -> str:
        """The model with as many random rows, beside the one with the purchase; empty if it is not known."""
        bought = self.own_and_bought or self.bought
        random = self.own_and_uniform if self.own_and_bought is not None else self.uniform
        if random is None or bought is None:
            return ""
        return f"{self._change(bought.value - random.value)}{self._unit} (they give {self._told(random)})"

    def _sentence(self, beside: str) -> str:
        said = self._said(beside)
        return f"{said} Note: {self.why}." if self.why and self.metric is not None else said

    def _said(self, beside: str) -> str:
        rows = f"{self.judged} {'test' if self.judged_on == 'test' else 'own'} rows"
        right = "" if self.metric == "r2" else " right"
        if self.own is not None and self.own_and_bought is not None and self.gain is not None:
            own, both, gain = self._told(self.own), self._told(self.own_and_bought), self.gain
            if self.training_weights is not None and self.training_weights.kind == "none":
                return (
                    "The model gets no better: by cross-validation on own rows bought points deserve no "
                    f"weight. Own rows alone give {own}{right} on {rows}{beside}."
                )
            said = {
                "better": "The model gets better",
                "same": "The model is not measurably better",
                "worse": "The model gets WORSE",
                "unknown": "",
            }[self.word]
            low, high = self._change(gain.low), self._change(gain.high)
            return (
                f"{said}: {both}{right} on {rows} with own rows and bought points, {own} with own rows alone "
                f"({self._change(gain.value)}{self._unit}, 95 % interval {low} to {high}){beside}."
            )
        if self.own is None and self.bought is not None:
            trivial = "" if self.trivial is None else f", {self._told(self.trivial)} without a model"
            return (
                "Whether the model gets better than one of own rows cannot be told, as these have no labels: "
                f"{self._told(self.bought)}{right} on {rows} with bought points alone{trivial}{beside}."
            )
        return f"Whether the model gets better cannot be told: {self.why or 'nothing was bought'}."

    def _told(self, figure: Figure) -> str:
        return f"R² {figure.value:.3f}" if self.metric == "r2" else f"{100 * figure.value:.1f} %"

    @property
    def _unit(self) -> str:
        return "" if self.metric == "r2" else " points"

    def _change(self, value: float) -> str:
        return f"{value:+.3f}" if self.metric == "r2" else f"{100 * value:+.1f}"


@dataclass(frozen=True, kw_only=True)
class ModelCourse:
    """How good the consumer's model is with the first of its bought points (`ModelJudge.course`).

    Attributes:
        metric, estimator, judged_on, judged, own_rows: As `ModelFigures` has them.
        figures: For each number of points that was asked for; None: the model cannot be fitted to so few.
    """

    metric: Metric
    estimator: str
    judged_on: JudgedOn
    judged: int
    own_rows: int
    figures: tuple[Figure | None, ...]


NO_MODEL: Final = ModelFigures(why="nothing was bought")


@dataclass(frozen=True, eq=False, repr=False)
class ModelJudge:
    """The data that judges a consumer's model.

    Attributes:
        own: D_v, scaled, and its labels; None: it has none.
        test: Test rows likewise; None: own rows are judged by, each by a model that did not learn from it.
        model: As `hushbid.consumer.learners.learner` takes it, with its `seed`.
        amounts: Whether labels are amounts; None: what an estimator that is named learns, or with a short
            name what their values say (`hushbid.consumer.downstream.are_amounts`).
    """

    own: tuple[Points, Labels] | None
    test: tuple[Points, Labels] | None
    model: Any = MODEL
    seed: int = 0
    amounts: bool | None = None

    def judge(
        self, points: Points, labels: Labels, weightings: Mapping[Kind, Vector]
    ) -> tuple[ModelFigures, Vector | None]:
        """Judge models with and without these points.

        Args:
            points: Scaled, shape (n, columns).
            labels: n labels; None where a point has none.
            weightings: Matching weights by their kind, each with sum 1, the better kind first.

        Returns:
            The figures, and the points' training weights where an own row weighs 1; None if there are no
            labels to learn from.

        Raises:
            ConfigError: There is no such model, or the seed is too large.
        """
        judging = self._judging(points, labels, weightings)
        if isinstance(judging, str):
            own = 0 if self.own is None else len(known_labels(self.own[1]))
            held = np.array([label is not None for label in listed_labels(labels)])
            return ModelFigures(own_rows=own, why=judging), untried(weightings, held, own=bool(own))
        return judging.figures()

    def course(
        self, points: Points, labels: Labels, training: Vector, counts: Sequence[int]
    ) -> ModelCourse | str:
        """Judge a model of own rows, if any has a label, and of the first of these points.

        Points weigh what they do in the model of all of them, by which `judge` judged that. With all points
        the figure is its `ModelFigures.own_and_bought`, or `ModelFigures.bought` without own rows; without
        test rows the choice of the weights may differ, of which `judge` leaves out the row that it judges.

        Args:
            points, labels: As in `judge`.
            training: The training weights that it gave, shape (n,).
            counts: How many points to learn from, each from 0 to n.

        Returns:
            The figures; or why there are none.
        """
        judging = self._judging(points, labels, {})
        if isinstance(judging, str):
            return judging
        own = 0 if judging.own is None else len(judging.own)
        if self.test is None and own < FOLDS:
            return f"there are no test rows, and {own} labelled rows are too few for cross-validation"
        return ModelCourse(
            metric="r2" if judging.learner.amounts else "accuracy",
            estimator=judging.learner.name,
            judged_on="validation" if judging.test is None else "test",
            judged=len(judging.rows),
            own_rows=own,
            figures=tuple(judging.with_first(count, training) for count in counts),
        )

    def _judging(self, points: Points, labels: Labels, weightings: Mapping[Kind, Vector]) -> _Judging | str:
        """The rows as a learner takes them, with the learner; or why nothing can be judged."""
        own = [] if self.own is None else known_labels(self.own[1])
        test = [] if self.test is None else known_labels(self.test[1])
        known, bought = test or own, known_labels(labels)
        amounts = self._amounts(known, [*own, *bought])
        model: Learner | str = _nothing(known, bought, own)
        if not model and amounts and any(isinstance(label, str) for label in [*own, *test]):
            model = (
                "labels are text, of which most are different, as names of rows are, or amounts are asked for"
            )
        if not model and not amounts and are_amounts(known, [*own, *bought]):
            model = "labels are amounts, and the model learns classes"
        if not model and missing("sklearn"):
            model = "scikit-learn is not installed (`pip install 'hushbid[operator]'`)"
        model = model or learner(self.model, seed=self.seed, amounts=amounts)
        if isinstance(model, str):
            return model
        encode = _Encoding(amounts=amounts)
        held = encode.held(labels)
        strange = [] if amounts else [_strange(bought, own, "own"), _strange(bought, test, "test")]
        rows = (
            None if self.own is None or not own else encode(*self.own),
            encode(*self.test) if self.test is not None and test else None,
            encode(points, labels),
        )
        return _Judging(
            model if amounts else replace(model, ranks=encode.ranks()),
            *rows,
            held,
            weightings,
            self.seed,
            "; ".join(filter(None, strange)),
        )

    def _amounts(self, known: Sequence[Any], others: Sequence[Any]) -> bool:
        """Whether labels are amounts: as was said, or as a model that is named learns, or by their values."""
        if self.amounts is not None:
            return self.amounts
        if isinstance(self.model, str) and self.model not in MODELS and not missing("sklearn"):
            return is_regressor(made(self.model, {}, seed=self.seed))
        return are_amounts(known, others)


def _strange(bought: Sequence[Any], others: Sequence[Any], whose: str) -> str:
    """Why labels of others agree with none that was bought; empty if some do, or one side has none."""
    if not bought or not others or set(bought) & set(others):
        return ""
    if why_none_agree(bought, others):
        return f"the bought points' labels and those of {whose} rows differ only in how they are written"
    return f"no label of {whose} rows is among those of the bought points"


def _nothing(known: Sequence[Any], bought: Sequence[Any], own: Sequence[Any]) -> str:
    if not known:
        return "neither the validation set nor test rows have labels"
    return "" if bought or own else "neither bought points nor the validation set have labels"


@dataclass(frozen=True)
class _Encoding:
    """Labels as a learner takes them: amounts, or numbers of classes in the order that they are met."""

    amounts: bool
    classes: dict[Any, int] = field(default_factory=dict)

    def held(self, labels: Labels) -> npt.NDArray[np.bool_]:
        return np.array(
            [
                label is not None and not (self.amounts and isinstance(label, str))
                for label in listed_labels(labels)
            ],
            dtype=np.bool_,
        )

    def ranks(self) -> npt.NDArray[np.int64]:
        """Of each class met so far, its place among the sorted labels (`Learner.ranks`)."""
        classes = sorted(self.classes, key=lambda label: (isinstance(label, str), label))
        place = {label: rank for rank, label in enumerate(classes)}
        return np.array([place[label] for label in self.classes], dtype=np.int64)

    def __call__(self, points: Points, labels: Labels) -> Labelled:
        rows = self.held(labels)
        kept = [label for label, has in zip(listed_labels(labels), rows, strict=True) if has]
        if self.amounts:
            return Labelled(points[rows], np.array(kept, dtype=np.float64))
        numbers = [self.classes.setdefault(label, len(self.classes)) for label in kept]
        return Labelled(points[rows], np.array(numbers, dtype=np.int64))


@dataclass(frozen=True, eq=False, repr=False)
class _Judging:
    """One judgement: the rows in the learner's own form. `held` are the points that have a label."""

    learner: Learner
    own: Labelled | None
    test: Labelled | None
    bought: Labelled
    held: npt.NDArray[np.bool_]
    weightings: Mapping[Kind, Vector]
    seed: int
    why: str

    def figures(self) -> tuple[ModelFigures, Vector | None]:
        own, bought = self.own, self.bought
        trial, share, untried_why = self._share()
        if self.test is None and own is not None and len(own) < FOLDS:
            why = f"there are no test rows, and {len(own)} labelled rows are too few for cross-validation"
            return ModelFigures(estimator=self.learner.name, own_rows=len(own), why=why), self._training(
                share
            )
        judged, failures = self.rows, list[str]()

        def told(compute: Callable[[], Vector | None]) -> Vector | None:
            try:
                return compute()
            except DataError as error:
                failures.append(error.what)
                return None

        alone = told(lambda: self._alone(trial))
        both = told(lambda: self._both(trial, share))
        mine = told(lambda: outcome(self.learner, bought, self._mean_one(), judged) if len(bought) else None)
        said = "; ".join(dict.fromkeys([*filter(None, (self.why, untried_why)), *failures])).rstrip(".")
        return (
            ModelFigures(
                metric="r2" if self.learner.amounts else "accuracy",
                estimator=self.learner.name,
                judged_on="validation" if self.test is None else "test",
                judged=len(judged),
                own_rows=0 if own is None else len(own),
                own=self._figure(alone),
                bought=self._figure(mine),
                own_and_bought=self._figure(both),
                trivial=self._figure(self._trivial()),
                gain=self._gain(alone, both),
                training_weights=None if share is None else TrainingWeights(share.kind, share.total),
                why=said,
            ),
            self._training(share),
        )

    def with_first(self, count: int, training: Vector) -> Figure | None:
        """How good a model of own rows and of the first points is; None: it cannot be fitted, or be judged.

        Args:
            count: Of points, whether they have a label or not.
            training: Training weights of all of them.
        """
        held = int(self.held[:count].sum())
        weights = training[self.held][:held]
        first = Labelled(self.bought.points[:held], self.bought.labels[:held])
        try:
            return self._figure(self._outcomes(first, weights))
        except DataError:
            return None

    def _outcomes(self, bought: Labelled, weights: Vector) -> Vector | None:
        nothing = not weights.sum() > 0.0
        if self.own is None:
            return None if nothing else outcome(self.learner, bought, weights, self.rows)
        if self.test is None:
            share = Share("none" if nothing else "equal", float(weights.sum()), weights)
            return _finite(tried(self.learner, self.own, bought, (share,), self.seed).outcomes[0])
        if nothing:
            return outcome(self.learner, self.own, None, self.test)
        return outcome(self.learner, *union(self.own, bought, weights), self.test)

    @property
    def rows(self) -> Labelled:
        rows = self.own if self.test is None else self.test
        assert rows is not None, "there are test rows or own ones"
        return rows

    def _share(self) -> tuple[ShareTrial | None, Share | None, str]:
        """What was tried, the share that bought points get beside own rows, and why nothing was tried."""
        if self.own is None or not len(self.bought):
            return None, None, ""
        found = tuple(
            Share(share.kind, share.total, share.weights[self.held])
            for share in shares(self.weightings, self.held)
        )
        rows, one = len(self.own), not self.learner.amounts and len(set(self.own.labels.tolist())) == 1
        if rows < FOLDS or one:
            why = "own rows have one class" if one else f"{rows} own rows with a label are too few"
            return None, default(found), f"what bought points weigh was not tried: {why}"
        trial = tried(self.learner, self.own, self.bought, found, self.seed)
        return trial, trial.best, ""

    def _alone(self, trial: ShareTrial | None) -> Vector | None:
        if self.own is None:
            return None
        if self.test is not None:
            return outcome(self.learner, self.own, None, self.test)
        if trial is None:  # nothing was bought, but own rows are judged all the same
            nothing = Labelled(self.own.points[:0], self.own.labels[:0])
            trial = tried(self.learner, self.own, nothing, (Share("none", 0.0, np.empty(0)),), self.seed)
        return _finite(trial.outcomes[0])

    def _both(self, trial: ShareTrial | None, share: Share | None) -> Vector | None:
        if self.own is None or share is None:
            return None
        if self.test is not None:
            training, weights = union(self.own, self.bought, share.weights)
            return outcome(self.learner, training, weights, self.test)
        if trial is None:  # the share was not chosen: it is judged alone
            trial = tried(self.learner, self.own, self.bought, (share,), self.seed)
        return _finite(trial.judged())

    def _mean_one(self) -> Vector | None:
        """Matching weights of the points with a label, of mean 1; None: there are none."""
        for weights in self.weightings.values():
            held = weights[self.held]
            return held * (len(held) / held.sum()) if held.sum() > 0.0 else None
        return None

    def _training(self, share: Share | None) -> Vector | None:
        """Training weights of all points, 0 of those without a label."""
        if not len(self.bought):
            return None
        found, alone = np.zeros(len(self.held)), self._mean_one()
        found[self.held] = share.weights if share is not None else 1.0 if alone is None else alone
        return found

    def _trivial(self) -> Vector | None:
        labels = (self.own if self.own is not None else self.bought).labels
        judged = self.rows.labels
        if not len(labels):
            return None
        said = labels.mean() if self.learner.amounts else np.bincount(labels).argmax()
        return scored(np.full(len(judged), said), judged, amounts=self.learner.amounts)

    def _figure(self, outcomes: Vector | None) -> Figure | None:
        if outcomes is None:
            return None
        count = len(outcomes)
        if not self.learner.amounts:
            share = float(outcomes.mean())
            return Figure(share, *wilson_interval(share, count))
        return self._of_squares(outcomes, 1.0, -1.0)

    def _gain(self, alone: Vector | None, both: Vector | None) -> Figure | None:
        """The difference on the same rows.

        Of classes half a row is added to each cell of right and wrong (Agresti and Min 2005), which keeps an
        interval where no row differs; of R² the interval is by linearization.
        """
        if alone is None or both is None:
            return None
        if self.learner.amounts:
            return self._of_squares(both - alone, 0.0, -1.0)
        value = float(np.mean(both - alone))
        count = len(alone) + 2.0
        more, fewer = float(((both - alone) > 0).sum()) + 0.5, float(((both - alone) < 0).sum()) + 0.5
        middle = (more - fewer) / count
        half = NORMAL * math.sqrt(max(0.0, more + fewer - (more - fewer) ** 2 / count)) / count
        return Figure(value, min(value, middle - half), max(value, middle + half))

    def _of_squares(self, squares: Vector, start: float, sign: float) -> Figure | None:
        """A constant and a ratio of mean squares to the judged amounts' variance, with its interval."""
        truth = self.rows.labels
        spread = (truth - truth.mean()) ** 2
        if len(truth) < _FEW or not spread.mean() > 0.0:
            return None
        ratio = float(squares.mean() / spread.mean())
        deviation = float((squares - ratio * spread).std(ddof=1))
        half = NORMAL * deviation / (float(spread.mean()) * math.sqrt(len(truth)))
        value = start + sign * ratio
        return Figure(value, value - half, value + half)


def _finite(outcomes: Vector) -> Vector | None:
    """None where a model could not be fitted."""
    return outcomes if np.isfinite(outcomes).all() else None
