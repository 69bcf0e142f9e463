"""The blind consumer's numerics: broadcasts, findings in awarded boxes, and the account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from hushbid.consumer.events import (
    AccountMade,
    CheckAward,
    MakeAccount,
    PurchasesChecked,
    ReleaseTarget,
    SealWeight,
    TargetReleased,
    WeightSealed,
)
from hushbid.consumer.machine import target_of
from hushbid.consumer.numerics import BlindConsumerNumerics
from hushbid.consumer.party import consumer_party
from hushbid.owner.events import BlindScored
from hushbid.protocol.crypto.blinding import (
    NOT_SENT,
    account_statement,
    blind_bid_statement,
    blind_digest,
    broadcast_statement,
)
from hushbid.protocol.crypto.sealing import pack_content, sign, verify_signature
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.account import account_content
from hushbid.protocol.session.settling import HandedOver
from hushbid.protocol.session.sizes import sealed_weight_bytes
from hushbid.protocol.wire.blind import BlindCandidate, BlindPurchase
from hushbid.protocol.wire.messages import (
    fixed,
)
from tests.support.blind_parties import (
    BlindOwnerParty,
    award_of,
    blind_session,
    check_award,
    mask_of,
    purchase_of,
)
from tests.support.boxes import sealed_to
from tests.support.sealed_parties import COLUMNS, DIMENSION, OWNERS, Consumer, W, points_of

A, B = OWNERS


# -- broadcasts ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def consumer() -> Consumer:
    made = Consumer(blind_session())
    assert isinstance(made.numerics, BlindConsumerNumerics)
    return made


def test_a_broadcast_is_signed_and_has_one_length_whatever_it_says(consumer: Consumer) -> None:
    session = consumer.session
    key = session.public_identity(CONSUMER).verify
    for number, weights in ((1, W), (2, np.zeros(DIMENSION, dtype=np.int32)), (6, -W)):
        sealed = consumer.numerics.perform(SealWeight(number, weights))
        assert isinstance(sealed, WeightSealed)
        assert len(sealed.box) == sealed_weight_bytes(session)
        statement = broadcast_statement(session.identifier, number, sealed.box)
        assert verify_signature(statement, sealed.signature, key)
        assert set(sealed.item().public) == {"round"}


def test_a_broadcast_cannot_be_made_before_the_map_was_drawn() -> None:
    rng = np.random.default_rng(10)
    session = blind_session()
    _, numerics = consumer_party(
        session,
        identity=session.simulated_identity(CONSUMER),
        noise=SimulatedNoise(1, CONSUMER),
        validation=Dataset.from_arrays("v", rng.random((7, COLUMNS))),
        seed_set=Dataset.from_arrays("s", rng.random((5, COLUMNS))),
        store=lambda purchases: None,
    )
    with pytest.raises(LocalProtocolError, match="before the map was drawn"):
        numerics.perform(SealWeight(1, W))
    assert isinstance(numerics.perform(ReleaseTarget()), TargetReleased)


# -- what was chosen -----------------------------------------------------------------------------------


def bid_of(consumer: Consumer, owner: str) -> BlindScored:
    """An honest owner's first bid."""
    return BlindOwnerParty(consumer, owner).bid()


def test_an_honest_point_is_opened_and_has_its_features_from_the_consumer(consumer: Consumer) -> None:
    scored = bid_of(consumer, A)
    (delivered,) = check_award(consumer, purchase_of(A, scored))
    assert (delivered.owner, delivered.chosen_round, delivered.dispute) == (A, 1, "")
    assert delivered.candidate is not None
    data = points_of(A)
    assert np.array_equal(delivered.candidate.point, data.features[scored.rows[0]])
    assert delivered.candidate.attributes == data.attributes(scored.rows[0])
    drawn = consumer.session.space.map(consumer.released.map_seed)
    assert np.array_equal(delivered.candidate.features, drawn.hash(data.features)[scored.rows[0]])


def signed(
    consumer: Consumer, box: bytes, score: bytes, *, owner: str = A, signer: str = A, number: int = 1
) -> BlindPurchase:
    """A box as its owner would have bid it, under number 1, with a signature."""
    session = consumer.session
    digests = [blind_digest(1, box), bytes(32)]
    statement = blind_bid_statement(session.identifier, owner, number, digests)
    candidate = BlindCandidate(
        box=box,
        digests=b"".join(digests),
        signature=sign(statement, session.simulated_identity(signer).signing),
    )
    return BlindPurchase(owner=owner, bid_round=number, handle=fixed(1), score=score, candidate=candidate)


