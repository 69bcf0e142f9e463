"""The consumer of a blind session weighs, opens what was chosen in the round, and voids what is a lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from consumer.blind import (
    AccountMade,
    BlindConsumer,
    BlindConsumerNumerics,
    CheckAward,
    MakeAccount,
    SealWeight,
    WeightSealed,
)
from consumer.events import Delivered, PurchasesChecked, ReleaseTarget, StorePurchases, TargetReleased
from consumer.machine import target_of
from consumer.party import consumer_party
from owner.blind import BlindScored
from protocol import limits
from protocol.crypto.blinding import (
    NOT_SENT,
    account_statement,
    blind_bid_statement,
    blind_digest,
    broadcast_statement,
)
from protocol.crypto.sealing import SEAL_BYTES, pack_content, seal, sign, verify_signature
from protocol.data import Dataset
from protocol.errors import ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from protocol.machine.machine import Charge, Effect, Event, Finish, Received, Send, Started
from protocol.machine.weighing import ComputeWeights, DrawNoise, NoiseDrawn, WeightsComputed
from protocol.names import CONSUMER, CURATOR
from protocol.privacy.noise import SimulatedNoise
from protocol.session.account import account_content
from protocol.session.session import Session
from protocol.session.settling import HandedOver
from protocol.wire.blind import Account, Award, BlindCandidate, BlindPurchase, Maps, SealedBroadcast
from protocol.wire.codec import Direction, decode_message
from protocol.wire.messages import (
    BLIND_VERSION,
    PROTOCOL_VERSION,
    Broadcast,
    Close,
    Delivery,
    Message,
    Welcome,
    fixed,
)
from tests.simulation.harness import candidate_of, corners
from tests.support.blind_parties import (
    BlindOwnerParty,
    award_of,
    blind_session,
    check_award,
    mask_of,
    masked,
    purchase_of,
)
from tests.support.sealed_parties import COLUMNS, DIMENSION, OWNERS, Consumer, W, points_of

A, B = OWNERS
EPHEMERAL = bytes(range(32))


# -- the machine ---------------------------------------------------------------------------------------


class Bench:
    """A consumer's machine, with a test in the place of its numerics and of the curator."""

    def __init__(self, **changes: Any) -> None:
        self.session = blind_session(**changes)
        self.machine = BlindConsumer(self.session)
        self.sequence = 0
        self.effects: list[Effect] = []
        self.feed(Started())
        self.receive(Welcome(version=BLIND_VERSION, feature_map=None, sent=0, received=0), 0)

    def feed(self, event: Event) -> tuple[Effect, ...]:
        effects = self.machine.step(event, 0.0)
        self.effects += effects
        return effects

    def receive(self, message: Message, sequence: int) -> tuple[Effect, ...]:
        acknowledged = self.machine.links[CURATOR].sent if sequence else 0
        return self.feed(Received(CURATOR, sequence, acknowledged, b"", message))

    def say(self, message: Message) -> tuple[Effect, ...]:
        effects = self.receive(message, self.sequence + 1)
        self.sequence += 1
        return effects

    def offend(self, message: Message) -> RemoteProtocolError:
        phase = self.machine.phase
        with pytest.raises(RemoteProtocolError) as caught:
            self.say(message)
        assert self.machine.phase == phase
        return caught.value

    def release(self) -> None:
        """The target is released, and noise drawn if there is any."""
        zeros = np.zeros(DIMENSION)
        maps = bytes(limits.MAP_BOX_BYTES * len(OWNERS))
        self.feed(TargetReleased(zeros, 3, zeros.astype(np.int64), 2, b"", maps, "none", ()))

    def weigh(self) -> None:
        """The weight of the round under way is computed and sealed."""
        self.feed(WeightsComputed(self.machine.round, W))
        self.feed(WeightSealed(self.machine.round, b"a box", bytes(64)))

    def waiting(self) -> Bench:
        """Until the first award is due."""
        self.release()
        self.weigh()
        return self

    def purchase(self, owner: str = A, handle: int = 1, score: int = 5, **changes: Any) -> BlindPurchase:
        """A box of the right shape."""
        candidate = BlindCandidate(
            box=bytes(self.session.box_bytes + SEAL_BYTES),
            digests=bytes(32 * (self.session.batch + 1)),
            signature=bytes(64),
        )
        values: dict[str, Any] = {
            "owner": owner,
            "bid_round": self.machine.round,
            "handle": fixed(handle),
            "score": masked(score),
            "candidate": candidate,
        }
        return BlindPurchase(**(values | changes))

    def award(self, *purchases: BlindPurchase, number: int | None = None) -> Award:
        return award_of(*purchases, number=self.machine.round if number is None else number)

    def bought(self, *entries: Delivered) -> tuple[Effect, ...]:
        """The award under way was checked, with these findings."""
        last = self.machine.round == self.session.rounds
        return self.feed(PurchasesChecked(entries, np.zeros(len(self.machine.delivered)) if last else None))

    def sent(self) -> list[str]:
        bodies = [effect.body for effect in self.effects if isinstance(effect, Send)]
        return [decode_message(Direction.CONSUMER_TO_CURATOR, body).kind for body in bodies]


