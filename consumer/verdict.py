"""A rehearsal's verdict on a session: a function of D_v, which the consumer keeps beside its transcript.

A rehearsal is made before the consumer's process (`hushbid.plan.rehearsal`), which finds what was kept
of it, also when it is started again, and has it in its result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

__all__ = [
    "ALIKE",
    "EXPECTED_HOPELESS",
    "GOOD",
    "HOPELESS",
    "NO_VERDICT",
    "UNLIKE",
    "Rehearsal",
    "Staged",
    "Verdict",
    "Word",
]

Word: TypeAlias = Literal["good", "uncertain", "hopeless"]

ALIKE: Final = 0.98
"""Mean kernel value of two rows of D_v above which an MMD² is small whatever is bought."""
EQUAL: Final = 1.0 - 1e-9
"""The same, above which rows are equal, whatever the seed set is."""
UNLIKE: Final = 0.01
"""The same, below which every point is like itself alone."""
GOOD: Final = 0.5
"""MMD² over that of a uniform choice, both with weights, below which buying pays where little is wanted."""
HOPELESS: Final = 1.2
"""The same, above which, with all stand-ins, a uniform choice is better."""
EXPECTED_HOPELESS: Final = 1.0
"""MMD² over that of a uniform choice, without weights, from which on the rule of thumb of `hushbid plan` says
hopeless."""

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


@dataclass(frozen=True, slots=True)
class Staged:
    """The outcome with one kind of stand-in owners, on average.

    Attributes:
        owners: What they have, for people.
        bought: MMD² of what was bought against what was wanted, with matching weights.
        uniform: The same of a uniform choice.
        bought_plain: MMD² of what was bought without weights.
        uniform_plain: The same of a uniform choice.
    """

    owners: str
    bought: float
    uniform: float
    bought_plain: float
    uniform_plain: float

    @property
    def ratio(self) -> float:
        """MMD² of what was bought over that of the uniform choice, with weights."""
        return _over(self.bought, self.uniform)

    @property
    def ratio_plain(self) -> float:
        """The same without weights."""
        return _over(self.bought_plain, self.uniform_plain)

    def as_json(self) -> dict[str, Any]:
        """The figures under the names of the command line's JSON."""
        return {
            "owners": self.owners,
            "mmd2": self.bought_plain,
            "mmd2_uniform": self.uniform_plain,
            "mmd2_weighted": self.bought,
            "mmd2_uniform_weighted": self.uniform,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        names = ("mmd2_weighted", "mmd2_uniform_weighted", "mmd2", "mmd2_uniform")
        return cls(str(values["owners"]), *(float(values[name]) for name in names))


def _over(bought: float, uniform: float) -> float:
    return bought / uniform if uniform else float("inf")


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The outcome with all kinds of stand-in owners.

    Attributes:
        staged: The first have what is wanted in other shares, the others little of it, the last of these
            among points like the seed set (records of before have no such). None where the kernel can tell
            nothing, or nothing could be played.
        kernel: Mean kernel value of two different rows of D_v: 1 if all are alike to the session, or there
            is one alone, and 0 if none is.
        beside: Mean kernel value of a row of D_v and one of the seed set; None on records of before.
        drawn: Whether the seed set is drawn within the bounds, and so shows nothing of how wide these are
            beside data.
        expected: Where nothing could be played, what the rule of thumb of `hushbid plan` expects: MMD² over
            that of a uniform choice, without weights and without what the seed set adds. Else None.
    """

    staged: tuple[Staged, ...]
    kernel: float
    beside: float | None = None
    drawn: bool = False
    expected: float | None = None

    @property
    def alike(self) -> bool:
        """Whether all rows are alike to the session: those of D_v, and those of the seed set with them.

        Rows of D_v that are all equal are that by themselves.
        """
        told_apart = self.beside is not None and self.beside <= ALIKE
        return self.kernel > (EQUAL if told_apart else ALIKE)

    @property
    def blind(self) -> bool:
        """Whether the kernel cannot tell rows apart, or together: bounds or γ are wrong."""
        return self.alike or self.kernel < UNLIKE

    @property
    def narrow(self) -> bool:
        """Whether D_v is narrow beside its bounds, and other rows are told from it."""
        return self.kernel > ALIKE and not self.alike

    @property
    def unseen(self) -> bool:
        """Whether nothing shows that bounds and γ are right: D_v is narrow, and all else drawn."""
        return self.drawn and self.narrow

    @property
    def little(self) -> float:
        """The larger ratio of those where a tenth and a fiftieth is wanted, among points of any kind.

        Infinite where nothing was played.
        """
        return max((each.ratio for each in self.staged[1:3]), default=float("inf"))

    @property
    def weights_alone(self) -> bool:
        """Whether it is `hopeless` with weights alone: without them, not with all stand-ins."""
        return (
            self.word == "hopeless"
            and bool(self.staged)
            and min(each.ratio_plain for each in self.staged) < HOPELESS
        )

    @property
    def word(self) -> Word:
        """``good``: with `little` of what is wanted, `GOOD` of a uniform choice's MMD² or less, weighed.

        ``hopeless``: `HOPELESS` times it or more with all stand-ins, and without weights too with those like
        the seed set; or `EXPECTED_HOPELESS` by the rule of thumb where nothing could be played and D_v is
        not `narrow`; or the kernel is `blind`.
        ``uncertain``: it depends on what owners have, or nothing shows whether the bounds are right
        (`unseen`).
        """
        if self.blind:
            return "hopeless"
        if not self.staged:
            drowned = self.expected is not None and self.expected >= EXPECTED_HOPELESS
            return "hopeless" if drowned and not self.narrow else "uncertain"
        if self.little <= GOOD:
            return "uncertain" if self.unseen else "good"
        ratios = [each.ratio for each in self.staged]
        # A choice among points that are easily told apart is one without weights too, which scatter.
        ratios += [each.ratio_plain for each in self.staged[3:]]
        return "hopeless" if min(ratios) >= HOPELESS else "uncertain"

    @property
    def meaning(self) -> str:
        """What the word means here, for people, without a figure."""
        if self.blind:
            return "the kernel tells nothing about its points"
        if not self.staged:
            return _NARROW if self.narrow else _EXPECTED[self.word]
        if self.unseen and self.word == "uncertain":
            return _UNSEEN
        return _WITH_WEIGHTS if self.weights_alone else _MEANING[self.word]

    def lines(self) -> list[str]:
        """The figures for people: a line of what they are, and one for each kind of owners."""
        if self.blind or (not self.staged and self.expected is None):
            beside = "" if self.beside is None else f", of one and a seed {self.beside:.3g}"
            return [f"nothing was played: the mean kernel value of two rows is {self.kernel:.3g}{beside}"]
        if not self.staged:
            expected = f"{self.expected:.2g} times a uniform choice's MMD²"
            return [f"nothing was played: the rule of thumb of `hushbid plan` has {expected}"]
        return [
            "MMD² over a uniform choice's, with weights (and without), if owners have",
            *(f"  {each.ratio:.2f} ({each.ratio_plain:.2f})  {each.owners}" for each in self.staged),
        ]

    def as_json(self) -> dict[str, Any]:
        """The verdict, and the figures of each kind of owners."""
        return {
            "verdict": self.word,
            "kernel": self.kernel,
            "beside": self.beside,
            "drawn": self.drawn,
            "expected": self.expected,
            "staged": [each.as_json() for each in self.staged],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """What `as_json` gave, which may have other keys beside; older ones had fewer."""
        beside, expected = (
            None if (found := values.get(name)) is None else float(found) for name in ("beside", "expected")
        )
        staged = tuple(map(Staged.from_json, values["staged"]))
        return cls(staged, float(values["kernel"]), beside, bool(values.get("drawn", False)), expected)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The record of a session's rehearsal.

    Attributes:
        rehearsal: Its outcome; None if there was none.
        why: Why nothing was played; empty if something was, or the kernel says enough.
        anyway: Whether the consumer went on although it was hopeless.
    """

    rehearsal: Rehearsal | None = None
    why: str = ""
    anyway: bool = False

    @property
    def word(self) -> Word | None:
        """The verdict in a word, which alone a log has; None without one."""
        return None if self.rehearsal is None else self.rehearsal.word

    @property
    def called(self) -> str:
        """The word, and whether it is for weights alone; empty without one."""
        alone = self.rehearsal is not None and self.rehearsal.weights_alone
        return f"{self.word or ''}{' for weights' if alone else ''}"

    def sentence(self) -> str:
        """The verdict for people, without a figure."""
        if self.rehearsal is None:
            return f"The session was not rehearsed: {self.why}."
        anyway = " It goes on anyway, as it was told to." if self.anyway else ""
        said = f"{self.called}: {self.rehearsal.meaning}.{anyway}"
        if self.rehearsal.expected is not None:
            by = "By the rule of thumb of `hushbid plan` it is"
            return f"The session was not rehearsed: {self.why}. {by} {said}"
        return f"A rehearsal of the session is {said}"

    def summary(self) -> str:
        """The verdict for people, with its figures, on one line."""
        if self.rehearsal is None:
            return f"none: {self.why}"
        ratios = ", ".join(f"{each.ratio:.2f}" for each in self.rehearsal.staged)
        figures = f": {ratios} of a uniform choice's MMD², with weights" if ratios else ""
        if self.rehearsal.expected is not None:
            figures = f": {self.rehearsal.expected:.2f} of a uniform choice's MMD², by the rule of thumb"
        return f"{self.rehearsal.word}{', and gone on with anyway' if self.anyway else ''}{figures}"

    def as_json(self) -> dict[str, Any]:
        """Under the names of the command line's JSON: ``verdict``, null without one, and ``verdict_why``."""
        found = None if self.rehearsal is None else {**self.rehearsal.as_json(), "anyway": self.anyway}
        return {"verdict": found, "verdict_why": self.why}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """What `as_json` gave, which may have other keys beside."""
        found = values["verdict"]
        if found is None:
            return cls(why=str(values["verdict_why"]))
        return cls(Rehearsal.from_json(found), str(values["verdict_why"]), bool(found["anyway"]))


NO_VERDICT: Final = Verdict(why="no rehearsal is on record; `hushbid consumer` has one")
"""The verdict where nothing was kept."""
