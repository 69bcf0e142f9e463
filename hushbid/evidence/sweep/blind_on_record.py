"""The rounds of a blind session according to its transcripts: the curator's and the consumer's.

As in `rounds_on_record`, nothing here asks a machine or its ledger. Only the check of a bid's signature is
shared with the curator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from hushbid.consumer.events import TargetReleased
from hushbid.consumer.machine import target_of
from hushbid.curator.verification import UncheckedBid, bid_holds
from hushbid.evidence.sweep.rounds_on_record import Reading, Round, Rounds
from hushbid.protocol.crypto.blinding import BlindKeys
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FeatureMap
from hushbid.protocol.space.grid import Weights
from hushbid.protocol.transcript.record import Record, RecordedItem
from hushbid.protocol.wire.blind import Account, Award, BlindBid, BlindPurchase
from hushbid.protocol.wire.codec import Direction, read_message
from hushbid.protocol.wire.messages import Message, Target, boxes_of, unfixed
from hushbid.protocol.wire.unlinked import Choice, Picked

__all__ = ["BidOnRecord", "BlindRounds", "Weighed", "blind_rounds_on_record", "weighed_on_record"]

_NO_WEIGHTS: Final = np.zeros(0, dtype=np.int32)
"""A blind curator has no weights."""


class BidOnRecord(NamedTuple):
    """A bid that the curator accepted.

    Attributes:
        bid: The bid, with each box replaced by its SHA-256.
        first: Number of its first box.
        in_time: Whether it came while its round's bidding was open.
        signed: Whether its owner signed boxes and scores.
    """

    owner: str
    bid: BlindBid
    first: int
    in_time: bool
    signed: bool


@dataclass
class BlindRounds(Rounds):
    """The rounds according to the curator's records.

    Attributes:
        bids: The accepted bids of each owner, in order.
        awards: The awards, in the order of their first sending.
        chosen_from: Of each round that was decided: the owners of whose boxes it chose.
        checked: Of each owner, how many of its bids had come when the last of these rounds was decided.
    """

    bids: dict[str, list[BidOnRecord]] = field(default_factory=dict)
    awards: list[Award] = field(default_factory=list)
    chosen_from: dict[int, frozenset[str]] = field(default_factory=dict)
    checked: dict[str, int] = field(default_factory=dict)


def blind_rounds_on_record(session: Session, records: Iterable[Record]) -> BlindRounds:
    """Read a blind curator's transcript."""
    reading = _Reading(session)
    for record in records:
        reading.again = record.event.kind == "restarted"
        for item in record.items:
            reading.read(item, record.now)
    return reading.found


class _Reading(Reading):
    """Reads the records of a blind curator."""

    found: BlindRounds

    def __init__(self, session: Session) -> None:
        super().__init__(session, BlindRounds(bids={owner: [] for owner in session.file.owners}))
        self.again = False
        """Whether the record is that of a new start, which sets timers anew."""

    def read(self, item: RecordedItem, now: float) -> None:
        name = item.public.get("name")
        if item.kind == "send":
            self._read_sent(item, now)
        elif (item.kind, name) == ("set-timer", "round") and not self.again:
            self._end(now)
            number = len(self.found.rounds) + 1
            self.found.rounds.append(Round(number, number, now, _NO_WEIGHTS))
        elif not self.found.rounds:
            return
        elif item.kind == "received":
            self._read_received(item)
        elif (item.kind, name) == ("timer", "cadence"):
            self._end(now)
        elif item.kind == "bids-checked" or (item.kind, name) == ("set-timer", "cadence"):
            self._close(now)
        elif item.kind == "restarted" or (item.kind, name) == ("set-timer", "pause"):
            self.found.rounds[-1].delayed = True

    def _close(self, now: float) -> None:
        """Bidding has ended, if it had not; what came until then is checked, and who did not sign is out."""
        current = self.found.rounds[-1]
        if current.closed is None:
            current.closed = now
            current.present = current.bids - self._unmatched
            self._unmatched |= {
                owner for owner, bids in self.found.bids.items() if any(not bid.signed for bid in bids)
            }
            self.found.chosen_from[current.number] = frozenset(current.bids - self._unmatched)
            self.found.checked = {owner: len(bids) for owner, bids in self.found.bids.items()}

    def _read_sent(self, item: RecordedItem, now: float) -> None:
        frame: Any = item.private["frame"]
        key = frame["peer"], frame["sequence"]
        if frame["message"] == "award" and key not in self._sent:
            self._close(now)
            award = read_message(Direction.CURATOR_TO_CONSUMER, frame["body"])
            assert isinstance(award, Award), "the frame says so"
            self.found.awards.append(award)
        elif frame["message"] == "choice" and key not in self._sent:
            self._close(now)
        self._sent.add(key)

    def _read_received(self, item: RecordedItem) -> None:
        frame: Any = item.private["frame"]
        owner = frame["peer"]
        if owner == CONSUMER or frame["message"] != "blind-bid":
            return
        bid = read_message(Direction.OWNER_TO_CURATOR, frame["body"])
        assert isinstance(bid, BlindBid), "the frame says so"
        current, had = self.found.rounds[-1], self.found.bids[owner]
        in_time = bid.round == current.number and current.closed is None
        if in_time:
            current.bids.add(owner)
        first = len(had) * self._session.batch + 1
        signed = bid_holds(self._session, UncheckedBid(owner, bid, first), boxes_of(bid))
        had.append(BidOnRecord(owner, bid, first, in_time, signed))


