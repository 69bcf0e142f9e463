"""Figures about a purchase that the consumer alone, or an operator, computed, in a report's form."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hushbid.consumer.appraisal import Judgement, Quality
from hushbid.consumer.model_figures import ModelFigures
from hushbid.consumer.own_figures import OwnFigures
from hushbid.protocol.finite import finite

__all__ = ["Appraisal", "AppraisedChoice", "appraisal_of"]

_TOLD: Final = frozenset({"mmd2", "weighted", "baselines", "label_shares", "by_owner"})
"""Fields of an appraisal."""


@dataclass(frozen=True, kw_only=True)
class AppraisedChoice:
    """A choice of points or a baseline, and its quality (`hushbid.consumer.appraisal.Quality`)."""

    name: str
    mmd2: float | None
    mmd2_test: float | None
    accuracy: float | None
    accuracy_interval: tuple[float, float] | None
    effective_points: float | None


@dataclass(frozen=True, kw_only=True)
class Appraisal:
    """Figures computed without a transcript.

    Attributes:
        choices: Choices of points, the purchase first.
        own: The consumer's own.
        model: Whether its model improves; None in results of older versions.
    """

    choices: tuple[AppraisedChoice, ...]
    own: OwnFigures
    model: ModelFigures | None = None

    def earlier_names(self) -> dict[str, Any]:
        """The two as JSON, with the fields' earlier names as well."""
        own, shares, model = self.own.as_json(), self.own.label_shares.as_json(), self.model
        majority = own["baselines"]["majority"]
        for each in filter(None, (own["baselines"]["validation_only"], majority)):
            each["interval"] = each["accuracy_interval"]
        own |= {**own["baselines"], **shares, "owners": own["by_owner"], "weighing_why": own["by_owner_why"]}
        own["majority_label"] = None if majority is None else majority["label"]
        if model is None:
            return {"own": own, "model": None}
        weights = (
            {"kind": "", "total": 0.0} if model.training_weights is None else model.training_weights.as_json()
        )
        return {"own": own, "model": model.as_json() | weights}


def appraisal_of(values: Mapping[str, Any]) -> Appraisal:
    """Read a consumer's result, or the evaluation that `hushbid run` leaves for a report.

    That is a judgement and `OwnFigures.as_json`; with ``choices``, the operator's judgements of others.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: It is neither.
    """
    if finite(values) != values or not values.keys() >= _TOLD:
        raise ValueError("a figure is missing, or not finite")
    own = OwnFigures.from_json(values)
    choices = [*_rows("this session", Judgement.from_json(values))]
    for name, judged in values.get("choices", {}).items():
        choices += _rows(str(name), Judgement.from_json(judged))
    majority = own.baselines.majority
    baselines = {
        "the validation rows alone": own.baselines.validation_only,
        f"always the class most bought, {majority.label if majority else ''}": majority,
    }
    for name, found in baselines.items():
        if found is not None:
            quality = Quality(accuracy=found.accuracy, accuracy_interval=found.accuracy_interval)
            choices.append(_choice(name, quality))
    told = values.get("model")
    model = None if told is None else ModelFigures.from_json(told)
    return Appraisal(choices=tuple(choices), own=own, model=model)


def _rows(name: str, judgement: Judgement) -> Iterator[AppraisedChoice]:
    yield _choice(name, judgement.plain)
    if judgement.weighted is not None:
        yield _choice(f"{name}, with weights", judgement.weighted.quality)


def _choice(name: str, quality: Quality) -> AppraisedChoice:
    figures = {field.name: getattr(quality, field.name) for field in dataclasses.fields(quality)}
    return AppraisedChoice(name=name, **figures)
