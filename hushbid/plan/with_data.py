"""A plan's rehearsal if there are data: the consumer's own, and the session with the owners' points.

The verdict is that of `hushbid.plan.verdict`: what the consumer can know beforehand. The operator of a
demonstration also has the owners' points, and so the range of outcomes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np
from pydantic.dataclasses import dataclass as figures

from hushbid.cluster.data import ClusterData
from hushbid.cluster.evaluation import uniform
from hushbid.consumer.answers import Word
from hushbid.consumer.verdict import GOOD, Staged, Verdict
from hushbid.plan import quality
from hushbid.plan.prediction import Expected, Prediction, came_out
from hushbid.plan.rehearsal import MOST, play_with_owners
from hushbid.plan.setting import PlanSetting
from hushbid.plan.verdict import Rehearsing, Sets, what_is_wrong
from hushbid.protocol.errors import HushbidError
from hushbid.protocol.figures import Figures

__all__ = ["NOT_REHEARSED", "Rehearsed", "judge", "rehearsed"]

_PLAYS: Final = 3
"""Sessions with the owners' points: half and twice their mean hold that of three more (docs/plan.md)."""
_LEFT_OUT: Final = "it was to be left out"


@figures(frozen=True, slots=True)
class Rehearsed(Figures):
    """The outcomes of the played sessions.

    Attributes:
        verdict: The consumer's, who knows no owner's points.
        owners: The average outcome with the owners' own points; None: they were not played with.
        without_noise: The same of a session without noise; None in the same case.
        why: Why the owners' points were not played with; empty if they were.
    """

    FLAT: ClassVar[frozenset[str]] = frozenset({"verdict"})

    verdict: Verdict
    owners: Staged | None = None
    without_noise: Staged | None = None
    why: str = ""

    def expected(self, prediction: Prediction) -> Expected:
        """The outcome with the owners' points; or the prediction, if they were not played with."""
        if self.owners is None or self.without_noise is None:
            return prediction.told()
        return came_out(self.owners, self.without_noise)

    def said(self) -> str:
        """The outcome with the owners' points, for people, or why it is not known."""
        if self.owners is None or self.without_noise is None:
            return f"What the owners' data can give at best is not known: {self.why}."
        found, least = self.owners, self.without_noise
        text = (
            f"With the owners' own points it came to {found.ratio:.2g} times a random choice's MMD² with "
            f"weights, and {found.ratio_plain:.2g} times without; without any noise to {least.ratio:.2g} and "
            f"{least.ratio_plain:.2g}."
        )
        if least.ratio > GOOD:
            text += (
                " So the owners' data are the limit: neither a larger ε nor more rows of validation data "
                f"would bring it, with weights, to {GOOD:g}."
            )
        return text


NOT_REHEARSED: Final = Rehearsed(Verdict(why=_LEFT_OUT), why=_LEFT_OUT)


def rehearsed(setting: PlanSetting, rehearsing: Rehearsing) -> Rehearsed | None:
    """Rehearse a planned session; None if there are no data.

    A session that is refused with any data, or has nothing to choose, is not played. A hopeless one is.

    Raises:
        DataError: An owner's labels, or the validation set's, are not those of the selection: the session
            would be refused.
    """
    data = setting.data
    if data is None:
        return None
    if why := _why_not(setting, data, rehearsing):
        return Rehearsed(Verdict(why=why), why=why)
    session = setting.session()
    for name in sorted(data.owners):
        session.file.check_labels(data.owners[name])  # as the owner does, before anything is hashed
    found = rehearsing.measured(session, Sets(data.validation, data.seed_set, setting.drawn, setting.model))
    if found.rehearsal is not None and found.rehearsal.blind:
        return Rehearsed(found, why="to the session all points are alike, or none is like another")
    if not session.rule.exact or setting.p > MOST:
        return Rehearsed(found, why=found.why)
    try:
        owners, without_noise = play_with_owners(
            session,
            data.validation,
            data.seed_set.features,
            [data.owners[name] for name in sorted(data.owners)],
            _uniform(setting, data),
            progress=rehearsing.progress("Playing the session with the owners' points"),
        )
    except HushbidError as error:
        return Rehearsed(found, why=f"it cannot be played: {error.what.rstrip('.')}")
    return Rehearsed(found, owners, without_noise)


def judge(setting: PlanSetting, found: Rehearsed, by_rule: Callable[[], quality.Judged]) -> quality.Judged:
    """The verdict of a plan with data: the consumer's, beside the outcome with the owners' own points.

    Without the latter it is the rule of thumb's, which does not know the best possible outcome with the
    owners' data: ``hopeless``, or ``uncertain`` for everything else.
    """
    if refused := quality.refusal(setting):
        return refused
    if found.verdict.word is None:
        rule = by_rule()
        word: Word = "hopeless" if rule.verdict == "hopeless" else "uncertain"
        return replace(rule, verdict=word, reason=f"{found.said()} By the rule of thumb: {rule.reason}")
    reason = found.verdict.sentence()
    if found.verdict.refused:
        assert setting.data is not None, "it was rehearsed"
        what, advice = what_is_wrong(setting.session(), setting.data.validation.features, found.verdict)
        if found.verdict.rehearsal is not None and found.verdict.rehearsal.expected is None:
            reason = found.verdict.since(what)
        reason = f"{reason} {advice}"
    return quality.Judged(verdict=found.verdict.word, reason=f"{reason} {found.said()}")


def _why_not(setting: PlanSetting, data: ClusterData, rehearsing: Rehearsing) -> str:
    """Why the data do not represent the planned session; empty if they do."""
    if setting.refusal:
        return "its rule is not for this session"
    if not rehearsing.wanted:
        return _LEFT_OUT
    available = sum(map(len, data.owners.values()))
    for name, planned, there in (
        ("rows of validation data", setting.m, len(data.validation)),
        ("points of a seed set", setting.seed_points, len(data.seed_set)),
        ("points of owners", sum(setting.owner_points), available),
    ):
        if planned != there:
            return f"{planned:,} {name} are planned, and the data have {there:,}"
    if setting.p >= available:
        return "the owners have no more points than are bought"
    return ""


def _uniform(setting: PlanSetting, data: ClusterData) -> list[np.ndarray[tuple[int, int], Any]]:
    sizes = {name: len(dataset) for name, dataset in data.owners.items()}
    drawn = (uniform(sizes, setting.p, np.random.default_rng(number)) for number in range(_PLAYS))
    return [np.stack([data.owners[name].features[row] for name, row in each]) for each in drawn]
