"""A journal is private to its owner, never overwrites, and keeps every record through a full disk."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol.errors import ConfigError, ExitCode, LocalProtocolError, TranscriptUnwritable
from hushbid.protocol.transcript.journal import Durability, Journal, JournalLike, MemoryJournal, NullJournal
from hushbid.protocol.wire.values import Item
from tests.support.transcripts import HEADER, STEPS, fixed_salts, header_end, read_transcript, transcript


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "owner.transcript"


def create(path: Path, durability: Durability = "flush") -> Journal:
    return Journal.create(path, HEADER, durability=durability, salts=fixed_salts())


def append_all(journal: JournalLike) -> None:
    for now, event, effects in STEPS:
        journal.append(now, event, effects)


@pytest.mark.parametrize("durability", ["fsync", "flush"])
def test_the_file_is_what_the_memory_journal_says(path: Path, durability: Durability) -> None:
    journal = create(path, durability)
    for now, event, effects in STEPS:
        journal.append(now, event, effects)
        journal.commit()
    assert path.read_bytes() == transcript()
    head = journal.head
    journal.close()
    found = read_transcript(path)
    assert (found.head, len(found.records)) == (head, journal.count)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_the_mode_is_0600_whatever_the_umask(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        create(path).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_existing_file_is_refused_and_left_as_it_was(path: Path) -> None:
    path.write_bytes(b"precious")
    with pytest.raises(ConfigError, match=r"there already.*another state directory") as caught:
        create(path)
    assert caught.value.exit_code == ExitCode.USAGE
    assert path.read_bytes() == b"precious"


def test_an_empty_file_that_a_crash_left_is_begun_with(path: Path) -> None:
    path.touch(mode=0o644)
    create(path).close()
    assert path.read_bytes() == transcript()[: header_end(transcript())]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_empty_file_that_another_process_begins_is_left_to_it(path: Path) -> None:
    path.touch()
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="another process records to this transcript"):
            create(path)
    assert path.read_bytes() == b""


def test_an_error_ends_it_without_what_was_not_committed(path: Path) -> None:
    """Data behind those records may not be durable, and no effect of theirs has left."""
    journal = create(path)
    append_all(journal)
    journal.commit()
    append_all(journal)
    with pytest.raises(KeyError), journal:
        raise KeyError
    assert len(read_transcript(path).records) == len(STEPS)
    Journal.reopen(path, durability="flush").close()  # nobody holds it any more


def test_the_end_of_its_block_commits(path: Path) -> None:
    with create(path) as journal:
        append_all(journal)
    assert path.read_bytes() == transcript()


def test_a_symbolic_link_is_not_followed(path: Path) -> None:
    target = path.with_name("elsewhere")
    path.symlink_to(target)
    with pytest.raises(ConfigError):
        create(path)
    assert not target.exists()


def test_a_directory_that_is_not_there_is_a_configuration_error(path: Path) -> None:
    with pytest.raises(ConfigError, match="Name a directory"):
        create(path / "below" / "x")


def test_nothing_is_written_before_the_commit_and_everything_by_it(path: Path) -> None:
    journal = create(path)
    append_all(journal)
    assert (journal.count, len(read_transcript(path).records)) == (3, 0)
    journal.commit()
    assert len(read_transcript(path).records) == 3
    journal.close()


def test_the_head_is_that_of_appended_records(path: Path) -> None:
    journal = create(path)
    append_all(journal)
    head = journal.head
    journal.commit()
    assert read_transcript(path).head == head == journal.head
    journal.close()


class Calls:
    """Counts the journal's calls of the operating system, and makes them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.write = self.count(monkeypatch, "write")
        self.fsync = self.count(monkeypatch, "fsync")
        self.ftruncate = self.count(monkeypatch, "ftruncate")

    @staticmethod
    def count(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
        real: Callable[..., object] = getattr(os, name)
        calls: list[int] = []

        def counted(descriptor: int, *arguments: object) -> object:
            calls.append(descriptor)
            return real(descriptor, *arguments)

        monkeypatch.setattr(f"hushbid.protocol.transcript.journal.os.{name}", counted)
        return calls


def test_a_commit_is_one_write_and_one_fsync(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = create(path, "fsync")
    calls = Calls(monkeypatch)
    append_all(journal)
    journal.commit()
    assert (len(calls.write), len(calls.fsync)) == (1, 1)
    journal.commit()
    assert (len(calls.write), len(calls.fsync)) == (1, 1), "an empty commit asks nothing"
    journal.close()


def test_creating_syncs_the_file_and_its_directory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(monkeypatch)
    journal = create(path, "fsync")
    assert len(calls.fsync) == 2
    journal.close()


def test_flush_waits_for_the_disk_at_the_end_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(monkeypatch)
    journal = create(path, "flush")
    append_all(journal)
    journal.commit()
    assert calls.fsync == []
    journal.close()
    journal.close()
    assert len(calls.fsync) == 1


def test_a_record_after_the_close_is_a_bug(path: Path) -> None:
    journal = create(path)
    journal.close()
    append_all(journal)
    with pytest.raises(LocalProtocolError, match="closed"):
        journal.commit()


class FullDisk:
    """A disk that takes `room` more bytes, in pieces of at most `piece`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int, piece: int = 2**30) -> None:
        self.room = room
        real = os.write

        def write(descriptor: int, data: bytes) -> int:
            size = min(len(data), piece, self.room)
            if size == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.room -= size
            return real(descriptor, data[:size])

        monkeypatch.setattr("hushbid.protocol.transcript.journal.os.write", write)


@given(room=st.integers(0, len(transcript()) - header_end(transcript()) - 1), piece=st.integers(1, 200))
def test_a_full_disk_leaves_whole_records_and_a_later_commit_goes_on(
    tmp_path_factory: pytest.TempPathFactory, room: int, piece: int
) -> None:
    path = tmp_path_factory.mktemp("full") / "transcript"
    journal = create(path)
    with pytest.MonkeyPatch.context() as monkeypatch:
        disk = FullDisk(monkeypatch, room, piece)
        append_all(journal)
        for _ in range(2):
            with pytest.raises(TranscriptUnwritable, match="No space left on device"):
                journal.commit()
            assert path.read_bytes() == transcript([]), "a part of a record must not stay"
        disk.room = 2**20
        journal.commit()
    journal.close()
    assert path.read_bytes() == transcript()


def test_a_limit_of_the_operating_system_is_a_full_disk(path: Path) -> None:
    journal = create(path)
    append_all(journal)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 50, hard))
    try:
        with pytest.raises(TranscriptUnwritable, match="File too large"):
            journal.commit()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == transcript([])
    journal.close()
    assert path.read_bytes() == transcript()


def test_records_committed_before_the_disk_was_full_stay(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = create(path)
    first, *others = STEPS
    journal.append(*first)
    journal.commit()
    disk = FullDisk(monkeypatch, room=50)
    for step in others:
        journal.append(*step)
    with pytest.raises(TranscriptUnwritable):
        journal.close()
    assert path.read_bytes() == transcript([first])
    disk.room = 2**20
    journal.close()
    assert path.read_bytes() == transcript()


def test_a_failed_fsync_is_followed_by_writing_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = create(path, "fsync")
    with monkeypatch.context() as failing:

        def fsync(descriptor: int) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        failing.setattr("hushbid.protocol.transcript.journal.os.fsync", fsync)
        append_all(journal)
        with pytest.raises(TranscriptUnwritable, match="Input/output error"):
            journal.commit()
        assert path.read_bytes() == transcript([])
    calls = Calls(monkeypatch)
    journal.commit()
    assert (len(calls.write), len(calls.fsync)) == (1, 1)
    assert path.read_bytes() == transcript()
    journal.close()


def test_what_could_not_be_cut_is_cut_by_the_next_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = create(path)
    append_all(journal)
    with monkeypatch.context() as failing:

        def ftruncate(descriptor: int, size: int) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        FullDisk(failing, room=50)
        failing.setattr("hushbid.protocol.transcript.journal.os.ftruncate", ftruncate)
        with pytest.raises(TranscriptUnwritable):
            journal.commit()
        assert read_transcript(path).torn_bytes == 50
    journal.close()
    assert path.read_bytes() == transcript()


def test_an_interrupt_in_the_middle_of_a_write_leaves_no_half_record(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = create(path)
    append_all(journal)
    real = os.write
    with monkeypatch.context() as interrupted:

        def write(descriptor: int, data: bytes) -> int:
            real(descriptor, data[:50])
            raise KeyboardInterrupt

        interrupted.setattr("hushbid.protocol.transcript.journal.os.write", write)
        with pytest.raises(KeyboardInterrupt):
            journal.commit()
    journal.close()
    assert path.read_bytes() == transcript()


def test_no_room_for_the_header_leaves_no_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FullDisk(monkeypatch, room=20)
    with pytest.raises(TranscriptUnwritable, match="Make room"):
        create(path)
    assert not path.exists()


def test_an_item_that_cannot_be_recorded_leaves_the_journal_as_it_was(path: Path) -> None:
    journal = create(path)
    with pytest.raises(LocalProtocolError):
        journal.append(0.0, Item("bid", {"x": 2**70}, {}), ())
    append_all(journal)
    journal.close()
    assert path.read_bytes() == transcript()


def test_memory_holds_what_was_committed() -> None:
    journal = MemoryJournal(HEADER, salts=fixed_salts())
    append_all(journal)
    assert journal.image == transcript([])
    journal.close()
    assert (journal.image, journal.count) == (transcript(), 3)


def test_null_counts_and_keeps_nothing() -> None:
    journal = NullJournal()
    append_all(journal)
    journal.commit()
    journal.close()
    assert (journal.count, journal.head) == (3, bytes(32))


def test_salts_differ_from_one_transcript_to_the_next() -> None:
    heads = set()
    for _ in range(2):
        journal = MemoryJournal(HEADER)
        append_all(journal)
        heads.add(journal.head)
    assert len(heads) == 2
