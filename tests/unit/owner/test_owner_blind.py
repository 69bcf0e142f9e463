"""The owner of a blind session opens broadcasts, hands over b new boxes, and masks their scores."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest

from hushbid.owner.events import BlindScored, BroadcastRefused, MapOpened, OpenMap, ScoreBlind, Withdraw
from hushbid.owner.machine import OwnerMachine
from hushbid.owner.party import owner_party
from hushbid.protocol import limits
from hushbid.protocol.crypto.blinding import (
    MASK_BYTES,
    NOT_SENT,
    Mask,
    blind_bid_statement,
    blind_digest,
    broadcast_statement,
)
from hushbid.protocol.crypto.sealing import (
    DIGEST_BYTES,
    EPHEMERAL_BYTES,
    sign,
    unpack_content,
    verify_signature,
)
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError, ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.machine import Effect, Finish, Received, Send, Started
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.space.grid import Features, Weights
from hushbid.protocol.space.jitter import scores_of
from hushbid.protocol.wire.blind import BlindBid, SealedBroadcast
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import (
    NUMBERED_VERSION,
    PROTOCOL_VERSION,
    Ask,
    Broadcast,
    Message,
    SecretMap,
    Welcome,
    fixed,
)
from tests.simulation.harness import weights_of
from tests.support.blind_parties import BlindOwnerParty, blind_session, broadcast_of, mask_of
from tests.support.boxes import opened_by
from tests.support.sealed_parties import COLUMNS, OWNERS, Consumer, W, owner_of, points_of

A, B = OWNERS
BOX = bytes(limits.MAP_BOX_BYTES)
SIGNATURE = bytes(64)


# -- the machine ---------------------------------------------------------------------------------------


class Bench:
    """An owner's machine that was welcomed, with the map if it is to bid."""

    def __init__(self, *, mapped: bool = True) -> None:
        self.session = blind_session(batch=2)
        self.machine = OwnerMachine(self.session, name=A)
        self.sequence = 0
        self.machine.step(Started(), 0.0)
        self.receive(Welcome(version=NUMBERED_VERSION, feature_map=None, sent=0, received=0), 0)
        if mapped:
            self.say(SecretMap(box=BOX))
            self.machine.step(MapOpened(), 0.0)

    def receive(self, message: Message, sequence: int) -> tuple[Effect, ...]:
        links = self.machine.links[CURATOR]
        acknowledged = links.sent if sequence else 0
        return self.machine.step(Received(CURATOR, sequence, acknowledged, b"", message), 0.0)

    def say(self, message: Message) -> tuple[Effect, ...]:
        effects = self.receive(message, self.sequence + 1)
        self.sequence += 1
        return effects

    def broadcast(self, number: int) -> tuple[Effect, ...]:
        return self.say(SealedBroadcast(round=number, box=b"a box", signature=SIGNATURE))

    def scored(self, number: int, *rows: int) -> tuple[Effect, ...]:
        told = BlindScored(
            number, W, rows, b"boxes", bytes(range(1, 17)), bytes(64), SIGNATURE, bytes(EPHEMERAL_BYTES)
        )
        return self.machine.step(told, 0.0)


def test_a_broadcast_is_scored_and_answered_with_a_bid_and_boxes_are_numbered_in_their_order() -> None:
    bench = Bench()
    charge, effect = bench.broadcast(1)
    assert charge.KIND == "charge", "the session is charged before the first bid"
    assert effect == ScoreBlind(1, b"a box", SIGNATURE, 1)
    effects = bench.scored(1, 3, -1)
    assert [each.rows for each in effects if isinstance(each, Withdraw)] == [(3,)], (
        "a box of nothing is no point"
    )
    (frame,) = [each for each in effects if isinstance(each, Send)]
    bid = decode_message(Direction.OWNER_TO_CURATOR, frame.body)
    assert isinstance(bid, BlindBid)
    assert (bid.round, bid.boxes, bid.signature) == (1, b"boxes", SIGNATURE)
    (effect,) = bench.broadcast(3)
    assert effect == ScoreBlind(3, b"a box", SIGNATURE, 3), "the second bid, in whatever round it is"


def test_a_broadcast_that_is_refused_ends_the_owner_with_the_reason_and_code_1() -> None:
    bench = Bench()
    bench.broadcast(1)
    (finish,) = bench.machine.step(BroadcastRefused("It does not open.", "Compare the keys."), 0.0)
    assert finish == Finish(ExitCode.FAILED, "It does not open.", "Compare the keys.")
    assert bench.machine.phase == "done"


