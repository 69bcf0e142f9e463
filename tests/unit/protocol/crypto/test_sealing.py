"""Sealing: boxes that open with one key and untouched only, contents of one size, signatures of one thing."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from typing import Any

import msgpack
import nacl.public
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hushbid.protocol import limits
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.crypto.sealing import (
    BETWEEN_BYTES,
    SEAL_BYTES,
    SIGNATURE_BYTES,
    batched_digest,
    batched_digests,
    candidate_statement,
    content_bytes,
    default_content_size,
    head_statement,
    open_between,
    open_sealed,
    pack_content,
    pack_contents,
    seal,
    seal_between,
    sign,
    unpack_content,
    verify_signature,
)
from hushbid.protocol.data.attributes import Attributes, pack_attributes
from hushbid.protocol.errors import ConfigError, DataError, LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.wire.arrays import ARRAY_EXT, Array, pack_array

CONSUMER, OWNER, OTHER = (
    Identity(hashlib.sha256(name).digest()) for name in (b"consumer", b"owner", b"other")
)
EPHEMERAL = hashlib.sha256(b"ephemeral").digest()
NONCE = hashlib.sha256(b"nonce").digest()[:24]
CONTEXT = b"map seed" + bytes(16)
SECRET = b"a point that nobody else may see"
BOX = seal(SECRET, CONSUMER.public.sealing, EPHEMERAL)
BETWEEN = seal_between(SECRET, OWNER.public.sealing, CONSUMER.sealing, NONCE, context=CONTEXT)

P = 2**255 - 19
LOW_ORDER = {
    "0": 0,
    "1": 1,
    "order 8": int.from_bytes(
        bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"), "little"
    ),
    "order 8, the other": int.from_bytes(
        bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"), "little"
    ),
    "-1": P - 1,
    "0, not canonical": P,
    "1, not canonical": P + 1,
}
"""The u-coordinates of Curve25519's points of low order, and of its twist's."""


def low_order(name: str) -> nacl.public.PublicKey:
    return nacl.public.PublicKey(LOW_ORDER[name].to_bytes(32, "little"))


def touched(data: bytes) -> list[bytes]:
    """The bytes with one of them changed, at every place, then cut and lengthened."""
    changed = [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(len(data))]
    return [*changed, data[:-1], data[1:], data[:1], b"", data + b"\0"]


def refused(call: Callable[[], object], offence: Offence) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        call()
    assert caught.value.offence is offence
    assert caught.value.advice
    assert caught.value.__cause__ is None
    assert SECRET.decode() not in str(caught.value)


def does_not_open(box: bytes) -> None:
    refused(lambda: open_sealed(box, CONSUMER.sealing), Offence.MISMATCH)


def does_not_open_between(box: bytes, sender: nacl.public.PublicKey = CONSUMER.public.sealing) -> None:
    refused(lambda: open_between(box, sender, OWNER.sealing, context=CONTEXT), Offence.MISMATCH)


# -- sealed boxes ------------------------------------------------------------------------------------------


@given(st.binary(max_size=300), st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_libsodium_opens_what_is_sealed_here_and_the_other_way_round(
    plaintext: bytes, seed: bytes, ephemeral: bytes
) -> None:
    recipient = Identity(seed)
    box = seal(plaintext, recipient.public.sealing, ephemeral)
    assert len(box) == len(plaintext) + SEAL_BYTES
    assert nacl.public.SealedBox(recipient.sealing).decrypt(box) == plaintext
    assert open_sealed(box, recipient.sealing) == plaintext
    theirs = nacl.public.SealedBox(recipient.public.sealing).encrypt(plaintext)
    assert open_sealed(theirs, recipient.sealing) == plaintext


def test_the_same_inputs_give_the_same_box_and_another_ephemeral_key_another() -> None:
    assert seal(SECRET, CONSUMER.public.sealing, EPHEMERAL) == BOX
    assert seal(SECRET, CONSUMER.public.sealing, bytes(32))[32:] != BOX[32:]
    known = "4f0ff48f8d0e6a59ed40f1ab7b2026afeb54a5928cccbbbcc2a3434d84de884c"
    assert hashlib.sha256(BOX).hexdigest() == known, "in another process too"


def test_a_box_of_which_any_byte_was_changed_does_not_open() -> None:
    for box in touched(BOX):
        does_not_open(box)


def test_a_box_for_somebody_else_does_not_open() -> None:
    refused(lambda: open_sealed(BOX, OWNER.sealing), Offence.MISMATCH)


@pytest.mark.parametrize("name", LOW_ORDER)
def test_nothing_is_sealed_to_a_key_of_low_order(name: str) -> None:
    with pytest.raises(ConfigError, match="low order") as caught:
        seal(SECRET, low_order(name), EPHEMERAL)
    assert SECRET.decode() not in str(caught.value)
    with pytest.raises(ConfigError, match="low order"):
        seal_between(SECRET, low_order(name), CONSUMER.sealing, NONCE, context=CONTEXT)


@pytest.mark.parametrize("name", LOW_ORDER)
def test_nothing_opens_that_came_by_a_key_of_low_order(name: str) -> None:
    does_not_open(bytes(low_order(name)) + BOX[32:])
    does_not_open_between(BETWEEN, low_order(name))


@pytest.mark.parametrize("length", [0, 31, 33])
def test_randomness_of_another_length_is_our_own_fault(length: int) -> None:
    with pytest.raises(LocalProtocolError, match=f"{length} bytes, not 32"):
        seal(SECRET, CONSUMER.public.sealing, bytes(length))
    with pytest.raises(LocalProtocolError, match=f"{length} bytes, not 24"):
        seal_between(SECRET, OWNER.public.sealing, CONSUMER.sealing, bytes(length), context=CONTEXT)


# -- boxes between two parties -----------------------------------------------------------------------------


def test_the_recipient_opens_a_box_of_the_senders() -> None:
    assert open_between(BETWEEN, CONSUMER.public.sealing, OWNER.sealing, context=CONTEXT) == SECRET
    assert len(BETWEEN) == len(SECRET) + BETWEEN_BYTES
    again = seal_between(SECRET, OWNER.public.sealing, CONSUMER.sealing, NONCE, context=CONTEXT)
    assert again == BETWEEN
    assert seal_between(b"", OWNER.public.sealing, CONSUMER.sealing, NONCE, context=b"")[:24] == NONCE


def test_a_box_between_two_of_which_any_byte_was_changed_does_not_open() -> None:
    for box in touched(BETWEEN):
        does_not_open_between(box)


MISUSES: dict[str, Callable[[], object]] = {
    "from somebody else": lambda: open_between(BETWEEN, OTHER.public.sealing, OWNER.sealing, context=CONTEXT),
    "for somebody else": lambda: open_between(
        BETWEEN, CONSUMER.public.sealing, OTHER.sealing, context=CONTEXT
    ),
    "of another session": lambda: open_between(
        BETWEEN, CONSUMER.public.sealing, OWNER.sealing, context=CONTEXT[:-1] + b"\1"
    ),
    "sent back to its sender": lambda: open_between(
        BETWEEN, OWNER.public.sealing, CONSUMER.sealing, context=CONTEXT
    ),
    "a bare box of the same two": lambda: open_between(
        bytes(nacl.public.Box(CONSUMER.sealing, OWNER.public.sealing).encrypt(SECRET, NONCE)),
        CONSUMER.public.sealing,
        OWNER.sealing,
        context=CONTEXT,
    ),
    "a sealed box, which anybody can make": lambda: open_between(
        seal(SECRET, OWNER.public.sealing, EPHEMERAL), CONSUMER.public.sealing, OWNER.sealing, context=CONTEXT
    ),
}


@pytest.mark.parametrize("name", MISUSES)
def test_a_box_between_two_opens_for_nothing_else(name: str) -> None:
    refused(MISUSES[name], Offence.MISMATCH)


# -- contents ----------------------------------------------------------------------------------------------

DTYPES = ["uint8", "int16", "int32", "int64", "float32", "float64"]


@st.composite
def points(draw: st.DrawFn) -> Array:
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    columns = draw(st.integers(1, 60))
    values = draw(st.lists(st.integers(0, 100), min_size=columns, max_size=columns))
    return np.array(values, dtype)


@given(points(), st.binary(max_size=300), st.integers(0, 100))
def test_a_point_comes_back_bit_for_bit_from_a_content_of_the_size_asked(
    point: Array, attributes: bytes, spare: int
) -> None:
    size = content_bytes(len(point), point.dtype, len(attributes)) + spare
    content = pack_content(point, attributes, size)
    assert len(content) == size
    back, back_attributes = unpack_content(content)
    assert (back.dtype, back.shape, back.tobytes()) == (point.dtype, point.shape, point.tobytes())
    assert back_attributes == attributes
    assert not back.flags.writeable
    assert pack_content(back, back_attributes, size) == content


@given(points(), st.lists(st.binary(max_size=300), max_size=5))
def test_many_points_are_packed_as_each_by_itself(point: Array, attributes: list[bytes]) -> None:
    rows = np.array([np.roll(point, place) for place in range(len(attributes))]).reshape(-1, len(point))
    rows, size = rows.astype(point.dtype), content_bytes(len(point), point.dtype, 300)
    alone = [pack_content(row, own, size) for row, own in zip(rows, attributes, strict=True)]
    assert pack_contents(rows, attributes, size) == alone


@pytest.mark.parametrize(
    ("rows", "attributes", "error"),
    [
        (np.array([[0.5], [np.nan]]), [b"", b""], LocalProtocolError),
        (np.zeros((2, 2)), [b"", bytes(limits.MAX_ATTRIBUTES + 1)], LocalProtocolError),
        (np.zeros((2, 2)), [b"", bytes(100)], DataError),
    ],
    ids=["a second that is not finite", "long attributes of the second", "a second that does not fit"],
)
def test_one_of_many_that_cannot_be_packed_is_refused_as_by_itself(
    rows: Array, attributes: list[bytes], error: type[Exception]
) -> None:
    with pytest.raises(error) as together:
        pack_contents(rows, attributes, 64)
    with pytest.raises(error) as alone:
        pack_content(rows[1], attributes[1], 64)
    assert str(together.value) == str(alone.value)


@given(st.integers(0, 6), st.integers(1, 40), st.integers(0, 2**32))
def test_digests_of_a_batch_are_those_of_its_points(count: int, dimension: int, seed: int) -> None:
    drawn = np.random.Generator(np.random.PCG64(seed))
    features = drawn.integers(-(2**15), 2**15, (count + 1, dimension)).astype(np.int16)
    boxes = [drawn.bytes(48) for _ in range(count + 1)]
    handles = drawn.integers(-(2**63), 2**63 - 1, count).tolist()
    alone = [batched_digest(*each) for each in zip(handles, boxes, features, strict=False)]
    assert batched_digests(handles, boxes, features) == alone, "padding at the end is left out"
    assert batched_digests(handles, [memoryview(box) for box in boxes], features) == alone


def test_sizes_do_not_depend_on_values() -> None:
    size = default_content_size(784)
    dark, light = np.zeros(784, np.uint8), np.full(784, 255, np.uint8)
    assert len(pack_content(dark, b"", size)) == len(pack_content(light, bytes(99), size)) == size


@pytest.mark.parametrize("columns", [1, 2, 64, 784, 8191, limits.MAX_COLUMNS])
def test_the_default_size_takes_float64_columns_and_200_bytes_of_attributes(columns: int) -> None:
    size = default_content_size(columns)
    assert size % 64 == 0
    assert columns * 8 + 256 <= size < columns * 8 + 256 + 64
    content = pack_content(np.full(columns, 0.1), pack_attributes(Attributes("x" * 99, "y" * 90), 200), size)
    assert unpack_content(content)[0].nbytes == columns * 8


def test_what_does_not_fit_is_refused_with_the_size_that_would_do() -> None:
    point = np.full(784, 77, np.uint8)
    needed = content_bytes(784, np.uint8, 12)
    assert len(pack_content(point, b"label and id", needed)) == needed
    for size in (0, 3, 4, 512, needed - 1):
        with pytest.raises(
            DataError, match=f"takes {needed} bytes, and the session's boxes hold {size}"
        ) as caught:
            pack_content(point, b"label and id", size)
        assert "acquisition.box_bytes" in caught.value.advice
        assert str(needed) in caught.value.advice
        assert "label and id" not in str(caught.value)
        assert "77" not in str(caught.value).replace(str(needed), "").replace(str(size), "")


@pytest.mark.parametrize(
    ("point", "attributes"),
    [
        (np.zeros((2, 2)), b""),
        (np.zeros(0), b""),
        (np.array([np.nan]), b""),
        (np.array([1j]), b""),
        (np.zeros(2), bytes(limits.MAX_ATTRIBUTES + 1)),
    ],
    ids=["two axes", "no columns", "not finite", "complex", "long attributes"],
)
def test_what_no_dataset_holds_is_not_packed(point: Array, attributes: bytes) -> None:
    with pytest.raises(LocalProtocolError):
        pack_content(point, attributes, 2**20)


def framed(packed: bytes, padding: bytes = bytes(8)) -> bytes:
    return struct.pack(">I", len(packed)) + packed + padding


def packed(*parts: Any) -> bytes:
    return bytes(msgpack.packb(parts))


POINT = msgpack.ExtType(ARRAY_EXT, pack_array(np.arange(3, dtype=np.uint8)))
GOOD = framed(packed(POINT, b"attributes"))
HOSTILE = {
    "nothing": b"",
    "three bytes": b"\0\0\0",
    "empty": bytes(64),
    "length of more than there is": struct.pack(">I", 2**32 - 1) + GOOD[4:],
    "length of less than there is": struct.pack(">I", 5) + GOOD[4:],
    "padding of ones": framed(packed(POINT, b"attributes"), b"\0\0\1\0"),
    "no padding but a byte": framed(packed(POINT, b"attributes"), b"\1"),
    "not msgpack": framed(b"\xc1" * 20),
    "two values": framed(packed(POINT, b"") + packed(POINT, b"")),
    "one part": framed(packed(POINT)),
    "three parts": framed(packed(POINT, b"", b"")),
    "a map": framed(msgpack.packb({1: 2})),
    "a number": framed(b"\x01"),
    "text for attributes": framed(packed(POINT, "attributes")),
    "parts exchanged": framed(packed(b"attributes", POINT)),
    "timestamp for a point": framed(packed(msgpack.Timestamp(1, 2), b"")),
    "timestamp out of range": framed(b"\x92\xc7\x0c\xff" + b"\xff" * 12 + b"\xc4\0"),
    "other extension": framed(packed(msgpack.ExtType(7, POINT.data), b"")),
    "two axes": framed(packed(msgpack.ExtType(ARRAY_EXT, pack_array(np.zeros((2, 2)))), b"")),
    "no axes": framed(packed(msgpack.ExtType(ARRAY_EXT, pack_array(np.array(1.0))), b"")),
    "no columns": framed(packed(msgpack.ExtType(ARRAY_EXT, pack_array(np.zeros(0))), b"")),
    "not finite": framed(
        packed(msgpack.ExtType(ARRAY_EXT, b"\6\1\1\0\0\0" + struct.pack("<d", np.inf)), b"")
    ),
    "array of a claimed length": framed(packed(msgpack.ExtType(ARRAY_EXT, b"\1\1\xff\xff\xff\xff"), b"")),
    "bytes of a claimed length": framed(b"\x92\xc6\xff\xff\xff\xff"),
    "deep": framed(b"\x91" * 5000),
    "array in a longer header": framed(b"\x92\xc8\0\x09\1" + POINT.data + b"\xc4\0"),
    "list in a longer header": framed(b"\xdc\0\2" + packed(POINT, b"")[1:]),
    "too many columns": framed(
        packed(msgpack.ExtType(ARRAY_EXT, pack_array(np.zeros(limits.MAX_COLUMNS + 1, np.uint8))), b"")
    ),
    "too long attributes": framed(packed(POINT, bytes(limits.MAX_ATTRIBUTES + 1))),
}


def test_the_layout_is_the_documented_one() -> None:
    assert pack_content(np.arange(3, dtype=np.uint8), b"attributes", len(GOOD)) == GOOD
    assert unpack_content(GOOD)[1] == b"attributes"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_malformed_and_nothing_else(name: str) -> None:
    refused(lambda: unpack_content(HOSTILE[name]), Offence.MALFORMED)


def is_malformed_or_packs_again(content: bytes) -> None:
    try:
        point, attributes = unpack_content(content)
    except RemoteProtocolError:
        refused(lambda: unpack_content(content), Offence.MALFORMED)
    else:
        assert pack_content(point, attributes, len(content)) == content


@given(st.binary(max_size=200) | st.binary(max_size=60).map(framed))
@example(GOOD)
def test_any_bytes_are_a_content_that_packs_to_them_or_malformed(content: bytes) -> None:
    is_malformed_or_packs_again(content)


@pytest.mark.parametrize("at", range(len(GOOD)))
def test_a_changed_byte_makes_another_content_or_none(at: int) -> None:
    for value in range(256):
        is_malformed_or_packs_again(GOOD[:at] + bytes([value]) + GOOD[at + 1 :])


# -- signatures --------------------------------------------------------------------------------------------

FEATURES = np.arange(-70, 70, dtype=np.int16)
STATED: dict[str, Any] = {
    "session": bytes(range(16)),
    "owner": "heron",
    "round": 7,
    "handle": 41,
    "box": BOX,
    "features": FEATURES,
}
OTHERWISE: dict[str, Any] = {
    "session": bytes(16),
    "owner": "stork",
    "round": 8,
    "handle": -41,
    "box": BOX[:-1],
    "features": FEATURES[::-1],
}
STATEMENT = candidate_statement(**STATED)
SIGNATURE = sign(STATEMENT, OWNER.signing)


def test_a_signature_is_its_statements_and_its_keys() -> None:
    assert len(SIGNATURE) == SIGNATURE_BYTES
    assert sign(candidate_statement(**STATED), OWNER.signing) == SIGNATURE
    assert verify_signature(STATEMENT, SIGNATURE, OWNER.public.verify)
    assert not verify_signature(STATEMENT, SIGNATURE, OTHER.public.verify)


@pytest.mark.parametrize("field", STATED)
def test_a_signature_does_not_do_for_another_candidate(field: str) -> None:
    other = candidate_statement(**STATED | {field: OTHERWISE[field]})
    assert other != STATEMENT
    assert not verify_signature(other, SIGNATURE, OWNER.public.verify)
    assert verify_signature(other, sign(other, OWNER.signing), OWNER.public.verify), "but its own does"


def test_features_of_another_type_or_shape_are_another_statement() -> None:
    shapes = [FEATURES, FEATURES.astype(np.int32), FEATURES.reshape(1, -1), FEATURES.view(np.int32)]
    assert len({candidate_statement(**STATED | {"features": features}) for features in shapes}) == 4


def test_names_do_not_run_into_what_follows() -> None:
    names = ["a", "a\0", "aa", ""]
    assert len({candidate_statement(**STATED | {"owner": name}) for name in names}) == 4
    assert len({len(candidate_statement(**STATED | {"owner": name})) for name in ("aa", "a\0")}) == 1


def test_a_statement_shows_nothing_of_the_features() -> None:
    assert FEATURES.tobytes()[:16] not in STATEMENT
    assert len(STATEMENT) < 150


def test_a_changed_signature_or_one_of_another_length_is_none() -> None:
    for signature in (*touched(SIGNATURE), bytes(64), b"\xff" * 64):
        assert not verify_signature(STATEMENT, signature, OWNER.public.verify)


def test_a_session_identifier_of_another_length_is_our_own_fault() -> None:
    with pytest.raises(LocalProtocolError, match="17 bytes, not 16"):
        candidate_statement(**STATED | {"session": bytes(17)})


# -- heads of transcripts ----------------------------------------------------------------------------

SESSION = bytes(range(16))
HEAD = hashlib.sha256(b"head").digest()


def test_the_signature_of_a_head_holds_for_it_and_nothing_else() -> None:
    statement = head_statement(SESSION, "heron", HEAD)
    signature = sign(statement, OWNER.signing)
    assert verify_signature(statement, signature, OWNER.public.verify)
    others = [
        head_statement(bytes(16), "heron", HEAD),
        head_statement(SESSION, "wren", HEAD),
        head_statement(SESSION, "heron", bytes(32)),
    ]
    assert not any(verify_signature(other, signature, OWNER.public.verify) for other in others)
    assert not verify_signature(statement, signature, OTHER.public.verify)
    assert not verify_signature(statement, b"", OWNER.public.verify)


def test_a_head_statement_is_the_documented_bytes() -> None:
    assert head_statement(SESSION, "héron", HEAD) == (
        b"hushbid transcript head 1\0" + SESSION + HEAD + struct.pack("<I", 6) + "héron".encode()
    )


def test_the_identifier_of_a_session_has_sixteen_bytes() -> None:
    with pytest.raises(LocalProtocolError, match="15 bytes"):
        head_statement(SESSION[:15], "heron", HEAD)
