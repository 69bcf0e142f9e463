"""The rows of all transcripts in one order.

The curator is at one end of every message, so its record gives the order where it is there. Another party's
messages are found in it by the frame's number on the link, or else put where the party was.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hushbid.protocol.names import CURATOR
from hushbid.protocol.wire.messages import CONTROL_SEQUENCE
from hushbid.replay.reading import Reading
from hushbid.replay.rows import Key, Row

__all__ = ["Placed", "ReadTranscript", "on_one_course"]


@dataclass
class ReadTranscript:
    """A transcript that was read as far as it holds.

    Attributes:
        stopped: Why it was not read to its end; None: it was.
        places: Row → its place among the steps; never falling.
    """

    path: Path
    reading: Reading
    torn_bytes: int = 0
    stopped: str | None = None
    places: list[int] = field(default_factory=list)

    @property
    def party(self) -> str:
        return self.reading.header.party

    @property
    def ended(self) -> bool:
        """Whether it tells all that its party sent and got."""
        whole = self.stopped is None and not self.torn_bytes
        return whole and not self.reading.redacted and self.reading.finish is not None


@dataclass(slots=True, eq=False)
class Placed:
    """A row with its place: after row `order[0]` of the first transcript, by round, party and number."""

    order: tuple[int, int, int, int]
    row: Row
    teller: str
    step: int = 0
    taken: bool = False
    """Whether its other end was found in that party's transcript."""


def on_one_course(first: ReadTranscript, told: Sequence[ReadTranscript]) -> list[Placed]:
    """The rows of all transcripts in one order; sets every `places`, and marks what did not arrive.

    Args:
        first: The transcript that gives the order: the curator's, if it is there and whole.
    """
    course = _Course(first)
    found = {each.party: course.add(number, each) for number, each in enumerate(told) if each is not first}
    found[first.party] = list(course.base)
    ordered = sorted((*course.base, *course.added), key=lambda each: each.order)
    for step, each in enumerate(ordered):
        each.step = step
    ended = {each.party for each in told if each.ended}
    for each in ordered:
        # Only the receiver's own transcript says that a message did not come.
        known = course.central and each.row.receiver in ended and each.row.key is not None
        each.row.arrived = each.row.arrived or each.row.again or not known
    for one in told:
        highest = 0
        for placed in found[one.party]:
            highest = highest if placed is None else max(highest, placed.step)
            one.places.append(highest)
    return ordered


class _Course:
    """The first transcript's rows, and those of others that it does not have."""

    def __init__(self, first: ReadTranscript) -> None:
        self.central = first.party == CURATOR
        self.base = [Placed((i, 0, 0, 0), row, first.party) for i, row in enumerate(first.reading.rows)]
        self.added: list[Placed] = []
        self._rounds = [each.row.round for each in self.base]
        self._index: dict[Key, list[Placed]] = {}
        for each in self.base:
            self._note(each)

    def add(self, number: int, other: ReadTranscript) -> list[Placed | None]:
        """Each row of another transcript in its place; None for what says nothing here."""
        at = -1
        mine: list[Placed | None] = []
        for place, row in enumerate(other.reading.rows):
            same = self._matching(row, grouped=other.reading.grouped)
            if same is not None:
                at = max(at, same.order[0])
                if other.reading.grouped:
                    self._join(same, row, other.party)
            elif not row.event and (other.reading.redacted or (other.reading.grouped and self.central)):
                # Taken out; or of a group that the curator has in its own round.
                same = self.base[at] if at >= 0 else None
            else:
                if not self.central:
                    at = max(at, bisect_right(self._rounds, row.round) - 1)
                order = (at, 0 if self.central else row.round, number, place)
                same = Placed(order, row, other.party)
                self.added.append(same)
                if other.reading.grouped:
                    self._note(same)
            mine.append(same)
        return mine

    def _note(self, placed: Placed) -> None:
        if placed.row.key is not None:
            self._index.setdefault(placed.row.key, []).append(placed)

    def _matching(self, row: Row, *, grouped: bool) -> Placed | None:
        """The same message in an earlier transcript; of a frame that was sent again, the right sending."""
        waiting = self._index.get(row.key, ()) if row.key is not None else ()
        if grouped:
            return waiting[0] if waiting else None
        waiting = [each for each in waiting if not each.taken]
        if not waiting:
            return None
        # What came, came with the last sending; hellos and welcomes come in their order.
        numbered = row.key is not None and row.key.what[0] != CONTROL_SEQUENCE
        found = waiting[-1 if row.arrived and numbered else 0]
        found.taken = found.row.arrived = True
        return found

    def _join(self, same: Placed, row: Row, party: str) -> None:
        """Add an owner's messages to a group that other owners' transcripts began."""
        if self.central or same.teller == party:
            return
        same.row.peers += row.peers
        same.row.count += row.count
        whole = same.row.size is not None and row.size is not None
        same.row.size = same.row.size + row.size if whole else None  # type: ignore[operator]
