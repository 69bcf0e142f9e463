"""MMD² of the first points of a choice: the session's own, and the baselines' if they are given."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hushbid.cluster.display_names import MOST_SHOWN
from hushbid.consumer.course import ClosenessCourse
from hushbid.consumer.seed_distance import SeedDistance
from hushbid.protocol.errors import DataError
from hushbid.protocol.limits import MAX_POINTS
from hushbid.report.appraisal import Appraisal, appraisal_of
from hushbid.report.rounds import shortened, shown
from hushbid.report.sources import TranscriptSource

__all__ = [
    "APPRAISAL",
    "BASELINES",
    "DISPLAY",
    "Curve",
    "EvaluationFile",
    "QualityCurves",
    "quality_of",
    "read_evaluation",
]

BASELINES: Final = ("mmd2_greedy", "mmd2_uniform")
"""The keys of an evaluation file: MMD² of the first 1, 2, … points of the greedy and the uniform choice."""

APPRAISAL: Final = "appraisal"
"""The key of the figures that consumer and operator computed without a transcript (`appraisal_of`)."""


DISPLAY: Final = "display"
"""The key of owners' display names, by those of the roster."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """MMD² of the first points of a choice against D_v, by their number (`shortened`); `last`: of all."""

    points: tuple[int, ...]
    mmd2: tuple[float, ...]
    last: float


@dataclass(frozen=True, kw_only=True)
class QualityCurves:
    """How close the purchase came to D_v, point by point. Figures that the files lack are None.

    Attributes:
        session: MMD² of the points that the consumer got and can read, in their order; it is the consumer's.
        greedy: MMD² of a choice among all owners' points with nothing private.
        uniform: MMD² of points drawn at random from each owner.
        seed_distance, course: The consumer's, too.
        appraisal: Figures of the evaluation that no transcript has.
    """

    session: Curve | None
    greedy: Curve | None
    uniform: Curve | None
    seed_distance: SeedDistance | None = None
    appraisal: Appraisal | None = None
    course: ClosenessCourse | None = None


@dataclass(frozen=True, kw_only=True)
class EvaluationFile:
    """The content of an evaluation file (`read_evaluation`), or nothing.

    Attributes:
        greedy, uniform, appraisal: As in `QualityCurves`.
        display: Owners' display names, by those of the roster.
    """

    greedy: Curve | None = None
    uniform: Curve | None = None
    appraisal: Appraisal | None = None
    display: Mapping[str, str] = field(default_factory=dict)


def quality_of(sources: Sequence[TranscriptSource], evaluation: EvaluationFile) -> QualityCurves:
    """The curves of the consumer's transcript and of the operator's evaluation."""
    consumer = next((source.consumer for source in sources if source.consumer is not None), None)
    own = None if consumer is None or consumer.mmd2 is None else _curve(consumer.mmd2.tolist())
    return QualityCurves(
        session=own,
        greedy=evaluation.greedy,
        uniform=evaluation.uniform,
        seed_distance=None if consumer is None else consumer.seed_distance,
        appraisal=evaluation.appraisal,
        course=None if consumer is None else consumer.course,
    )


def read_evaluation(path: Path, session: str) -> EvaluationFile:
    """The greedy and the uniform curve of an evaluation file, and its other content.

    Args:
        session: The session's identifier, which a consumer's own result must match, if it has one.

    A consumer's own result is accepted too, without the curves, which no party can compute.

    Raises:
        DataError: The file cannot be read, or is not of this kind.
    """
    try:
        with path.open(encoding="utf-8") as file:
            found = json.load(file)
    except OSError as error:
        raise DataError(
            f"{path}: cannot read the evaluation: {error.strerror}.", advice="Check the path."
        ) from None
    except (ValueError, RecursionError):
        raise _unusable(path, "it is no JSON") from None
    if isinstance(found, dict) and found.get("role") == "consumer":
        if found.get("identifier", session) != session:
            raise DataError(
                f"{path} is the result of another session than the transcripts.",
                advice="Name the `result.json` of the consumer's state directory of this session.",
            )
        return EvaluationFile(appraisal=_appraisal(path, found), display=_display(path, found))
    if not isinstance(found, dict) or set(found) - {APPRAISAL, DISPLAY} != set(BASELINES):
        raise _unusable(path, f"it is not an object of {' and '.join(BASELINES)}, nor a consumer's result")
    greedy, uniform = (_values(path, key, found[key]) for key in BASELINES)
    appraisal = _appraisal(path, found[APPRAISAL]) if APPRAISAL in found else None
    return EvaluationFile(greedy=greedy, uniform=uniform, appraisal=appraisal, display=_display(path, found))


def _display(path: Path, evaluation: Mapping[str, Any]) -> dict[str, str]:
    found = evaluation.get(DISPLAY, {})
    if not isinstance(found, dict) or not all(
        isinstance(name, str) and 0 < len(name) <= MOST_SHOWN for name in found.values()
    ):
        raise _unusable(path, f"{DISPLAY} are no names")
    return found


def _appraisal(path: Path, values: Any) -> Appraisal | None:
    if isinstance(values, dict) and "baselines" not in values:
        return None  # from a consumer of an older version
    try:
        return appraisal_of(values)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _unusable(path, "its figures are not those of a consumer") from None


def _values(path: Path, key: str, values: Any) -> Curve | None:
    if not isinstance(values, list) or len(values) > MAX_POINTS:
        raise _unusable(path, f"{key} is not a list of figures")
    for place, value in enumerate(values, start=1):
        if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
            raise _unusable(path, f"entry {place} of {key} is no MMD²")
    return _curve([float(value) for value in values])


def _curve(values: Sequence[float]) -> Curve | None:
    if not values:
        return None
    points = shown(len(values))
    return Curve(points=points, mmd2=tuple(shortened(values[point - 1]) for point in points), last=values[-1])


def _unusable(path: Path, reason: str) -> DataError:
    return DataError(
        f"{path}: not an evaluation: {reason}.",
        advice="`hushbid run` writes evaluation.json beside its report.",
    )
