"""The score of the consumer's model with the points that were chosen so far.

No transcript has it. Given the consumer's state directory, a model is trained with the points of the first
rounds and the results' training weights, as the results' model was with all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hushbid.consumer.appraisal import usable
from hushbid.consumer.events import Delivered
from hushbid.consumer.model_figures import Figure, ModelCourse, ModelFigures
from hushbid.protocol.errors import HushbidError
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.labels import listed_labels
from hushbid.replay.facts import ScoreCourse
from hushbid.replay.own import OwnFiles
from hushbid.report.rounds import shortened, thinned

__all__ = ["MOST_TRAINED", "scores_of"]

MOST_TRAINED: Final = 10
"""Most numbers of bought points that a model is trained with, apart from none and one."""
_CLOSE: Final = 1e-9
"""Largest difference of two figures of one model."""


def scores_of(session: Session, delivered: Sequence[Delivered], own: OwnFiles) -> ScoreCourse | str:
    """Train the consumer's model with its own rows and the first bought points, of a few numbers of them.

    Returns:
        Or why that cannot be, in a clause.
    """
    points, labels, _ = usable(session, delivered)
    if not len(points):
        return "nothing was bought that can be learned from"
    if all(label is None for label in listed_labels(labels)):
        return "the bought points have no labels"
    if own.training is None:
        return "the consumer’s delivered.npz beside its transcript has no training weights of these points"
    rounds = [entry.chosen_round for entry in delivered if entry.candidate and not entry.dispute]
    counts = [0, *_counts(rounds)]
    try:
        found = own.by.judge(session).of_models.course(points, labels, own.training, counts)
    except HushbidError as error:
        return error.what.rstrip(".")
    if isinstance(found, str):
        return found
    return ScoreCourse(
        metric=found.metric,
        points=tuple(counts),
        round=tuple(rounds[count - 1] if count else 0 for count in counts),
        value=_column(found, "value"),
        low=_column(found, "low"),
        high=_column(found, "high"),
        told=tuple(_told(found, own.results)),
    )


def _counts(rounds: Sequence[int]) -> list[int]:
    """Numbers of points: at the ends of rounds; of the one round, if there is only one, any number."""
    last = len(rounds)
    ends = [count for count in range(1, last + 1) if count == last or rounds[count] != rounds[count - 1]]
    possible = ends if len(ends) > 1 else list(range(1, last + 1))
    return [possible[number - 1] for number in thinned(len(possible), MOST_TRAINED)]


def _column(found: ModelCourse, name: str) -> tuple[float | None, ...]:
    return tuple(None if each is None else shortened(getattr(each, name)) for each in found.figures)


def _told(found: ModelCourse, results: ModelFigures | None) -> Iterator[str]:
    own = f"{found.own_rows:,} own rows and the points chosen so far" if found.own_rows else "bought points"
    by = "test rows" if found.judged_on == "test" else "own rows, by cross-validation"
    yield (
        f"{found.estimator}, trained with {own}, judged on {found.judged:,} {by}. Each bought point has the "
        "weight that it has in the results’ model. Only the consumer can compute it, from its files."
    )
    if results is None:
        yield "No results are beside its transcript to compare the last figure with."
        return
    if results.training_weights is not None and results.training_weights.kind == "none":
        yield "By cross-validation on own rows bought points deserve no weight, and change nothing."
    last, told = found.figures[-1], results.own_and_bought if found.own_rows else results.bought
    if results.judged_on != found.judged_on:
        yield "The results’ model was judged on other rows: its figure is another."
    elif found.judged_on == "test" and not _same(last, told):
        yield "The last figure is not the results’: the test rows, or the libraries, are others than then."
    elif not _same(last, told):
        yield "The last figure is not the results’: they choose the weights anew for each judged row."


def _same(one: Figure | None, other: Figure | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one.value - other.value) <= _CLOSE
