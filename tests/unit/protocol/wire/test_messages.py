"""What messages may contain, and who may send them."""

from __future__ import annotations

import hashlib
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from hushbid.protocol import limits
from hushbid.protocol.wire import messages
from hushbid.protocol.wire.bids import bids_of
from hushbid.protocol.wire.blind import BlindBid
from hushbid.protocol.wire.codec import HEADER_BYTES, Direction, decode_message, encode_message
from hushbid.protocol.wire.messages import (
    Batch,
    BatchedCandidate,
    Beat,
    Bid,
    Broadcast,
    Candidate,
    Delivery,
    Hello,
    Message,
    Purchase,
    SealedCandidate,
    SealedCandidates,
    SecretMap,
    Target,
    boxes_of,
    candidate_of,
    fixed,
    sizes,
    unfixed,
    with_boxes,
    without_box,
)
from tests.support.message_cases import CASES, TO_CONSUMER, plain, sealed, values


def every_message() -> dict[str, type[Message]]:
    """All message classes of `hushbid.protocol.wire.messages`, by kind."""
    found = [value for value in vars(messages).values() if isinstance(value, type)]
    kinds = [value for value in found if issubclass(value, Message) and value is not Message]
    return {cls.model_fields["kind"].default: cls for cls in kinds}


def every_model() -> list[type[BaseModel]]:
    found = [value for value in vars(messages).values() if isinstance(value, type)]
    return [value for value in found if issubclass(value, BaseModel) and value not in (BaseModel, Message)]


def test_the_table_of_cases_has_every_kind_of_message() -> None:
    assert {type(case.message) for case in CASES.values()} == set(every_message().values())


def test_the_table_of_cases_has_every_kind_of_every_direction() -> None:
    unions = {
        Direction.OWNER_TO_CURATOR: messages.OwnerToCurator,
        Direction.CONSUMER_TO_CURATOR: messages.ConsumerToCurator,
        Direction.CURATOR_TO_OWNER: messages.CuratorToOwner,
        Direction.CURATOR_TO_CONSUMER: messages.CuratorToConsumer,
    }
    for direction, union in unions.items():
        members = get_args(get_args(union)[0])
        assert {type(case.message) for case in CASES.values() if direction in case.allowed} == set(members)
    assert set(unions) | {Direction.GREETING} == set(Direction)


@pytest.mark.parametrize("model", every_model(), ids=lambda model: model.__name__)
def test_every_part_of_a_message_is_frozen_strict_and_closed(model: type[BaseModel]) -> None:
    config = model.model_config
    assert (config["frozen"], config["strict"], config["extra"]) == (True, True, "forbid")
    assert len(model.model_fields) <= limits.MAX_MESSAGE_FIELDS


@pytest.mark.parametrize("model", every_message().values(), ids=lambda model: model.__name__)
def test_the_kind_comes_first_and_no_other_field_has_a_default(model: type[Message]) -> None:
    """A default would be filled in for a missing field, and the message then refused for its bytes."""
    fields = model.model_fields
    assert next(iter(fields)) == "kind"
    assert [name for name, field in fields.items() if not field.is_required()] == ["kind"]


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_fixed_integer_comes_back(value: int) -> None:
    assert unfixed(fixed(value)) == value
    assert not fixed(value).flags.writeable


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_an_integer_beyond_64_bits_has_no_fixed_size(value: int) -> None:
    with pytest.raises(OverflowError):
        fixed(value)


def refused(name: str, /, **fields: Any) -> str:
    """The type of the error for a case's message with other fields."""
    message = CASES[name].message
    with pytest.raises(ValidationError) as caught:
        type(message)(**message.__dict__ | fields)
    return str(caught.value.errors()[0]["type"])


