"""A torn tail is reported, damage is located, and a file that is no transcript is called so."""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from pathlib import Path

import msgpack
import pytest

from hushbid.protocol.errors import DataError, TranscriptDamaged
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import MAGIC
from hushbid.protocol.transcript.verify import verify
from tests.support.transcripts import (
    HEADER,
    STEPS,
    header_end,
    read_transcript,
    record_spans,
    redact,
    transcript,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "owner.transcript"


def test_a_file_cut_anywhere_in_its_records_keeps_the_whole_ones(path: Path) -> None:
    image = transcript()
    ends = [end for _, end in record_spans(image)]
    for cut in range(header_end(image), len(image)):
        path.write_bytes(image[:cut])
        found = read_transcript(path)
        whole = sum(end <= cut for end in ends)
        assert len(found.records) == whole
        assert found.torn_bytes == cut - (ends[whole - 1] if whole else header_end(image))


def test_a_tail_of_zeros_is_torn(path: Path) -> None:
    image = transcript()
    last = list(record_spans(image))[-1][0]
    for written in range(last, len(image) - 31):
        for longer in (0, 5000):
            path.write_bytes(image[:written] + bytes(len(image) - written + longer))
            found = read_transcript(path)
            assert (len(found.records), found.torn_bytes > 0) == (len(STEPS) - 1, True)
    path.write_bytes(image + bytes(12))
    assert read_transcript(path).torn_bytes == 12


def test_zeros_after_a_damaged_record_do_not_excuse_it(path: Path) -> None:
    image = bytearray(transcript())
    _, second, _ = [start for start, _ in record_spans(bytes(image))]
    image[second + 20] ^= 1
    path.write_bytes(bytes(image) + bytes(4096))
    with pytest.raises(TranscriptDamaged) as caught:
        read_transcript(path)
    assert caught.value.record == 1


def test_zeros_inside_a_file_are_damage(path: Path) -> None:
    image = bytearray(transcript())
    _, second, third = [start for start, _ in record_spans(bytes(image))]
    image[second:third] = bytes(third - second)
    path.write_bytes(image)
    with pytest.raises(TranscriptDamaged, match="record 1 is damaged") as caught:
        read_transcript(path)
    assert caught.value.record == 1
    assert str(path) in str(caught.value)
    assert "never an older one" in caught.value.advice, "releases since would be drawn anew"


@pytest.mark.parametrize("cut", [8, 15, 16, 40, -1])
def test_a_file_cut_in_its_header_is_damaged(path: Path, cut: int) -> None:
    image = transcript([])
    path.write_bytes(image[:cut])
    with pytest.raises(TranscriptDamaged) as caught:
        read_transcript(path)
    assert caught.value.record == -1


@pytest.mark.parametrize(
    "content",
    [b"", b"x", b"\x80\x05K\x01.", b"PK\x03\x04" + bytes(100), bytes(200), b"hushlog\r" + bytes(100)],
    ids=["empty", "short", "pickle", "zip", "zeros", "other-magic"],
)
def test_a_file_of_another_format_is_no_transcript(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"empty|not a transcript"):
        read_transcript(path)


def version(major: int, minor: int, **more: int) -> bytes:
    """A header of another version, whole and with a valid digest."""
    body: bytes = msgpack.packb(dict(sorted((HEADER._asdict() | more).items())))
    lead = MAGIC + struct.pack("<HHI", major, minor, len(body)) + body
    return lead + hashlib.sha256(lead).digest()


def test_a_newer_major_version_is_refused_by_name(path: Path) -> None:
    path.write_bytes(version(2, 3))
    with pytest.raises(DataError, match=r"format 2\.3.*reads up to 1\.x.*newer hushbid"):
        read_transcript(path)


def test_a_newer_minor_version_is_read_without_what_it_adds(path: Path) -> None:
    path.write_bytes(version(1, 7, signature=1))
    assert read_transcript(path).header.party == HEADER.party


def test_a_missing_file_a_directory_and_a_pipe_are_refused(path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        TranscriptReader(path)
    with pytest.raises(DataError, match="not a regular file"):
        TranscriptReader(path.parent)
    os.mkfifo(path)
    with pytest.raises(DataError, match="not a regular file"):
        TranscriptReader(path)


def forged(*part: object, private: bytes = b"") -> bytes:
    """A transcript of one record with valid digests, whatever its public part is."""
    lead = version(1, 0)
    public: bytes = msgpack.packb(part)
    lengths = struct.pack("<II", len(public), len(private))
    check = struct.pack("<I", zlib.crc32(lengths))
    return lead + lengths + check + public + private + hashlib.sha256(lead[-32:] + public).digest()


ITEM = ["tick", {}, {}]


NO_RECORDS = {
    "nothing": forged(),
    "no-effects": forged(0, 0.5, ITEM),
    "number": forged(1, 0.5, ITEM, []),
    "bool-number": forged(False, 0.5, ITEM, []),
    "int-time": forged(0, 1, ITEM, []),
    "item": forged(0, 0.5, ["tick", {}], []),
    "effects": forged(0, 0.5, ITEM, 5),
    "bytes-kind": forged(0, 0.5, [b"tick", {}, {}], []),
    "bytes-name": forged(0, 0.5, ["tick", {b"k": 1}, {}], []),
    "commitment": forged(0, 0.5, ["tick", {}, {"x": b"short"}], []),
    "no-entry": forged(0, 0.5, ["tick", {}, {"x": bytes(32)}], []),
    "entry-length": forged(0, 0.5, ["tick", {}, {"x": bytes(32)}], [], private=b"\0\0\0\x80" + bytes(64)),
    "entry-too-many": forged(0, 0.5, ITEM, [], private=bytes(4)),
}


@pytest.mark.parametrize("image", NO_RECORDS.values(), ids=NO_RECORDS)
def test_a_record_that_was_never_one_is_damaged_though_its_digest_holds(path: Path, image: bytes) -> None:
    path.write_bytes(image)
    with pytest.raises(TranscriptDamaged) as caught:
        read_transcript(path)
    assert caught.value.record == 0


def test_the_forger_can_forge_a_good_one(path: Path) -> None:
    path.write_bytes(forged(0, 0.5, ITEM, []))
    assert len(read_transcript(path).records) == 1


def test_a_length_beyond_the_file_allocates_nothing(path: Path) -> None:
    lengths = struct.pack("<II", 2**30, 2**30)
    path.write_bytes(version(1, 0) + lengths + struct.pack("<I", zlib.crc32(lengths)))
    assert read_transcript(path).torn_bytes == 12
    path.write_bytes(MAGIC + struct.pack("<HHI", 1, 0, 2**32 - 1))
    with pytest.raises(TranscriptDamaged):
        read_transcript(path)


def test_iterating_gives_the_same_as_reading_whole(path: Path) -> None:
    path.write_bytes(transcript() + b"torn")
    reader = TranscriptReader(path)
    assert [record.digest for record in reader] == [r.digest for r in read_transcript(path).records]
    assert (reader.count, reader.torn_bytes, reader.head) == (3, 4, read_transcript(path).head)
    assert list(reader) == []


def test_verify_counts_what_it_found(path: Path) -> None:
    path.write_bytes(redact(transcript(), lambda number, name: name == "label") + bytes(3))
    found = verify(path)
    assert found.header.party == HEADER.party
    assert (found.records, found.private_fields, found.redacted_fields) == (3, 6, 4)
    assert found.torn_bytes == 3
    path.write_bytes(transcript())
    assert verify(path) == found._replace(torn_bytes=0, redacted_fields=0)


def test_a_file_that_grows_is_read_on_from_where_it_was_read(path: Path) -> None:
    image = transcript()
    path.write_bytes(image)
    whole = list(read_transcript(path).records)
    ends = [end for _, end in record_spans(image)]
    for cut in range(header_end(image), len(image), 7):
        path.write_bytes(image[:cut])
        with TranscriptReader(path) as reader:
            before = list(reader)
            mark = reader.mark
        assert mark.records == len(before)
        assert mark.offset == (ends[len(before) - 1] if before else header_end(image))
        path.write_bytes(image)
        with TranscriptReader(path, after=mark) as later:
            rest = list(later)
        # A digest is of all that a record has.
        assert [each.digest for each in (*before, *rest)] == [each.digest for each in whole]
        assert [each.number for each in (*before, *rest)] == list(range(len(whole)))
        assert (later.head, later.count, later.torn_bytes) == (whole[-1].digest, len(whole), 0)


def test_reading_on_finds_another_chain_and_a_shorter_file(path: Path) -> None:
    image = transcript()
    start, end = list(record_spans(image))[1]
    path.write_bytes(image[:end])
    with TranscriptReader(path) as reader:
        list(reader)
    path.write_bytes(image[:start])
    with pytest.raises(TranscriptDamaged, match="record 2 is damaged: the file became shorter"):
        TranscriptReader(path, after=reader.mark)
    path.write_bytes(image)
    other = TranscriptReader(path, after=reader.mark._replace(head=bytes(32)))
    with pytest.raises(TranscriptDamaged, match="record 2 is damaged"):
        next(other)
