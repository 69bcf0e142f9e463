"""The rounds of a session, read from the frames and times in the curator's transcript alone.

Nothing here asks the curator's machine or books, so a bug there cannot hide itself. It shares only φ, the
possible norms of φ, and the recorded check of sealed points' signatures.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.points import hash_points
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import Weights
from hushbid.protocol.transcript.record import Record, RecordedItem
from hushbid.protocol.wire.bids import PointBid, bids_of
from hushbid.protocol.wire.codec import Direction, read_message
from hushbid.protocol.wire.messages import (
    Batch,
    Bid,
    Broadcast,
    Candidate,
    Offer,
    SealedCandidate,
)

__all__ = [
    "PointOnRecord",
    "RecordedRound",
    "Rounds",
    "RoundsReading",
    "SentBroadcast",
    "mismatch",
    "rounds_on_record",
]

CLOSE: Final = 1
"""Grid units by which φ of a point may differ between machines (docs/protocol.md)."""

_Point: TypeAlias = Candidate | SealedCandidate


class PointOnRecord(NamedTuple):
    """A point that the curator received.

    Attributes:
        bid: Its bid.
        candidate: The point; in a sealed point the SHA-256 of the box replaces the box.
    """

    owner: str
    bid: PointBid
    candidate: _Point

    def is_of(self, candidate: _Point) -> bool:
        """Whether it is the given point, sealed or open."""
        mine = self.candidate
        if not np.array_equal(mine.features, candidate.features):
            return False
        if isinstance(mine, SealedCandidate):
            digest = hashlib.sha256(candidate.box).digest() if isinstance(candidate, SealedCandidate) else b""
            return mine.box == digest
        return isinstance(candidate, Candidate) and np.array_equal(mine.point, candidate.point)


class SentBroadcast(NamedTuple):
    """A broadcast that the curator sent for the first time.

    Attributes:
        under: The round of the last weight computed before it.
    """

    owner: str
    under: int
    message: Broadcast


@dataclass
class RecordedRound:
    """A round.

    Attributes:
        number: Position in the order of the weights, from 1.
        stated: The number that the curator recorded with its weight.
        began: When its weight was computed, in simulated seconds. Under `tender`, where answers may come
            while others still enrol: when the time for answers began.
        bids: Owners whose complete bid arrived while bidding was open.
        present: Those of them without a point known not to match when bidding ended. In a session that buys a
            point once, they also missed no earlier round.
        closed: When bidding ended; None if it did not.
        over: When the next round or the delivery began; None if neither did.
        unmatched: Owners with a point known not to match by the end of the round.
        delayed: Whether it was paused, or the curator restarted during it.
    """

    number: int
    stated: int
    began: float
    weights: Weights
    bids: set[str] = field(default_factory=set)
    present: set[str] = field(default_factory=set)
    closed: float | None = None
    over: float | None = None
    unmatched: frozenset[str] = frozenset()
    delayed: bool = False


@dataclass
class Rounds:
    """The record of all rounds.

    Attributes:
        points: Received points, by owner and the owner's number for them.
        broadcasts: In the order in which they were sent.
    """

    rounds: list[RecordedRound] = field(default_factory=list)
    points: dict[tuple[str, int], PointOnRecord] = field(default_factory=dict)
    broadcasts: list[SentBroadcast] = field(default_factory=list)


def rounds_on_record(session: Session, records: Iterable[Record]) -> Rounds:
    """Read the curator's transcript."""
    reading = _Reading(session)
    for record in records:
        for item in record.items:
            reading.read(item, record.now)
    return reading.found


def mismatch(session: Session, point: PointOnRecord, weights: Weights) -> str:
    """How a point differs from its features or its bid, in words; empty if it matches.

    Args:
        point: The point. If it is sealed, the curator sees neither the owner of its features nor its place.
        weights: The weight under which it was bid.
    """
    features = point.candidate.features
    if not session.space.admits(features[None])[0]:
        return "no point has its features"
    if isinstance(point.candidate, Candidate) and session.public_map is not None:
        points, attributes = (point.candidate.point,), (point.candidate.attributes,)
        hashed = hash_points(session.public_map, points, attributes, schema=session.file.rows)
        own = hashed[0].astype(np.int64)
        if np.abs(own - features).max() > CLOSE:
            return "its features are another point's, or it is out of bounds"
    if _score(session, features, weights) != point.bid.score:
        return "its bid was not its score"
    return ""


def _score(session: Session, features: Any, weights: Weights) -> int:
    coordinates = [*features, *(session.jitter.of(features[None]) if session.jitter else ())]
    return sum(int(one) * int(other) for one, other in zip(coordinates, weights, strict=True))


