"""The verdict on a session before it begins: it follows from D_v, and is kept beside the transcript.

Where D_v has labels, its rows say whether a purchase makes the model better (`hushbid.consumer.prospect`). A
rehearsal says whether what is bought would be closer than points at random. A session in which noise would
choose is hopeless whatever the model is.

The rehearsal precedes the consumer's process (`hushbid.plan.rehearsal`). The process reads the stored
verdict, also after a restart, and includes it in its result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, model_serializer, model_validator
from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.answers import Word
from hushbid.protocol.figures import Figures

__all__ = [
    "ALIKE",
    "BETTER",
    "EXPECTED_HOPELESS",
    "GOOD",
    "HOPELESS",
    "NO_VERDICT",
    "UNLIKE",
    "Prospect",
    "Rehearsal",
    "Staged",
    "Verdict",
]

ALIKE: Final = 0.98
"""Mean kernel value of two rows of D_v above which MMD² is small whatever is bought."""
EQUAL: Final = 1.0 - 1e-9
"""Mean kernel value above which rows are equal, whatever the seed set is."""
UNLIKE: Final = 0.01
"""Mean kernel value below which every point resembles only itself."""
GOOD: Final = 0.5
"""Ratio of MMD² to that of a uniform choice, both with weights, below which buying pays where little is
wanted.
"""
HOPELESS: Final = 1.2
"""That ratio above which, with every stand-in, a uniform choice is better."""
BETTER: Final = 0.95
"""Ratio without weights below which a choice is better than a uniform one.

