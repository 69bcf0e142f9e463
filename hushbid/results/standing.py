"""Whether the purchase is better than a random choice of as many points, in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from hushbid.consumer.appraisal import Judgement, Quality

__all__ = ["Standing", "beside_uniform"]

CLOSER: Final = 0.8
FARTHER: Final = 1.2
"""Ratio to the MMD² of the one known random draw; other draws differ by a fifth."""

ALIKE: Final = 0.02
"""Least value of 1 minus two points' mean kernel value at which points differ to a session at all."""

Rank: TypeAlias = Literal["closer", "alike", "farther", "unmeasured"]

_WORDS: Final[dict[Rank, str]] = {
    "closer": "are closer to what the consumer wants than as many at random",
    "alike": "are about as close to what the consumer wants as the same number at random",
    "farther": "are FARTHER from what the consumer wants than as many at random",
    "unmeasured": (
        "cannot be judged: to the session all points are alike, so its bounds or its gamma are wrong"
    ),
}


@dataclass(frozen=True, slots=True)
class Standing:
    """The purchase compared with a uniform choice, both with matching weights if both have them.

    Attributes:
        uniform: Quality of the uniform choice; its MMD² is above 0.
        weighted: Whether both figures are with weights.
        alike: Whether all points are alike to the session, so that nothing is measured.
        unlike: Whether the test points are of another distribution than D_v: a purchase that resembles D_v
            need not resemble them (`hushbid.cluster.evaluation.unlike`).
    """

    bought: Quality
    uniform: Quality
    weighted: bool
    alike: bool
    unlike: bool = False

    @property
    def held_out(self) -> bool:
        """Whether there are test points like D_v to compare with: weights are fitted to D_v itself."""
        if self.unlike:
            return False
        return self.bought.mmd2_test is not None and bool(self.uniform.mmd2_test)

    @property
    def ratio(self) -> float:
        """MMD² over that of the uniform choice: against the test points if they are `held_out`, else D_v."""
        name = "mmd2_test" if self.held_out else "mmd2"
        return float(getattr(self.bought, name) / getattr(self.uniform, name))

    @property
    def rank(self) -> Rank:
        if self.alike:
            return "unmeasured"
        shown = float(self._shown)
        if shown <= CLOSER:
            return "closer"
        return "farther" if shown >= FARTHER else "alike"

    @property
    def _shown(self) -> str:
        """The ratio as printed, by which it is judged: ratios printed alike are judged alike."""
        return f"{self.ratio:#.2g}".rstrip(".")  # 1.0 and not 1, but 12

    def sentence(self) -> str:
        words, how = _WORDS[self.rank], " with weights" if self.weighted else ""
        if self.alike:
            return f"The bought points {words}."
        against = "held-out points" if self.held_out else "the validation set"
        against += " (which the test points are unlike)" if self.unlike else ""
        said = f"The bought points {words}: their MMD² to {against}{how} is {self._shown} times as large"
        return f"{said}."

    def short(self) -> str:
        """The ratio alone, for a line that compares with a random choice; empty if nothing is measured."""
        return "" if self.alike else f"MMD² times {self._shown}"

    def as_json(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "ratio": self.ratio,
            "weighted": self.weighted,
            "held_out": self.held_out,
            "test_unlike": self.unlike,
            "sentence": self.sentence(),
        }


def beside_uniform(bought: Judgement, uniform: Judgement, *, unlike: bool = False) -> Standing | None:
    """The comparison; None if a figure is missing, or the uniform choice's is 0."""
    pairs = [(bought.plain, uniform.plain, False)]
    if bought.weighted is not None and uniform.weighted is not None:
        pairs.insert(0, (bought.weighted.quality, uniform.weighted.quality, True))
    plain = uniform.plain
    # The biased MMD² of n points is at least about (1 - k̄)/n, with k̄ their mean kernel value.
    alike = plain.mmd2 is not None and plain.mmd2 * (plain.effective_points or 0.0) < ALIKE
    for chosen, random, weighted in pairs:
        if chosen.mmd2 is not None and random.mmd2:
            return Standing(chosen, random, weighted, alike, unlike and chosen.mmd2_test is not None)
    return None