@dataclass
class Weighed:
    """What the consumer's records tell of its part.

    Attributes:
        target: g̃ and what is public of the seed set; None: it was not released.
        seed: Of the secret map; empty likewise.
        noise: Of each release that noise was drawn for, by its number: the release's own draws.
        weights: Of each weight that was made: the round that it is recorded for, and it.
        awards: Awards that it took.
        delivered: What it says of each award's boxes, but for those of nothing.
        account: Its account; None: it made none.
    """

    target: Target | None = None
    seed: bytes = b""
    noise: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    weights: list[tuple[int, Weights]] = field(default_factory=list)
    awards: list[Award] = field(default_factory=list)
    delivered: list[tuple[Mapping[str, Any], ...]] = field(default_factory=list)
    account: Account | None = None
    behind: dict[tuple[str, int], bytes] = field(default_factory=dict)
    """Where the curator cannot link: the scores of places that were last chosen, by the box behind each."""
    choice: Choice | None = None

    def keys(self, session: Session) -> BlindKeys:
        """Those of the session, which owners have too."""
        return BlindKeys(self.seed, session.identifier)

    def map(self, session: Session) -> FeatureMap:
        """The secret one."""
        return session.space.map(self.seed)


def weighed_on_record(records: Iterable[Record]) -> Weighed:
    """Read a consumer's transcript. One that does not weigh has a target and a map's seed only."""
    found = Weighed()
    for record in records:
        for item in record.items:
            _take(found, item)
    return found


def _take(found: Weighed, item: RecordedItem) -> None:
    private: Any = item.private
    public: Any = item.public
    if item.kind == "target-released":
        released = TargetReleased(**public, **private)
        found.seed, found.target = released.map_seed, target_of(released)
    elif item.kind == "noise-drawn":
        for number, (release, _) in enumerate(private["rounds"], start=public["first"]):
            found.noise[number] = tuple(release)
    elif item.kind == "weights-computed":
        found.weights.append((public["round"], private["weights"]))
    elif item.kind == "purchases-checked":
        found.delivered.append(tuple(private["delivered"]))
    elif item.kind == "account-made":
        found.account = Account.model_construct(**private["account"])
    elif item.kind == "received" and private["frame"]["message"] in ("choice", "picked"):
        _take_unlinked(found, read_message(Direction.CURATOR_TO_CONSUMER, private["frame"]["body"]))
    elif item.kind == "choice-placed":
        assert found.choice is not None, "a choice comes first"
        chosen = zip(found.choice.chosen, private["handles"], strict=True)
        found.behind = {(each.owner, handle): each.score for each, handle in chosen}
    elif item.kind == "received" and private["frame"]["message"] == "award":
        award = read_message(Direction.CURATOR_TO_CONSUMER, private["frame"]["body"])
        assert isinstance(award, Award), "the frame says so"
        found.awards.append(award)


def _take_unlinked(found: Weighed, message: Message) -> None:
    """Boxes that the consumer asked for are an award, in the order of their scores."""
    if isinstance(message, Choice):
        found.choice = message
        return
    assert isinstance(message, Picked), "the frame says so"
    purchases = [
        BlindPurchase.model_construct(
            owner=box.owner,
            bid_round=box.bid_round,
            handle=box.handle,
            score=found.behind[box.owner, unfixed(box.handle)],
            candidate=box.candidate,
        )
        for box in message.boxes
    ]
    purchases.sort(key=lambda each: (each.owner, unfixed(each.handle)))
    purchases.sort(key=lambda each: each.score, reverse=True)
    found.awards.append(Award.model_construct(round=message.round, purchases=tuple(purchases)))