@pytest.mark.parametrize("number", [1, 7])
def test_a_broadcast_of_a_round_that_was_or_cannot_be_is_refused(number: int) -> None:
    bench = Bench()
    bench.broadcast(2)
    bench.scored(2, 0, 1)
    with pytest.raises(RemoteProtocolError) as caught:
        bench.broadcast(number)
    assert caught.value.offence in (Offence.OUT_OF_TURN, Offence.MALFORMED)


MISPLACED: dict[str, Message] = {
    "a weight in the clear": Broadcast(round=1, weights=W, noise="none"),
    "an ask": Ask(round=1, handle=fixed(1)),
    "a second map": SecretMap(box=BOX),
}


@pytest.mark.parametrize("what", MISPLACED)
def test_messages_of_other_rules_have_no_place(what: str) -> None:
    bench = Bench()
    with pytest.raises(RemoteProtocolError, match="no place here") as caught:
        bench.say(MISPLACED[what])
    assert caught.value.offence is Offence.OUT_OF_TURN


def test_a_broadcast_before_the_map_or_while_another_is_scored_is_refused() -> None:
    for bench in (Bench(mapped=False), Bench()):
        if bench.machine.phase == "waiting":
            bench.broadcast(1)
        with pytest.raises(RemoteProtocolError) as caught:
            bench.broadcast(2)
        assert caught.value.offence is Offence.OUT_OF_TURN


def test_scores_of_another_round_are_a_bug() -> None:
    bench = Bench()
    bench.broadcast(1)
    with pytest.raises(LocalProtocolError, match="Scores of round 2 came in round 1"):
        bench.scored(2, 0, 1)


def test_a_curator_that_chooses_the_older_version_is_left() -> None:
    machine = OwnerMachine(blind_session(), name=A)
    machine.step(Started(), 0.0)
    welcome = Welcome(version=PROTOCOL_VERSION, feature_map=None, sent=0, received=0)
    (finish,) = machine.step(Received(CURATOR, 0, 0, b"", welcome), 0.0)
    assert isinstance(finish, Finish)
    assert finish.code is ExitCode.CONNECTION
    assert f"version {PROTOCOL_VERSION}" in finish.reason


# -- a bid ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def consumer() -> Consumer:
    return Consumer(blind_session(batch=2))


def opened(
    consumer: Consumer, box: bytes, handle: int
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], bytes]:
    """The consumer's content of a box."""
    return unpack_content(opened_by(consumer.session, CONSUMER, box, handle))


def boxes_in(consumer: Consumer, scored: BlindScored) -> list[bytes]:
    size = consumer.session.box_length
    return [scored.boxes[at : at + size] for at in range(0, len(scored.boxes), size)]


def scores_in(scored: BlindScored) -> list[bytes]:
    return [scored.scores[at : at + MASK_BYTES] for at in range(0, len(scored.scores), MASK_BYTES)]


def features_of(consumer: Consumer, owner: str) -> Features:
    """φ of all an owner's points, by the map."""
    return consumer.session.space.map(consumer.released.map_seed).hash(points_of(owner).features)


def true_scores(consumer: Consumer, owner: str, weights: Weights) -> list[int]:
    """The scores of all an owner's points."""
    found: list[int] = scores_of(features_of(consumer, owner), weights, None).tolist()
    return found


def masked_rows(consumer: Consumer, rows: Sequence[int], mask: Mask, weights: Weights) -> list[bytes]:
    """The masked scores of some of A's points."""
    scores = true_scores(consumer, A, weights)
    return mask.of([scores[row] for row in rows], features_of(consumer, A)[list(rows)])


def test_a_bid_has_the_best_points_sealed_to_the_consumer_with_their_masked_scores(
    consumer: Consumer,
) -> None:
    scored = BlindOwnerParty(consumer, A).bid()
    scores, data = true_scores(consumer, A, W), points_of(A)
    assert list(scored.rows) == sorted(range(6), key=lambda row: -scores[row])[:2]
    for handle, (row, box) in enumerate(zip(scored.rows, boxes_in(consumer, scored), strict=True), start=1):
        point, attributes = opened(consumer, box, handle)
        assert np.array_equal(point, data.features[row])
        assert attributes == data.attributes(row)
        with pytest.raises(RemoteProtocolError):
            opened_by(consumer.session, A, box, handle)
    assert scores_in(scored) == masked_rows(consumer, scored.rows, mask_of(consumer), W)


