"""A session's progress: one typed snapshot for progress bars, status files and `hushbid watch`.

It does no I/O and reads no clock: callers pass the time.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, fields
from typing import Final, NamedTuple, Self

__all__ = ["COMPARING", "MOST_NAMED", "Pace", "Progress"]

COMPARING: Final = "comparing"
"""The phase of a session that is over while its operator compares the result with other choices."""

MOST_NAMED: Final = 8
"""Missing owners that are named; the others are only counted."""
_MARKS: Final = 60
"""Number of marks over which a rate is taken."""
_APART: Final = 0.5
"""Least number of seconds between two marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A session's progress as one party sees it.

    It contains nothing private: no data, bid or score, nor who was asked or who won.
    """

    party: str
    """Name of the party."""
    phase: str
    """``loading`` before the loop runs, then the machine's phase; all of a curator's round phases are
    `rounds`. `COMPARING` is the operator's, of `hushbid run` and `hushbid simulate`.
    """
    round: int
    """The last round that the party knows of; 0 before the first."""
    rounds: int
    """Number of rounds in the session."""
    points: int | None
    """Points bought so far; None if the party does not know or may not tell."""
    points_planned: int | None
    """p, the points to be bought; None if unknown."""
    points_per_second: float | None
    """Recent rate, pauses included; None if unknown or not to be told."""
    seconds_left: float | None
    """Seconds until the last round is decided, at the recent pace; None if unknown, or if none are left."""
    paused: bool = False
    """Whether the rounds are paused for lack of owners, or of the consumer that computes the weights."""
    owners_connected: int | None = None
    """Number of connected owners, at a curator; otherwise None."""
    owners: int | None = None
    """K, at a curator; otherwise None."""
    busy: str | None = None
    """A possibly long computation that blocks everything else; None if there is none."""
    busy_share: float | None = None
    """The completed share of it, from 0 to 1; None if unknown."""
    missing: tuple[str, ...] = ()
    """Missing parties, at most MOST_NAMED: first a consumer for which the rounds wait, then owners as far as
    they may be named.
    """

    @property
    def rounds_done(self) -> int:
        """The last round that is over, whose points `points` has; all of them once the rounds are."""
        if self.phase in ("loading", "enrolling"):
            return 0
        return max(0, self.round - 1) if self.phase == "rounds" else self.round

    def as_line(self) -> bytes:
        return json.dumps({each.name: getattr(self, each.name) for each in fields(self)}).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """The inverse of `as_line`; unknown fields are ignored."""
        values = json.loads(line)
        known = {each.name: values[each.name] for each in fields(cls) if each.name in values}
        return cls(**known | {"missing": tuple(known.get("missing", ()))})


class _Mark(NamedTuple):
    at: float
    rounds: int
    points: int


class Pace:
    """The recent pace of decided rounds and bought points, over the last 60 marks.

    A decided round sets a mark, at least half a second after the previous one. So a rate covers half a minute
    if rounds are quick, and sixty rounds if they are slow.
    """

    def __init__(self) -> None:
        self._marks: deque[_Mark] = deque(maxlen=_MARKS)
        self._last = _Mark(0.0, 0, 0)

    def note(self, now: float, rounds: int, points: int) -> None:
        """Note the decided rounds, and the points bought in them, by a clock that does not go back."""
        self._last = _Mark(now, rounds, points)
        marks = self._marks
        if not marks or (rounds > marks[-1].rounds and now - marks[-1].at >= _APART):
            marks.append(self._last)

    @property
    def points_per_second(self) -> float | None:
        """The recent rate; None if nothing was bought since the first mark."""
        seconds, _, points = self._since()
        return points / seconds if seconds > 0 and points > 0 else None

    def seconds_left(self, rounds: int) -> float | None:
        """Seconds until so many rounds are decided; None if unknown, or if they are decided."""
        seconds, decided, _ = self._since()
        left = rounds - self._last.rounds
        return left * seconds / decided if left > 0 and decided > 0 else None

    def _since(self) -> _Mark:
        """The progress since the first mark."""
        first = self._marks[0] if self._marks else self._last
        return _Mark(
            self._last.at - first.at, self._last.rounds - first.rounds, self._last.points - first.points
        )
