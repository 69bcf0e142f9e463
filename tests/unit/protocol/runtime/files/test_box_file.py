"""The file of sealed boxes: whole boxes come back, a torn one does not, a destroyed file is gone."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from hushbid.protocol.errors import ConfigError, DataError, TranscriptUnwritable
from hushbid.protocol.runtime.files.box_file import BoxFile, KeptBoxes, read_boxes

BOXES = [b"", b"a", bytes(range(256)) * 20, b"\xff" * 7]


def written(path: Path, boxes: list[bytes] = BOXES) -> BoxFile:
    file = BoxFile(path, "flush")
    for box in boxes:
        file.add(box)
    file.commit()
    return file


@pytest.mark.parametrize("durability", ["flush", "fsync"])
def test_boxes_come_back_in_the_order_in_which_they_came(tmp_path: Path, durability: str) -> None:
    path = tmp_path / "curator.boxes"
    file = BoxFile(path, "fsync" if durability == "fsync" else "flush")
    for box in BOXES:
        file.add(box)
        file.commit()
    file.commit()
    assert read_boxes(path) == BOXES
    file.close()
    file.close()


def test_with_fsync_a_commit_waits_for_the_disk_and_an_empty_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    for durability, expected in (("fsync", 1), ("flush", 0)):
        file = BoxFile(tmp_path / durability, "fsync" if durability == "fsync" else "flush")
        synced.clear()
        file.commit()
        file.add(b"box")
        file.commit()
        assert len(synced) == expected
        file.close()


def test_nothing_is_on_the_disk_before_the_commit(tmp_path: Path) -> None:
    file = BoxFile(tmp_path / "boxes", "flush")
    file.add(b"box")
    assert read_boxes(file.path) == []


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    file = written(tmp_path / "boxes")
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600


def test_a_torn_tail_is_left_out_wherever_it_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "boxes"
    written(path).close()
    data = path.read_bytes()
    ends = [0]
    for box in BOXES:
        ends.append(ends[-1] + 4 + len(box))
    assert ends[-1] == len(data)
    for length in [*range(20), *range(len(data) - 12, len(data) + 1)]:
        path.write_bytes(data[:length])
        whole = sum(end <= length for end in ends[1:])
        assert read_boxes(path) == BOXES[:whole]


def test_a_destroyed_file_is_gone_with_what_was_not_committed(tmp_path: Path) -> None:
    file = written(tmp_path / "boxes")
    file.add(b"one more")
    file.destroy()
    file.commit()
    assert read_boxes(file.path) == BOXES, "its destruction is not on record yet"
    file.sweep()
    assert not file.path.exists()
    file.add(b"one more")
    file.commit()
    file.sweep()
    assert not file.path.exists()
    file.close()


def test_a_file_that_is_there_is_gone_on_with_and_a_torn_box_is_cut_off(tmp_path: Path) -> None:
    written(tmp_path / "boxes").close()
    whole = (tmp_path / "boxes").read_bytes()
    (tmp_path / "boxes").write_bytes(whole + b"\x05\0\0\0torn")
    written(tmp_path / "boxes", [b"one more"]).close()
    assert (tmp_path / "boxes").read_bytes().startswith(whole)
    assert read_boxes(tmp_path / "boxes") == [*BOXES, b"one more"]


def test_a_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot open the file of sealed boxes: Is a directory"):
        BoxFile(tmp_path, "flush")


def test_a_full_disk_loses_nothing_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The written half is removed, so that no box is torn in the middle of the file."""
    file = written(tmp_path / "boxes", [b"first"])
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        if len(data) > 8:
            return write(descriptor, bytes(data[:8]))
        raise OSError(28, "No space left on device")

    file.add(b"second, longer than eight bytes")
    monkeypatch.setattr(os, "write", half)
    for _ in range(2):
        with pytest.raises(TranscriptUnwritable, match="No space left") as caught:
            file.commit()
        assert caught.value.advice
        assert read_boxes(file.path) == [b"first"]
    monkeypatch.setattr(os, "write", write)
    file.add(b"third")
    file.commit()
    assert read_boxes(file.path) == [b"first", b"second, longer than eight bytes", b"third"]


# -- what a curator that starts again has ------------------------------------------------------------


def digest_of(box: bytes) -> bytes:
    return hashlib.sha256(box).digest()


def test_kept_boxes_are_found_by_their_digests(tmp_path: Path) -> None:
    written(tmp_path / "boxes").close()
    kept = KeptBoxes(tmp_path / "boxes", 100)
    assert [kept(digest_of(box)) for box in BOXES] == BOXES
    kept.ensure_whole()


@pytest.mark.parametrize("there", [True, False])
def test_a_box_that_is_not_there_is_missed_once_it_was_asked_for(tmp_path: Path, there: bool) -> None:
    """The transcript says which are wanted: those of a destroyed file are not."""
    if there:
        written(tmp_path / "boxes").close()
    kept = KeptBoxes(tmp_path / "boxes", 100)
    kept.ensure_whole()
    digest = digest_of(b"another")
    filler = kept(digest)
    assert len(filler) == 100
    assert filler.startswith(digest)
    with pytest.raises(DataError, match=r"boxes: 1 sealed boxes are not there") as caught:
        kept.ensure_whole()
    assert "Put the file back" in caught.value.advice