class RoundsReading(ABC):
    """Reads the items of a curator's records in order."""

    def __init__(self, session: Session, found: Rounds) -> None:
        self.found = found
        self._session = session
        self._unmatched: set[str] = set()
        """Owners known so far to have sent something that does not match."""
        self._sent: set[tuple[str, int]] = set()

    @abstractmethod
    def _close(self, now: float) -> None:
        """End bidding if it is open."""

    def _end(self, now: float) -> bool:
        if not self.found.rounds or self.found.rounds[-1].over is not None:
            return False
        self._close(now)
        self.found.rounds[-1].over = now
        self.found.rounds[-1].unmatched = frozenset(self._unmatched)
        return True


class _Reading(RoundsReading):
    """Reads the records of a curator that sees features and bids."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, Rounds())
        self._bids: dict[str, PointBid] = {}
        """Every owner's last."""
        self._parts: Counter[str] = Counter()
        """Messages of each owner's submission, where owners submit in several."""
        self._entering = session.rule.herds
        """Whether owners may still enrol, so that the time for answers has not begun."""
        self._unchecked: list[PointOnRecord] = []
        self._out: set[str] = set()

    def read(self, item: RecordedItem, now: float) -> None:
        if item.kind == "weights-computed":
            self._begin(item, now)
        elif item.kind == "send":
            self._read_sent(item, now)
        elif not self.found.rounds:
            return
        elif item.kind == "received":
            self._read_received(item)
        elif item.kind == "candidates-checked":
            self._close(now)
            self._check(item)
        elif item.kind == "restarted" or (item.kind, item.public.get("name")) == ("set-timer", "pause"):
            self.found.rounds[-1].delayed = True
        elif (item.kind, item.public.get("name")) == ("set-timer", "cadence"):
            self._close(now)
        elif (item.kind, item.public.get("name")) == ("set-timer", "round") and self._entering:
            self._entering = False
            self.found.rounds[-1].began = now

    def _begin(self, item: RecordedItem, now: float) -> None:
        self._end(now)
        stated, weights = item.public["round"], item.private["weights"]
        assert isinstance(stated, int), "a machine recorded it"
        assert isinstance(weights, np.ndarray), "a machine recorded it"
        self.found.rounds.append(RecordedRound(len(self.found.rounds) + 1, stated, now, weights))

    def _close(self, now: float) -> None:
        """End bidding if it is open: only then are points checked and asked for."""
        current = self.found.rounds[-1]
        if current.closed is None:
            current.closed = now
            current.present = current.bids - self._unmatched - self._out

    def _end(self, now: float) -> bool:
        ended = super()._end(now)
        if ended and self._session.file.distinct:
            self._out |= set(self._session.file.owners) - self.found.rounds[-1].present
        return ended

    def _read_sent(self, item: RecordedItem, now: float) -> None:
        frame: Any = item.private["frame"]
        peer, kind, sequence = frame["peer"], frame["message"], frame["sequence"]
        if kind == "delivery":
            self._end(now)
        elif kind == "ask" and (peer, sequence) not in self._sent:
            self._close(now)
        elif kind in ("broadcast", "call") and (peer, sequence) not in self._sent:
            message = read_message(Direction.CURATOR_TO_OWNER, frame["body"])
            assert isinstance(message, Broadcast), "the frame says so"
            self.found.broadcasts.append(SentBroadcast(peer, len(self.found.rounds), message))
        self._sent.add((peer, sequence))

    def _read_received(self, item: RecordedItem) -> None:
        frame: Any = item.private["frame"]
        owner = frame["peer"]
        if owner == CONSUMER or frame["message"] not in ("bid", "batch", "submission", "offer"):
            return
        message = read_message(Direction.OWNER_TO_CURATOR, frame["body"])
        if isinstance(message, Bid | Batch):
            current = self.found.rounds[-1]
            self._parts[owner] += 1
            whole = not self._session.rule.herds or self._parts[owner] == self._session.messages
            if whole and message.round == current.number and current.closed is None:
                current.bids.add(owner)
            for bid in bids_of(message):
                self._bids[owner] = bid
                if bid.candidate is not None and not bid.exhausted:
                    self._hand_over(PointOnRecord(owner, bid, bid.candidate))
        elif isinstance(message, Offer):
            self._hand_over(PointOnRecord(owner, self._bids[owner], message.candidate))

    def _hand_over(self, point: PointOnRecord) -> None:
        self.found.points[point.owner, point.bid.handle] = point
        self._unchecked.append(point)

    def _check(self, item: RecordedItem) -> None:
        """Note owners whose points do not match. The signature of a sealed point covers its box."""
        signed: Any = item.private["signed"]
        for point, holds in zip(self._unchecked, signed, strict=True):
            weights = self.found.rounds[point.bid.round - 1].weights
            if not holds or mismatch(self._session, point, weights):
                self._unmatched.add(point.owner)
        self._unchecked = []
