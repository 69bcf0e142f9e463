"""Facts about each round that a transcript's records have and its replayed machine does not keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from hushbid.consumer.events import AccountMade, TargetReleased
from hushbid.curator.events import BidsChecked
from hushbid.owner.events import BlindScored, Scored
from hushbid.protocol.machine.machine import Finish, Lost, Received, Restarted, Returned, Send, SetTimer
from hushbid.protocol.machine.weighing import WeightsComputed
from hushbid.protocol.transcript.record import Header, Record, RecordedItem
from hushbid.protocol.wire.bids import bids_of
from hushbid.protocol.wire.blind import BlindBid, SealedBroadcast
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import Ask, Batch, Bid, Candidate, Offer, boxes_of

__all__ = ["ConnectionChange", "Course"]

_ROUND_MARKS: Final = {
    "curator": (WeightsComputed.KIND, BidsChecked.KIND),
    "owner": (Scored.KIND, BlindScored.KIND),
    "consumer": (WeightsComputed.KIND,),
}
"""The first record of a round in a party's transcript; its round is public. A blind curator passes the weight
on earlier, which is private.
"""
_CONNECTION_KINDS: Final = (Lost.KIND, Returned.KIND, Restarted.KIND)


@dataclass(frozen=True, slots=True)
class ConnectionChange:
    """A peer that was lost or came back, or the party itself that was started again."""

    what: str
    round: int
    """The current round; 0: none yet."""
    seconds: float
    """Since the transcript's first record."""
    peer: str
    """Empty if unknown."""


@dataclass
class Course:
    """The course of a session by one party's records, taken in one by one.

    A redacted transcript shows only times, kinds and the end.

    Args:
        points_in_bids: Whether the session's rule has points handed over with the bids.

    Attributes:
        head: The chain's digest after the records so far.
        private_fields: Private fields that were committed to.
        redacted_fields: Private fields whose values were removed.
        began: The party's clock at the first record.
        started: Round → the clock when it began there.
        ended: The clock when the last round was over; None if the records do not say.
        asked: Round → owners that were asked for their point in it.
        raw: Round → owners that handed a raw point over in it.
        sealed: Round → the same for sealed points; with a blind curator, for boxes, including empty ones.
        sizes: |D_v| and |D_init|; None if the records do not say.
        finish: How the party ended: ``code``, ``reason``, ``advice``; None if it had not. The last two are
            private, and None if they were removed.
    """

    header: Header
    points_in_bids: bool
    records: int = 0
    head: bytes = b""
    private_fields: int = 0
    redacted_fields: int = 0
    began: float = 0.0
    started: dict[int, float] = field(default_factory=dict)
    ended: float | None = None
    asked: dict[int, list[str]] = field(default_factory=dict)
    raw: dict[int, list[str]] = field(default_factory=dict)
    sealed: dict[int, list[str]] = field(default_factory=dict)
    sizes: tuple[int, int] | None = None
    connections: list[ConnectionChange] = field(default_factory=list)
    finish: Mapping[str, Any] | None = None
    _sent: dict[str, int] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        return max(self.started, default=0)

    def take(self, record: Record) -> None:
        """Take in the next record.

        Raises:
            KeyError, TypeError: It lacks a public field, or has one of another type. No party records
                that, but a redacted file cannot be checked by its party's machine.
        """
        if not self.records:
            self.began = record.now
        self.records += 1
        self.head = record.digest
        for item in record.items:
            self.private_fields += len(item.commitments)
            self.redacted_fields += len(item.commitments) - len(item.private)
            if "frame" in item.private:
                self._take_frame(item.kind, item.private["frame"], record.now)
            else:
                self._take_item(item, record.now)

    def _take_item(self, item: RecordedItem, now: float) -> None:
        public = item.public
        if item.kind in _ROUND_MARKS.get(self.header.role, ()):
            self.started.setdefault(_integer(public["round"]), now)
        elif item.kind == SetTimer.KIND:
            if self.header.role == "curator" and public["name"] == "delivery" and self.ended is None:
                self.ended = now
        elif item.kind == AccountMade.KIND:
            self.ended = now
        elif item.kind in _CONNECTION_KINDS:
            peer = str(item.private.get("peer", ""))
            self.connections.append(ConnectionChange(item.kind, self.rounds, now - self.began, peer))
        elif item.kind == TargetReleased.KIND:
            self.sizes = _integer(public["size"]), _integer(public["seed_size"])
        elif item.kind == Finish.KIND:
            told = {
                name: str(item.private[name]) if name in item.private else None
                for name in ("reason", "advice")
            }
            self.finish = {"code": _integer(public["code"]), **told}

    def _take_frame(self, kind: str, frame: Any, now: float) -> None:
        """Note a weight, an ask, or points handed over, by a frame of the curator's or an owner's."""
        if self.header.role == "curator" and (kind, frame["message"]) == (Send.KIND, "sealed-broadcast"):
            passed_on = decode_message(Direction.CURATOR_TO_OWNER, frame["body"])
            self.started.setdefault(cast(SealedBroadcast, passed_on).round, now)
            return
        message, to_curator = frame["message"], (self.header.role == "curator") == (kind == Received.KIND)
        wanted = ("bid", "batch", "submission", "blind-bid", "offer") if self.points_in_bids else ("offer",)
        if self.header.role == "consumer" or message not in (wanted if to_curator else ("ask",)):
            return
        if kind == Send.KIND and self._was_sent(frame):
            return
        # An owner's own frames concern itself, whoever the peer is.
        owner = frame["peer"] if self.header.role == "curator" else self.header.party
        if not to_curator:
            ask = cast(Ask, decode_message(Direction.CURATOR_TO_OWNER, frame["body"]))
            self.asked.setdefault(ask.round, []).append(owner)
            return
        said = decode_message(Direction.OWNER_TO_CURATOR, frame["body"])
        handed = cast(Bid | Batch | BlindBid | Offer, said)
        if isinstance(handed, BlindBid):
            self.sealed.setdefault(handed.round, []).extend([owner] * len(boxes_of(handed)))
            return
        for each in (handed,) if isinstance(handed, Offer) else bids_of(handed):
            if isinstance(each, Offer) or not each.exhausted:
                side = self.raw if isinstance(each.candidate, Candidate) else self.sealed
                side.setdefault(each.round, []).append(owner)

    def _was_sent(self, frame: Any) -> bool:
        """Whether a frame was sent before: after a lost connection it is sent again."""
        last = self._sent.get(frame["peer"], 0)
        self._sent[frame["peer"]] = max(last, frame["sequence"])
        return bool(frame["sequence"] <= last)


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("a public field is not an integer")
    return value