def sealed(consumer: Consumer, content: bytes, receiver: str = CONSUMER) -> bytes:
    return sealed_to(consumer.session, receiver, content)


def content_of(consumer: Consumer, *point: float) -> bytes:
    return pack_content(np.array(point), b"\x92\x01\xc0", consumer.session.box_bytes)


def box_of(scored: BlindScored) -> bytes:
    return scored.boxes


def flipped(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    box = box_of(scored)
    return signed(consumer, box[:-1] + bytes([box[-1] ^ 1]), scored.scores)


def for_somebody_else(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    return signed(consumer, sealed(consumer, bytes(consumer.session.box_bytes), B), scored.scores)


def garbage(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    return signed(consumer, sealed(consumer, b"\xff" * consumer.session.box_bytes), scored.scores)


def zeros_in_a_box(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    return signed(consumer, sealed(consumer, bytes(consumer.session.box_bytes)), scored.scores)


def other_columns(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    return signed(consumer, sealed(consumer, content_of(consumer, *[0.5] * (COLUMNS + 1))), scored.scores)


def out_of_bounds(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    return signed(consumer, sealed(consumer, content_of(consumer, 0.5, 0.5, 1.5)), scored.scores)


def another_point(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    return signed(consumer, sealed(consumer, content_of(consumer, 0.123, 0.5, 0.5)), scored.scores)


def by_another(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    return signed(consumer, box_of(scored), scored.scores, signer=B)


def sold_as_anothers(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    return purchase_of(B, scored)


def another_round(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    return purchase_of(A, scored, bid_round=2)


def another_number(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    return purchase_of(A, scored, handle=2)


def another_box(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    honest = purchase_of(A, scored)
    box = sealed(consumer, content_of(consumer, 0.5, 0.5, 0.5))
    return honest.model_copy(update={"candidate": honest.candidate.model_copy(update={"box": box})})


def made_up(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    return purchase_of(A, scored, score=b"\xff" * 16)


def one_more(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    return purchase_of(A, scored, score=(int.from_bytes(scored.scores, "big") + 1).to_bytes(16, "big"))


def not_sent(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    return purchase_of(A, scored, score=NOT_SENT)


def another_rounds_mask(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    (score,) = mask_of(consumer, 2).of([0], np.zeros((1, 4), dtype=np.int16))
    return purchase_of(A, scored, score=score)


def nothing_as_a_point(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    box = bytes(consumer.session.box_length)
    return signed(consumer, box, scored.scores)


def a_point_as_nothing(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    return purchase_of(A, scored, score=mask_of(consumer).of_nothing)


SIGNATURE, SCORE = "the owner's signature does not hold", "the score is not the point's"
VOID: dict[str, tuple[Callable[[Consumer, BlindScored], BlindPurchase], str, bool]] = {
    "a box that was altered by its owner": (flipped, "the box does not open", False),
    "a box for somebody else": (for_somebody_else, "the box does not open", False),
    "a box with garbage": (garbage, "the box holds no point", False),
    "a box with zeros": (zeros_in_a_box, "the box holds no point", False),
    "a point of other columns": (other_columns, "the point has other columns than the session", False),
    "a point out of bounds": (out_of_bounds, "the point is outside the public bounds", True),
    "another point than was scored": (another_point, SCORE, True),
    "another owner's signature": (by_another, SIGNATURE, False),
    "another owner's name": (sold_as_anothers, SIGNATURE, False),
    "another round of the bid": (another_round, SIGNATURE, False),
    "another number": (another_number, "the box does not open", False),
    "another box": (another_box, SIGNATURE, False),
    "a score that somebody made up": (made_up, SCORE, True),
    "a score that is off by one": (one_more, SCORE, True),
    "no score": (not_sent, SCORE, True),
    "a score of another round": (another_rounds_mask, SCORE, True),
    "nothing, scored as a point": (
        nothing_as_a_point,
        "the box holds nothing, and was scored as a point",
        False,
    ),
    "a point, scored as nothing": (a_point_as_nothing, SCORE, True),
}


@pytest.mark.parametrize("what", VOID)
def test_what_is_not_as_its_owner_says_is_void_and_harms_no_other(consumer: Consumer, what: str) -> None:
    make, dispute, readable = VOID[what]
    honest = purchase_of(B, bid_of(consumer, B))
    bad = make(consumer, bid_of(consumer, A))
    for purchases, found_ in (((honest, bad), ["", dispute]), ((bad, honest), [dispute, ""])):
        delivered = check_award(consumer, *purchases)
        assert [entry.dispute for entry in delivered] == found_
        assert (delivered[purchases.index(bad)].candidate is not None) is readable


def test_a_box_of_nothing_that_is_scored_as_nothing_is_no_purchase_and_no_fault(consumer: Consumer) -> None:
    box = bytes(consumer.session.box_length)
    blank = signed(consumer, box, mask_of(consumer).of_nothing)
    honest = purchase_of(B, bid_of(consumer, B))
    assert [entry.owner for entry in check_award(consumer, honest, blank)] == [B]
    assert check_award(consumer, blank) == ()


def test_nothing_awarded_is_nothing_found_in_the_last_round_too() -> None:
    consumer = Consumer(blind_session())
    assert check_award(consumer) == ()
    checked = consumer.numerics.perform(CheckAward(award_of(number=6), W, last=True))
    assert isinstance(checked, PurchasesChecked)
    assert (checked.delivered, len(checked.mmd2) if checked.mmd2 is not None else 0) == ((), 0)
    made = consumer.numerics.perform(MakeAccount(target_of(consumer.released), (), {}, {}, W, ()))
    assert isinstance(made, AccountMade)
    assert made.account.settlement.tolist() == [0.0, 0.0]


def test_a_finding_says_what_was_wrong_and_nothing_of_the_point(consumer: Consumer) -> None:
    (delivered,) = check_award(consumer, another_point(consumer, bid_of(consumer, A)))
    assert "0.123" not in delivered.dispute


def test_signatures_hold_for_each_box_of_a_batch_and_for_none_of_another() -> None:
    consumer = Consumer(blind_session(batch=2))
    first, second = bid_of(consumer, A), bid_of(consumer, B)
    honest = [purchase_of(A, first, 0), purchase_of(B, second, 1), purchase_of(A, first, 1)]
    assert [entry.dispute for entry in check_award(consumer, *honest)] == ["", "", ""]
    swapped = [
        honest[0].model_copy(update={"handle": fixed(2)}),
        purchase_of(A, first, 1).model_copy(update={"handle": fixed(1)}),
        honest[1].model_copy(update={"owner": A}),
    ]
    closed = "the box does not open"
    assert [entry.dispute for entry in check_award(consumer, *swapped)] == [closed, closed, SIGNATURE]


def test_an_older_box_is_checked_by_the_score_of_this_round(consumer: Consumer) -> None:
    party = BlindOwnerParty(consumer, A)
    first, second = party.bid(), party.bid()
    now = purchase_of(A, first, score=second.scores[:16])
    if second.scores[:16] != NOT_SENT:
        assert [entry.dispute for entry in check_award(consumer, now, number=2)] == [""]
    before = purchase_of(A, first)
    assert [entry.dispute for entry in check_award(consumer, before, number=2)] == [SCORE]


# -- the account ---------------------------------------------------------------------------------------


def test_the_account_is_signed_and_counts_what_was_sold_and_what_was_void(consumer: Consumer) -> None:
    session, released = consumer.session, consumer.released
    (delivered,) = check_award(consumer, purchase_of(A, bid_of(consumer, A)))
    assert delivered.candidate is not None
    wins = (HandedOver(A, 0, 0, 0, delivered.candidate, 1),)
    made = consumer.numerics.perform(
        MakeAccount(target_of(released), wins, Counter(win.owner for win in wins), {B: 2}, W, ())
    )
    assert isinstance(made, AccountMade)
    account = made.account
    assert (account.sold.tolist(), account.void.tolist()) == ([1, 0], [0, 2])
    assert account.settlement[0] != 0.0
    assert account.settlement[1] == 0.0, "nothing is paid for what is void"
    key = session.public_identity(CONSUMER).verify
    statement = account_statement(session.identifier, account_content(account))
    assert verify_signature(statement, account.signature, key)
    again = AccountMade.restored({"account": dict(account)})
    assert account_content(again.account) == account_content(account)
