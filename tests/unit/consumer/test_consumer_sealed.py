"""The consumer of a sealed session draws the map, opens boxes, and disputes mismatches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hushbid.consumer.events import Delivered
from hushbid.consumer.party import consumer_party
from hushbid.owner.events import Scored
from hushbid.protocol import limits
from hushbid.protocol.crypto.sealing import candidate_statement, pack_content, sign
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.secret_map import open_map
from hushbid.protocol.space.features import SEED_BYTES
from hushbid.protocol.wire.messages import Purchase, SealedCandidate, fixed
from tests.support.boxes import sealed_to
from tests.support.sealed_parties import (
    COLUMNS,
    OWNERS,
    Consumer,
    points_of,
    purchase_of,
    scored_by,
    sealed_session,
)

A, B = OWNERS


@pytest.fixture(scope="module")
def consumer() -> Consumer:
    return Consumer(sealed_session())


def resealed(consumer: Consumer, content: bytes, scored: Scored, *, signer: str = A) -> Purchase:
    """Owner A's delivery of that content: a box that opens, and a signature over it."""
    session = consumer.session
    candidate = scored.handed
    assert isinstance(candidate, SealedCandidate)
    box = sealed_to(session, CONSUMER, content)
    statement = candidate_statement(session.identifier, A, 1, 1, box, candidate.features)
    signature = sign(statement, session.simulated_identity(signer).signing)
    return purchase_of(A, scored, box=box, signature=signature)


