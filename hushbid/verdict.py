"""The verdict of a rehearsal before a session: shown first, and refused if it is hopeless.

`run`, `simulate` and `consumer` rehearse here before anything is made, connected or charged. What is shown is
the word and what it means; the figures follow from D_v, and are in the consumer's result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from consumer.verdict import ALIKE, Rehearsal, Verdict
from hushbid.rehearsal import rehearse, why_not_rehearsed
from protocol.data import Dataset
from protocol.data.dataset import Array
from protocol.errors import Hopeless, HushbidError
from protocol.releases.exact import ExactRelease
from protocol.session import Session

__all__ = ["NOT_REHEARSING", "Rehearsing", "what_is_wrong"]

_FIRST_SECONDS: Final = 1.0
"""What a rehearsal takes before anything is said of how far it is."""
_NEXT_SECONDS: Final = 5.0
_START: Final = (
    "one over the median squared distance of two rows, on columns scaled to [0, 1], is a good start."
)


def _silent(_line: str) -> None:
    pass


@dataclass(frozen=True)
class Rehearsing:
    """How a verb rehearses.

    Attributes:
        wanted: Whether it does.
        anyway: Whether a hopeless session goes on.
        say: Gets the verdict, and how far the rehearsal is, in lines for people without a figure of D_v.
    """

    wanted: bool = True
    anyway: bool = False
    say: Callable[[str], object] = _silent

    def passed_over(self, session: Session) -> Verdict | None:
        """The verdict on a session that is not rehearsed, whatever the data are; None if it is."""
        if not self.wanted:
            return Verdict(why="it was to be left out")
        if {session.file.target.mechanism, session.file.summary.mechanism} == {ExactRelease.name}:
            return Verdict(why="its releases are exact, and have no noise")
        return None

    def verdict(self, session: Session, validation: Dataset, seed_set: Dataset) -> Verdict:
        """Rehearse a session, unless it is passed over, and say what came of it.

        Args:
            session: The session.
            validation: D_v.
            seed_set: D_init.

        Raises:
            Hopeless: It is, and is not to go on anyway.
        """
        if (passed_over := self.passed_over(session)) is not None:
            return passed_over
        found = _rehearsed(session, validation, seed_set, self._progress())
        if found.rehearsal is not None and found.word == "hopeless":
            if not self.anyway:
                what, advice = what_is_wrong(session, validation.features, found.rehearsal)
                raise Hopeless(
                    f"A rehearsal of the session is hopeless: {what}.",
                    advice=f"{advice} `--anyway` goes on all the same, and that stays on record.",
                )
            found = replace(found, anyway=True)
        self.say(found.sentence())
        return found

    def _progress(self) -> Callable[[float], None]:
        due = time.monotonic() + _FIRST_SECONDS

        def tell(share: float) -> None:
            nonlocal due
            if time.monotonic() >= due:
                due = time.monotonic() + _NEXT_SECONDS
                self.say(f"Rehearsing the session: {share:.0%} (--no-rehearsal leaves it out).")

        return tell


NOT_REHEARSING: Final = Rehearsing(wanted=False)


def _rehearsed(
    session: Session, validation: Dataset, seed_set: Dataset, progress: Callable[[float], object]
) -> Verdict:
    if why := why_not_rehearsed(session, len(validation)):
        return Verdict(why=why)
    rows, seeds = (dataset.features.astype(np.float64) for dataset in (validation, seed_set))
    try:
        return Verdict(rehearse(session, rows, seeds, progress=progress))
    except HushbidError as error:
        return Verdict(why=f"it cannot be played: {error.what.rstrip('.')}")


def what_is_wrong(session: Session, validation: Array, found: Rehearsal) -> tuple[str, str]:
    """Why a rehearsal is hopeless, or its kernel blind, and what to change, most likely to help first.

    Args:
        session: The session.
        validation: D_v, raw, shape (m, columns).
        found: What came of its rehearsal.

    Returns:
        A sentence without its stop, and advice; neither has a figure.
    """
    gamma = session.space.gamma
    if found.kernel > ALIKE and (validation == validation[0]).all():
        return "all rows of the validation set are equal", "Take validation data that differ."
    if found.kernel > ALIKE:
        return (
            "all rows of the validation set are alike to the session",
            "Whatever is bought will seem to fit. Take bounds (`features.lower`, `features.upper`) that are "
            f"about as wide as the data are, or a larger `features.gamma`, which is {gamma:g}: {_START}",
        )
    if found.blind:
        return (
            "no two rows of the validation set are alike to the session",
            f"Noise is all that is compared. Take a smaller `features.gamma`, which is {gamma:g}: {_START}",
        )
    return (
        "the noise chooses, and buying at random was better with all stand-in owners",
        "Take more rows of validation data, a larger epsilon (of the target first), or fewer points; or buy "
        "at random and weigh (`hushbid weigh`).",
    )
