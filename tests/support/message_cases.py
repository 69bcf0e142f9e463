"""One table of messages that drives encoder, decoder, golden frames and mutations, and comparisons."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgpack
import numpy as np
from pydantic import BaseModel

from hushbid.protocol import limits
from hushbid.protocol.wire.arrays import ARRAY_EXT, pack_array
from hushbid.protocol.wire.blind import (
    Account,
    Award,
    BlindBid,
    BlindCandidate,
    BlindPurchase,
    Maps,
    SealedBroadcast,
)
from hushbid.protocol.wire.codec import Direction, Frame
from hushbid.protocol.wire.messages import (
    Array,
    Ask,
    Batch,
    BatchedCandidate,
    Beat,
    Bid,
    Broadcast,
    Call,
    Candidate,
    Candidates,
    Close,
    Commitment,
    Delivery,
    Farewell,
    Hello,
    Message,
    NestedTarget,
    Next,
    Offer,
    Purchase,
    Ready,
    Receipt,
    Refused,
    Roots,
    SealedCandidate,
    SealedCandidates,
    SecretMap,
    Submission,
    SubmittedCandidate,
    SubspaceTarget,
    Target,
    Welcome,
    fixed,
    sizes,
)
from hushbid.protocol.wire.unlinked import Choice, Chosen, Picked, PickedBox, Picks, RoundOpening

GREETING = Direction.GREETING
FROM_OWNER = Direction.OWNER_TO_CURATOR
FROM_CONSUMER = Direction.CONSUMER_TO_CURATOR
TO_OWNER = Direction.CURATOR_TO_OWNER
TO_CONSUMER = Direction.CURATOR_TO_CONSUMER

SESSION = bytes(range(0xA0, 0xB0))
DIGEST = bytes(range(32))


class Case(NamedTuple):
    """A message with the header it travels under; `allowed` are the directions that may carry it."""

    message: Message
    allowed: frozenset[Direction]
    sequence: int = 0
    acknowledged: int = 0

    @property
    def direction(self) -> Direction:
        """The first of the allowed directions."""
        return next(direction for direction in Direction if direction in self.allowed)

    def frame(self, body: bytes) -> Frame:
        """The frame that carries the message encoded as `body`."""
        return Frame(SESSION, self.sequence, self.acknowledged, body)


def values(*numbers: float, dtype: str) -> Array:
    """A read-only vector."""
    array = np.array(numbers, dtype)
    array.flags.writeable = False
    return array


def candidate(dtype: str, attributes: bytes = b"\x92\x03\xa6row-42\0\0") -> Candidate:
    """A point of three columns and a map of four coordinates."""
    return Candidate(
        point=values(0, 1, 100, dtype=dtype),
        features=values(-23170, 23170, 0, 1, dtype="int16"),
        attributes=attributes,
    )


def sealed(length: int) -> SealedCandidate:
    """A point that only the consumer can read, in a box of that length."""
    return SealedCandidate(
        features=values(-23170, 23170, 0, 1, dtype="int16"),
        box=bytes(number % 256 for number in range(length)),
        signature=bytes(range(64)),
    )


def _case(message: Message, *allowed: Direction, at: tuple[int, int] = (0, 0)) -> Case:
    return Case(message, frozenset(allowed), *at)


def _two_boxes() -> SealedCandidates:
    """A point and its padding, sealed."""
    return SealedCandidates(
        features=values(-(2**14), 0, 1, 2**14, 0, 0, 0, 0, dtype="int16"),
        boxes=bytes(number % 256 for number in range(2 * 368)),
        digests=bytes(number % 251 for number in range(64)),
        signature=bytes(range(64)),
    )


def _delivery_of_one(chosen_round: int, bid_round: int, candidate: SealedCandidate) -> Case:
    bought = Purchase(
        owner="digits-34", round=chosen_round, bid_round=bid_round, handle=fixed(7), candidate=candidate
    )
    return _case(Delivery(part=1, parts=1, purchases=(bought,)), TO_CONSUMER, at=(1, 1))


_GREETS = (GREETING, FROM_OWNER, FROM_CONSUMER)

CASES: dict[str, Case] = {
    "hello": _case(
        Hello(
            versions=(1,), role="owner", name="clinic-7", session=DIGEST, software="0.1.0", sent=0, received=0
        ),
        *_GREETS,
    ),
    "hello-again": _case(
        Hello(
            versions=(1, 2, 65536),
            role="consumer",
            name="consumer",
            session=DIGEST,
            software="φ" * 40,
            sent=70_000,
            received=2**53,
        ),
        *_GREETS,
    ),
    "welcome": _case(Welcome(version=1, feature_map=DIGEST, sent=3, received=300), TO_OWNER, TO_CONSUMER),
    "welcome-without-map": _case(
        Welcome(version=1, feature_map=None, sent=0, received=0), TO_OWNER, TO_CONSUMER
    ),
    "refused": _case(
        Refused(code="unknown-peer", detail="No such owner.", advice="Ask the curator."),
        TO_OWNER,
        TO_CONSUMER,
    ),
    "beat": _case(Beat(), FROM_OWNER, FROM_CONSUMER, TO_OWNER, TO_CONSUMER),
    "target": _case(
        Target(
            embedding=values(0.25, -0.0, 1e-300, -1.5, dtype="float64"),
            size=380,
            seed_total=values(-(2**40), 0, 1, 2**40, dtype="int64"),
            seed_size=150,
            maps=b"",
            noise="none",
        ),
        FROM_CONSUMER,
        at=(1, 0),
    ),
    "target-sealed": _case(
        Target(
            embedding=values(0.25, 0.5, 1.0, -1.5, dtype="float64"),
            size=380,
            seed_total=values(0, 0, 1, 2, dtype="int64"),
            seed_size=150,
            maps=bytes(number % 256 for number in range(2 * limits.MAP_BOX_BYTES)),
            noise="secure",
        ),
        FROM_CONSUMER,
        at=(1, 0),
    ),
    "subspace-target": _case(
        SubspaceTarget(
            embedding=values(0.25, 0.5, 1.0, -1.5, dtype="float64"),
            size=380,
            seed_total=values(0, 0, 1, 2, dtype="int64"),
            seed_size=150,
            maps=b"",
            noise="secure",
            basis=values(4096, 0, 0, 0, 0, -(2**15), 1, 2**15 - 1, dtype="int16"),
        ),
        FROM_CONSUMER,
        at=(1, 0),
    ),
    "nested-target": _case(
        NestedTarget(
            embedding=values(0.25, 0.5, 1.0, -1.5, dtype="float64"),
            size=380,
            seed_total=values(0, 0, 1, 2, dtype="int64"),
            seed_size=150,
            maps=bytes(number % 256 for number in range(limits.MAP_BOX_BYTES)),
            noise="secure",
            finer=values(0.125, 0.5, 1.25, -1.0, dtype="float64"),
        ),
        FROM_CONSUMER,
        at=(1, 0),
    ),
    "secret-map": _case(SecretMap(box=bytes(range(limits.MAP_BOX_BYTES))), TO_OWNER, at=(1, 0)),
    "commitment": _case(
        Commitment(root=bytes(range(32)), signature=bytes(range(64, 128))), FROM_OWNER, at=(1, 0)
    ),
    "roots": _case(
        Roots(roots=bytes(range(32)) + bytes(32), signatures=bytes(range(64)) + bytes(64)),
        TO_CONSUMER,
        at=(1, 0),
    ),
    "ready": _case(Ready(), FROM_OWNER, at=(1, 1)),
    "broadcast": _case(
        Broadcast(round=1000, weights=values(-(2**30), 0, 1, 2**30, dtype="int32"), noise="simulated"),
        TO_OWNER,
        at=(1000, 999),
    ),
    "call": _case(
        Call(
            round=1,
            weights=values(-(2**30), 0, 1, 2**30, dtype="int32"),
            noise="none",
            embedding=values(0.25, -0.0, 1e-300, -1.0, dtype="float64"),
            seed_total=values(-(2**40), 0, 1, 2**40, dtype="int64"),
            seed_size=150,
        ),
        TO_OWNER,
        at=(2, 1),
    ),
    "bid": _case(
        Bid(round=2, exhausted=False, score=fixed(-(2**52)), handle=fixed(2), candidate=candidate("float64")),
        FROM_OWNER,
        at=(2, 2),
    ),
    "batch": _case(
        Batch(
            round=2,
            scores=sizes([-(2**52), 0]),
            handles=sizes([2, 0]),
            candidates=Candidates(
                points=values(0.25, -0.0, 1e-300, 0.0, 0.0, 0.0, dtype="float64"),
                features=values(-(2**14), 0, 1, 2**14, 0, 0, 0, 0, dtype="int16"),
                attributes=bytes(range(10)),
            ),
        ),
        FROM_OWNER,
        at=(2, 2),
    ),
    "submission": _case(
        Submission(
            round=1,
            scores=sizes([-(2**52), 0]),
            handles=sizes([1, 0]),
            candidates=_two_boxes(),
        ),
        FROM_OWNER,
        at=(2, 2),
    ),
    "next": _case(Next(round=1), TO_OWNER, at=(3, 2)),
    "batch-sealed": _case(
        Batch(
            round=2,
            scores=sizes([-(2**52), 0]),
            handles=sizes([2, 0]),
            candidates=_two_boxes(),
        ),
        FROM_OWNER,
        at=(3, 2),
    ),
    "bid-sealed": _case(
        Bid(round=2, exhausted=False, score=fixed(-(2**52)), handle=fixed(2), candidate=sealed(368)),
        FROM_OWNER,
        at=(3, 2),
    ),
    "bid-without-point": _case(
        Bid(round=3, exhausted=False, score=fixed(2**52), handle=fixed(1), candidate=None),
        FROM_OWNER,
        at=(3, 4),
    ),
    "bid-exhausted": _case(
        Bid(round=2**24 // 2, exhausted=True, score=fixed(0), handle=fixed(0), candidate=None),
        FROM_OWNER,
        at=(2**64 - 1, 2**64 - 1),
    ),
    "ask": _case(Ask(round=3, handle=fixed(1)), TO_OWNER, at=(4, 3)),
    "offer": _case(Offer(round=3, handle=fixed(1), candidate=candidate("uint8")), FROM_OWNER, at=(4, 4)),
    "delivery": _case(
        Delivery(
            part=1,
            parts=2,
            purchases=tuple(
                Purchase(
                    owner=f"owner-{place}",
                    round=place + 1,
                    bid_round=1,
                    handle=fixed(place + 1),
                    candidate=candidate(dtype, b""),
                )
                for place, dtype in enumerate(("uint8", "int16", "int32", "int64", "float32", "float64"))
            ),
        ),
        TO_CONSUMER,
        at=(1, 1),
    ),
    "delivery-sealed": _case(
        Delivery(
            part=1,
            parts=1,
            purchases=(
                Purchase(owner="owner-0", round=3, bid_round=2, handle=fixed(2), candidate=sealed(368)),
            ),
        ),
        TO_CONSUMER,
        at=(1, 1),
    ),
    "delivery-empty": _case(Delivery(part=1, parts=1, purchases=()), TO_CONSUMER, at=(1, 1)),
    "delivery-batched": _delivery_of_one(
        3, 2, BatchedCandidate(**dict(sealed(368)), digests=bytes(number % 251 for number in range(64)))
    ),
    "delivery-submitted": _delivery_of_one(
        1,
        1,
        SubmittedCandidate(**dict(sealed(368)), place=6, path=bytes(number % 251 for number in range(96))),
    ),
    "maps": _case(
        Maps(maps=bytes(number % 256 for number in range(2 * limits.MAP_BOX_BYTES))), FROM_CONSUMER, at=(1, 0)
    ),
    "sealed-broadcast": _case(
        SealedBroadcast(round=2, box=bytes(range(60)), signature=bytes(range(64))),
        FROM_CONSUMER,
        TO_OWNER,
        at=(3, 2),
    ),
    "blind-bid": _case(
        BlindBid(
            round=2,
            boxes=bytes(number % 256 for number in range(2 * 368)),
            scores=bytes(32) + bytes(range(1, 33)),
            digests=bytes(number % 251 for number in range(96)),
            signature=bytes(range(64)),
        ),
        FROM_OWNER,
        at=(3, 3),
    ),
    "award": _case(
        Award(
            round=2,
            purchases=(
                BlindPurchase(
                    owner="digits-34",
                    bid_round=1,
                    handle=fixed(2),
                    score=bytes(range(1, 17)),
                    candidate=BlindCandidate(
                        box=bytes(number % 256 for number in range(368)),
                        digests=bytes(number % 251 for number in range(96)),
                        signature=bytes(range(64)),
                    ),
                ),
            ),
        ),
        TO_CONSUMER,
        at=(2, 3),
    ),
    "award-empty": _case(Award(round=3, purchases=()), TO_CONSUMER, at=(3, 4)),
    "round-opening": _case(
        RoundOpening(
            round=2, box=bytes(range(60)), signature=bytes(range(64)), taken=bytes((0, 0, 0, 1, 0, 0, 0, 3))
        ),
        FROM_CONSUMER,
        at=(5, 4),
    ),
    "choice": _case(
        Choice(
            round=2,
            chosen=(
                Chosen(owner="digits-34", place=fixed(5), score=bytes(range(2, 18))),
                Chosen(owner="digits-34", place=fixed(0), score=bytes(range(1, 17))),
            ),
        ),
        TO_CONSUMER,
        at=(2, 3),
    ),
    "choice-empty": _case(Choice(round=3, chosen=()), TO_CONSUMER, at=(3, 4)),
    "picks": _case(Picks(round=2, numbers=bytes(7) + b"\2" + bytes(7) + b"\4"), FROM_CONSUMER, at=(6, 5)),
    "picked": _case(
        Picked(
            round=2,
            boxes=(
                PickedBox(
                    owner="digits-34",
                    bid_round=1,
                    handle=fixed(2),
                    candidate=BlindCandidate(
                        box=bytes(number % 256 for number in range(368)),
                        digests=bytes(number % 251 for number in range(96)),
                        signature=bytes(range(64)),
                    ),
                ),
            ),
        ),
        TO_CONSUMER,
        at=(3, 4),
    ),
    "account": _case(
        Account(
            settlement=values(0.25, -0.0, dtype="float64"),
            errors=values(0.5, -1.0, dtype="float64"),
            gains=values(0.125, 0.0, dtype="float64"),
            gain_errors=values(0.25, -1.0, dtype="float64"),
            signal=-1,
            sold=values(40, 0, dtype="int64"),
            void=values(0, 2, dtype="int64"),
            signature=bytes(range(64)),
        ),
        FROM_CONSUMER,
        at=(4, 4),
    ),
    "receipt": _case(Receipt(part=2, disputed=b"\x40"), FROM_CONSUMER, at=(2, 2)),
    "close": _case(
        Close(outcome="complete", head=DIGEST, signature=bytes(range(64))),
        TO_OWNER,
        TO_CONSUMER,
        at=(1001, 1000),
    ),
    "close-abandoned": _case(
        Close(outcome="abandoned", head=DIGEST, signature=b""), TO_OWNER, TO_CONSUMER, at=(5, 4)
    ),
    "farewell": _case(
        Farewell(head=DIGEST, signature=bytes(range(64))), FROM_OWNER, FROM_CONSUMER, at=(1001, 1001)
    ),
}
"""Every kind of message, and every shape that one may take."""


def plain(value: Any) -> Any:
    """A message as maps, tuples and extensions: what a hostile peer may change and pack."""
    if isinstance(value, BaseModel):
        return {name: plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return msgpack.ExtType(ARRAY_EXT, pack_array(value))
    return value


def pack(value: Any) -> bytes:
    """`plain` values in msgpack, by the library alone."""
    packed = msgpack.packb(value)
    assert isinstance(packed, bytes)
    return packed


def same(left: Any, right: Any) -> bool:
    """Whether two messages, or parts of them, are of one type and equal bit for bit."""
    if type(left) is not type(right):
        return False
    if isinstance(left, BaseModel):
        return all(same(getattr(left, name), getattr(right, name)) for name in type(left).model_fields)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, np.ndarray):
        return (left.dtype, left.shape, left.tobytes()) == (right.dtype, right.shape, right.tobytes())
    return bool(left == right)
