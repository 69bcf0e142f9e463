"""The guarantees of a session, as parties state them and people read them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Final, Self

from pydantic import Field
from pydantic.dataclasses import dataclass as figures

from hushbid.protocol.figures import Figures

__all__ = [
    "CONSUMERS_DATA",
    "NO_NOISE",
    "OWNERS_DATA",
    "TRUSTED",
    "WEAK",
    "PrivacyStatement",
    "privacy_lines",
    "protection",
    "weak_epsilon",
    "weak_lines",
]

NO_NOISE: Final = "none"
"""The name of the noise of a release without noise."""
OWNERS_DATA: Final = "the records of every owner"
CONSUMERS_DATA: Final = "the consumer's validation set"
TRUSTED: Final = "the curator and the consumer"
"""Parties that see more of the owners' data than ε covers; the statement's `why` says what."""


WEAK: Final = 20.0
"""An ε above it protects nobody in practice: e^20 is 485 million."""


def weak_epsilon(epsilon: float, protects: str = "whose data it is of") -> str:
    """A warning of an ε that protects nobody; empty: it is not so large."""
    if epsilon <= WEAK:
        return ""
    return (
        f"WARNING: ε = {epsilon:.4g} does not protect {protects}: one record may make what others see "
        f"e^{epsilon:.4g} times as likely. ε of 1 to 10 is usual."
    )


@figures(frozen=True, slots=True)
class PrivacyStatement(Figures):
    """The guarantee for one party's data over a whole session.

    Attributes:
        protects: The party whose records are protected.
        against: The parties that may try to learn about them.
        neighbours: The datasets that are compared.
        epsilon: The sound ε; None if nothing is guaranteed.
        delta: Its δ.
        claimed_epsilon: The source paper's figure, if it differs.
        noise: The noise source's name; with "simulated" the ε holds for nobody.
        why: Why there is no guarantee; empty if there is one.
        not_covered: Records that the guarantee does not extend to; empty if there are none.
    """

    protects: str
    against: Annotated[str, Field(alias="from")]
    neighbours: str
    epsilon: float | None
    delta: float
    claimed_epsilon: float | None
    noise: str
    why: str
    not_covered: str = ""

    def promised(self, *, relation: bool) -> str:
        """The guarantee in words; where something stands against it, with what secret noise would give.

        Args:
            relation: Whether to say which datasets are neighbours, on a line of its own.
        """
        if self.epsilon is None:
            return "nothing"
        gap, beside = ("\n", f"\n{self.neighbours}") if relation else (" ", "")
        figures = f"ε = {self.epsilon:.4g}, δ = {self.delta:g}{beside}"
        return f"nothing; with secret noise{gap}{figures}" if self.why else figures

    def without_guarantee(self, why: str) -> Self:
        """The same with one more reason against a guarantee."""
        return replace(self, epsilon=None, why=f"{self.why}; {why}" if self.why else why)


def weak_lines(statements: Iterable[PrivacyStatement]) -> list[str]:
    """Warnings of guarantees whose ε protects nobody, a line each."""
    found = [weak_epsilon(each.epsilon, each.protects) for each in statements if each.epsilon is not None]
    return [line for line in found if line]


def protection(statements: Iterable[PrivacyStatement]) -> str:
    """What protects whom at what ε, in one sentence for people, or one for each reason why nothing does."""
    kept: list[str] = []
    lost: dict[str, list[str]] = {}
    for each in statements:
        if each.against == TRUSTED:
            continue
        whose = f"{each.protects} from {each.against}"
        if each.why or each.epsilon is None:
            lost.setdefault(each.why or "nothing is guaranteed", []).append(whose)
        else:
            spent = f"ε = {each.epsilon:.4g}" + (f" at δ = {each.delta:.1g}" if each.epsilon else "")
            kept.append(f"{whose} ({spent})")
    said = [f"NO PRIVACY for {' nor for '.join(whose)}: {why}." for why, whose in lost.items()]
    if kept:
        said.append(f"Protected: {', and '.join(kept)}.")
    return " ".join(said) or "What protects whom is not known without the session's file (`--session`)."


def privacy_lines(statements: Iterable[PrivacyStatement]) -> list[str]:
    """Privacy statements for people, one per line."""
    lines = []
    for each in statements:
        if each.against == TRUSTED:
            lines.append(f"Owners trust {TRUSTED}: {each.why}.")
            continue
        guarded = (
            "no guarantee" if each.epsilon is None else f"ε = {each.epsilon:.3g} at δ = {each.delta:.1g}"
        )
        why = f"; but {each.why}" if each.why else ""
        but = f"; not covered: {each.not_covered}" if each.not_covered else ""
        lines.append(f"{each.protects}, from {each.against}: {guarded}{why}{but}.")
    return lines
