"""Figures about a purchase that only the consumer computes, by exact kernels, and never sends.

They are baselines without anybody else's data, the owners' parts of the gain, and the wanted and bought class
shares. All are functions of D_v or of the test points without noise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.appraisal import Evaluation, Judgement, appraise, usable
from hushbid.consumer.downstream import Labels, accuracy, known_labels, no_classes, wilson_interval
from hushbid.consumer.events import Delivered
from hushbid.consumer.matching import Matching, match
from hushbid.consumer.model_figures import ModelFigures
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import DataError
from hushbid.protocol.figures import Figures
from hushbid.protocol.printable import printable
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.mmd import Points, Vector, kernel_means

__all__ = [
    "MOST_SHOWN",
    "Baseline",
    "ClassShares",
    "LabelShares",
    "Majority",
    "OwnFigures",
    "OwnerPart",
    "PurchaseView",
    "Unbought",
    "own_figures",
    "own_view",
]

MOST_SELLERS: Final = 12
"""Most owners for whom the points are weighed again without each of them in turn."""
MOST_WEIGHED: Final = 2_000
"""Most points for which that is done."""
MOST_SHOWN: Final = 10
"""Number of classes whose shares are shown to people."""
MOST_CLASSES: Final = 100
"""Number of classes whose shares are reported, largest shares first."""

Label: TypeAlias = int | float | str


@figures(frozen=True, slots=True)
class Baseline(Figures):
    """An accuracy on the test points that needs no purchase, or no look at a point.

    Attributes:
        accuracy: From 0 to 1.
        accuracy_interval: Its 95 % interval (`hushbid.consumer.downstream.wilson_interval`).
    """

    accuracy: float
    accuracy_interval: tuple[float, float]

    @classmethod
    def of(cls, share: float | None, tested: int) -> Self | None:
        """The baseline for a share of `tested` test points; None if there is nothing to judge."""
        return None if share is None or not tested else cls(share, wilson_interval(share, tested))

    def of_class(self, label: Label) -> Majority:
        """The same, of always predicting this class."""
        return Majority(self.accuracy, self.accuracy_interval, label)


@figures(frozen=True, slots=True)
class ClassShares(Figures):
    """The share of a class among labelled points of several kinds.

    Attributes:
        wanted: Its share of D_v's labels, or of the test points' labels if D_v has none.
        bought: Its share of the bought points.
        weighted: Its share of the bought points' weights; None if there are no weights.
    """

    label: Label
    wanted: float
    bought: float
    weighted: float | None


@figures(frozen=True, slots=True)
class OwnerPart(Figures):
    """An owner's part of the gain, by exact kernels.

    Attributes:
        points: Number of points it sold, without disputed ones.
        gain: Its part of MMD²(D_init, D_v) - MMD²(bought, D_v), independent of any order
            (`hushbid.protocol.session.statement`).
        mmd2_without: MMD² against D_v of the points of all other owners; None if they sold none.
        weighted_mmd2_without: `mmd2_without` with new weights; None if it was not computed.
    """

    points: int
    gain: float
    mmd2_without: float | None
    weighted_mmd2_without: float | None


@figures(frozen=True, slots=True)
class Majority(Baseline):
    """The accuracy of always predicting one class."""

    label: Label


@figures(frozen=True, slots=True)
class Unbought(Figures):
    """Accuracies that need no purchase, or no look at a point.

    Attributes:
        validation_only: Of a model trained on D_v's own rows; None if they have no labels.
        majority: Of always predicting the most frequent class among the bought points' labels.
    """

    validation_only: Baseline | None = None
    majority: Majority | None = None


@figures(frozen=True, slots=True)
class LabelShares(Figures):
    """The shares of classes.

    Attributes:
        wanted_from: The set whose labels give the wanted shares: ``validation``, ``test``, or empty.
        classes: Most wanted first.
    """

    wanted_from: str = ""
    classes: tuple[ClassShares, ...] = ()

    def line(self, most: int) -> str:
        """The shares in per cent: wanted, bought and weighted, as far as they are known; or nothing.

        Args:
            most: Most classes to list; unwanted classes are counted among the others.
        """
        weighted = any(each.weighted is not None for each in self.classes)
        kinds = [*(["wanted"] if self.wanted_from else []), "bought", *(["weighted"] if weighted else [])]
        shown = [each for each in self.classes if each.wanted or not self.wanted_from][:most]
        rows = [
            (printable(str(each.label)), [float(getattr(each, kind)) for kind in kinds]) for each in shown
        ]
        if not rows:
            return ""
        if len(shown) < len(self.classes):
            totals = [math.fsum(shares[place] for _, shares in rows) for place in range(len(kinds))]
            rows.append(("others", [abs(1.0 - total) for total in totals]))
        told = (f"{name} {'/'.join(f'{100 * share:.0f}' for share in shares)}" for name, shares in rows)
        return f"{'/'.join(kinds)}: {', '.join(told)}"


@figures(frozen=True, slots=True)
class OwnFigures(Figures):
    """All figures that the consumer computes alone.

    Attributes:
        by_owner: Each owner that sold a point → its part of the gain.
        by_owner_why: Why no owner was left out with weights; empty if that was done, or there are no weights.
    """

    baselines: Unbought = Unbought()
    label_shares: LabelShares = LabelShares()
    by_owner: Mapping[str, OwnerPart] = field(default_factory=dict)
    by_owner_why: str = ""

    def lines(self, distance: float | None) -> dict[str, str]:
        """The figures for people; `distance` is MMD² of all bought points."""
        found = {}
        for name, baseline in (
            ("accuracy of the validation rows alone", self.baselines.validation_only),
            ("accuracy of the class most bought", self.baselines.majority),
        ):
            if baseline is not None:
                low, high = baseline.accuracy_interval
                found[name] = f"{baseline.accuracy:.3f} ({low:.3f} to {high:.3f})"
        if shares := self.label_shares.line(MOST_SHOWN):
            found["labels in %"] = shares
        parts = sorted(self.by_owner.items(), key=lambda item: -item[1].gain)
        for owner, part in parts[:MOST_SELLERS]:
            sold = "1 point" if part.points == 1 else f"{part.points} points"
            told = f"{sold}, exact gain {part.gain:+.5f}"
            if part.mmd2_without is not None and distance is not None:
                told += f"; left out, MMD² {part.mmd2_without - distance:+.5f}"
            if part.weighted_mmd2_without is not None:
                told += f", with weights it is {part.weighted_mmd2_without:.5f}"
            found[owner] = told
        if len(parts) > MOST_SELLERS:
            found["other owners"] = f"{len(parts) - MOST_SELLERS}, in the JSON"
        return found


class PurchaseView(NamedTuple):
    """What the consumer sees of its purchase: its quality, figures of its own, and if its model gets better.

    Attributes:
        matching: The weights of undisputed points, if they have any.
        training: Weights of undisputed points in the model's training, where an own row weighs 1, shape (n,);
            None if there are no labels.
    """

    judgement: Judgement
    matching: Matching | None
    own: OwnFigures
    model: ModelFigures
    training: Vector | None


def own_view(
    session: Session, delivered: Sequence[Delivered], by: Evaluation, seed_set: Dataset
) -> PurchaseView:
    """The consumer's view of a delivery; D_init is `seed_set`. Raises as `appraise` does."""
    judgement, matching = appraise(session, delivered, by)
    points, labels, _ = usable(session, delivered)
    model, training = by.judge(session).model_figures(points, labels, matching)
    own = own_figures(session, delivered, by, seed_set, matching)
    return PurchaseView(judgement, matching, own, model, training)