def found(owner: str, number: int, dispute: str = "") -> Delivered:
    """A point that was opened."""
    row = np.tile(corners()[0], 2)
    return Delivered(owner, number, candidate_of(row), dispute)


def test_maps_leave_first_then_a_weight_a_round_and_at_the_end_the_account() -> None:
    bench = Bench(points=2)
    bench.release()
    assert bench.sent() == ["maps"]
    for number in (1, 2):
        bench.weigh()
        bench.say(bench.award(bench.purchase(handle=number)))
        bench.bought(found(A, number))
    assert isinstance(bench.effects[-1], MakeAccount)
    account = account_of(bench.session)
    assert [type(effect) for effect in bench.feed(AccountMade(account))] == [Send, StorePurchases]
    assert bench.sent() == [
        "maps", "sealed-broadcast", "sealed-broadcast", "account"
    ]  # fmt: skip
    assert [each.owner for each in bench.machine.delivered] == [A, A]


def test_a_release_is_charged_before_its_broadcast_leaves_and_not_twice() -> None:
    release = {"mechanism": "gaussian", "sigma": 20.0, "neighbours": "add-remove-one"}
    bench = Bench(summary=release, points=2)
    bench.release()
    assert isinstance(bench.effects[-1], DrawNoise)
    last = bench.effects[-1].last
    zeros = np.zeros(DIMENSION)
    bench.feed(NoiseDrawn(1, tuple(((zeros,), ()) for _ in range(last))))
    assert isinstance(bench.effects[-1], ComputeWeights)
    (charge, seal_it) = bench.feed(WeightsComputed(1, W))
    assert isinstance(charge, Charge)
    assert (charge.first, charge.last) == (1, 1)
    assert isinstance(seal_it, SealWeight)
    bench.feed(WeightSealed(1, b"a box", bytes(64)))
    bench.say(bench.award(bench.purchase()))
    bench.bought(found(A, 1))
    (charge, _) = bench.feed(WeightsComputed(2, W))
    assert isinstance(charge, Charge)
    assert (charge.first, charge.last) == (2, 2)


def test_weights_of_another_round_are_a_bug() -> None:
    bench = Bench()
    bench.release()
    with pytest.raises(LocalProtocolError, match="Weights of round 2 came in round 1"):
        bench.feed(WeightsComputed(2, W))


def test_what_is_void_adds_nothing_to_the_total_and_is_counted() -> None:
    bench = Bench(points=3).waiting()
    bench.say(bench.award(bench.purchase(handle=1)))
    bench.bought(found(A, 1, "the point is outside the public bounds"))
    assert not bench.machine.weighing.total.any()
    assert bench.machine.void == {A: 1}
    bench.weigh()
    bench.say(bench.award(bench.purchase(B, 2)))
    bench.bought(found(B, 2))
    assert bench.machine.weighing.total.any()
    (effect,) = [each for each in bench.effects if isinstance(each, ComputeWeights) and each.round == 3]
    assert effect.count == 2 + 2, "by rounds and not by points, so that a void box is one of S"


def test_an_award_without_boxes_is_a_round_in_which_nobody_was_present() -> None:
    bench = Bench(points=2).waiting()
    bench.say(bench.award())
    bench.bought()
    assert (bench.machine.round, bench.machine.delivered) == (2, [])


# -- awards that are refused -----------------------------------------------------------------------------


def shaped(bench: Bench, **changes: Any) -> BlindPurchase:
    purchase = bench.purchase(handle=4, score=9)
    return purchase.model_copy(update={"candidate": purchase.candidate.model_copy(update=changes)})


