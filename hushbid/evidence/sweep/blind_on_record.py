"""The rounds of a blind session, read from the curator's and the consumer's transcripts.

As in `rounds_on_record`, nothing asks a machine or its ledger; only the check of a bid's signature is shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from hushbid.consumer.events import TargetReleased
from hushbid.consumer.machine import target_of
from hushbid.curator.verification import UncheckedBid, bid_holds
from hushbid.evidence.sweep.rounds_on_record import RecordedRound, Rounds, RoundsReading
from hushbid.protocol.crypto.blinding import BlindKeys
from hushbid.protocol.crypto.unlinking import PairKey, Places
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FeatureMap
from hushbid.protocol.space.grid import Weights
from hushbid.protocol.transcript.record import Record, RecordedItem
from hushbid.protocol.wire.blind import Account, Award, BlindBid, BlindPurchase
from hushbid.protocol.wire.codec import Direction, read_message
from hushbid.protocol.wire.messages import Roots, Target, boxes_of, fixed, unfixed
from hushbid.protocol.wire.unlinked import Choice, Picked

__all__ = ["BidOnRecord", "BlindRounds", "Weighed", "blind_rounds_on_record", "weighed_on_record"]

_NO_WEIGHTS: Final = np.zeros(0, dtype=np.int32)
"""A blind curator has no weights."""


class BidOnRecord(NamedTuple):
    """A bid that the curator accepted.

    Attributes:
        bid: The bid, with each box replaced by its SHA-256.
        first: Number of its first box.
        in_time: Whether it arrived while bidding for its round was open.
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
        awards: In the order in which they were first sent.
        chosen_from: For each decided round, the owners among whose boxes it chose.
        checked: For each owner, the number of its bids when the last of these rounds was decided.
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


class _Reading(RoundsReading):
    found: BlindRounds

    def __init__(self, session: Session) -> None:
        super().__init__(session, BlindRounds(bids={owner: [] for owner in session.file.owners}))
        self.again = False
        """Whether the record belongs to a restart, which sets timers again."""

    def read(self, item: RecordedItem, now: float) -> None:
        name = item.public.get("name")
        if item.kind == "send":
            self._read_sent(item, now)
        elif (item.kind, name) == ("set-timer", "round") and not self.again:
            self._end(now)
            number = len(self.found.rounds) + 1
            self.found.rounds.append(RecordedRound(number, number, now, _NO_WEIGHTS))
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
        """End bidding if it is open: check the bids so far, and exclude owners that did not sign."""
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
        if frame["message"] in ("award", "choice") and key not in self._sent:
            self._close(now)
            award = read_message(Direction.CURATOR_TO_CONSUMER, frame["body"])
            if isinstance(award, Choice):
                award = _awarded(award, tuple(unfixed(each.place) for each in award.chosen), None)
            assert isinstance(award, Award), "the frame says so"
            self.found.awards.append(award)
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
    """The consumer's part of a session, read from its records.

    Attributes:
        target: g̃ and the public part of the seed set; None: not released.
        seed: Seed of the secret map; empty if not released.
        noise: The draws of each release that has noise, by release number.
        weights: Each computed weight, with the round for which it is recorded.
        awards: The awards that it accepted.
        delivered: Its statement about each award's boxes, except empty ones.
        account: None if there is none.
        roots: The owners' commitments as told to it; None: owners need not commit.
        choice, behind: Where the curator cannot link, the places that it chose last, and the boxes behind
            them by their owners' numbers.
    """

    target: Target | None = None
    seed: bytes = b""
    noise: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    weights: list[tuple[int, Weights]] = field(default_factory=list)
    awards: list[Award] = field(default_factory=list)
    delivered: list[tuple[Mapping[str, Any], ...]] = field(default_factory=list)
    account: Account | None = None
    roots: Roots | None = None
    choice: Choice | None = None
    behind: tuple[int, ...] = ()

    def places(self, session: Session, owner: str, number: int) -> Places:
        """The places of an owner's boxes in a round."""
        secret, other = session.simulated_identity(CONSUMER).sealing, session.public_identity(owner).sealing
        return PairKey(secret, other, session.identifier).places(number, session.batch)

    def keys(self, session: Session) -> BlindKeys:
        """The session's keys, which owners have too."""
        return BlindKeys(self.seed, session.identifier)

    def map(self, session: Session) -> FeatureMap:
        return session.space.map(self.seed)


def weighed_on_record(records: Iterable[Record]) -> Weighed:
    """Read a consumer's transcript. One that computes no weights has only a target and a map's seed."""
    found = Weighed()
    for record in records:
        for item in record.items:
            _take(found, item)
    return found


def _awarded(choice: Choice, numbers: Sequence[int], picked: Picked | None) -> Award:
    """A choice as an award of the chosen places, with their boxes if known.

    Args:
        numbers: For each chosen place, the number of its box, or whatever is known instead.
    """
    boxes = {} if picked is None else {(box.owner, unfixed(box.handle)): box for box in picked.boxes}
    purchases = []
    for chosen, number in zip(choice.chosen, numbers, strict=True):
        box = boxes.get((chosen.owner, number))
        purchases.append(
            BlindPurchase.model_construct(
                owner=chosen.owner,
                bid_round=choice.round if box is None else box.bid_round,
                handle=fixed(number),
                score=chosen.score,
                candidate=None if box is None else box.candidate,
            )
        )
    return Award.model_construct(round=choice.round, purchases=tuple(purchases))


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
    elif item.kind == "received" and private["frame"]["message"] == "award":
        award = read_message(Direction.CURATOR_TO_CONSUMER, private["frame"]["body"])
        assert isinstance(award, Award), "the frame says so"
        found.awards.append(award)
    elif item.kind == "choice-placed":
        found.behind = tuple({**public, **private}["handles"])
    elif item.kind == "received" and private["frame"]["message"] == "choice":
        choice = read_message(Direction.CURATOR_TO_CONSUMER, private["frame"]["body"])
        assert isinstance(choice, Choice), "the frame says so"
        found.choice = choice
    elif item.kind == "received" and private["frame"]["message"] == "picked":
        picked = read_message(Direction.CURATOR_TO_CONSUMER, private["frame"]["body"])
        assert isinstance(picked, Picked), "the frame says so"
        assert found.choice is not None, "a choice comes before"
        found.awards.append(_awarded(found.choice, found.behind, picked))
    elif item.kind == "received" and private["frame"]["message"] == "roots":
        roots = read_message(Direction.CURATOR_TO_CONSUMER, private["frame"]["body"])
        assert isinstance(roots, Roots), "the frame says so"
        found.roots = roots
