"""What a rehearsal said of a session: a function of D_v, which the consumer keeps beside its transcript.

A rehearsal is made before the consumer's process (`hushbid.rehearsal`), which finds what was kept of it, also
when it is started again, and has it in its result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

__all__ = [
    "ALIKE",
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
UNLIKE: Final = 0.01
"""The same, below which every point is like itself alone."""
GOOD: Final = 0.5
"""MMD² over that of a uniform choice, both with weights, below which buying pays where little is wanted."""
HOPELESS: Final = 1.2
"""The same, above which, with all stand-ins, a uniform choice is better."""

_MEANING: Final[Mapping[Word, str]] = {
    "good": "where owners have little of what is wanted, it buys far better than at random",
    "uncertain": "whether it buys better than at random depends on what owners have",
    "hopeless": "buying at random is better, whatever owners have",
}


@dataclass(frozen=True, slots=True)
class Staged:
    """What came of one kind of stand-in owners, on average.

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
        """What `as_json` gave."""
        names = ("mmd2_weighted", "mmd2_uniform_weighted", "mmd2", "mmd2_uniform")
        return cls(str(values["owners"]), *(float(values[name]) for name in names))


def _over(bought: float, uniform: float) -> float:
    return bought / uniform if uniform else float("inf")


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What came of all kinds of stand-in owners.

    Attributes:
        staged: The first have what is wanted in other shares, the others little of it; none where the kernel
            can tell nothing.
        kernel: Mean kernel value of two different rows of D_v: 1 if all are alike to the session, 0 if
            none is.
    """

    staged: tuple[Staged, ...]
    kernel: float

    @property
    def blind(self) -> bool:
        """Whether the kernel cannot tell rows of D_v apart, or together: bounds or γ are wrong."""
        return not UNLIKE <= self.kernel <= ALIKE

    @property
    def word(self) -> Word:
        """``good``: with little of what is wanted, `GOOD` of a uniform choice's MMD² or less, weighed.

        ``hopeless``: `HOPELESS` times it or more with all stand-ins, or the kernel is `blind`. ``uncertain``:
        it depends on what owners have.
        """
        if self.blind:
            return "hopeless"
        ratios = [each.ratio for each in self.staged]
        if max(ratios[1:]) <= GOOD:
            return "good"
        return "hopeless" if min(ratios) >= HOPELESS else "uncertain"

    def lines(self) -> list[str]:
        """The figures for people: a line of what they are, and one for each kind of owners."""
        if not self.staged:
            return [f"nothing was played: the mean kernel value of two rows is {self.kernel:.3g}"]
        return [
            "MMD² over a uniform choice's, with weights (and without), if owners have",
            *(f"  {each.ratio:.2f} ({each.ratio_plain:.2f})  {each.owners}" for each in self.staged),
        ]

    def as_json(self) -> dict[str, Any]:
        """The verdict, and the figures of each kind of owners."""
        return {
            "verdict": self.word,
            "kernel": self.kernel,
            "staged": [each.as_json() for each in self.staged],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """What `as_json` gave, which may have other keys beside."""
        return cls(tuple(map(Staged.from_json, values["staged"])), float(values["kernel"]))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is on record of a session's rehearsal.

    Attributes:
        rehearsal: What came of it; None if there was none.
        why: Why there was none; empty if there was.
        anyway: Whether the consumer went on although it was hopeless.
    """

    rehearsal: Rehearsal | None = None
    why: str = ""
    anyway: bool = False

    @property
    def word(self) -> Word | None:
        """The verdict in a word, which alone a log has; None without one."""
        return None if self.rehearsal is None else self.rehearsal.word

    def sentence(self) -> str:
        """The verdict for people, without a figure."""
        if self.rehearsal is None:
            return f"The session was not rehearsed: {self.why}."
        word = self.rehearsal.word
        meaning = "the kernel tells nothing about its points" if self.rehearsal.blind else _MEANING[word]
        anyway = " It goes on anyway, as it was told to." if self.anyway else ""
        return f"A rehearsal of the session is {word}: {meaning}.{anyway}"

    def summary(self) -> str:
        """The verdict for people, with its figures, on one line."""
        if self.rehearsal is None:
            return f"none: {self.why}"
        ratios = ", ".join(f"{each.ratio:.2f}" for each in self.rehearsal.staged)
        figures = f": {ratios} of a uniform choice's MMD², with weights" if ratios else ""
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
        return cls(Rehearsal.from_json(found), anyway=bool(found["anyway"]))


NO_VERDICT: Final = Verdict(why="no rehearsal is on record; `hushbid consumer` has one")
"""What there is where nothing was kept."""