AWARDS: dict[str, tuple[Callable[[Bench], Award], Offence, str]] = {
    "the round before": (
        lambda b: b.award(b.purchase(score=9), b.purchase(handle=2), number=1),
        Offence.OUT_OF_TURN,
        "round 1 came in round 2",
    ),
    "the next round": (
        lambda b: b.award(b.purchase(score=9), b.purchase(handle=2), number=3),
        Offence.OUT_OF_TURN,
        "round 3 came in round 2",
    ),
    "too short": (lambda b: b.award(b.purchase()), Offence.MALFORMED, "has 1 boxes; 2 were due"),
    "too long": (
        lambda b: b.award(*(b.purchase(handle=handle, score=9 - handle) for handle in (2, 3, 4))),
        Offence.MALFORMED,
        "has 3 boxes; 2 were due",
    ),
    "reordered": (
        lambda b: b.award(b.purchase(handle=3, score=5), b.purchase(B, 3, score=6)),
        Offence.MALFORMED,
        "not in the order",
    ),
    "equal scores in another order of owners": (
        lambda b: b.award(b.purchase(B, 3), b.purchase(A, 3)),
        Offence.MALFORMED,
        "not in the order",
    ),
    "equal scores in another order of numbers": (
        lambda b: b.award(b.purchase(handle=4), b.purchase(handle=3)),
        Offence.MALFORMED,
        "not in the order",
    ),
    "a box twice": (
        lambda b: b.award(b.purchase(handle=3), b.purchase(handle=3)),
        Offence.OUT_OF_TURN,
        "a second time",
    ),
    "a box of an earlier award": (
        lambda b: b.award(b.purchase(handle=1, score=9), b.purchase(handle=3)),
        Offence.OUT_OF_TURN,
        "a second time",
    ),
    "an owner that is not on the roster": (
        lambda b: b.award(b.purchase(score=9, handle=3), b.purchase("owner-9")),
        Offence.MALFORMED,
        "not on the session's roster",
    ),
    "a number of a bid to come": (
        lambda b: b.award(b.purchase(handle=5, score=9), b.purchase(handle=3)),
        Offence.MALFORMED,
        "that it cannot have",
    ),
    "number 0": (
        lambda b: b.award(b.purchase(handle=0, score=9), b.purchase(handle=3)),
        Offence.MALFORMED,
        "that it cannot have",
    ),
    "a bid of a round to come": (
        lambda b: b.award(b.purchase(handle=3, score=9, bid_round=3), b.purchase(handle=4)),
        Offence.MALFORMED,
        "that it cannot have",
    ),
    "a longer box": (
        lambda b: b.award(shaped(b, box=bytes(b.session.box_bytes + SEAL_BYTES + 1)), b.purchase(handle=3)),
        Offence.MALFORMED,
        "of another length",
    ),
    "a shorter box": (
        lambda b: b.award(shaped(b, box=b"box"), b.purchase(handle=3)),
        Offence.MALFORMED,
        "of another length",
    ),
    "digests of another batch": (
        lambda b: b.award(shaped(b, digests=bytes(32 * 2)), b.purchase(handle=3)),
        Offence.MALFORMED,
        "of another length",
    ),
}
"""Of round 2; in round 1 number 1 and 2 of owner-0 were bought."""


@pytest.mark.parametrize("what", AWARDS)
def test_an_award_that_no_honest_curator_makes_is_refused_and_changes_nothing(what: str) -> None:
    make, offence, text = AWARDS[what]
    bench = Bench(points=6, batch=2).waiting()
    bench.say(bench.award(bench.purchase(handle=1, score=7), bench.purchase(handle=2)))
    bench.bought(found(A, 1), found(A, 1))
    bench.weigh()
    error = bench.offend(make(bench))
    assert (error.offence, text in error.what) == (offence, True), error.what
    bench.say(bench.award(bench.purchase(handle=3, score=7), bench.purchase(B, 1)))
    assert bench.machine.phase == "checking", "an honest one is taken still"


def test_an_award_of_an_owner_without_a_turn_is_refused() -> None:
    bench = Bench(points=6, wishes={"caps": {A: 1}}).waiting()
    turns = bench.session.turns
    while turns.has(A, bench.machine.round):
        bench.say(bench.award(bench.purchase(B, bench.machine.round)))
        bench.bought(found(B, bench.machine.round))
        bench.weigh()
    error = bench.offend(bench.award(bench.purchase(A)))
    assert (error.offence, "has no turn" in error.what) == (Offence.OUT_OF_TURN, True)


