"""A garbled line's bytes: the reader gets what was sent, or the connection ends."""

from __future__ import annotations

import numpy as np
import pytest

from hushbid.evidence.sweep.stream import Stream, garbled

FRAMES = [np.random.default_rng(size).bytes(size) for size in (0, 1, 40, 200, 250, 700, 3000)]


def carried(frames: list[bytes], place: int, rng: np.random.Generator) -> tuple[list[bytes], Stream]:
    """The frames read where one of those sent is garbled."""
    sender, reader = Stream(b"key"), Stream(b"key")
    read: list[bytes] = []
    for number, frame in enumerate(frames):
        data = sender.packed(frame)
        read += reader.taken(garbled(data, rng) if number == place else data)
    return read, reader


def test_a_line_that_nobody_garbles_carries_frames_as_they_are_in_any_pieces() -> None:
    sender, reader = Stream(b"key"), Stream(b"key")
    data = b"".join(map(sender.packed, FRAMES))
    read = [frame for at in range(0, len(data), 7) for frame in reader.taken(data[at : at + 7])]
    assert read == FRAMES
    assert not reader.broken


@pytest.mark.parametrize("place", range(len(FRAMES)))
def test_what_is_read_of_a_garbled_line_is_what_was_sent_before(place: int) -> None:
    """Never the garbled frame, nor a later one, in any form."""
    rng = np.random.default_rng(place)
    broken = stalled = whole = 0
    for _ in range(400):
        read, reader = carried(FRAMES, place, rng)
        if read == FRAMES:
            whole += 1  # a bit that says nothing, before the length
            continue
        assert read == FRAMES[:place]
        broken += reader.broken
        stalled += not reader.broken
    assert broken > 200
    assert stalled or len(FRAMES[place]) < 250, "a length that is one makes all that follows its rest"
    assert whole < 20


def test_a_frame_that_comes_again_is_none() -> None:
    sender, reader = Stream(b"key"), Stream(b"key")
    data = sender.packed(b"bid")
    assert reader.taken(data) == [b"bid"]
    assert reader.taken(data) == []
    assert reader.broken


def test_a_frame_under_another_key_is_none() -> None:
    reader = Stream(b"key")
    assert reader.taken(Stream(b"another").packed(b"bid")) == []
    assert reader.broken


def test_a_length_that_was_made_larger_stalls_the_line() -> None:
    sender, reader = Stream(b"key"), Stream(b"key")
    assert reader.taken(sender.packed(b"hello")) == [b"hello"]
    data = sender.packed(bytes(300))
    assert reader.taken(data[:6] + b"\x40" + data[7:]) == []
    asked = []
    for _ in range(3):
        assert reader.taken(sender.packed(b"beat")) == []
        asked.append(reader.stalls())
    assert asked == [False, True, True]
    assert not reader.broken


def test_a_silent_line_does_not_stall_nor_does_one_with_frames() -> None:
    sender, reader = Stream(b"key"), Stream(b"key")
    for _ in range(5):
        assert reader.taken(sender.packed(b"beat")) == [b"beat"]
        assert not reader.stalls()
        assert not reader.stalls()
