"""The verdict before a session: shown first, and a refusal if noise would choose.

`run`, `simulate` and `consumer` obtain it before anything is made, connected or charged. Only the word and
its meaning are shown; the figures depend on D_v, and are in the consumer's result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from hushbid.consumer.learners import Training, train_here
from hushbid.consumer.prospect import prospect
from hushbid.consumer.verdict import Prospect, Verdict
from hushbid.plan.noise import release_errors
from hushbid.plan.prediction import predict
from hushbid.plan.rehearsal import DROWNED_OUT, TOO_FEW_LABELS, looked_at, rehearse, why_not_rehearsed
from hushbid.plan.setting import setting_of
from hushbid.plan.supply import all_sold, offer
from hushbid.protocol.data import Dataset
from hushbid.protocol.data.dataset import Array
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import Hopeless, HushbidError
from hushbid.protocol.names import CONSUMER, MODEL
from hushbid.protocol.privacy.releases.exact import ExactRelease
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.protocol.session.guarantee import weak_lines
from hushbid.protocol.session.session import Session

__all__ = [
    "NOT_REHEARSING",
    "Rehearsing",
    "Sets",
    "gaps_filled",
    "nothing_to_choose",
    "prospect_of",
    "warn",
    "what_is_wrong",
]

_FIRST_SECONDS: Final = 1.0
"""Duration of a rehearsal before its progress is reported."""
_NEXT_SECONDS: Final = 5.0
_START: Final = (
    "one over twice the median squared distance of two rows, on columns scaled to [0, 1], is a good start."
)
_NOTHING_CHARGED: Final = "Nothing was charged, and nobody was connected to: the session was being rehearsed."


_MORE_SIGNAL: Final = (
    "Take more rows of validation data, a larger epsilon (of the target first), or fewer points; or buy at "
    "random and weigh (`hushbid weigh`)."
)


def _silent(_line: str) -> None:
    pass


class Sets(NamedTuple):
    """The consumer's own sets, used to rehearse a session.

    Attributes:
        validation: D_v.
        seed_set: D_init.
        drawn: Whether D_init is drawn within the bounds.
        model: The consumer's model (`hushbid.consumer.learners.MODELS`).
    """

    validation: Dataset
    seed_set: Dataset
    drawn: bool = False
    model: str = MODEL


@dataclass(frozen=True)
class Rehearsing:
    """How a verb rehearses.

    Attributes:
        wanted: Whether it rehearses at all.
        anyway: Whether a hopeless session goes on.
        anyway_by: The caller's way of requesting that, in words.
        drawn: Whether the seed set was already drawn, by whoever made its file.
        schema: The rows' columns, if the session's do not state them; None: they do, or nobody does.
        say: Receives the verdict and a rehearsal's progress, in lines for people without a figure of D_v.
        training: Trains the models of own rows.
    """

    wanted: bool = True
    anyway: bool = False
    anyway_by: str = "`--anyway`"
    drawn: bool = False
    schema: Schema | None = None
    say: Callable[[str], object] = _silent
    training: Training = train_here

    def verdict(self, session: Session, sets: Callable[[], Sets]) -> Verdict:
        """Rehearse a session with `sets()`, unless any sets would be passed over, and report the verdict.

        Raises:
            Hopeless: The session is hopeless, and is not to go on anyway.
            HushbidError: `sets` raises it, or D_v lacks the labels that the selection uses.
        """
        if not self.wanted:
            return Verdict(why="it was to be left out")
        if {session.file.target.mechanism, session.file.summary.mechanism} == {ExactRelease.name}:
            return Verdict(why="its releases are exact, and have no noise")
        try:
            given = sets()
            found = self.measured(session, given)
        except (KeyboardInterrupt, SystemExit) as interrupt:  # the latter by a signal
            interrupt.add_note(_NOTHING_CHARGED)  # reported along with the word that it was interrupted
            raise
        if found.refused:
            if not self.anyway:
                what, advice = what_is_wrong(session, given.validation.features, found)
                raise Hopeless(
                    f"A rehearsal of the session is {found.called}: {what}.",
                    advice=f"{advice} {self.anyway_by} goes on all the same, and that stays on record.",
                )
            found = replace(found, anyway=True)
        self.say(found.sentence())
        return found

    @one_blas_thread()
    def measured(self, session: Session, given: Sets) -> Verdict:
        """The verdict on a session, even if the rehearsal was to be left out.

        Raises:
            DataError: D_v lacks the labels that the selection uses.
        """
        session.file.check_wanted_labels(given.validation)  # otherwise nothing could be played
        played = self._played(session, given)
        return (
            played if played.refused else replace(played, prospect=prospect_of(session, given, self.training))
        )

    def _played(self, session: Session, given: Sets) -> Verdict:
        rows, seeds = (dataset.features.astype(np.float64) for dataset in (given.validation, given.seed_set))
        looked = looked_at(session, rows, seeds, drawn=given.drawn or self.drawn)
        if looked.blind:
            return Verdict(looked)
        why = why_not_rehearsed(session, len(rows), given.validation.known)
        if not why:
            try:
                return Verdict(
                    rehearse(
                        session,
                        rows,
                        seeds,
                        labels=given.validation.known,
                        schema=self.schema,
                        looked=looked,
                        progress=self.progress(),
                    )
                )
            except HushbidError as error:
                why = f"it cannot be played: {error.what.rstrip('.')}"
        if not session.rule.exact:
            return Verdict(why=why)
        setting = setting_of(session.file, validation=len(rows), seed_points=len(seeds))
        prediction = predict(setting, *release_errors(setting))
        return Verdict(replace(looked, expected=prediction.drowned), why)

    def progress(self, what: str = "Rehearsing the session") -> Callable[[float], None]:
        """A callback for the completed share: it reports after a second, and then occasionally."""
        due = time.monotonic() + _FIRST_SECONDS

        def tell(share: float) -> None:
            nonlocal due
            if time.monotonic() >= due:
                due = time.monotonic() + _NEXT_SECONDS
                self.say(f"{what}: {share:.0%} (--no-rehearsal leaves it out).")

        return tell


def prospect_of(session: Session, given: Sets, training: Training = train_here) -> Prospect:
    """What D_v's own rows tell about a model trained on the session's purchase. Nothing is random."""
    scaled = session.space.scale(given.validation.features)
    if given.validation.known is None:
        training = train_here  # nothing is trained
    return training(
        partial(
            prospect,
            scaled,
            given.validation.known,
            p=session.file.session.points,
            model=given.model,
            seed=0,
            amounts=session.file.labels_are_amounts,
        )
    )


def warn(
    session: Session,
    owners: Mapping[str, Iterable[Dataset]],
    own: Iterable[Dataset],
    say: Callable[[str], object] | None,
) -> None:
    """Say before a session of all parties that nothing is chosen, that an ε protects nobody, or gaps.

    Args:
        owners: Each owner's points.
        own: The consumer's sets.
    """
    if say is None:
        return
    rows = {name: sum(map(len, each)) for name, each in owners.items()}
    for line in (nothing_to_choose(session, rows), *weak_lines(session.privacy())):
        if line:
            say(line)
    for line in gaps_filled({CONSUMER: own, **owners}):
        say(line)


def gaps_filled(held: Mapping[str, Iterable[Dataset]]) -> list[str]:
    """How many gaps were filled in each table, by column, and with what; a line for each table.

    Args:
        held: The tables of each party, by its name. Only who holds them all may read the lines.
    """
    return [
        f"{party}, {dataset.name}: {dataset.changed.filling}."
        for party, sets in held.items()
        for dataset in sets
        if dataset.changed.filling
    ]


def nothing_to_choose(session: Session, rows: Mapping[str, int]) -> str:
    """The warning when all points for sale are bought; empty if there is something to choose.

    Args:
        rows: Number of points of each owner.
    """
    available = all_sold(session.file, rows)
    if available is None:
        return ""
    return (
        f"WARNING: {offer(available, rows)} together, and {session.file.session.points:,} are to be bought: "
        "all are, and nothing is chosen."
    )


NOT_REHEARSING: Final = Rehearsing(wanted=False)


def what_is_wrong(session: Session, validation: Array, verdict: Verdict) -> tuple[str, str]:
    """Why a session is hopeless, or its kernel blind, and what to change, most likely to help first.

    Args:
        validation: D_v, raw, shape (m, columns).
        verdict: The verdict of its rehearsal.

    Returns:
        A sentence without its full stop, and advice; neither contains a figure.
    """
    found, gamma = verdict.rehearsal, session.space.gamma
    assert found is not None, "asked of a verdict"
    if len(validation) == 1:
        return "the validation set has one row", "Take more rows of validation data; hundreds are usual."
    if found.alike and (validation == validation[0]).all():
        return "all rows of the validation set are equal", "Take validation data that differ."
    if found.alike:
        return (
            "all rows of the validation set are alike to the session, and those of the seed set with them",
            f"Whatever is bought will seem to fit. Take bounds ({session.file.bounds_keys}) that are "
            f"about as wide as the data are, or a larger `features.gamma`, which is {gamma:g}: {_START} If "
            "owners have rows that lie elsewhere within these bounds, a seed set with such rows (`seed_set`) "
            "shows that the session tells them apart.",
        )
    if found.blind:
        return (
            "no two rows of the validation set are alike to the session",
            f"Noise is all that is compared. Take a smaller `features.gamma`, which is {gamma:g}: {_START}",
        )
    if found.expected is not None:
        label = "Label more rows of the validation data. " if verdict.why == TOO_FEW_LABELS else ""
        return (
            "by the rule of thumb of `hushbid plan` noise drowns the choice (it was not played: "
            f"{verdict.why or DROWNED_OUT})",
            f"{label}{_MORE_SIGNAL}",
        )
    if found.weights_alone:
        return (
            "the noise chooses, and with weights buying at random was better with all stand-in owners; "
            "without weights it was not",
            f"{_MORE_SIGNAL} Who does not weigh can go on.",
        )
    return "the noise chooses, and buying at random was better with all stand-in owners", _MORE_SIGNAL