def test_a_bid_is_signed_with_its_round_name_boxes_numbers_and_scores(consumer: Consumer) -> None:
    party = BlindOwnerParty(consumer, A)
    party.bid()
    scored = party.bid(5)
    session = consumer.session
    digests = [blind_digest(handle, box) for handle, box in enumerate(boxes_in(consumer, scored), start=3)]
    digests.append(hashlib.sha256(scored.scores).digest())
    assert scored.digests == b"".join(digests)
    key = session.public_identity(A).verify
    for owner, number, holds in ((A, 5, True), (A, 4, False), (B, 5, False)):
        statement = blind_bid_statement(session.identifier, owner, number, digests)
        assert verify_signature(statement, scored.signature, key) is holds


OTHER = weights_of(-9, -4, -2, -1, 3, -5, -7, 6)
"""Under which what was best is worst."""


@pytest.mark.parametrize(("later", "sent"), [(W, True), (OTHER, False)], ids=["W", "OTHER"])
def test_an_older_box_that_cannot_be_bought_has_no_score_and_all_others_have(
    consumer: Consumer, later: Weights, sent: bool
) -> None:
    """Boxes that could be bought are exactly those that score no less than the worst new one."""
    party = BlindOwnerParty(consumer, A)
    first, second = party.bid(), party.bid(2, later)
    scores, mask = true_scores(consumer, A, later), mask_of(consumer, 2, later)
    lowest = min(scores[row] for row in second.rows)
    told = [
        masked_rows(consumer, [row], mask, later)[0] if scores[row] >= lowest else NOT_SENT
        for row in (*first.rows, *second.rows)
    ]
    assert scores_in(second) == told
    assert [score != NOT_SENT for score in told] == [sent, sent, True, True]


def test_an_owner_that_runs_out_hands_over_boxes_of_nothing_in_bids_of_one_size(consumer: Consumer) -> None:
    party = BlindOwnerParty(consumer, A, Dataset.from_arrays(A, points_of(A, 3).features))
    mask, bids = mask_of(consumer, 2), [party.bid(number) for number in (1, 2, 3)]
    assert [len(bid.rows) for bid in bids] == [2, 2, 2]
    assert bids[1].rows[1] == -1
    assert bids[2].rows == (-1, -1)
    assert [len(bid.boxes) for bid in bids] == [len(bids[0].boxes)] * 3
    assert [len(bid.digests) for bid in bids] == [DIGEST_BYTES * 3] * 3
    assert [len(bid.scores) for bid in bids] == [MASK_BYTES * 2 * number for number in (1, 2, 3)]
    old, new = scores_in(bids[1])[:2], scores_in(bids[1])[2:]
    assert new[1] == mask.of_nothing
    assert NOT_SENT not in old, "where a new box is one of nothing, every older point may be bought"
    assert all(mask.of_nothing < score for score in (*old, new[0]))
    mask = mask_of(consumer, 3)
    sold = masked_rows(consumer, (*bids[0].rows, bids[1].rows[0]), mask, W)
    assert scores_in(bids[2]) == [*sold, *[mask.of_nothing] * 3]


def test_an_owner_without_any_point_bids_nothing_but_boxes_of_nothing(consumer: Consumer) -> None:
    party = BlindOwnerParty(consumer, A, Dataset.from_arrays(A, np.zeros((1, COLUMNS))))
    first, second = party.bid(), party.bid()
    assert (first.rows[1], second.rows) == (-1, (-1, -1))
    assert second.ephemeral == b""


@pytest.mark.parametrize(("numbered", "keys"), [(True, 1), (False, 2)])
def test_every_bid_or_box_has_an_ephemeral_key_of_its_own_on_record(numbered: bool, keys: int) -> None:
    consumer = Consumer(blind_session(batch=2, numbered=numbered))
    party = BlindOwnerParty(consumer, A)
    found = []
    for _ in range(3):
        scored = party.bid()
        assert scored.item().private["ephemeral"] == scored.ephemeral
        assert len(scored.ephemeral) == keys * EPHEMERAL_BYTES
        found += [scored.ephemeral[:EPHEMERAL_BYTES], scored.ephemeral[-EPHEMERAL_BYTES:]]
    assert len(set(found)) == 3 * keys


def test_neither_bid_nor_public_record_shows_point_label_or_score(consumer: Consumer) -> None:
    data = Dataset.from_arrays(A, points_of(A).features, np.array(["a very private label"] * 6))
    scored = BlindOwnerParty(consumer, A, data).bid()
    bid = scored.boxes + scored.scores + scored.digests + scored.signature
    assert data.features[scored.rows[0]].tobytes() not in bid
    assert b"a very private label" not in bid
    score = true_scores(consumer, A, W)[scored.rows[0]]
    assert score.to_bytes(8, "big", signed=True)[2:] not in scored.scores
    assert set(scored.item().public) == {"round"}


