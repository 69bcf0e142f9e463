"""What a replay shows: plain values of one session's transcripts, without any markup.

A *step* is a message, or something that happened to a party (lost, absent, refused). Where a session has many
messages, those of one kind, round and direction are one step together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from hushbid.protocol.finite import finite
from hushbid.protocol.session.odometer import Odometer

__all__ = [
    "ALL_OWNERS",
    "NOBODY",
    "ChosenPoints",
    "Closeness",
    "Cloud",
    "Copy",
    "Facts",
    "Knowledge",
    "PointPicture",
    "ScoreCourse",
    "Steps",
    "Track",
]

NOBODY: Final = -1
"""Stands for a party that this copy does not name."""
ALL_OWNERS: Final = -2
"""Stands for every owner of the roster, where a step is about them all."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """The steps in the order in which the page plays them, as columns of one length.

    Parties, kinds and notes are places in `Facts.parties`, `Facts.kinds` and `Facts.notes`.

    Attributes:
        round: 0 before the first round; one more than there are rounds for the delivery and the end.
        seconds: Since the first record of the transcript that tells the step, or as one step before if later:
            each party has a clock of its own.
        kind: A message's kind, or what happened.
        event: 1 where something happened to a party, 0 for a message.
        sender: Who sent it, or whom it happened to; `NOBODY` if taken out, `ALL_OWNERS` for all of them.
        receiver: Who got it, likewise; `NOBODY` for what happened.
        count: How many messages the step is: one, or those of a group. Of what happened, how many parties.
        size: Bytes of all of these messages, as they travelled; None where they were taken out.
        again: 1 where the frame had been sent before.
        late: 1 for an answer that came when its round was over.
        unarrived: 1 where the receiver's own transcript has no such message.
        note: What more there is to say; 0 is nothing.
        teller: The party whose transcript tells it.
    """

    round: tuple[int, ...]
    seconds: tuple[float, ...]
    kind: tuple[int, ...]
    event: tuple[int, ...]
    sender: tuple[int, ...]
    receiver: tuple[int, ...]
    count: tuple[int, ...]
    size: tuple[int | None, ...]
    again: tuple[int, ...]
    late: tuple[int, ...]
    unarrived: tuple[int, ...]
    note: tuple[int, ...]
    teller: tuple[int, ...]
    some: Mapping[int, tuple[int, ...]]
    """Step → the owners of a group, where it is about several and not about all."""


@dataclass(frozen=True, kw_only=True)
class Track:
    """A value that changes: `value[i]` from step `at[i]` on, until the next."""

    at: tuple[int, ...]
    value: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A transcript that is here, and what its party had, by its own record.

    Attributes:
        records: Records that were read and hold.
        stopped: Why nothing after them is shown; None: the file was read to its end.
        torn_bytes: Bytes at its end that are no whole record.
        redacted: Whether private fields were taken out.
        received, sent: Messages on record, resent ones included.
        tracks: ``phase``; ``charged_rounds`` and ``charged_target``, the number of the last release that was
            charged to owners' data and to D_v; ``handed``, points that an owner handed over; ``held`` and
            ``raw``, points that the curator was handed, and those of them in the clear; ``delivered``, points
            that the consumer got. What the copy does not tell is not there.
        finish: Exit code and reason with which the party ended; the reason is None where it was taken out.
    """

    records: int
    stopped: str | None
    torn_bytes: int
    redacted: bool
    received: int
    sent: int
    received_bytes: int | None
    sent_bytes: int | None
    tracks: Mapping[str, Track]
    finish: tuple[int, str | None] | None


@dataclass(frozen=True, kw_only=True)
class ChosenPoints:
    """The points that were chosen, in order, as columns.

    Attributes:
        at: The step from which the teller knows.
        delivered: The step from which the consumer has each: they are bought from then on. Shorter than the
            others where no transcript tells that the last ones came.
    """

    teller: int
    round: tuple[int, ...]
    owner: tuple[int, ...]
    at: tuple[int, ...]
    delivered: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Closeness:
    """MMD² of the first 1, 2, … delivered points, and the round that chose each. The consumer's alone."""

    mmd2: tuple[float, ...]
    round: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """The points of one kind that are drawn, as columns, by their place on the two components.

    Attributes:
        of: How many points of the kind there are, drawn or not.
        at, round: The step from which each is there, and its round; none for points that are there from the
            start.
    """

    of: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    at: tuple[int, ...] = ()
    round: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PointPicture:
    """Points by the first two principal components of φ of those that are drawn.

    Attributes:
        explained: Each component's part of their variance.
        mean: Where the released mean of the validation set is; None: nobody here has it.
        wanted: Rows of the validation set.
        offered: Points that owners handed over.
        bought: Points that were chosen.
        means: Where the mean of all chosen points is once each of `bought` is there.
        told: Whose each kind is, and what cannot be shown, in sentences.
    """

    explained: tuple[float, float]
    mean: tuple[float, float] | None
    wanted: Cloud
    offered: Cloud
    bought: Cloud
    means: tuple[tuple[float, float], ...]
    told: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ScoreCourse:
    """How good the consumer's model is with the first of its bought points, as columns.

    Attributes:
        metric: ``accuracy`` or ``r2``.
        points: How many undisputed points it learned from; 0 of own rows alone.
        round: The round in which the last of them was chosen; 0 with none.
        value, low, high: The figure and its 95 % interval; None: nothing could be learned from so few.
        told: What it learned from, how it was judged, and how it stands to the results, in sentences.
    """

    metric: str
    points: tuple[int, ...]
    round: tuple[int, ...]
    value: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    told: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What a role gets to know under the session's rule, and what it does not, in sentences."""

    knows: tuple[str, ...]
    hidden: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that the page shows.

    Attributes:
        parties: Curator, consumer, and the owners in the roster's order.
        grouped: Whether messages of one kind, round and direction are one step.
        rounds: Rounds that were begun, as far as the transcripts tell; `planned` are those of the session.
        copies: Party → its transcript, for those that are here.
        knowledge: Role → what it knows.
        points_drawn, scores: A picture's; or why there is none, in a sentence.
        odometers: ε by rounds, of the session file; none for data that are promised nothing.
    """

    name: str
    session: str
    rule: str
    batch: int
    points: int
    parties: tuple[str, ...]
    grouped: bool
    rounds: int
    planned: int
    kinds: tuple[str, ...]
    meanings: tuple[str, ...]
    notes: tuple[str, ...]
    steps: Steps
    copies: Mapping[str, Copy]
    chosen: ChosenPoints | None
    closeness: Closeness | None
    points_drawn: PointPicture | str
    scores: ScoreCourse | str
    knowledge: Mapping[str, Knowledge]
    odometers: tuple[Odometer, ...]
    disclaimers: tuple[str, ...]
    """What these transcripts do not tell, in sentences."""

    @property
    def from_files(self) -> bool:
        """Whether the consumer's files tell a part of it, beside transcripts."""
        drawn = isinstance(self.points_drawn, PointPicture) and bool(self.points_drawn.wanted.x)
        return drawn or isinstance(self.scores, ScoreCourse)

    def as_json(self) -> dict[str, Any]:
        """The facts as JSON can hold them."""
        values = asdict(self) | {"odometers": [odometer.as_json() for odometer in self.odometers]}
        found: dict[str, Any] = finite(values)
        return found