def own_figures(
    session: Session,
    delivered: Sequence[Delivered],
    by: Evaluation,
    seed_set: Dataset,
    matching: Matching | None,
) -> OwnFigures:
    """Compute the figures of the undisputed points of a delivery, which have these weights, if any."""
    scale, validation, test = session.space.scale, by.validation, by.test
    wanted = scale(validation.features)
    judged = None if test is None or test.known is None else (scale(test.features), test.known)
    alone, tested = None, 0
    if judged is not None:
        tested = len(known_labels(judged[1]))
        if validation.known is not None and not session.file.labels_are_amounts:
            with suppress(DataError):  # the model's own figures say why
                alone = accuracy(by.model, wanted, validation.known, *judged, seed=by.seed)
    validation_only = Baseline.of(alone, tested)
    points, labels, sellers = usable(session, delivered)
    if not len(points):
        return OwnFigures(Unbought(validation_only))
    weights = None if matching is None else matching.weights
    wanted_labels, wanted_from = _wanted(validation, test)
    amounts = session.file.labels_are_amounts
    if no_classes(wanted_labels or labels) if amounts is None else amounts:
        # Amounts have no class shares and no majority class.
        labels, wanted_labels, wanted_from = [None] * len(points), (), ""
    common = Counter(known_labels(labels)).most_common(1)
    label = common[0][0] if common else None
    share = None if judged is None or label is None else _share(known_labels(judged[1]), label)
    majority = Baseline.of(share, tested)
    why = _why_not(len(set(sellers)), len(points)) if matching is not None else ""
    ridge = None if matching is None or why else matching.ridge
    return OwnFigures(
        Unbought(validation_only, None if majority is None or label is None else majority.of_class(label)),
        LabelShares(wanted_from, _class_shares(wanted_labels, labels, weights)),
        _parts(points, sellers, wanted, scale(seed_set.features), session.space.gamma, ridge),
        why,
    )