def content_of(consumer: Consumer, point: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bytes:
    return pack_content(point, b"\x92\x01\xc0", consumer.session.box_bytes)


# -- the map -----------------------------------------------------------------------------------------


def test_the_consumer_draws_a_map_and_seals_it_to_every_owner_in_the_order_of_their_names() -> None:
    consumer = Consumer(sealed_session())
    session, released = consumer.session, consumer.released
    assert len(released.map_seed) == SEED_BYTES
    assert len(released.maps) == limits.MAP_BOX_BYTES * len(OWNERS)
    sender = session.public_identity(CONSUMER)
    drawn = session.space.map(released.map_seed)
    for owner in OWNERS:
        had, _ = open_map(consumer.map_of(owner), session, sender, session.simulated_identity(owner))
        assert had.digest == drawn.digest
    assert np.array_equal(
        released.seed_total,
        drawn.hash(np.random.default_rng(10).random((12, COLUMNS))[7:]).sum(axis=0, dtype=np.int64),
    )


def test_the_maps_seed_is_no_public_part_of_the_record(consumer: Consumer) -> None:
    item = consumer.released.item()
    assert set(item.public) == {"size", "seed_size", "noise_name"}
    assert item.private["map_seed"] == consumer.released.map_seed


# -- what is delivered -------------------------------------------------------------------------------


def test_an_honest_point_is_opened_and_not_disputed(consumer: Consumer) -> None:
    scored = scored_by(consumer, A)
    (delivered,) = consumer.check(purchase_of(A, scored))
    assert (delivered.owner, delivered.chosen_round, delivered.dispute) == (A, 5, "")
    assert delivered.candidate is not None
    assert np.array_equal(delivered.candidate.point, points_of(A).features[scored.rows[0]])
    assert delivered.candidate.attributes == points_of(A).attributes(scored.rows[0])


def flipped(consumer: Consumer, scored: Scored) -> Purchase:
    assert isinstance(scored.handed, SealedCandidate)
    box = scored.handed.box
    return purchase_of(A, scored, box=box[:-1] + bytes([box[-1] ^ 1]))


def sealed_to_another(consumer: Consumer, scored: Scored) -> Purchase:
    content = bytes(consumer.session.box_bytes)
    box = sealed_to(consumer.session, B, content)
    return purchase_of(A, scored, box=box)


def garbage(consumer: Consumer, scored: Scored) -> Purchase:
    return resealed(consumer, b"\xff" * consumer.session.box_bytes, scored)


def other_columns(consumer: Consumer, scored: Scored) -> Purchase:
    return resealed(consumer, content_of(consumer, np.full(COLUMNS + 1, 0.5)), scored)


def signed_by_another(consumer: Consumer, scored: Scored) -> Purchase:
    content = content_of(consumer, np.asarray(points_of(A).features[scored.rows[0]]))
    return resealed(consumer, content, scored, signer=B)


def sold_as_anothers(consumer: Consumer, scored: Scored) -> Purchase:
    return purchase_of(A, scored).model_copy(update={"owner": B})


def bid_in_another_round(consumer: Consumer, scored: Scored) -> Purchase:
    return purchase_of(A, scored).model_copy(update={"bid_round": 2})


def another_number(consumer: Consumer, scored: Scored) -> Purchase:
    return purchase_of(A, scored).model_copy(update={"handle": fixed(2)})


def another_point(consumer: Consumer, scored: Scored) -> Purchase:
    return resealed(consumer, content_of(consumer, np.full(COLUMNS, 0.123)), scored)


def outside_of_the_bounds(consumer: Consumer, scored: Scored) -> Purchase:
    return resealed(consumer, content_of(consumer, np.array([0.5, 0.5, 1.5])), scored)


DISPUTES: dict[str, tuple[Callable[[Consumer, Scored], Purchase], str, bool]] = {
    "a box that was altered": (flipped, "the box does not open", False),
    "a box for somebody else": (sealed_to_another, "the box does not open", False),
    "a box with garbage": (garbage, "the box holds no point", False),
    "a point of other columns": (other_columns, "the point has other columns than the session", False),
    "another owner's signature": (signed_by_another, "the owner's signature does not hold", True),
    "another owner's name": (sold_as_anothers, "the owner's signature does not hold", True),
    "another round of the bid": (bid_in_another_round, "the owner's signature does not hold", True),
    "another number": (another_number, "the box does not open", False),
    "features of another point": (another_point, "the features are not those of the point", True),
    "a point outside of the bounds": (
        outside_of_the_bounds,
        "the point is outside the public bounds",
        True,
    ),
}


@pytest.mark.parametrize("what", DISPUTES)
def test_what_is_not_as_it_should_be_is_disputed_and_harms_no_other(consumer: Consumer, what: str) -> None:
    make, dispute, readable = DISPUTES[what]
    second = purchase_of(A, scored_by(consumer, A, handle=2), handle=2)
    honest = [purchase_of(B, scored_by(consumer, B)), second]
    bad = make(consumer, scored_by(consumer, A))
    delivered = consumer.check(honest[0], bad, honest[1])
    assert [entry.dispute for entry in delivered] == ["", dispute, ""]
    assert (delivered[1].candidate is not None) is readable, "what can be read was chosen, and is judged"
    alone = (*consumer.check(honest[0]), *consumer.check(honest[1]))
    for entry, expected in zip((delivered[0], delivered[2]), alone, strict=True):
        assert same(entry, expected)


def same(one: Delivered, other: Delivered) -> bool:
    assert one.candidate is not None
    assert other.candidate is not None
    points = one.candidate.point, other.candidate.point
    return np.array_equal(*points) and replace(one, candidate=None) == replace(other, candidate=None)


def test_a_dispute_says_what_was_wrong_and_nothing_of_the_point(consumer: Consumer) -> None:
    (delivered,) = consumer.check(another_point(consumer, scored_by(consumer, A)))
    assert "0.123" not in delivered.dispute


def test_nothing_bought_is_nothing_checked(consumer: Consumer) -> None:
    assert consumer.check() == ()


def test_without_a_key_there_is_no_consumer() -> None:
    data = Dataset.from_arrays("v", np.full((5, COLUMNS), 0.5))
    with pytest.raises(ConfigError, match="the consumer needs a key, and has none") as caught:
        consumer_party(
            sealed_session(),
            identity=None,
            noise=SimulatedNoise(1, CONSUMER),
            validation=data,
            seed_set=Dataset.from_arrays("s", np.full((5, COLUMNS), 0.25)),
            store=lambda purchases: None,
        )
    assert "hushbid keys new" in caught.value.advice


@pytest.mark.parametrize(("shared", "refused"), [(20, True), (1, True), (0, False)])
def test_a_seed_set_of_the_validation_sets_own_points_is_refused(shared: int, refused: bool) -> None:
    """It enters every broadcast without noise."""
    session = sealed_session()
    rows = np.random.default_rng(1).random((40, COLUMNS))
    validation = rows[:20]
    seeds = np.concatenate([validation[:shared], rows[20 : 40 - shared]])
    arguments: dict[str, Any] = {
        "identity": session.simulated_identity(CONSUMER),
        "noise": SimulatedNoise(1, CONSUMER),
        "validation": Dataset.from_arrays("validation.npz", validation),
        "seed_set": Dataset.from_arrays("seed.npz", seeds),
        "store": lambda purchases: None,
    }
    if not refused:
        consumer_party(session, **arguments)
        return
    with pytest.raises(DataError, match=r"Rows of validation\.npz are in seed\.npz too"):
        consumer_party(session, **arguments)


def test_disputes_follow_from_a_point_alone(consumer: Consumer) -> None:
    good = purchase_of(A, scored_by(consumer, A))
    bad = purchase_of(B, scored_by(consumer, B), box=bytes(len(good.candidate.box)))  # type: ignore[union-attr]
    alone = {purchase.owner: consumer.check(purchase)[0].dispute for purchase in (good, bad)}
    assert alone == {A: "", B: "the box does not open"}
    # Neither those that came before, nor their order, nor the round in which a point was chosen, play a part.
    for purchases in ((good, bad), (bad, good), (bad, good, good.model_copy(update={"round": 6}))):
        checked = consumer.check(*purchases)
        assert [entry.dispute for entry in checked] == [alone[purchase.owner] for purchase in purchases]
