"""Frames of every version ever on the wire stay readable, as the same messages.

The files in `frames/` are not rewritten (`make_frames.py`): a change of the format adds files.
"""

from __future__ import annotations

import struct
from pathlib import Path

import msgpack
import pytest

from hushbid.protocol.wire.codec import decode_frame, decode_message, encode_message
from tests.golden.make_frames import FRAMES, frame_bytes, write_frames
from tests.support.message_cases import CASES, SESSION, plain, same


def golden(name: str) -> bytes:
    return (FRAMES / f"{name}.bin").read_bytes()


def test_there_is_a_golden_frame_for_every_case_and_no_other() -> None:
    assert {path.name for path in FRAMES.iterdir()} == {f"{name}.bin" for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_a_golden_frame_decodes_as_ever(name: str) -> None:
    case = CASES[name]
    frame = decode_frame(golden(name))
    assert (frame.session, frame.sequence, frame.acknowledged) == (SESSION, case.sequence, case.acknowledged)
    for direction in case.allowed:
        assert same(decode_message(direction, frame.body), case.message)


@pytest.mark.parametrize("name", CASES)
def test_the_encoder_of_today_writes_the_golden_frame(name: str) -> None:
    assert frame_bytes(CASES[name]) == golden(name)


@pytest.mark.parametrize("name", CASES)
def test_a_golden_frame_can_be_read_from_the_documentation_alone(name: str) -> None:
    case, data = CASES[name], golden(name)
    head = struct.unpack(">4sB16sQQ", data[:37])
    assert head == (b"HBID", 1, SESSION, case.sequence, case.acknowledged)
    assert msgpack.unpackb(data[37:]) == plain(case.message)


def test_the_bytes_of_one_frame_are_the_documented_ones() -> None:
    assert golden("ask") == (
        b"HBID\x01"
        + SESSION
        + b"\0\0\0\0\0\0\0\x04"
        + b"\0\0\0\0\0\0\0\x03"
        + b"\x83"  # a map of three
        + b"\xa4kind\xa3ask"
        + b"\xa5round\x03"
        + b"\xa6handle\xc7\x0e\x01"  # an extension of 14 bytes and type 1
        + b"\x04\x01\x01\0\0\0"  # int64, one axis, of one element
        + b"\x01\0\0\0\0\0\0\0"
    )


def test_making_frames_leaves_those_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "beat.bin").write_bytes(b"once on the wire")
    (tmp_path / "ask.bin").write_bytes(b"never was")
    assert write_frames(tmp_path, frozenset({"ask"})) == ["beat"]
    assert (tmp_path / "beat.bin").read_bytes() == b"once on the wire"
    assert (tmp_path / "ask.bin").read_bytes() == golden("ask")
    assert {path.stem for path in tmp_path.iterdir()} == set(CASES)


def test_encoding_does_not_depend_on_where_an_array_came_from() -> None:
    for case in CASES.values():
        body = encode_message(case.message)
        assert encode_message(decode_message(case.direction, body)) == body
