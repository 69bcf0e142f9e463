"""Records come back unchanged, are chained, and hide removed values."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hushbid.protocol.errors import LocalProtocolError, TranscriptDamaged
from hushbid.protocol.transcript.record import SALT_BYTES, encode_record
from hushbid.protocol.wire.values import Item, Value, pack_value
from tests.support.examples import examples
from tests.support.transcript_values import STEP_LISTS
from tests.support.transcripts import (
    HEADER,
    STEPS,
    Step,
    Transcript,
    fixed_salts,
    header_end,
    read_transcript,
    record_spans,
    redact,
    same,
    transcript,
)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("records") / "transcript"


def read_image(scratch: Path, image: bytes) -> Transcript:
    scratch.write_bytes(image)
    return read_transcript(scratch)


@given(STEP_LISTS)
def test_what_is_recorded_is_read_back(scratch: Path, steps: list[Step]) -> None:
    found = read_image(scratch, transcript(steps))
    assert found.header == HEADER._replace(environment=found.header.environment)
    assert same(dict(found.header.environment), dict(HEADER.environment))
    assert [record.number for record in found.records] == list(range(len(steps)))
    for record, (now, event, effects) in zip(found.records, steps, strict=True):
        assert record.now == now
        for back, item in zip(record.items, (event, *effects), strict=True):
            assert back.kind == item.kind
            assert same(dict(back.public), dict(item.public))
            assert same(dict(back.private), dict(item.private))
            assert back.redacted == ()


def test_the_digests_are_the_documented_ones(scratch: Path) -> None:
    image = transcript()
    start = header_end(image)
    digest = hashlib.sha256(image[: start - 32]).digest()
    assert image[start - 32 : start] == digest
    for (start, end), record in zip(record_spans(image), read_image(scratch, image).records, strict=True):
        (public_bytes,) = struct.unpack_from("<I", image, start)
        digest = hashlib.sha256(digest + image[start + 12 : start + 12 + public_bytes]).digest()
        assert image[end - 32 : end] == digest == record.digest
    assert read_image(scratch, image).head == digest


def test_a_commitment_is_the_documented_one(scratch: Path) -> None:
    effect = read_image(scratch, transcript()).records[0].effects[0]
    salts = fixed_salts()(2 * SALT_BYTES)
    for number, name in enumerate(["label", "score"]):
        salt = salts[SALT_BYTES * number : SALT_BYTES * (number + 1)]
        value = STEPS[0][2][0].private[name]
        assert effect.commitments[name] == hashlib.sha256(salt + pack_value(value)).digest()


def test_salts_are_fetched_once_a_record_and_never_without_need() -> None:
    asked: list[int] = []

    def salts(size: int) -> bytes:
        asked.append(size)
        return bytes(size)

    private = Item("a", {}, {"x": 1, "y": 2})
    encode_record(0, 0.0, private, [private], previous=bytes(32), salts=salts)
    encode_record(1, 0.0, Item("a", {"x": 1}, {}), [], previous=bytes(32), salts=salts)
    assert asked == [4 * SALT_BYTES]


UNRECORDABLE: dict[str, Item] = {
    "public": Item("bid", {"x": object()}, {}),  # type: ignore[dict-item]
    "public-int": Item("bid", {"x": 2**70}, {}),
    "private": Item("bid", {}, {"x": 2**70}),
    "both": Item("bid", {"x": 1}, {"x": 1}),
    "name": Item("bid", {}, {"\ud800x": 1}),
}


@pytest.mark.parametrize("item", UNRECORDABLE.values(), ids=UNRECORDABLE)
def test_an_item_that_cannot_be_recorded_is_refused_by_kind_and_field(item: Item) -> None:
    with pytest.raises(LocalProtocolError, match=r"record 7: field '.*x' of 'bid'") as caught:
        encode_record(7, 0.0, Item("tick", {}, {}), [item], previous=bytes(32), salts=bytes)
    assert caught.value.__context__ is None


def test_a_source_that_runs_out_of_salt_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="salt"):
        encode_record(0, 0.0, Item("a", {}, {"x": 1}), [], previous=bytes(32), salts=lambda size: b"")


def damaged_record(image: bytes, position: int) -> int:
    """The number that damage at `position` must be reported with."""
    if position < header_end(image):
        return -1
    return next(n for n, (start, end) in enumerate(record_spans(image)) if start <= position < end)


def test_every_flipped_byte_is_refused_with_its_records_number(scratch: Path) -> None:
    image = transcript()
    for position in range(len(image)):
        for mask in (0x01, 0x80, 0xFF):
            bad = bytearray(image)
            bad[position] ^= mask
            with pytest.raises(TranscriptDamaged) as caught:
                read_image(scratch, bytes(bad))
            assert caught.value.record == damaged_record(image, position), position


@given(STEP_LISTS, st.data())
def test_any_changed_byte_of_any_transcript_is_refused(
    scratch: Path, steps: list[Step], data: st.DataObject
) -> None:
    image = bytearray(transcript(steps))
    position = data.draw(st.integers(0, len(image) - 1))
    number = damaged_record(bytes(image), position)
    image[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(TranscriptDamaged) as caught:
        read_image(scratch, bytes(image))
    assert caught.value.record == number


@given(STEP_LISTS, st.data())
def test_a_redacted_copy_verifies_to_the_same_head_and_shows_what_is_missing(
    scratch: Path, steps: list[Step], data: st.DataObject
) -> None:
    image = transcript(steps)
    kept = data.draw(st.functions(like=lambda number, name: True, returns=st.booleans(), pure=True))
    original = read_image(scratch, image)
    copy = read_image(scratch, redact(image, kept))
    assert copy.head == original.head
    for before, after in zip(original.records, copy.records, strict=True):
        for was, item in zip(before.items, after.items, strict=True):
            assert item.commitments == was.commitments
            assert item.redacted == tuple(n for n in was.private if not kept(before.number, n))
            assert all(same(item.private[name], was.private[name]) for name in item.private)


def test_a_dictionary_finds_nothing_in_a_redacted_copy(scratch: Path) -> None:
    labels = ["benign", "malign", "unknown"]
    steps: list[Step] = [(0.0, Item("point", {}, {"label": label}), ()) for label in labels * 3]
    original = transcript(steps)
    copy = redact(original, lambda number, name: False)
    record = read_image(scratch, copy)
    commitments = [item.event.commitments["label"] for item in record.records]
    assert len(set(commitments)) == len(commitments), "equal labels must not have equal commitments"
    guesses = {bytes(n) + pack_value(label) for label in labels for n in (0, SALT_BYTES)}
    assert not {hashlib.sha256(guess).digest() for guess in guesses} & set(commitments)
    assert not any(label.encode() in copy for label in labels)
    # The control: the attack works on a commitment whose salt is known.
    salt = fixed_salts()(SALT_BYTES)
    assert hashlib.sha256(salt + pack_value("benign")).digest() == commitments[0]
    assert b"benign" in original


@examples(50)
@given(STEP_LISTS, st.data())
def test_a_record_that_is_moved_or_left_out_breaks_the_chain(
    scratch: Path, steps: list[Step], data: st.DataObject
) -> None:
    assume(len(steps) >= 2)
    image = transcript(steps)
    spans = list(record_spans(image))
    records = [image[start:end] for start, end in spans]
    left_out = data.draw(st.integers(0, len(records) - 2))
    lead = image[: header_end(image)]
    for changed in ([*records[:left_out], *records[left_out + 1 :]], records[::-1]):
        with pytest.raises(TranscriptDamaged):
            read_image(scratch, lead + b"".join(changed))


def test_a_value_under_another_salt_is_refused(scratch: Path) -> None:
    value: Value = "benign"
    image = transcript([(0.0, Item("point", {}, {"label": value}), ())])
    salt = fixed_salts()(SALT_BYTES)
    with pytest.raises(TranscriptDamaged, match="'label' of 'point'"):
        read_image(scratch, image.replace(salt, bytes(SALT_BYTES)))
    with pytest.raises(TranscriptDamaged, match="'label' of 'point'"):
        read_image(scratch, image.replace(b"benign", b"malign"))