def test_a_restored_owner_goes_on_with_the_same_boxes_and_scores(consumer: Consumer) -> None:
    party, again = BlindOwnerParty(consumer, A), BlindOwnerParty(consumer, A)
    first = party.bid()
    sealed = broadcast_of(consumer)
    again.numerics.restore(ScoreBlind(1, sealed.box, sealed.signature, 1), first)
    for row in first.rows:
        again.numerics.restore(Withdraw((row,)), None)
    again.bids = 1
    one, other = party.bid(), again.bid()
    assert one.boxes == other.boxes
    assert (one.scores, one.signature) == (other.scores, other.signature)


# -- broadcasts that are refused -------------------------------------------------------------------------


def refusal(consumer: Consumer, number: int, box: bytes, signature: bytes) -> str:
    party = BlindOwnerParty(consumer, A)
    refused = party.numerics.perform(ScoreBlind(number, box, signature, 1))
    assert isinstance(refused, BroadcastRefused)
    return refused.what


def by_the_consumer(consumer: Consumer, number: int, box: bytes) -> bytes:
    """The consumer's signature of anything."""
    session = consumer.session
    return sign(
        broadcast_statement(session.identifier, number, box), session.simulated_identity(CONSUMER).signing
    )


def test_a_broadcast_that_the_consumer_did_not_sign_is_refused(consumer: Consumer) -> None:
    sealed, session = broadcast_of(consumer), consumer.session
    statement = broadcast_statement(session.identifier, 1, sealed.box)
    for signature in (bytes(64), sign(statement, session.simulated_identity(CURATOR).signing)):
        assert "not signed by the consumer" in refusal(consumer, 1, sealed.box, signature)


def test_a_broadcast_of_another_round_is_refused_though_the_consumer_signed_it(consumer: Consumer) -> None:
    sealed = broadcast_of(consumer, 2)
    assert "not signed by the consumer" in refusal(consumer, 1, sealed.box, sealed.signature)
    signature = by_the_consumer(consumer, 1, sealed.box)
    assert "another session or round" in refusal(consumer, 1, sealed.box, signature)


def test_a_broadcast_under_another_sessions_key_or_with_a_byte_changed_is_refused(consumer: Consumer) -> None:
    other = broadcast_of(Consumer(blind_session(batch=2, noise_seed=5))).box
    own = broadcast_of(consumer).box
    for box in (other, own[:-1] + bytes([own[-1] ^ 1]), own[:-1], b"short"):
        assert "does not open" in refusal(consumer, 1, box, by_the_consumer(consumer, 1, box))


@pytest.mark.parametrize(
    ("weights", "what"),
    [
        (weights_of(1, 2, 3, 4), "do not have 8 coordinates"),
        (weights_of(*range(9)), "do not have 8 coordinates"),
        (np.zeros(8, dtype=np.int64), "do not have 8 coordinates"),
        (np.zeros(8, dtype=np.float64), "do not have 8 coordinates"),
        (np.full(8, -(2**31), dtype=np.int32), "over the limit"),
    ],
    ids=["short", "long", "of other numbers", "of floats", "too large"],
)
def test_a_broadcast_that_holds_no_weight_of_the_session_is_refused(
    consumer: Consumer, weights: Weights, what: str
) -> None:
    sealed = broadcast_of(consumer, 1, weights)
    assert what in refusal(consumer, 1, sealed.box, sealed.signature)


def test_a_broadcast_cannot_be_opened_before_the_map_was(consumer: Consumer) -> None:
    _, numerics = owner_of(consumer.session, A)
    sealed = broadcast_of(consumer)
    with pytest.raises(LocalProtocolError, match="before"):
        numerics.perform(ScoreBlind(1, sealed.box, sealed.signature, 1))
    assert isinstance(numerics.perform(OpenMap(consumer.map_of(A))), MapOpened)
    assert isinstance(numerics.perform(ScoreBlind(1, sealed.box, sealed.signature, 1)), BlindScored)


# -- the party -----------------------------------------------------------------------------------------


def test_without_a_key_there_is_no_owner() -> None:
    with pytest.raises(ConfigError, match="every owner needs a key, and owner-0 has none") as caught:
        owner_party(
            blind_session(),
            A,
            points_of(A),
            identity=None,
            noise=SimulatedNoise(1, A),
            scratch=None,
            memory_limit=2**40,
        )
    assert "hushbid keys new" in caught.value.advice
