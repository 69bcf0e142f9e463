"""How far a session is: one typed picture, which bars, status files and `hushbid watch` show.

It is no I/O and reads no clock: who measures says what time it is.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import asdict, dataclass, fields
from typing import Final, NamedTuple, Self

__all__ = ["MOST_NAMED", "Pace", "Progress"]

MOST_NAMED: Final = 8
"""Missing owners that are named; the others are counted."""
_MARKS: Final = 60
"""Marks that a rate is taken over."""
_APART: Final = 0.5
"""Seconds between two marks, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a session is, as one party sees it.

    It holds nothing private: no data, no bid, no score, not who was asked and not who won.
    """

    party: str
    """Name of the party."""
    phase: str
    """``loading`` before the loop runs, then the machine's; a curator's of a round are all `rounds`."""
    round: int
    """The last round that the party knows of; 0: none yet."""
    rounds: int
    """How many rounds the session has."""
    points: int | None
    """Points that were bought; None: the party does not know, or may not tell."""
    points_planned: int | None
    """p, how many are to be bought; None: unknown."""
    points_per_second: float | None
    """Of late, pauses included; None: unknown, or not to be told."""
    seconds_left: float | None
    """Until the last round is decided, at the pace of late; None: unknown, or nothing is left."""
    paused: bool = False
    """Whether the rounds stand still for want of owners, or of a consumer that weighs."""
    owners_connected: int | None = None
    """How many owners are here, for a curator; else None."""
    owners: int | None = None
    """K, for a curator; else None."""
    busy: str | None = None
    """A computation that may take long, during which nothing else happens; None: there is none."""
    busy_share: float | None = None
    """How much of it is done, from 0 to 1; None: unknown."""
    missing: tuple[str, ...] = ()
    """Missing parties, at most MOST_NAMED: first a consumer for which the rounds wait, then owners as far as
    they may be named.
    """

    def as_line(self) -> bytes:
        """The picture as one line of JSON."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """The inverse of `as_line`; fields that this version does not have are passed over."""
        values = json.loads(line)
        known = {each.name: values[each.name] for each in fields(cls) if each.name in values}
        return cls(**known | {"missing": tuple(known.get("missing", ()))})


class _Mark(NamedTuple):
    at: float
    rounds: int
    points: int


class Pace:
    """How fast rounds are decided and points bought, over the last 60 marks.

    A mark is set when a round was decided, half a second after the last one at the earliest. So a rate is of
    half a minute where rounds are quick, and of sixty rounds where they are slow.
    """

    def __init__(self) -> None:
        self._marks: deque[_Mark] = deque(maxlen=_MARKS)
        self._last = _Mark(0.0, 0, 0)

    def note(self, now: float, rounds: int, points: int) -> None:
        """Take note of where the session is; call it while rounds run.

        Args:
            now: Seconds, on a clock that does not go back.
            rounds: Rounds that are decided.
            points: Points that were bought in them.
        """
        self._last = _Mark(now, rounds, points)
        marks = self._marks
        if not marks or (rounds > marks[-1].rounds and now - marks[-1].at >= _APART):
            marks.append(self._last)

    @property
    def points_per_second(self) -> float | None:
        """None: nothing was bought since the first mark."""
        seconds, _, points = self._since()
        return points / seconds if seconds > 0 and points > 0 else None

    def seconds_left(self, rounds: int) -> float | None:
        """Seconds until so many rounds are decided; None: unknown, or they are.

        Args:
            rounds: How many the session has.
        """
        seconds, decided, _ = self._since()
        left = rounds - self._last.rounds
        return left * seconds / decided if left > 0 and decided > 0 else None

    def _since(self) -> _Mark:
        """The progress since the first mark."""
        first = self._marks[0] if self._marks else self._last
        return _Mark(
            self._last.at - first.at, self._last.rounds - first.rounds, self._last.points - first.points
        )