def _wanted(validation: Dataset, test: Dataset | None) -> tuple[Sequence[Label], str]:
    for name, dataset in (("validation", validation), ("test", test)):
        if dataset is not None and dataset.known is not None and (known := known_labels(dataset.known)):
            return known, name
    return (), ""


def _share(labels: Sequence[Label], label: Label) -> float:
    return sum(each == label for each in labels) / max(len(labels), 1)


def _class_shares(wanted: Sequence[Label], labels: Labels, weights: Vector | None) -> tuple[ClassShares, ...]:
    of_wanted, of_bought, of_weights = Counter(wanted), Counter[Label](), Counter[Label]()
    for place, label in enumerate(labels):
        if label is not None:
            of_bought[label] += 1
            if weights is not None:
                of_weights[label] += float(weights[place])  # type: ignore[assignment]
    totals = [max(math.fsum(counts.values()), 1e-300) for counts in (of_wanted, of_bought, of_weights)]
    shares = [
        ClassShares(
            label,
            of_wanted[label] / totals[0],
            of_bought[label] / totals[1],
            None if weights is None else of_weights[label] / totals[2],
        )
        for label in {**of_wanted, **of_bought}
    ]
    shares.sort(key=lambda each: (-each.wanted, -each.bought, str(each.label)))
    return tuple(shares[:MOST_CLASSES])


def _why_not(sellers: int, points: int) -> str:
    if sellers > MOST_SELLERS:
        return f"more than {MOST_SELLERS} owners sold"
    return f"more than {MOST_WEIGHED} points were bought" if points > MOST_WEIGHED else ""


def _parts(
    points: Points, sellers: Sequence[str], wanted: Points, seeds: Points, gamma: float, ridge: float | None
) -> Mapping[str, OwnerPart]:
    """Each seller's part; J and its gains come from kernel means, so no kernel matrix is held.

    All points are scaled. No owner is left out with weights if `ridge`, their λ, is None.
    """
    count, owners = len(points), np.asarray(sellers)
    # J's slope at each point, halfway from the seed set's mean to the bought points': 2μ_V - μ_0 - μ_S.
    to_wanted, to_bought = kernel_means(points, wanted, gamma), kernel_means(points, points, gamma)
    slope = 2.0 * to_wanted - kernel_means(points, seeds, gamma) - to_bought
    start = 2.0 * kernel_means(seeds, wanted, gamma) - kernel_means(seeds, seeds, gamma)
    at_start = float((start - kernel_means(seeds, points, gamma)).mean())
    spread = float(kernel_means(wanted, wanted, gamma).mean())
    parts = {}
    for owner in sorted(set(sellers)):
        own: npt.NDArray[np.bool_] = owners == owner
        sold, left = int(own.sum()), count - int(own.sum())
        without = weighted = None
        if left:
            # Sums of kernel values over all pairs, less the pairs with one of the owner's points.
            mine = points[own]
            inside = float(kernel_means(mine, mine, gamma).sum()) * sold
            pairs = float(to_bought.sum() - 2.0 * to_bought[own].sum()) * count + inside
            cross = float(to_wanted[~own].mean())
            without = max(0.0, pairs / left**2 - 2.0 * cross + spread)
            if ridge is not None:
                weighted = match(points[~own], wanted, gamma, ridge=ridge).mmd2
        gain = float((slope[own] - at_start).sum()) / count
        parts[owner] = OwnerPart(sold, gain, without, weighted)
    return parts
