"""Whether the consumer's model will get better by buying, told before a session from its own rows alone.

Three things are looked at, none of which needs a purchase: how good a model of own rows is, by
cross-validation; how much it gained from twice as many rows; and whether labels follow the columns at all.
The most that a purchase can be worth is as many rows like one's own as are bought.

The rule was shaped on 83 sessions and tried on those that were made afterwards (docs/plan.md). All of it is a
function of D_v, which the consumer keeps.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.consumer.answers import Word
from hushbid.consumer.downstream import Labels, are_amounts, known_labels, listed_labels, wilson_interval
from hushbid.consumer.learners import Learner, learner
from hushbid.consumer.training_weights import FOLDS, folds, scored
from hushbid.consumer.verdict import Prospect
from hushbid.protocol.errors import DataError
from hushbid.protocol.extras import missing

__all__ = ["prospect"]

Floats: TypeAlias = npt.NDArray[np.float64]

FEW: Final = 50
"""Labelled rows up to which a purchase mostly helps, and the curve is too short to say the contrary."""
VERY_FEW: Final = 20
"""Labelled rows below which models learn from a handful, so that only the chance is looked at."""
LITTLE: Final = 0.03
"""Accuracy or R²: a gain that is surely less is none that anybody buys for."""
WORTH: Final = 0.01
"""The least expected gain that is called good."""
HALVING: Final = 0.7
"""Each doubling of rows gains so much of the one before it, as losses fall with n^-1/2."""
SURE: Final = 1.64
"""Standard errors of a one-sided 95 % bound."""
_MOST_ROWS: Final = 1_000
_MOST_COMPARED: Final = 150
"""Rows of the test of chance; with more, models show what there is."""
_SHUFFLES: Final = 999


@dataclass(frozen=True, slots=True)
class _Signs:
    """What shows that labels follow the columns: one of two is enough.

    Attributes:
        errors: Standard errors by which own rows' model has to beat the trivial guess.
        chance: The chance of labels that follow nothing to go with the columns as well.
    """

    errors: float
    chance: float


_MANY: Final = _Signs(2.5, 0.02)
_SOME_CLASSES: Final = _Signs(0.5, 0.5)
"""No sign against it: accuracy can lose little, and most labels follow something."""
_SOME_AMOUNTS: Final = _Signs(1.25, 0.1)
_HANDFUL: Final = _Signs(math.inf, 0.1)
_UNBOUNDED: Final = _Signs(math.inf, 0.002)
"""Of a model that is not linear and has learned nothing of amounts: R² can fall without end."""
_LINEAR: Final = ("logistic", "linear-svm")


def prospect(
    points: Floats, labels: Labels | None, *, p: int, model: Any, seed: int, amounts: bool | None = None
) -> Prospect:
    """What own rows tell of buying p points.

    Args:
        points: D_v, scaled, shape (m, columns).
        labels: Its labels, None where a row has none; None: it has none.
        model: As `hushbid.consumer.learners.learner` takes it, with its `seed`.
        amounts: Whether labels are amounts; None: what their values say.

    Raises:
        ConfigError: There is no such model.
    """
    listed = [] if labels is None else listed_labels(labels)
    held, known = np.array([label is not None for label in listed], dtype=np.bool_), known_labels(listed)
    if len(known) < FOLDS or len(set(known)) < 2:
        why = "no own row has a label" if not known else "too few own rows have a label, or all have the same"
        return Prospect(None, why, rows=len(known))
    if missing("sklearn"):
        return Prospect(None, "scikit-learn is not installed", rows=len(known))
    if amounts is None:
        amounts = are_amounts(known)
    own = learner(model, seed=seed, amounts=amounts)
    if isinstance(own, str):
        return Prospect(None, own, rows=len(known))
    x = np.asarray(points, dtype=np.float64)[held]
    y = np.array(known, dtype=np.float64) if amounts else _numbered(known)
    generator = np.random.default_rng([seed, 31])
    if len(y) > _MOST_ROWS:
        kept = np.sort(generator.choice(len(y), size=_MOST_ROWS, replace=False))
        x, y = x[kept], y[kept]
    linear = model in _LINEAR
    curve = _curve(own, x, y, generator, repeats=10 if linear else 5)
    return _judged(curve, len(known), p, _chance(x, y, generator, amounts=amounts), linear=linear)


def _numbered(classes: list[Any]) -> npt.NDArray[Any]:
    _, numbers = np.unique(np.array(classes), return_inverse=True)
    return np.asarray(numbers)


@dataclass(frozen=True, slots=True)
class _Mean:
    value: float
    error: float

    @property
    def high(self) -> float:
        return self.value + SURE * self.error


@dataclass(frozen=True, slots=True)
class _Curve:
    """Outcomes at each row by cross-validation, means over repeats: 1 where right, or the squared error.

    Attributes:
        full, half: Of models that learned from all, and from half, of the other folds' rows.
        trivial: Of the most frequent class there, or the mean.
        spread: What an outcome is divided by: 1, or the squared distance from the mean amount.
    """

    full: Floats
    half: Floats
    trivial: Floats
    spread: Floats
    amounts: bool

    def better(self, one: Floats, other: Floats) -> _Mean:
        """By how much one is better than another, in accuracy or R²."""
        change = other - one if self.amounts else one - other
        whole, root = float(self.spread.mean()), math.sqrt(len(change))
        value = float(change.mean()) / whole
        return _Mean(value, float((change - value * self.spread).std(ddof=1)) / whole / root)


def _curve(
    own: Learner, x: Floats, y: npt.NDArray[Any], generator: np.random.Generator, *, repeats: int
) -> _Curve:
    rows = len(y)
    repeats = int(np.clip(round(300 / rows), 1, repeats))
    full, half, trivial = np.zeros((3, rows))

    def outcome(said: Any, here: npt.NDArray[np.intp]) -> Floats:
        return scored(said, y[here], amounts=own.amounts) / repeats

    for _ in range(repeats):
        fold = folds(y, generator, amounts=own.amounts)
        for part in range(FOLDS):
            here, rest = np.flatnonzero(fold == part), generator.permutation(np.flatnonzero(fold != part))
            guess: Any = y[rest].mean() if own.amounts else np.bincount(y[rest]).argmax()
            trivial[here] += outcome(guess, here)
            for found, learned in ((full, rest), (half, rest[: max(2, len(rest) // 2)])):
                said: Any = guess
                with suppress(DataError):  # what cannot be fitted tells nothing
                    said = own.learn(x[learned], y[learned]).predicted(x[here])
                found[here] += outcome(said, here)
    spread = (y - y.mean()) ** 2 if own.amounts else np.ones(rows)
    return _Curve(full, half, trivial, spread, own.amounts)


def _chance(x: Floats, y: npt.NDArray[Any], generator: np.random.Generator, *, amounts: bool) -> float:
    """The chance of labels that follow nothing, by shuffling: a permutation test of distance covariance.

    Székely, Rizzo and Bakirov 2007, on standardized columns; amounts enter by their ranks.
    """
    from scipy.spatial.distance import pdist, squareform  # noqa: PLC0415 - a third of a second, for this alone

    if len(y) > _MOST_COMPARED:
        kept = generator.choice(len(y), size=_MOST_COMPARED, replace=False)
        x, y = x[kept], y[kept]
    standardized = np.clip((x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-3), -4.0, 4.0)
    ranks = np.argsort(np.argsort(y, kind="stable"), kind="stable")
    apart = np.abs(ranks[:, None] - ranks) if amounts else y[:, None] != y
    near, alike = _centred(squareform(pdist(standardized))), _centred(apart.astype(np.float64))
    found, as_much = float((near * alike).sum()), 0
    for _ in range(_SHUFFLES):
        order = generator.permutation(len(y))
        as_much += float((near * alike[np.ix_(order, order)]).sum()) >= found * (1.0 - 1e-9)
    return (as_much + 1) / (_SHUFFLES + 1)


def _centred(distances: Floats) -> Floats:
    means = distances.mean(axis=0)
    return np.asarray(distances - means[:, None] - means + means.mean())


def _judged(curve: _Curve, rows: int, p: int, chance: float, *, linear: bool) -> Prospect:
    tried, amounts = len(curve.full), curve.amounts
    if amounts:
        lost = curve.better(np.zeros(tried), curve.full)
        own, trivial = 1.0 - lost.value, 1.0 - float(curve.trivial.mean() / curve.spread.mean())
        low, high = own - 1.96 * lost.error, own + 1.96 * lost.error
    else:
        own, trivial = float(curve.full.mean()), float(curve.trivial.mean())
        low, high = wilson_interval(own, tried)
    doubling, above = curve.better(curve.full, curve.half), curve.better(curve.full, curve.trivial)
    doublings = math.log2((rows + p) / rows)
    expected = HALVING * (1.0 - HALVING**doublings) / (1.0 - HALVING) * max(0.0, doubling.value)
    bound = doublings * max(0.0, doubling.high)
    learned = above.value > above.error
    if not learned:  # a curve of nothing: the way back to the trivial guess is a gain too
        expected = max(expected, -above.value)
        bound = max(bound, -above.value + SURE * above.error)
    # No model is right more often than always, or explains more than everything.
    expected, bound = min(expected, 1.0 - own), max(min(bound, 1.0 - low), min(expected, 1.0 - own))
    signs = _MANY if rows > FEW else _SOME_AMOUNTS if amounts else _SOME_CLASSES
    if rows < VERY_FEW:
        signs = _HANDFUL
    if amounts and not learned and not linear:
        signs = _UNBOUNDED
    follow = above.value >= signs.errors * max(above.error, 1e-3) or chance <= signs.chance
    word: Word = "uncertain"
    if rows > FEW and bound < LITTLE:
        word, why = "hopeless", "own rows are enough: as many more would add next to nothing"
        if not learned:
            why = "no model of own rows is better than a constant guess, and as many more would hardly help"
    elif not follow:
        why = "own rows do not show that their labels follow the columns"
    elif expected >= WORTH or (rows <= FEW and own <= 1.0 - WORTH):
        word = "good"
        why = (
            "few own rows have a label, and nothing speaks against more of them"
            if rows <= FEW
            else ("the model has gained from more rows, and will from more")
        )
    else:
        why = "own rows may be enough"
    return Prospect(
        word, why, "r2" if amounts else "accuracy", rows, own, low, high, trivial, expected, bound, chance
    )