@pytest.mark.parametrize(
    ("name", "field", "value", "error"),
    [
        ("hello", "name", "", "string_pattern_mismatch"),
        ("hello", "name", "Clinic", "string_pattern_mismatch"),
        ("hello", "name", "clinic\n", "string_pattern_mismatch"),
        ("hello", "name", "a" * 65, "string_pattern_mismatch"),
        ("hello", "role", "curator", "literal_error"),
        ("hello", "versions", (), "too_short"),
        ("hello", "versions", (0,), "greater_than_equal"),
        ("hello", "versions", [1], "tuple_type"),
        ("hello", "session", bytes(31), "bytes_too_short"),
        ("hello", "session", bytes(33), "bytes_too_long"),
        ("hello", "sent", -1, "greater_than_equal"),
        ("hello", "sent", True, "int_type"),
        ("hello", "sent", 2**53 + 1, "less_than_equal"),
        ("refused", "detail", "x" * (limits.MAX_ERROR_DETAIL + 1), "string_too_long"),
        ("broadcast", "round", limits.MAX_POINTS + 1, "less_than_equal"),
        ("broadcast", "weights", values(1, dtype="int64"), "array_dtype"),
        ("broadcast", "weights", np.zeros(4, ">i4"), "array_dtype"),
        ("broadcast", "weights", np.zeros(limits.MAX_DIMENSION + 2, np.int32), "array_too_long"),
        ("broadcast", "weights", [1, 2], "array_type"),
        ("target", "embedding", values(1, dtype="float32"), "array_dtype"),
        ("target", "size", 0, "greater_than_equal"),
        ("target", "maps", bytes(limits.MAP_BOX_BYTES * limits.MAX_OWNERS + 1), "bytes_too_long"),
        ("secret-map", "box", bytes(limits.MAP_BOX_BYTES - 1), "bytes_too_short"),
        ("secret-map", "box", bytes(limits.MAP_BOX_BYTES + 1), "bytes_too_long"),
        ("welcome", "feature_map", bytes(31), "bytes_too_short"),
        ("bid", "score", values(1, 2, dtype="int64"), "array_shape"),
        ("bid", "score", 1, "array_type"),
        ("bid", "exhausted", 0, "bool_type"),
        ("receipt", "part", 0, "greater_than_equal"),
        ("close", "outcome", "won", "literal_error"),
        ("close", "head", bytes(31), "bytes_too_short"),
        ("close", "signature", bytes(65), "bytes_too_long"),
        ("farewell", "head", bytes(33), "bytes_too_long"),
        ("farewell", "signature", bytes(65), "bytes_too_long"),
    ],
)
def test_a_field_outside_of_its_range_is_refused(name: str, field: str, value: Any, error: str) -> None:
    assert refused(name, **{field: value}) == error


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("point", np.zeros(limits.MAX_COLUMNS + 1, np.uint8), "array_too_long"),
        ("point", np.zeros(0), "array_shape"),
        ("point", np.zeros((1, 3)), "array_shape"),
        ("point", np.zeros(3, np.uint16), "array_dtype"),
        ("point", np.zeros(3, np.bool_), "array_dtype"),
        ("features", np.zeros(limits.MAX_DIMENSION + 1, np.int16), "array_too_long"),
        ("features", np.zeros(4, np.int32), "array_dtype"),
        ("attributes", bytes(limits.MAX_ATTRIBUTES + 1), "bytes_too_long"),
    ],
)
def test_a_candidate_outside_of_its_range_is_refused(field: str, value: Any, error: str) -> None:
    good: dict[str, Any] = {
        "point": np.zeros(3),
        "features": np.zeros(4, np.int16),
        "attributes": b"",
    }
    Candidate(**good)
    with pytest.raises(ValidationError) as caught:
        Candidate(**good | {field: value})
    assert caught.value.errors()[0]["type"] == error


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("box", b"", "bytes_too_short"),
        ("box", bytes(limits.MAX_BOX_BYTES + 1), "bytes_too_long"),
        ("signature", bytes(63), "bytes_too_short"),
        ("signature", bytes(65), "bytes_too_long"),
        ("features", np.zeros(4, np.int32), "array_dtype"),
    ],
)
def test_a_sealed_candidate_outside_of_its_range_is_refused(field: str, value: Any, error: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SealedCandidate(**dict(sealed(80)) | {field: value})
    assert caught.value.errors()[0]["type"] == error


def largest_candidate() -> Candidate:
    return Candidate(
        point=np.ones(limits.MAX_COLUMNS),
        features=np.ones(limits.MAX_DIMENSION, np.int16),
        attributes=bytes(limits.MAX_ATTRIBUTES),
    )


def largest_sealed() -> SealedCandidate:
    return SealedCandidate(
        features=np.ones(limits.MAX_DIMENSION, np.int16),
        box=bytes(limits.MAX_BOX_BYTES),
        signature=bytes(64),
    )


def test_the_largest_messages_fit_their_limits() -> None:
    wide = limits.MAX_DIMENSION
    largest: list[Message] = [
        *(
            Bid(
                round=limits.MAX_POINTS,
                exhausted=False,
                score=fixed(1),
                handle=fixed(1),
                candidate=candidate,
            )
            for candidate in (largest_candidate(), largest_sealed())
        ),
        Broadcast(round=limits.MAX_POINTS, weights=np.ones(wide, np.int32), noise="n" * 64),
        Hello(
            versions=(2**16,) * limits.MAX_VERSIONS,
            role="consumer",
            name="n" * 64,
            session=bytes(32),
            software="φ" * limits.MAX_TEXT,
            sent=2**53,
            received=2**53,
        ),
    ]
    for message in largest:
        assert len(encode_message(message)) <= limits.MAX_MESSAGE_BYTES


def test_the_largest_target_fits_its_own_limit() -> None:
    """It has a sealed map for each of the most owners."""
    wide = limits.MAX_DIMENSION
    target = Target(
        embedding=np.ones(wide),
        size=2**53,
        seed_total=np.ones(wide, np.int64),
        seed_size=2**53,
        maps=bytes(limits.MAP_BOX_BYTES * limits.MAX_OWNERS),
        noise="n" * 64,
    )
    body = encode_message(target)
    assert limits.MAX_MESSAGE_BYTES < len(body) <= limits.MAX_TARGET_BYTES
    assert isinstance(decode_message(Direction.CONSUMER_TO_CURATOR, body), Target)


@pytest.mark.parametrize("candidate", [largest_candidate(), largest_sealed()], ids=["open", "sealed"])
def test_a_part_of_a_delivery_that_is_as_long_as_allowed_fits_a_frame(
    candidate: Candidate | SealedCandidate,
) -> None:
    purchase = Purchase(
        owner="o" * 64,
        round=limits.MAX_POINTS,
        bid_round=limits.MAX_POINTS,
        handle=fixed(limits.MAX_POINTS),
        candidate=candidate,
    )
    size = len(candidate.box) if isinstance(candidate, SealedCandidate) else candidate.point.nbytes
    delivery = Delivery(
        part=2**31, parts=2**31, purchases=(purchase,) * (limits.DELIVERY_CHUNK_BYTES // size + 1)
    )
    assert HEADER_BYTES + len(encode_message(delivery)) <= limits.MAX_FRAME_BYTES


def test_a_part_of_a_delivery_has_a_most_of_points() -> None:
    candidate = Candidate(point=np.ones(1), features=np.ones(4, np.int16), attributes=b"")
    purchase = Purchase(owner="o", round=1, bid_round=1, handle=fixed(1), candidate=candidate)
    Delivery(part=1, parts=1, purchases=(purchase,) * limits.MAX_PURCHASES)
    with pytest.raises(ValidationError) as caught:
        Delivery(part=1, parts=1, purchases=(purchase,) * (limits.MAX_PURCHASES + 1))
    (error,) = caught.value.errors(include_input=False)  # with its input it takes seconds to print
    assert "at most" in error["msg"]


@pytest.mark.parametrize("name", CASES)
def test_a_message_made_unchecked_is_the_checked_one_whatever_the_order_of_its_fields(name: str) -> None:
    message = CASES[name].message
    backwards = dict(reversed(vars(message).items()))
    del backwards["kind"]
    made = type(message).model_construct(**backwards)
    assert encode_message(made) == encode_message(message)
    assert made.kind == message.kind


def test_a_sealed_bid_is_kept_with_the_digest_of_its_box_and_all_else_as_it_was() -> None:
    bid = CASES["bid-sealed"].message
    assert isinstance(bid, Bid)
    assert isinstance(bid.candidate, SealedCandidate)
    kept = without_box(bid)
    assert isinstance(kept, Bid)
    assert isinstance(kept.candidate, SealedCandidate)
    assert kept.candidate.box == hashlib.sha256(bid.candidate.box).digest()
    assert kept.candidate.signature == bid.candidate.signature
    assert plain(kept) | {"candidate": None} == plain(bid) | {"candidate": None}
    assert len(bid.candidate.box) > 32, "the bid itself still has it"


def test_boxes_of_a_blind_bid_are_kept_as_their_digests() -> None:
    bid = CASES["blind-bid"].message
    assert isinstance(bid, BlindBid)
    kept = without_box(bid)
    assert isinstance(kept, BlindBid)
    boxes = [bid.boxes[at : at + 368] for at in (0, 368)]
    assert kept.boxes == b"".join(hashlib.sha256(box).digest() for box in boxes)
    assert plain(kept) | {"boxes": None} == plain(bid) | {"boxes": None}


OF_BOXES = ("bid-sealed", "batch-sealed", "submission", "blind-bid")


@pytest.mark.parametrize("name", [name for name in CASES if name not in OF_BOXES])
def test_messages_without_a_box_that_may_lose_are_kept_as_they_are(name: str) -> None:
    """A delivery's boxes were bought, and those of the map belong to everybody."""
    assert without_box(CASES[name].message) is None


@pytest.mark.parametrize("made", [CASES["offer"].message, CASES["bid-sealed"].message])
def test_a_point_comes_back_from_its_fields(made: Message) -> None:
    point = made.__dict__["candidate"]
    back = candidate_of(dict(point))
    assert type(back) is type(point)
    assert plain(back) == plain(point)


def batch_of(name: str) -> Batch:
    made = CASES[name].message
    assert isinstance(made, Batch)
    return made


def test_a_batch_is_a_bid_for_each_of_its_points() -> None:
    first, padding = bids_of(batch_of("batch"))
    assert (first.round, first.score, first.handle) == (2, -(2**52), 2)
    assert not first.exhausted
    assert (padding.handle, padding.exhausted) == (0, True)
    candidate = first.candidate
    assert isinstance(candidate, Candidate)
    assert candidate.point.tolist() == [0.25, 0.0, 1e-300]
    assert candidate.features.tolist() == [-(2**14), 0, 1, 2**14]
    assert candidate.attributes == bytes(range(5))


def test_points_of_a_sealed_batch_bring_all_digests_and_the_one_signature() -> None:
    made = batch_of("batch-sealed")
    assert isinstance(made.candidates, SealedCandidates)
    for place, bid in enumerate(bids_of(made)):
        candidate = bid.candidate
        assert isinstance(candidate, BatchedCandidate)
        assert candidate.box == made.candidates.boxes[368 * place : 368 * (place + 1)]
        assert (candidate.digests, candidate.signature) == (made.candidates.digests, bytes(range(64)))
        assert plain(candidate_of(dict(candidate))) == plain(candidate)


def test_a_sealed_batch_is_kept_with_the_digests_of_its_boxes_and_comes_back() -> None:
    made = batch_of("batch-sealed")
    boxes = {hashlib.sha256(box).digest(): box for box in boxes_of(made)}
    kept = without_box(made)
    assert isinstance(kept, Batch)
    assert isinstance(kept.candidates, SealedCandidates)
    assert kept.candidates.boxes == b"".join(boxes)
    assert encode_message(with_boxes(kept, boxes.__getitem__)) == encode_message(made)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("batch", {"scores": sizes([1])}),
        ("batch", {"handles": sizes([2, 3, 4])}),
        ("batch", {"points": np.zeros(5)}),
        ("batch", {"features": np.zeros(7, dtype=np.int16)}),
        ("batch", {"attributes": bytes(9)}),
        ("batch-sealed", {"boxes": bytes(735)}),
        ("batch-sealed", {"digests": bytes(32)}),
        ("batch-sealed", {"digests": bytes(96)}),
    ],
    ids=str,
)
def test_a_batch_has_one_of_each_for_every_point(name: str, changes: dict[str, Any]) -> None:
    made = batch_of(name)
    inner = {key: value for key, value in changes.items() if key in type(made.candidates).model_fields}
    candidates = made.candidates.model_copy(update=inner)
    others = {key: changes[key] for key in changes.keys() - inner}
    with pytest.raises(ValidationError, match="one number of points"):
        Batch(**{**dict(made), **others, "candidates": candidates})


def test_a_secret_map_goes_to_owners_and_nobody_else() -> None:
    assert CASES["secret-map"].allowed == {Direction.CURATOR_TO_OWNER}
    assert isinstance(CASES["secret-map"].message, SecretMap)
    assert TO_CONSUMER not in CASES["ready"].allowed


def test_a_message_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Beat().kind = "beat"


def test_a_close_and_a_farewell_have_no_room_for_who_won() -> None:
    """DESIGN §3, "No feedback": a head is a digest of commitments with secret salts, and reveals nothing."""
    assert plain(CASES["close"].message).keys() == {"kind", "outcome", "head", "signature"}
    assert plain(CASES["farewell"].message).keys() == {"kind", "head", "signature"}
