"""A session whose curator is blind, with real keys, boxes and masks, for tests of its parties."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from hushbid.consumer.events import CheckAward, Delivered, PurchasesChecked, SealWeight, WeightSealed
from hushbid.consumer.numerics import BlindConsumerNumerics
from hushbid.curator.events import CheckBids
from hushbid.owner.events import BlindScored, MapOpened, OpenMap, ScoreBlind, Withdraw
from hushbid.owner.numerics import BlindOwnerNumerics
from hushbid.protocol import limits
from hushbid.protocol.crypto.blinding import (
    MASK_BYTES,
    BlindKeys,
    Mask,
    account_statement,
    blind_bid_statement,
    blind_digest,
)
from hushbid.protocol.crypto.sealing import SIGNATURE_BYTES, sign
from hushbid.protocol.data import Dataset
from hushbid.protocol.machine.machine import Started
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.account import account_content
from hushbid.protocol.session.session import Session
from hushbid.protocol.session.sizes import sealed_weight_bytes
from hushbid.protocol.space.grid import Weights
from hushbid.protocol.space.scoring import score_bound
from hushbid.protocol.wire.blind import (
    Account,
    Award,
    BlindBid,
    BlindCandidate,
    BlindPurchase,
    Maps,
    SealedBroadcast,
)
from hushbid.protocol.wire.messages import Ready, fixed
from tests.simulation.harness import CuratorBench
from tests.support.sealed_parties import Consumer, W, owner_of, sealed_session

__all__ = [
    "BlindBench",
    "BlindOwnerParty",
    "account_of",
    "award_of",
    "blind_session",
    "broadcast_of",
    "check_award",
    "mask_of",
    "masked",
    "purchase_of",
    "signed_bid",
]


def blind_session(**changes: Any) -> Session:
    """Two owners of six points, six points to buy, one a round."""
    return sealed_session(rule="blind", **changes)


# -- owners and consumer -------------------------------------------------------------------------------


def mask_of(consumer: Consumer, number: int = 1, weights: Weights = W) -> Mask:
    """The mask of a round, as owners and consumer have it."""
    session = consumer.session
    keys = BlindKeys(consumer.released.map_seed, session.identifier)
    return keys.mask(number, score_bound(weights, session.space.coordinate_bound, session.jitter))


def broadcast_of(consumer: Consumer, number: int = 1, weights: Weights = W) -> WeightSealed:
    """The consumer's message of a round."""
    sealed = consumer.numerics.perform(SealWeight(number, weights))
    assert isinstance(sealed, WeightSealed)
    return sealed


class BlindOwnerParty:
    """An honest owner's numerics with the map opened, which answer one broadcast after the other."""

    def __init__(self, consumer: Consumer, owner: str, data: Dataset | None = None) -> None:
        _, numerics = owner_of(consumer.session, owner, data)
        assert isinstance(numerics, BlindOwnerNumerics)
        assert isinstance(numerics.perform(OpenMap(consumer.map_of(owner))), MapOpened)
        self.numerics = numerics
        self.consumer = consumer
        self.bids = 0

    def bid(self, number: int | None = None, weights: Weights = W) -> BlindScored:
        """The next bid, under a round's broadcast."""
        number = self.bids + 1 if number is None else number
        sealed = broadcast_of(self.consumer, number, weights)
        handle = self.consumer.session.batch * self.bids + 1
        scored = self.numerics.perform(ScoreBlind(number, sealed.box, sealed.signature, handle))
        assert isinstance(scored, BlindScored)
        self.bids += 1
        for row in scored.rows:
            if row >= 0:
                self.numerics.perform(Withdraw((row,)))
        return scored


def purchase_of(
    owner: str, scored: BlindScored, place: int = 0, *, handle: int = 1, **changes: Any
) -> BlindPurchase:
    """The box at a place of a bid, awarded in the bid's own round; `handle` is the first box's."""
    size = len(scored.boxes) // len(scored.rows)
    candidate = BlindCandidate(
        box=scored.boxes[size * place : size * (place + 1)],
        digests=scored.digests,
        signature=scored.signature,
    )
    at = MASK_BYTES * (place - len(scored.rows))
    values: dict[str, Any] = {
        "owner": owner,
        "bid_round": scored.round,
        "handle": fixed(handle + place),
        "score": scored.scores[at : at + MASK_BYTES or None],
        "candidate": candidate,
    }
    return BlindPurchase(**(values | changes))


def award_of(*purchases: BlindPurchase, number: int = 1) -> Award:
    """An award of these, in this order."""
    return Award(round=number, purchases=purchases)


def check_award(consumer: Consumer, *purchases: BlindPurchase, number: int = 1) -> tuple[Delivered, ...]:
    """The consumer's findings in boxes that were chosen under `W`."""
    assert isinstance(consumer.numerics, BlindConsumerNumerics)
    checked = consumer.numerics.perform(CheckAward(award_of(*purchases, number=number), W, last=False))
    assert isinstance(checked, PurchasesChecked)
    return checked.delivered


# -- the curator ---------------------------------------------------------------------------------------


