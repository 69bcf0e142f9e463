"""A consumer counts a seller's fault once, however many points it concerns."""

from __future__ import annotations

import numpy as np

from hushbid.consumer.disputes import SellerFaults, told
from hushbid.consumer.events import Delivered
from hushbid.protocol.session.points import NOT_SIGNED
from hushbid.protocol.wire.messages import BatchedCandidate, Purchase, fixed

CLOSED = "the box does not open"
SIGNATURES = (b"\1" * 64, b"\2" * 64)


def bought(owner: str, chosen: int, bid_round: int, handle: int, signature: bytes) -> Purchase:
    candidate = BatchedCandidate(
        box=bytes(200), features=np.zeros(8, dtype=np.int16), signature=signature, digests=bytes(64)
    )
    return Purchase(owner=owner, round=chosen, bid_round=bid_round, handle=fixed(handle), candidate=candidate)


def found(purchase: Purchase, dispute: str) -> Delivered:
    return Delivered(purchase.owner, purchase.round, None, dispute)


def test_a_batch_that_is_not_signed_is_one_fault_in_whichever_parts_and_rounds_its_points_come() -> None:
    faults = SellerFaults()
    first = [bought("heron", 3, 2, handle, SIGNATURES[0]) for handle in (1, 2)]
    faults.note(first, [found(purchase, NOT_SIGNED) for purchase in first])
    later = bought("heron", 5, 2, 3, SIGNATURES[0])
    faults.note([later], [found(later, NOT_SIGNED)])
    assert [fault.as_json() for fault in faults] == [
        {"owner": "heron", "round": 3, "bid_round": 2, "what": NOT_SIGNED, "points": 3}
    ]
    assert told(faults) == ("heron, bid of round 2: the owner's signature does not hold (3 points)")


def test_another_owner_round_or_signature_is_another_fault_and_so_is_each_box_that_does_not_open() -> None:
    faults = SellerFaults()
    purchases = [
        bought("heron", 3, 1, 1, SIGNATURES[0]),
        bought("magpie", 3, 1, 1, SIGNATURES[0]),
        bought("heron", 3, 2, 2, SIGNATURES[0]),
        bought("heron", 3, 1, 3, SIGNATURES[1]),
    ]
    closed = [bought("magpie", 3, 1, handle, SIGNATURES[0]) for handle in (7, 8)]
    good = bought("heron", 3, 1, 4, SIGNATURES[1])
    faults.note(
        [*purchases, good, *closed],
        [
            *(found(purchase, NOT_SIGNED) for purchase in purchases),
            found(good, ""),
            *(found(purchase, CLOSED) for purchase in closed),
        ],
    )
    assert [(fault.owner, fault.what, fault.points) for fault in faults] == [
        ("heron", NOT_SIGNED, 1),
        ("magpie", NOT_SIGNED, 1),
        ("heron", NOT_SIGNED, 1),
        ("heron", NOT_SIGNED, 1),
        ("magpie", CLOSED, 1),
        ("magpie", CLOSED, 1),
    ]
    assert told(faults).endswith("; and 3 more")
