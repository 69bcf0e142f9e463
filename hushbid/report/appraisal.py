"""Figures about a purchase by the consumer alone, and by an operator, as a report has them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hushbid.consumer.appraisal import Judgement, Quality
from hushbid.consumer.model_figures import ModelFigures
from hushbid.consumer.own_figures import OwnFigures

__all__ = ["Appraisal", "Choice", "appraisal_of"]

_WORDS: Final = frozenset(
    {
        "label",
        "majority_label",
        "wanted_from",
        "weighing_why",
        "metric",
        "estimator",
        "judged_on",
        "kind",
        "why",
    }
)
"""Fields that are not figures."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A choice of points or a baseline, and how good it is (`hushbid.consumer.appraisal.Quality`)."""

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
        model: Whether its model gets better; None in results of older versions.
    """

    choices: tuple[Choice, ...]
    own: OwnFigures
    model: ModelFigures | None = None


def appraisal_of(values: Mapping[str, Any]) -> Appraisal:
    """Read a consumer's result, or what `hushbid run` leaves for a report.

    That is a judgement and `OwnFigures.as_json`; with ``choices``, the operator's judgements of others.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: It is none.
    """
    own = OwnFigures.from_json(values)
    choices = [*_rows("this session", Judgement.from_json(values))]
    for name, judged in values.get("choices", {}).items():
        choices += _rows(str(name), Judgement.from_json(judged))
    baselines = {
        "the validation rows alone": own.validation_only,
        f"always the class most bought, {own.majority_label}": own.majority,
    }
    for name, found in baselines.items():
        if found is not None:
            quality = Quality(accuracy=found.accuracy, accuracy_interval=found.interval)
            choices.append(_choice(name, quality))
    told = values.get("model")
    model = None if told is None else ModelFigures.from_json(told)
    for checked in (own, model):
        _check(checked)
    for choice in choices:
        _check(dataclasses.replace(choice, name=""))
    return Appraisal(choices=tuple(choices), own=own, model=model)


def _rows(name: str, judgement: Judgement) -> Iterator[Choice]:
    yield _choice(name, judgement.plain)
    if judgement.weighted is not None:
        yield _choice(f"{name}, with weights", judgement.weighted.quality)


def _choice(name: str, quality: Quality) -> Choice:
    figures = {field.name: getattr(quality, field.name) for field in dataclasses.fields(quality)}
    return Choice(name=name, **figures)


def _check(value: Any, name: str = "") -> None:
    """Refuse anything but a figure where one belongs."""
    if name in _WORDS or (name == "name" and value == ""):
        if not isinstance(value, str | int | float | None):
            raise TypeError(name)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _check(getattr(value, field.name), field.name)
    elif isinstance(value, Mapping):
        for each in value.values():
            _check(each)
    elif isinstance(value, tuple):
        for each in value:
            _check(each)
    elif value is not None and (type(value) not in (int, float) or not math.isfinite(value)):
        raise TypeError(name)