def masked(*scores: int) -> bytes:
    """Stand-ins for masked scores, in the same order; 0 is one that is not sent."""
    return b"".join(score.to_bytes(MASK_BYTES, "big") for score in scores)


def signed_bid(
    session: Session, owner: str, number: int, scores: bytes, *, bids: int = 0, signer: str = "", tag: int = 0
) -> BlindBid:
    """A bid with boxes that hold nothing, all different, signed over boxes and scores.

    Args:
        owner: Its owner.
        number: The round.
        scores: Masked, of all boxes so far.
        bids: Number of earlier bids.
        signer: The party whose key signs; empty: the owner.
        tag: Varies the boxes.
    """
    size, first = session.box_length, session.batch * bids + 1
    handles = range(first, first + session.batch)
    boxes = [
        hashlib.sha256(f"{owner} {handle} {tag}".encode()).digest().ljust(size, b"\1") for handle in handles
    ]
    digests = [blind_digest(handle, box) for handle, box in zip(handles, boxes, strict=True)]
    digests.append(hashlib.sha256(scores).digest())
    key = session.simulated_identity(signer or owner).signing
    return BlindBid(
        round=number,
        boxes=b"".join(boxes),
        scores=scores,
        digests=b"".join(digests),
        signature=sign(blind_bid_statement(session.identifier, owner, number, digests), key),
    )


class BlindBench(CuratorBench):
    """A blind curator's machine, with a test in place of all others; signatures are real."""

    def maps(self) -> Maps:
        """The consumer's message in place of a target."""
        return Maps(maps=bytes(limits.MAP_BOX_BYTES * len(self.session.owners)))

    def enrol(self, peers: Sequence[str] | None = None) -> None:  # type: ignore[override]
        """Start, and let these (or all) arrive and be ready; the consumer sends its maps first."""
        self.step(Started())
        self.say(CONSUMER, self.hello(CONSUMER))
        self.say(CONSUMER, self.maps())
        for peer in self.session.owners if peers is None else peers:
            self.say(peer, self.hello(peer))
            self.say(peer, Ready())

    def weight(self, number: int, **changes: Any) -> SealedBroadcast:
        """A round's broadcast, which a curator cannot tell from any other bytes of its length."""
        values: dict[str, Any] = {
            "round": number,
            "box": number.to_bytes(4, "big").rjust(sealed_weight_bytes(self.opened), b"\2"),
            "signature": bytes(SIGNATURE_BYTES),
        }
        return SealedBroadcast(**(values | changes))

    def open_round(self, number: int = 1) -> None:
        """Let the consumer's weight of a round arrive."""
        self.say(CONSUMER, self.weight(number))

    def blind_bid(self, owner: str, *scores: int, bids: int | None = None, **changes: Any) -> BlindBid:
        """A bid in the round of the owner's last broadcast, with scores of all its boxes so far."""
        bids = len(scores) // self.session.batch - 1 if bids is None else bids
        number = self.machine.seats[owner].broadcast or self.machine.round
        return signed_bid(self.opened, owner, number, masked(*scores), bids=bids, **changes)

    def bids(self, **scores: Sequence[int] | int) -> None:
        """Let owners `owner_0`, … bid in this order, and check their signatures."""
        for owner, told in scores.items():
            given = (told,) if isinstance(told, int) else told
            self.say(owner.replace("_", "-"), self.blind_bid(owner.replace("_", "-"), *given))
        self.check()

    def check(self) -> None:
        """Answer all requests to check bids."""
        while self.jobs and type(self.jobs[0]) is CheckBids:
            outcome = self.numerics.perform(cast(CheckBids, self.jobs.pop(0)))
            assert outcome is not None
            self.step(outcome)

    @property
    def award(self) -> Award:
        (*_, award) = (message for message in self.inbox[CONSUMER] if isinstance(message, Award))
        return award

    @property
    def awarded(self) -> list[tuple[str, int, int]]:
        """Owner, number and bid's round of each box of the last award."""
        return [
            (purchase.owner, int(purchase.handle[0]), purchase.bid_round) for purchase in self.award.purchases
        ]


def account_of(bench: BlindBench, signer: str = CONSUMER, /, **changes: Any) -> Account:
    """The consumer's account, with 0.5, 1.5, … for the owners, signed."""
    owners = len(bench.session.owners)
    bought = Counter(win.owner for win in bench.machine.ledger.wins)
    values: dict[str, Any] = {
        "settlement": np.arange(owners) + 0.5,
        "errors": np.full(owners, -1.0),
        "gains": np.arange(owners) + 0.25,
        "gain_errors": np.full(owners, -1.0),
        "signal": -1,
        "sold": np.array([bought[owner] for owner in bench.session.owners], dtype=np.int64),
        "void": np.zeros(owners, dtype=np.int64),
        "signature": bytes(64),
    }
    unsigned = Account.model_construct(**(values | changes))
    statement = account_statement(bench.opened.identifier, account_content(unsigned))
    signature = sign(statement, bench.opened.simulated_identity(signer).signing)
    return unsigned.model_copy(update={"signature": signature})
