"""The course of a purchase, round by round: a function of D_v, and so for the consumer only.

The curator cannot compute it: the released summary's noise exceeds the remaining distance to the target. With
p = m = 300 and d = 140 at ε = 1, ‖ĝ - g̃‖² has noise of 0.14 to 0.25 at the end, where the true distance is
0.01 to 0.04.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.events import Delivered
from hushbid.protocol.figures import Figures

__all__ = ["ClosenessCourse", "course_of"]

AWAY: Final = 1.2
"""Ratio of the final to the least MMD² from which the purchase counts as having moved away."""
AWAY_ROUNDS: Final = 10
"""Rounds after the closest one from which a few points no longer explain the difference."""


@figures(frozen=True, slots=True)
class ClosenessCourse(Figures):
    """How close the points came, from round to round.

    Attributes:
        rounds: Number of rounds in the session.
        last: The last round that brought a point.
        closest: The round with the least MMD² after it, without weights.
        mmd2_closest: MMD² of the points bought up to that round.
        mmd2_end: MMD² of all points.
    """

    TOLD: ClassVar[Mapping[str, str]] = {"moved_away": "moved_away", "warnings": "warnings"}

    rounds: int
    last: int
    closest: int
    mmd2_closest: float
    mmd2_end: float

    @property
    def moved_away(self) -> bool:
        """Whether later rounds undid what earlier ones had reached."""
        return self.last - self.closest >= AWAY_ROUNDS and self.mmd2_end >= AWAY * self.mmd2_closest

    def warnings(self) -> list[str]:
        """Warnings for people, in sentences; empty if all went well."""
        found = []
        if self.moved_away:
            found.append(
                f"From round {self.closest + 1} on the purchase moved away from the target: its MMD² without "
                f"weights was {self.mmd2_closest:.4f} then, and {self.mmd2_end:.4f} at the end. Buy fewer "
                "points, or with a larger ε."
            )
        if empty := self.rounds - self.last:
            words = f"Rounds {self.last + 1} to {self.rounds}" if empty > 1 else f"Round {self.rounds}"
            found.append(
                f"{words} brought no point, as where the owners that are here have run out of them. "
                "Buy fewer points, or of more owners."
            )
        return found


def course_of(
    rounds: int, delivered: Sequence[Delivered], mmd2: npt.NDArray[np.float64] | None
) -> ClosenessCourse | None:
    """Summarise the course of a purchase of `rounds` rounds.

    Args:
        delivered: The bought points, in their order.
        mmd2: MMD² of the first 1, 2, … readable points (`PurchasesChecked.mmd2`).

    Returns:
        None if nothing can be compared: no points arrived, or one lies too far out.
    """
    if mmd2 is None:
        return None
    of_points = [entry.chosen_round for entry in delivered if entry.candidate is not None]
    after = dict(zip(of_points, mmd2.tolist(), strict=True))  # the last point of a round wins
    closest = min(after, key=lambda number: after[number])
    last = max(entry.chosen_round for entry in delivered)
    return ClosenessCourse(rounds, last, closest, after[closest], float(mmd2[-1]))
