"""A copy without its private fields has the original's chain, and none of the original's values or salts."""

from __future__ import annotations

import hashlib
import struct
import tracemalloc
from pathlib import Path

import msgpack
import numpy as np
import pytest
from hypothesis import given

from hushbid.protocol.errors import DataError, TranscriptDamaged
from hushbid.protocol.transcript.record import RecordLengths
from hushbid.protocol.transcript.redaction import Redaction, redact, redact_record
from hushbid.protocol.transcript.verify import verify
from hushbid.protocol.wire.values import Item, pack_value
from tests.support import transcripts
from tests.support.transcript_values import STEP_LISTS
from tests.support.transcripts import (
    HEADER,
    STEPS,
    Step,
    fixed_salts,
    header_end,
    read_transcript,
    transcript,
)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("redaction") / "transcript"


def redacted(path: Path, image: bytes) -> tuple[bytes, Redaction]:
    path.write_bytes(image)
    pieces: list[bytes] = []
    done = redact(path, pieces.append)
    return b"".join(pieces), done


def nothing_kept(_number: int, _name: str) -> bool:
    return False


@given(STEP_LISTS)
def test_it_is_the_copy_that_the_document_describes(scratch: Path, steps: list[Step]) -> None:
    image = transcript(steps)
    copy, _ = redacted(scratch, image)
    assert copy == transcripts.redact(image, nothing_kept)


def test_the_copy_verifies_and_ends_in_the_same_head(scratch: Path) -> None:
    copy, done = redacted(scratch, transcript())
    original = verify(scratch)
    scratch.write_bytes(copy)
    found = verify(scratch)
    assert found == original._replace(redacted_fields=original.private_fields)
    assert done == Redaction(original.header, original.records, original.head, original.private_fields, 0)
    assert original.private_fields == 6


def test_neither_a_private_value_nor_a_salt_is_in_the_copy(scratch: Path) -> None:
    image = transcript()
    copy, _ = redacted(scratch, image)
    for _now, event, effects in STEPS:
        for item in (event, *effects):
            for value in item.private.values():
                # One or two bytes would be found anywhere.
                if len(encoded := pack_value(value)) > 2:
                    assert encoded in image
                    assert encoded not in copy
    salts = fixed_salts()
    for fields in (2, 2, 2):
        drawn = salts(32 * fields)
        for start in range(0, len(drawn), 32):
            assert drawn[start : start + 32] in image
            assert drawn[start : start + 32] not in copy


def test_public_fields_kinds_names_and_times_stay(scratch: Path) -> None:
    copy, _ = redacted(scratch, transcript())
    scratch.write_bytes(copy)
    for record, (now, event, effects) in zip(read_transcript(scratch).records, STEPS, strict=True):
        assert record.now == now
        for back, item in zip(record.items, (event, *effects), strict=True):
            assert (back.kind, back.private, back.redacted) == (item.kind, {}, tuple(sorted(item.private)))
            assert transcripts.same(dict(back.public), dict(item.public))


def test_a_redacted_copy_is_copied_as_it_is(scratch: Path) -> None:
    once, first = redacted(scratch, transcript())
    again, second = redacted(scratch, once)
    assert (again, second) == (once, first)
    half = transcripts.redact(transcript(), lambda number, name: name != "label")
    assert redacted(scratch, half)[0] == once


@pytest.mark.parametrize("tail", [b"torn", bytes(5000)], ids=["bytes", "zeros"])
def test_a_torn_tail_is_left_out_and_counted(scratch: Path, tail: bytes) -> None:
    whole, done = redacted(scratch, transcript())
    copy, torn = redacted(scratch, transcript() + tail)
    assert copy == whole
    assert torn == done._replace(torn_bytes=len(tail))


def test_a_torn_record_is_left_out_whole(scratch: Path) -> None:
    last = list(transcripts.record_spans(transcript()))[-1][0]
    for cut in range(last + 1, len(transcript())):
        copy, done = redacted(scratch, transcript()[:cut])
        assert copy == transcripts.redact(transcript(STEPS[:-1]), nothing_kept)
        assert (done.records, done.torn_bytes) == (len(STEPS) - 1, cut - last)


def test_a_header_of_a_newer_minor_version_is_copied_with_what_it_adds(scratch: Path) -> None:
    image = transcript([])
    body = msgpack.unpackb(image[16:-32], ext_hook=lambda code, data: None) | {"zeta": b"added"}
    packed = msgpack.packb(dict(sorted(body.items())))
    lead = image[:8] + struct.pack("<HHI", 1, 9, len(packed)) + packed
    newer = lead + hashlib.sha256(lead).digest()
    copy, done = redacted(scratch, newer)
    assert copy == newer
    assert done.header.party == HEADER.party


@pytest.mark.parametrize("place", [0, 1, 2])
def test_damage_is_named_and_never_copied(scratch: Path, place: int) -> None:
    start, end = list(transcripts.record_spans(transcript()))[place]
    for at in range(start, end):
        image = bytearray(transcript())
        image[at] ^= 0x10
        scratch.write_bytes(image)
        pieces: list[bytes] = []
        with pytest.raises(TranscriptDamaged) as caught:
            redact(scratch, pieces.append)
        assert caught.value.record == place
        assert b"".join(pieces) == transcripts.redact(transcript(STEPS[:place]), nothing_kept)


def test_what_is_no_transcript_is_refused_before_anything_is_written(scratch: Path) -> None:
    pieces: list[bytes] = []
    for content in (b"", b"PK\x03\x04" + bytes(100), b"label,points\n"):
        scratch.write_bytes(content)
        with pytest.raises(DataError):
            redact(scratch, pieces.append)
    assert pieces == []


def test_memory_does_not_grow_with_the_file(scratch: Path) -> None:
    row = np.arange(2_000, dtype=np.float64)
    few, many = (
        transcript([(float(n), Item("tick", {}, {"row": row + n}), ()) for n in range(count)])
        for count in (10, 400)
    )

    def peak(image: bytes) -> int:
        scratch.write_bytes(image)
        tracemalloc.start()
        redact(scratch, lambda piece: None)
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest

    peak(few)
    assert peak(many) < 2 * peak(few), f"{len(many)} bytes against {len(few)}"


def test_one_record_needs_nothing_but_its_own_bytes() -> None:
    image = transcript()
    whole = transcripts.redact(image, nothing_kept)
    spans = zip(transcripts.record_spans(image), transcripts.record_spans(whole), strict=True)
    for ((start, end), (first, last)), fields in zip(spans, (2, 2, 2), strict=True):
        public_bytes, private_bytes, _ = struct.unpack_from("<III", image, start)
        frame = RecordLengths(public_bytes, private_bytes)
        piece = redact_record(frame, image[start + 12 : end], private_fields=fields)
        assert piece == whole[first:last]


def test_the_header_is_copied_byte_for_byte(scratch: Path) -> None:
    copy, _ = redacted(scratch, transcript())
    assert copy[: header_end(copy)] == transcript()[: header_end(transcript())]
