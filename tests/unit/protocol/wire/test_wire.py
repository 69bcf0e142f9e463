"""Frames and bodies: a message, or a `RemoteProtocolError` with the right offence, never anything else."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hushbid.protocol import limits
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.wire.arrays import pack_array
from hushbid.protocol.wire.codec import (
    FRAME_VERSION,
    HEADER_BYTES,
    Direction,
    Frame,
    decode_frame,
    decode_message,
    encode_frame,
    encode_message,
)
from hushbid.protocol.wire.messages import Beat, Bid, Candidate, Message, SealedCandidate, fixed
from tests.support.examples import examples
from tests.support.message_cases import (
    CASES,
    FROM_CONSUMER,
    FROM_OWNER,
    GREETING,
    TO_CONSUMER,
    TO_OWNER,
    candidate,
    pack,
    plain,
    same,
    sealed,
)

MARK = "qzqz-7919-private"
"""What a test puts where a private value could stand; no error may show it."""

BODIES = {name: encode_message(case.message) for name, case in CASES.items()}
FRAMES = {name: encode_frame(case.frame(BODIES[name])) for name, case in CASES.items()}


def offence_of(direction: Direction, body: bytes) -> Offence:
    with pytest.raises(RemoteProtocolError) as caught:
        decode_message(direction, body)
    error = caught.value
    # The errors of msgpack and pydantic hold the input: they must not be shown with ours.
    assert error.__context__ is None or error.__suppress_context__
    assert MARK not in str(error)
    return error.offence


def changed(name: str, change: Callable[[dict[str, Any]], object]) -> bytes:
    """The body of a case after `change`, packed by the library alone."""
    fields = plain(CASES[name].message)
    change(fields)
    return pack(fields)


def ext(array: Any, code: int = 1) -> msgpack.ExtType:
    return msgpack.ExtType(code, pack_array(np.asarray(array)))


# -- frames -------------------------------------------------------------------------------------------


@given(
    st.builds(
        Frame,
        st.binary(min_size=16, max_size=16),
        st.integers(0, 2**64 - 1),
        st.integers(0, 2**64 - 1),
        st.binary(max_size=80),
    )
)
def test_a_frame_comes_back(frame: Frame) -> None:
    data = encode_frame(frame)
    assert len(data) == HEADER_BYTES + len(frame.body)
    assert decode_frame(data) == frame


BEAT = FRAMES["beat"]


@pytest.mark.parametrize(
    ("data", "offence"),
    [
        (b"", Offence.MALFORMED),
        (BEAT[:3], Offence.MALFORMED),
        (BEAT[:5], Offence.MALFORMED),
        (BEAT[: HEADER_BYTES - 1], Offence.MALFORMED),
        (b"GET / HTTP/1.1\r\n\r\n" + bytes(40), Offence.MAGIC),
        (b"HBIX" + BEAT[4:], Offence.MAGIC),
        (b"X", Offence.MAGIC),
        (BEAT[:4] + b"\0" + BEAT[5:], Offence.VERSION),
        (BEAT[:4] + bytes([FRAME_VERSION + 1]) + BEAT[5:], Offence.VERSION),
        (BEAT[:4] + b"\xff", Offence.VERSION),
        (BEAT + bytes(limits.MAX_FRAME_BYTES + 1 - len(BEAT)), Offence.OVERSIZED),
    ],
    ids=[
        "empty",
        "magic-cut",
        "version-only",
        "header-cut",
        "http",
        "other-magic",
        "other-magic-cut",
        "version-0",
        "version-next",
        "version-255-cut",
        "oversized",
    ],
)
def test_a_bad_frame_is_refused(data: bytes, offence: Offence) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        decode_frame(data)
    assert caught.value.offence is offence


def test_the_longest_frame_is_allowed_both_ways_and_one_byte_more_is_not() -> None:
    body = bytes(limits.MAX_FRAME_BYTES - HEADER_BYTES)
    frame = Frame(bytes(16), 1, 1, body)
    assert decode_frame(encode_frame(frame)) == frame
    with pytest.raises(LocalProtocolError, match="over the limit"):
        encode_frame(frame._replace(body=body + b"\0"))


# -- bodies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("direction", Direction)
def test_a_message_is_decoded_in_its_own_directions_only(name: str, direction: Direction) -> None:
    case = CASES[name]
    if direction in case.allowed:
        assert same(decode_message(direction, BODIES[name]), case.message)
    else:
        assert offence_of(direction, BODIES[name]) is Offence.MALFORMED


@pytest.mark.parametrize("name", CASES)
def test_every_truncation_and_every_tail_is_refused(name: str) -> None:
    direction, body = CASES[name].direction, BODIES[name]
    for length in range(len(body)):
        assert offence_of(direction, body[:length]) is Offence.MALFORMED
    for tail in (b"\0", b"\xc0", body):
        assert offence_of(direction, body + tail) is Offence.MALFORMED


@pytest.mark.parametrize("name", CASES)
def test_fields_stand_once_and_in_declared_order(name: str) -> None:
    direction = CASES[name].direction
    fields = plain(CASES[name].message)
    pairs = [pack(key) + pack(value) for key, value in fields.items()]
    head = BODIES[name][:1]
    assert head + b"".join(pairs) == BODIES[name]
    if len(pairs) > 1:
        assert offence_of(direction, head + b"".join(reversed(pairs))) is Offence.NOT_CANONICAL
    doubled = bytes([head[0] + 1]) + b"".join(pairs) + pairs[-1]
    assert offence_of(direction, doubled) is Offence.NOT_CANONICAL


@pytest.mark.parametrize("name", CASES)
def test_a_missing_or_unknown_field_is_refused(name: str) -> None:
    direction = CASES[name].direction
    fields = plain(CASES[name].message)
    for field in fields:
        without = pack({key: value for key, value in fields.items() if key != field})
        # A hello is the only message of its direction, which needs no kind to be told; but it has one.
        lenient = field == "kind" and direction is GREETING
        assert offence_of(direction, without) is (Offence.NOT_CANONICAL if lenient else Offence.MALFORMED)
    assert offence_of(direction, pack(fields | {"more": MARK})) is Offence.MALFORMED


OPTIONAL = {"candidate", "feature_map"}
WRONG = [None, True, -1, 2**64 - 1, 1.5, MARK, MARK.encode(), [MARK], {"a": MARK}, ext([1.0]), ext([[1]])]


@pytest.mark.parametrize("name", CASES)
def test_a_value_of_another_type_is_refused_and_never_shown(name: str) -> None:
    """Field by field, every type of msgpack; accepted values were of the right type."""
    direction, message = CASES[name].direction, CASES[name].message
    for field, value in plain(message).items():
        for wrong in WRONG:
            body = pack(plain(message) | {field: wrong})
            optional = wrong is None and field in OPTIONAL
            if optional or (type(wrong) is type(value) and accepted(direction, body) is not None):
                continue
            assert offence_of(direction, body) in {Offence.MALFORMED, Offence.OVERSIZED}


def _bid(**fields: Any) -> bytes:
    return changed("bid", lambda bid: bid.update(fields))


def _candidate(**fields: Any) -> bytes:
    return changed("bid", lambda bid: bid["candidate"].update(fields))


def _sealed(**fields: Any) -> bytes:
    return changed("bid-sealed", lambda bid: bid["candidate"].update(fields))


def _not_finite(number: float, dtype: str) -> msgpack.ExtType:
    good = pack_array(np.zeros(3, dtype))
    return msgpack.ExtType(1, good[:6] + np.array([0, number, 0], dtype).tobytes())


def countless(parts: bytes, width: int) -> bytes:
    """A body of the longest allowed length, of nested lists of `width` times the same parts."""
    while len(parts) * width < limits.MAX_MESSAGE_BYTES - 10:
        parts = bytes([0x90 | width]) + parts * width
    return parts


@pytest.mark.parametrize("direction", [d for d in Direction if d is not TO_CONSUMER], ids=str)
@pytest.mark.parametrize(
    "part",
    [b"\x80", b"\x90", b"\xc7\x03\x01\x01\x00\x00", b"\xc0"],
    ids=["maps", "lists", "arrays", "nothings"],
)
def test_a_body_of_countless_parts_fails_at_the_first_too_many(
    direction: Direction, part: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked = 0

    def unpack(code: int, payload: bytes) -> Any:
        nonlocal unpacked
        unpacked += 1
        return None

    monkeypatch.setattr("hushbid.protocol.wire.codec.unpack_extension", unpack)
    body = countless(part, 15)
    assert len(body) > limits.MAX_MESSAGE_BYTES // 16
    tracemalloc.start()
    try:
        assert offence_of(direction, body) is Offence.MALFORMED
        assert tracemalloc.get_traced_memory()[1] < 100_000, "next to nothing is built"
    finally:
        tracemalloc.stop()
    assert unpacked <= limits.MAX_MESSAGE_PARTS


def test_every_message_is_within_the_parts_that_are_allowed() -> None:
    for case in CASES.values():
        for direction in set(case.allowed) - {TO_CONSUMER}:
            assert same(decode_message(direction, encode_message(case.message)), case.message)


def _nested(depth: int, head: bytes, leaf: bytes) -> bytes:
    return head * depth + leaf


NINE_AXES = msgpack.ExtType(1, bytes([2, 9]) + struct.pack("<9I", *[1] * 9) + b"\0\0")
HUGE_AXIS = msgpack.ExtType(1, bytes([6, 1]) + struct.pack("<I", 2**32 - 1) + bytes(8))
LONG_TEXT = MARK * (limits.MAX_TEXT // len(MARK) + 1)

BAD_BODIES: dict[str, tuple[Direction, bytes, Offence]] = {
    "nothing": (FROM_OWNER, b"", Offence.MALFORMED),
    "a number": (FROM_OWNER, b"\x01", Offence.MALFORMED),
    "an array in a message's place": (FROM_OWNER, pack(ext([1.0])), Offence.MALFORMED),
    "never used by msgpack": (FROM_OWNER, b"\xc1", Offence.MALFORMED),
    "unknown kind": (FROM_OWNER, pack({"kind": MARK}), Offence.MALFORMED),
    "kind is an array": (FROM_OWNER, pack({"kind": ext([1.0])}), Offence.MALFORMED),
    "key is a number": (FROM_OWNER, b"\x81\x01\x01", Offence.MALFORMED),
    "key is bytes": (FROM_OWNER, b"\x81\xc4\x04kind\xa4beat", Offence.MALFORMED),
    "text is not UTF-8": (FROM_OWNER, b"\x81\xa4kind\xa4b\xffat", Offence.MALFORMED),
    "text is a surrogate": (FROM_OWNER, b"\x81\xa4kind\xa3\xed\xa0\x80", Offence.MALFORMED),
    "str where bytes": (FROM_OWNER, _candidate(attributes=MARK), Offence.MALFORMED),
    "bytes where str": (GREETING, changed("hello", lambda h: h.update(name=b"x")), Offence.MALFORMED),
    "bool where int": (FROM_OWNER, _bid(round=True), Offence.MALFORMED),
    "float where int": (FROM_OWNER, _bid(round=2.0), Offence.MALFORMED),
    "int where bool": (FROM_OWNER, _bid(exhausted=0), Offence.MALFORMED),
    "round 0": (FROM_OWNER, _bid(round=0), Offence.MALFORMED),
    "a bare int where its size would tell": (FROM_OWNER, _bid(score=5), Offence.MALFORMED),
    "padded int": (
        FROM_OWNER,
        BODIES["bid"].replace(b"\xa5round\x02", b"\xa5round\xcc\x02"),
        Offence.NOT_CANONICAL,
    ),
    "int padded to 64 bits": (
        FROM_OWNER,
        BODIES["bid"].replace(b"\xa5round\x02", b"\xa5round\xd3" + bytes(7) + b"\x02"),
        Offence.NOT_CANONICAL,
    ),
    "padded text": (
        FROM_OWNER,
        BODIES["bid"].replace(b"\xa5round\x02", b"\xd9\x05round\x02"),
        Offence.NOT_CANONICAL,
    ),
    "padded map": (FROM_OWNER, b"\xde\x00\x01" + BODIES["beat"][1:], Offence.NOT_CANONICAL),
    "padded array head": (
        FROM_OWNER,
        BODIES["bid"].replace(b"\xc7\x0e\x01", b"\xc8\x00\x0e\x01"),
        Offence.NOT_CANONICAL,
    ),
    "keys of a part in another order": (
        FROM_OWNER,
        changed("bid", lambda b: b.update(candidate=dict(reversed(b["candidate"].items())))),
        Offence.NOT_CANONICAL,
    ),
    "unknown key of a part": (FROM_OWNER, _candidate(more=MARK), Offence.MALFORMED),
    "extension of unknown type": (FROM_OWNER, _bid(score=ext([1], code=2)), Offence.MALFORMED),
    "timestamp": (FROM_OWNER, _bid(score=msgpack.Timestamp(7, 7)), Offence.MALFORMED),
    "broken timestamp": (FROM_OWNER, b"\xd7\xff" + b"\xff" * 8, Offence.MALFORMED),
    "wrong dtype": (FROM_OWNER, _candidate(features=ext(np.zeros(4, np.int32))), Offence.MALFORMED),
    "dtype off the list": (FROM_OWNER, _bid(score=msgpack.ExtType(1, b"\x09\x00")), Offence.MALFORMED),
    "NaN": (FROM_OWNER, _candidate(point=_not_finite(np.nan, "float64")), Offence.MALFORMED),
    "infinity": (FROM_OWNER, _candidate(point=_not_finite(-np.inf, "float32")), Offence.MALFORMED),
    "no axis": (FROM_OWNER, _candidate(point=ext(np.float64(1))), Offence.MALFORMED),
    "two axes": (FROM_OWNER, _candidate(point=ext(np.zeros((1, 3)))), Offence.MALFORMED),
    "nine axes": (FROM_OWNER, _candidate(point=NINE_AXES), Offence.OVERSIZED),
    "empty array": (FROM_OWNER, _candidate(point=ext(np.zeros(0))), Offence.MALFORMED),
    "array shorter than it says": (FROM_OWNER, _candidate(point=HUGE_AXIS), Offence.MALFORMED),
    "score of two": (FROM_OWNER, _bid(score=ext([1, 2])), Offence.MALFORMED),
    "array too long": (
        FROM_OWNER,
        _candidate(features=ext(np.zeros(limits.MAX_DIMENSION + 1, np.int16))),
        Offence.OVERSIZED,
    ),
    "attributes too long": (
        FROM_OWNER,
        _candidate(attributes=bytes(limits.MAX_ATTRIBUTES + 1)),
        Offence.OVERSIZED,
    ),
    "text too long": (
        GREETING,
        changed("hello", lambda h: h.update(software=LONG_TEXT)),
        Offence.OVERSIZED,
    ),
    "collection too long": (
        GREETING,
        changed("hello", lambda h: h.update(versions=[1] * (limits.MAX_VERSIONS + 1))),
        Offence.OVERSIZED,
    ),
    "message too long": (FROM_OWNER, bytes(limits.MAX_MESSAGE_BYTES + 1), Offence.OVERSIZED),
    "nested too deep": (FROM_OWNER, _nested(3000, b"\x91", b"\xc0"), Offence.MALFORMED),
    "maps nested too deep": (FROM_OWNER, _nested(3000, b"\x81\xa1a", b"\xc0"), Offence.MALFORMED),
    "huge array claimed": (FROM_OWNER, b"\xdd\xff\xff\xff\xff", Offence.MALFORMED),
    "huge map claimed": (FROM_OWNER, b"\xdf\xff\xff\xff\xff", Offence.MALFORMED),
    "huge bytes claimed": (FROM_OWNER, b"\xc6\xff\xff\xff\xff", Offence.MALFORMED),
    "huge text claimed": (FROM_OWNER, b"\xdb\xff\xff\xff\xff", Offence.MALFORMED),
    "huge extension claimed": (FROM_OWNER, b"\xc9\xff\xff\xff\xff\x01", Offence.MALFORMED),
    "a sealed point where it was asked for": (
        FROM_OWNER,
        changed("offer", lambda o: o.update(candidate=plain(sealed(80)))),
        Offence.MALFORMED,
    ),
    "a box and an open point": (FROM_OWNER, _sealed(point=ext(np.zeros(3))), Offence.MALFORMED),
    "no box": (FROM_OWNER, _sealed(box=b""), Offence.MALFORMED),
    "box of text": (FROM_OWNER, _sealed(box=MARK), Offence.MALFORMED),
    "box too long": (FROM_OWNER, _sealed(box=bytes(limits.MAX_BOX_BYTES + 1)), Offence.OVERSIZED),
    "signature too short": (FROM_OWNER, _sealed(signature=bytes(63)), Offence.MALFORMED),
    "signature too long": (FROM_OWNER, _sealed(signature=bytes(65)), Offence.OVERSIZED),
    "map of another length": (
        TO_OWNER,
        changed("secret-map", lambda m: m.update(box=bytes(limits.MAP_BOX_BYTES - 1))),
        Offence.MALFORMED,
    ),
    "too many maps": (
        FROM_CONSUMER,
        changed("target", lambda t: t.update(maps=bytes(limits.MAP_BOX_BYTES * limits.MAX_OWNERS + 1))),
        Offence.OVERSIZED,
    ),
    "target too long": (FROM_CONSUMER, bytes(limits.MAX_TARGET_BYTES + 1), Offence.OVERSIZED),
    "a score where the owner's name stands": (
        TO_CONSUMER,
        changed("delivery", lambda d: d["purchases"][3].update(owner=MARK + "\n")),
        Offence.MALFORMED,
    ),
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_bad_body_is_refused(name: str) -> None:
    direction, body, offence = BAD_BODIES[name]
    assert offence_of(direction, body) is offence


def test_a_refusal_names_the_field() -> None:
    with pytest.raises(RemoteProtocolError, match=r"owner-to-curator allows: bid\.candidate.*\.features"):
        decode_message(FROM_OWNER, _candidate(features=MARK))
    with pytest.raises(RemoteProtocolError, match=r"bid\.candidate\.sealed\.signature"):
        decode_message(FROM_OWNER, _sealed(signature=MARK))


@pytest.mark.parametrize(
    ("direction", "body"),
    [
        (FROM_OWNER, changed("hello", lambda h: h.update({str(key): 0 for key in range(100_000)}))),
        (FROM_OWNER, changed("hello", lambda h: h.update(versions=[MARK] * limits.MAX_PURCHASES))),
        (TO_CONSUMER, changed("delivery", lambda d: d.update(purchases=[{}] * 2_000_000))),
        (TO_CONSUMER, changed("delivery", lambda d: d.update(purchases=[{}] * limits.MAX_PURCHASES))),
    ],
    ids=["keys", "versions", "purchases", "purchases-allowed"],
)
def test_a_frame_of_many_faults_costs_its_reader_little(direction: Direction, body: bytes) -> None:
    """Reporting every fault would take a gigabyte; the reader stops at the first."""
    import tracemalloc

    tracemalloc.start()
    try:
        offence_of(direction, body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * 2**20


@given(
    score=st.integers(-(2**63), 2**63 - 1),
    handle=st.integers(0, limits.MAX_POINTS),
    exhausted=st.booleans(),
    point=st.sampled_from([None, candidate("float64"), sealed(368)]),
)
def test_the_size_of_a_bid_tells_nothing(
    score: int, handle: int, exhausted: bool, point: Candidate | SealedCandidate | None
) -> None:
    def size(**fields: Any) -> int:
        return len(encode_message(Bid(round=300, candidate=point, **fields)))

    usual = size(score=fixed(1), handle=fixed(1), exhausted=False)
    assert size(score=fixed(score), handle=fixed(handle), exhausted=exhausted) == usual


# -- fuzzing ------------------------------------------------------------------------------------------


def accepted(direction: Direction, body: bytes) -> Message | None:
    """The contract of the decoder: a message that encodes to the same bytes, or a `RemoteProtocolError`."""
    try:
        message = decode_message(direction, body)
    except RemoteProtocolError:
        return None
    assert encode_message(message) == body
    return message


def mutate(data: bytes, other: bytes, how: int, at: int, width: int, byte: int) -> bytes:
    """One flip, replacement, insertion, deletion, repetition, cut or splice."""
    at %= len(data) + 1
    return [
        data[:at] + bytes(b ^ (1 << byte % 8) for b in data[at : at + 1]) + data[at + 1 :],
        data[:at] + bytes([byte]) + data[at + 1 :],
        data[:at] + bytes([byte]) * width + data[at:],
        data[:at] + data[at + width :],
        data[: at + width] + data[at:],
        data[:at],
        data[:at] + other[at % (len(other) + 1) :],
        data[:at] + other[at : at + width] + data[at + width :],
    ][how % 8]


DIRECTIONS = st.sampled_from(list(Direction))
NAMES = st.sampled_from(sorted(CASES))
STEPS = st.lists(
    st.tuples(NAMES, st.integers(0, 7), st.integers(0, 2**16), st.integers(1, 12), st.integers(0, 255)),
    min_size=1,
    max_size=3,
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=6)
    | st.binary(max_size=6)
    | st.builds(msgpack.ExtType, st.integers(0, 3), st.binary(max_size=20))
    | st.sampled_from([ext([1]), ext([0.5, 0.5]), ext(np.zeros(4, np.int16))])
)
THINGS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)


@examples(1000)
@given(DIRECTIONS, st.binary(max_size=200))
@example(FROM_OWNER, b"\x81\xa4kind\xa4beat")
def test_any_bytes_are_a_message_or_refused(direction: Direction, data: bytes) -> None:
    accepted(direction, data)
    try:
        frame = decode_frame(data)
    except RemoteProtocolError:
        return
    assert encode_frame(frame) == data


@examples(2000)
@given(NAMES, STEPS)
def test_any_mutation_of_a_body_is_a_message_or_refused(
    name: str, steps: list[tuple[str, int, int, int, int]]
) -> None:
    body = BODIES[name]
    for other, *how in steps:
        body = mutate(body, BODIES[other], *how)
    for direction in CASES[name].allowed:
        accepted(direction, body)


@examples(1000)
@given(NAMES, STEPS)
def test_any_mutation_of_a_frame_is_a_frame_or_refused(
    name: str, steps: list[tuple[str, int, int, int, int]]
) -> None:
    data = FRAMES[name]
    for other, *how in steps:
        data = mutate(data, FRAMES[other], *how)
    try:
        frame = decode_frame(data)
    except RemoteProtocolError:
        return
    assert encode_frame(frame) == data
    accepted(CASES[name].direction, frame.body)


@examples(1000)
@given(NAMES, st.data(), THINGS)
def test_any_value_in_a_field_makes_a_message_or_is_refused(
    name: str, data: st.DataObject, thing: Any
) -> None:
    fields = plain(CASES[name].message)
    holder = fields
    while True:
        key = data.draw(st.sampled_from(sorted(holder)))
        if not isinstance(holder[key], dict):
            break
        holder = holder[key]
    holder[key] = thing
    try:
        body = pack(fields)
    except (OverflowError, UnicodeEncodeError):
        return
    accepted(CASES[name].direction, body)


@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_the_fuzz_tests_can_fail(stride: int) -> None:
    """Mutations reach valid messages, and not only the first check."""
    survived, refused = 0, set()
    for name, body in BODIES.items():
        for at in range(0, len(body), stride):
            for byte in (0, 1, 0x7F, 0xFF):
                mutated = mutate(body, body, 1, at, 1, byte)
                message = accepted(CASES[name].direction, mutated)
                if message is None:
                    refused.add(offence_of(CASES[name].direction, mutated))
                elif mutated != body:
                    survived += 1
    assert survived > 500 / stride
    assert refused == {Offence.MALFORMED, Offence.NOT_CANONICAL, Offence.OVERSIZED}


@pytest.mark.slow
def test_half_a_million_mutations_are_messages_or_refused() -> None:
    generator = np.random.default_rng(20)
    names = list(BODIES)
    for _ in range(100):
        picks = generator.integers(0, len(names), (5000, 2)).tolist()
        numbers = generator.integers(0, 2**16, (5000, 3, 4)).tolist()
        for (one, two), steps in zip(picks, numbers, strict=True):
            body, other = BODIES[names[one]], BODIES[names[two]]
            for how, at, width, byte in steps[: 1 + one % 3]:
                body = mutate(body, other, how, at, 1 + width % 12, byte % 256)
            accepted(CASES[names[one]].direction, body)


def test_decoded_arrays_cannot_be_written_to() -> None:
    for name, case in CASES.items():
        message = decode_message(case.direction, BODIES[name])
        arrays = [value for value in message.__dict__.values() if isinstance(value, np.ndarray)]
        assert not any(array.flags.writeable for array in arrays)


def test_what_has_no_place_in_a_message_is_not_encoded() -> None:
    with pytest.raises(TypeError, match="no place in a message"):
        encode_message(Beat.model_construct(kind={1}))