def test_the_last_award_buys_what_is_left() -> None:
    bench = Bench(points=3, batch=2).waiting()
    bench.say(bench.award(bench.purchase(handle=1, score=7), bench.purchase(handle=2)))
    bench.bought(found(A, 1), found(A, 1))
    bench.weigh()
    two = bench.award(bench.purchase(handle=3, score=7), bench.purchase(handle=4))
    assert "1 were due" in bench.offend(two).what
    bench.say(bench.award(bench.purchase(handle=3)))
    assert bench.machine.phase == "checking"


def test_an_award_has_no_place_before_a_broadcast_or_while_another_is_checked() -> None:
    for bench in (Bench(), Bench().waiting()):
        if bench.machine.phase == "waiting":
            bench.say(bench.award(bench.purchase()))
        award = bench.award(bench.purchase(B, bid_round=1), number=1)
        assert bench.offend(award).offence is Offence.OUT_OF_TURN


def test_messages_of_other_rules_have_no_place() -> None:
    bench = Bench().waiting()
    for message in (
        Delivery(part=1, parts=1, purchases=()),
        Broadcast(round=1, weights=W, noise="none"),
    ):
        assert bench.offend(message).offence is Offence.OUT_OF_TURN


def test_a_session_that_is_given_up_ends_the_consumer_in_every_phase() -> None:
    for bench in (Bench(), Bench().waiting()):
        bench.say(Close(outcome="abandoned", head=bytes(32), signature=b""))
        assert bench.machine.phase == "leaving"


def test_a_curator_that_chooses_the_older_version_is_left() -> None:
    machine = BlindConsumer(blind_session())
    machine.step(Started(), 0.0)
    welcome = Welcome(version=PROTOCOL_VERSION, feature_map=None, sent=0, received=0)
    (finish,) = machine.step(Received(CURATOR, 0, 0, b"", welcome), 0.0)
    assert isinstance(finish, Finish)
    assert finish.code is ExitCode.CONNECTION


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
        assert len(sealed.box) == session.sealed_weight_bytes
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
    """A box as its owner would have bid it, under number 1, with a signature over it."""
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
    return seal(content, consumer.session.public_identity(receiver).sealing, EPHEMERAL)


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
    (score,) = mask_of(consumer, 2).of([0], np.zeros((1, DIMENSION), dtype=np.int16))
    return purchase_of(A, scored, score=score)


def nothing_as_a_point(consumer: Consumer, scored: BlindScored) -> BlindPurchase:
    box = bytes(consumer.session.box_bytes + SEAL_BYTES)
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
    "another number": (another_number, SIGNATURE, False),
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
    box = bytes(consumer.session.box_bytes + SEAL_BYTES)
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
    made = consumer.numerics.perform(MakeAccount(target_of(consumer.released), (), {}, W, ()))
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
    assert [entry.dispute for entry in check_award(consumer, *swapped)] == [SIGNATURE] * 3


def test_an_older_box_is_checked_by_the_score_of_this_round(consumer: Consumer) -> None:
    party = BlindOwnerParty(consumer, A)
    first, second = party.bid(), party.bid()
    now = purchase_of(A, first, score=second.scores[:16])
    if second.scores[:16] != NOT_SENT:
        assert [entry.dispute for entry in check_award(consumer, now, number=2)] == [""]
    before = purchase_of(A, first)
    assert [entry.dispute for entry in check_award(consumer, before, number=2)] == [SCORE]


# -- the account ---------------------------------------------------------------------------------------


def account_of(session: Session) -> Account:
    owners = len(session.file.owners)
    none = np.zeros(owners)
    return Account(
        settlement=none,
        errors=none,
        gains=none,
        gain_errors=none,
        signal=0,
        sold=none.astype(np.int64),
        void=none.astype(np.int64),
        signature=bytes(64),
    )


def test_the_account_is_signed_and_counts_what_was_sold_and_what_was_void(consumer: Consumer) -> None:
    session, released = consumer.session, consumer.released
    (delivered,) = check_award(consumer, purchase_of(A, bid_of(consumer, A)))
    assert delivered.candidate is not None
    wins = (HandedOver(A, 0, 0, 0, delivered.candidate, 1),)
    made = consumer.numerics.perform(MakeAccount(target_of(released), wins, {B: 2}, W, ()))
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


def test_maps_and_broadcasts_are_messages_of_the_consumer() -> None:
    bench = Bench(points=1).waiting()
    bodies = [effect.body for effect in bench.effects if isinstance(effect, Send)]
    messages = [decode_message(Direction.CONSUMER_TO_CURATOR, body) for body in bodies]
    assert [type(message) for message in messages] == [Maps, SealedBroadcast]