Noise alone gives 1.0 to 1.2 among points like the seed set.
"""
EXPECTED_HOPELESS: Final = 1.0
"""Ratio of MMD² to that of a uniform choice, without weights, from which the rule of thumb of `hushbid plan`
says hopeless.
"""

_DIGITS: Final = 2
"""Decimals of these ratios where people read them. They are judged as they are printed."""

_MEANING: Final[Mapping[Word, str]] = {
    "good": "where owners have little of what is wanted, it buys far better than at random",
    "uncertain": "whether it buys better than at random depends on what owners have",
    "hopeless": "buying at random is better, whatever owners have",
}
_WITH_WEIGHTS: Final = (
    "buying at random and weighing is better, whatever owners have; without weights it depends on that"
)
_EXPECTED: Final[Mapping[Word, str]] = {
    "uncertain": "noise does not drown the choice, and the rest depends on what owners have",
    "hopeless": "noise drowns the choice",
}
_NARROW: Final = "that says little of rows which are as alike as those of the validation set"
_UNSEEN: Final = (
    "rows of the validation set are all alike to the session, and a drawn seed set does not show whether its "
    "bounds are too wide; one of related data (`seed_set`) would"
)


@figures(frozen=True, slots=True)
class Staged(Figures):
    """The average outcome with one kind of stand-in owners.

    Attributes:
        owners: Description of their data, for people.
        bought: MMD² of the purchase against the wanted points, with matching weights.
        uniform: MMD² of a uniform choice, with matching weights.
        bought_plain: MMD² of the purchase without weights.
        uniform_plain: MMD² of a uniform choice without weights.
    """

    owners: str
    bought: Annotated[float, Field(alias="mmd2_weighted")]
    uniform: Annotated[float, Field(alias="mmd2_uniform_weighted")]
    bought_plain: Annotated[float, Field(alias="mmd2")]
    uniform_plain: Annotated[float, Field(alias="mmd2_uniform")]

    @property
    def ratio(self) -> float:
        """Ratio of the purchase's MMD² to the uniform choice's, with weights."""
        return _over(self.bought, self.uniform)

    @property
    def ratio_plain(self) -> float:
        return _over(self.bought_plain, self.uniform_plain)


def _over(bought: float, uniform: float) -> float:
    return bought / uniform if uniform else float("inf")


@figures(frozen=True, slots=True)
class Rehearsal(Figures):
    """The outcome with all kinds of stand-in owners.

    Attributes:
        staged: The first stand-ins have the wanted points in other proportions; the others have few of them,
            and the last of these have them among points like the seed set (absent in older records). None if
            the kernel cannot distinguish anything, or no rehearsal was possible.
        kernel: Mean kernel value of two different rows of D_v: 1 if the session cannot tell them apart or
            there is only one row, and 0 if all are unlike each other.
        beside: Mean kernel value of a row of D_v and one of the seed set; None in older records.
        drawn: Whether the seed set is drawn within the bounds, and so does not show how wide they are
            relative to data.
        expected: If no rehearsal was possible, the expectation of `hushbid plan`'s rule of thumb: the ratio
            of MMD² to that of a uniform choice, without weights and without the seed set's contribution. None
            otherwise.
    """

    TOLD: ClassVar[Mapping[str, str]] = {"verdict": "word", "why": "meaning"}

    staged: tuple[Staged, ...]
    kernel: float
    beside: float | None = None
    drawn: bool = False
    expected: float | None = None

    @property
    def alike(self) -> bool:
        """Whether the session cannot tell rows apart: those of D_v, including from those of the seed set.

        If all rows of D_v are equal, this holds without the seed set.
        """
        told_apart = self.beside is not None and self.beside <= ALIKE
        return self.kernel > (EQUAL if told_apart else ALIKE)

    @property
    def blind(self) -> bool:
        """Whether the kernel sees all rows as equal, or all as unlike: bounds or γ are wrong."""
        return self.alike or self.kernel < UNLIKE

    @property
    def narrow(self) -> bool:
        """Whether D_v is narrow relative to its bounds, but distinguishable from other rows."""
        return self.kernel > ALIKE and not self.alike

    @property
    def unseen(self) -> bool:
        """Whether nothing confirms bounds and γ: D_v is narrow, and all other rows are drawn."""
        return self.drawn and self.narrow

    @property
    def little(self) -> float:
        """The larger ratio with a tenth or a fiftieth of wanted points; infinite without a rehearsal."""
        return max((each.ratio for each in self.staged[1:3]), default=float("inf"))

    @property
    def weights_alone(self) -> bool:
        """Whether it is `hopeless` with weights only: without weights some stand-in gives a better result."""
        return (
            self.word == "hopeless"
            and bool(self.staged)
            and round(min(each.ratio_plain for each in self.staged), _DIGITS) < BETTER
        )

    @property
    def word(self) -> Word:
        """``good``: with `little` of what is wanted, `GOOD` of a uniform choice's MMD² or less, weighed.

        ``hopeless``: `HOPELESS` times it or more with all stand-ins, and without weights no `BETTER` with
        those like the seed set; or `EXPECTED_HOPELESS` by the rule of thumb where nothing could be played and
        D_v is not `narrow`; or the kernel is `blind`.
        ``uncertain``: it depends on what owners have, or nothing shows whether the bounds are right
        (`unseen`).
        """
        if self.blind:
            return "hopeless"
        if not self.staged:
            drowned = self.expected is not None and round(self.expected, _DIGITS) >= EXPECTED_HOPELESS
            return "hopeless" if drowned and not self.narrow else "uncertain"
        if round(self.little, _DIGITS) <= GOOD:
            return "uncertain" if self.unseen else "good"
        # Among points that are easily told apart, weights scatter, so the ratio without them counts too.
        told_apart = any(round(each.ratio_plain, _DIGITS) < BETTER for each in self.staged[3:])
        worse = round(min(each.ratio for each in self.staged), _DIGITS) >= HOPELESS
        return "hopeless" if worse and not told_apart else "uncertain"

    @property
    def meaning(self) -> str:
        if self.blind:
            return "the kernel tells nothing about its points"
        if not self.staged:
            return _NARROW if self.narrow else _EXPECTED[self.word]
        if self.unseen and self.word == "uncertain":
            return _UNSEEN
        return _WITH_WEIGHTS if self.weights_alone else _MEANING[self.word]

    def lines(self) -> list[str]:
        """The figures for people: a heading, and one line for each kind of owners."""
        if self.blind or (not self.staged and self.expected is None):
            beside = "" if self.beside is None else f", of one and a seed {self.beside:.3g}"
            return [f"nothing was played: the mean kernel value of two rows is {self.kernel:.3g}{beside}"]
        if not self.staged:
            expected = f"{self.expected:.2f} times a random choice's MMD²"
            return [f"nothing was played: the rule of thumb of `hushbid plan` has {expected}"]
        return [
            "MMD² over a random choice's, with weights (and without), if owners have",
            *(f"  {each.ratio:.2f} ({each.ratio_plain:.2f})  {each.owners}" for each in self.staged),
        ]


_TOLD: Final = 0.01
"""Accuracy or R²: an expected gain that is less is not why buying is called good."""


@figures(frozen=True, slots=True)
class Prospect(Figures):
    """What own rows tell of the model that a purchase would make.

    Attributes:
        word: ``good``: it gets better; ``hopeless``: by next to nothing; ``uncertain``: both are possible.
            None: own rows tell nothing, as too few have a label.
        why: The reason, a clause without a figure.
        metric: ``accuracy`` or ``r2``; None: nothing was tried.
        rows: Own rows with a label.
        own, own_low, own_high: A model of own rows, cross-validated, with its 95 % interval.
        trivial: Always the most frequent class, or the mean amount.
        gain: What p more rows like these are expected to add.
        gain_high: A bound on it.
        chance: That labels which follow nothing go with the columns as well as these.
    """

    word: Word | None
    why: str
    metric: Literal["accuracy", "r2"] | None = None
    rows: int = 0
    own: float | None = None
    own_low: float | None = None
    own_high: float | None = None
    trivial: float | None = None
    gain: float | None = None
    gain_high: float | None = None
    chance: float | None = None

    def figures(self) -> str:
        """The figures for people: a model of own rows, and what more rows are expected to add."""
        if self.own is None or self.gain is None or self.gain_high is None:
            return "own rows have no labels to tell by"
        by = f"with {self.rows} own rows"
        if self.word == "good" and self.gain < _TOLD:  # by the few rows, and not by what they gain
            own = f"R² {self.own:.2f}" if self.metric == "r2" else f"{100 * self.own:.0f} % right"
            return f"{own} {by}, too few to say how much more would add"
        if self.metric == "r2":
            return f"R² {self.own:.2f} {by}, {self.gain:+.2f} expected, {self.gain_high:+.2f} at most"
        expected, most = 100 * self.gain, 100 * self.gain_high
        return f"{100 * self.own:.0f} % right {by}, {expected:+.1f} points expected, {most:+.1f} at most"


_SAID: Final[Mapping[Word, str]] = {
    "good": "Buying is likely to make the model better",
    "uncertain": "Whether buying makes the model better is uncertain",
    "hopeless": "Do not buy",
}
_NOTHING: Final[Mapping[str, Any]] = {
    "kernel": None, "beside": None, "drawn": False, "expected": None, "staged": [],
}  # fmt: skip
"""The fields of a rehearsal where there was none."""


@figures(frozen=True, slots=True)
class Verdict(Figures):
    """The verdict on a session, and what it was reached by.

    Attributes:
        rehearsal: The rehearsal's outcome; None if there was no rehearsal.
        why: Why there was no rehearsal; empty if there was one, or if the kernel is decisive.
        anyway: Whether the consumer continued although the choice was hopeless (`refused`).
        prospect: What D_v's own rows tell of the model; None: they were not asked.
    """

    rehearsal: Rehearsal | None = None
    why: str = ""
    anyway: bool = False
    prospect: Prospect | None = None

    @property
    def refused(self) -> bool:
        """Whether noise would choose, or the kernel tells nothing: such a session is not begun.

        One whose own rows are enough goes on once that was said: whoever began it may want the points for
        more than this model.
        """
        return self.rehearsal is not None and self.rehearsal.word == "hopeless"

    @property
    def by_model(self) -> bool:
        """Whether own rows decide."""
        return self._deciding is not None

    @property
    def _deciding(self) -> Prospect | None:
        """What own rows tell, where that decides."""
        told = self.prospect is not None and self.prospect.word is not None
        return self.prospect if told and not self.refused else None

    @property
    def word(self) -> Word | None:
        """The verdict in one word, the only part that a log contains; None if there is no verdict.

        It is of the consumer's model where D_v's labels tell, and of MMD² otherwise.
        """
        by = self._deciding or self.rehearsal
        return None if by is None else by.word

    @property
    def reason(self) -> str:
        """The reason for the word, a clause without a figure; empty if there is no verdict."""
        if self._deciding is not None:
            return self._deciding.why
        return "" if self.rehearsal is None else self.rehearsal.meaning

    @property
    def called(self) -> str:
        """The word, and whether it applies with weights only; empty if there is no verdict."""
        alone = self.rehearsal is not None and self.rehearsal.weights_alone
        return f"{self.word or ''}{' for weights' if alone else ''}"

    def sentence(self) -> str:
        """The verdict for people, without a figure."""
        if self.by_model and self.word is not None:
            beside = ""
            if self.rehearsal is not None and self.rehearsal.staged:
                beside = f" A rehearsal of the choice says: {self.rehearsal.meaning}."
            return f"{_SAID[self.word]}: {self.reason}.{beside}"
        if self.rehearsal is None:
            return f"The session was not rehearsed: {self.why}."
        anyway = " It goes on anyway, as it was told to." if self.anyway else ""
        if self.rehearsal.expected is not None:
            by = f"By the rule of thumb of `hushbid plan` it is {self.called}"
            return f"The session was not rehearsed: {self.why}. {by}: {self.rehearsal.meaning}.{anyway}"
        return f"{self.since(self.rehearsal.meaning)}{anyway}"

    def since(self, what: str) -> str:
        """The word of a rehearsal for people, with its reason."""
        return f"A rehearsal of the session is {self.called}: {what}."

    def summary(self) -> str:
        """The verdict for people, with its figures, on one line."""
        if self._deciding is not None:
            return f"{self.word}: {self.reason} ({self._deciding.figures()})"
        if self.rehearsal is None:
            return f"none: {self.why}"
        ratios = ", ".join(f"{each.ratio:.2f}" for each in self.rehearsal.staged)
        figures = f": {ratios} of a random choice's MMD², with weights" if ratios else ""
        if self.rehearsal.expected is not None:
            figures = f": {self.rehearsal.expected:.2f} of a random choice's MMD², by the rule of thumb"
        return f"{self.rehearsal.word}{', and gone on with anyway' if self.anyway else ''}{figures}"

    @model_serializer(mode="plain")
    def _written(self) -> dict[str, Any]:
        if self.word is None:
            return {"verdict": None, "verdict_why": self.why}
        played = _NOTHING if self.rehearsal is None else self.rehearsal.as_json()
        prospect = None if self.prospect is None else self.prospect.as_json()
        found = {"verdict": self.word, "why": self.reason, "anyway": self.anyway, "prospect": prospect}
        return {"verdict": {**played, **found}, "verdict_why": self.why}

    @model_validator(mode="before")
    @classmethod
    def _read(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        found, why = values["verdict"], values["verdict_why"]
        if found is None:
            return {"why": why}
        rehearsal = None if found["kernel"] is None else found
        prospect = found.get("prospect")  # older records have none
        return {"rehearsal": rehearsal, "why": why, "anyway": found["anyway"], "prospect": prospect}


NO_VERDICT: Final = Verdict(why="no rehearsal is on record; `hushbid consumer` has one")
"""The verdict if none was stored."""
