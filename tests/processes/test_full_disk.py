"""A full disk while a session is recorded: the writer stops, and resumes when there is room."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hushbid.protocol.errors import ExitCode
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.files.box_file import read_boxes
from tests.processes.cluster import Cluster, Ended
from tests.processes.recovery import OWNERS, check_whole, end_well, recorded_bytes, session
from tests.support.transcripts import read_transcript

OWNER = OWNERS[0]
UNDER_WAY = 30_000
"""Bytes of a transcript by which the rounds have begun."""
ROOM = 60_000
"""Bytes that no file can grow beyond, long before the session's end."""
MORE = 10_000
"""By which an owner's transcript still grows."""


def allow_no_file_beyond(limit: int, cluster: Cluster, name: str) -> None:
    """Let no file of a running party grow beyond `limit` bytes."""
    limits = (limit, resource.RLIM_INFINITY)
    resource.prlimit(cluster.processes[name].pid, resource.RLIMIT_FSIZE, limits)


def stopped(cluster: Cluster, name: str, advice: str = "Raise the limit of a file's size") -> Ended:
    """The end of a party without room: in good order, and alone."""
    ended = cluster.end(name)[name]
    assert ended.code == ExitCode.SHORTAGE, ended.err
    assert ended.error["kind"] == "TranscriptUnwritable"
    assert advice in ended.error["advice"]
    assert ended.error["advice"].endswith("then start this party again.")
    assert "Traceback" not in ended.err
    assert read_transcript(cluster.transcript_path(name)).torn_bytes == 0, "its last record is a whole one"
    assert all(cluster.running(other) for other in cluster.names if other != name), "the others wait"
    return ended


def ends_well_after_all(cluster: Cluster, *names: str) -> None:
    """With room they resume where they were, and nothing is lost."""
    ended = end_well(cluster)
    check_whole(cluster, ended)
    for name in names:
        assert "goes on after record" in ended[name].err


def test_who_has_no_room_for_its_transcript_stops_and_goes_on(tmp_path: Path) -> None:
    """The curator, an owner, and the consumer: the delivery is on record, and written in the end."""
    with session(tmp_path / "session", "ask-all") as cluster:
        cluster.start_all()
        cluster.until(lambda: recorded_bytes(cluster, CURATOR) > UNDER_WAY, "some rounds")
        allow_no_file_beyond(ROOM, cluster, CURATOR)
        # Each is limited while all wait for the one before it.
        before = 0
        for name, following, more in ((CURATOR, OWNER, MORE), (OWNER, CONSUMER, 1000)):
            told = stopped(cluster, name).error["what"]
            assert f"{name}.transcript: cannot write the transcript: File too large." in told
            before = recorded_bytes(cluster, following)
            allow_no_file_beyond(before + more, cluster, following)
            cluster.start(name)
        told = stopped(cluster, CONSUMER).error["what"]
        assert "consumer.transcript: cannot write the transcript: File too large." in told
        assert before <= recorded_bytes(cluster, CONSUMER) <= before + 1000, "the delivery is not there"
        obstacle = cluster.directory(CONSUMER) / "state" / ".delivered.npz.partial"
        obstacle.mkdir()
        cluster.start(CONSUMER)
        ended = cluster.end(CONSUMER)[CONSUMER]
        assert ended.error["kind"] == "DataError"
        assert "delivered.npz: the delivered points cannot be written: Is a directory." in ended.error["what"]
        assert cluster.running(CURATOR), "it waits for the receipt"
        obstacle.rmdir()
        cluster.start(CONSUMER)
        ends_well_after_all(cluster, CURATOR, OWNER, CONSUMER)


def test_the_curator_has_no_room_for_sealed_boxes(tmp_path: Path) -> None:
    """It then has none for their digests either: a record that needs a box is not there without it."""
    large = {"acquisition.box_bytes": 8192}
    with session(tmp_path / "session", "sealed", large) as cluster:
        cluster.start_all()
        boxes = cluster.directory(CURATOR) / "state" / "curator.boxes"
        cluster.until(lambda: boxes.exists() and boxes.stat().st_size > 10 * UNDER_WAY, "some boxes")
        assert recorded_bytes(cluster, CURATOR) < 10 * UNDER_WAY, "they are larger than their records"
        allow_no_file_beyond(20 * UNDER_WAY, cluster, CURATOR)
        told = stopped(cluster, CURATOR).error["what"]
        assert "curator.boxes: cannot write the sealed boxes: File too large." in told
        assert sum(4 + len(box) for box in read_boxes(boxes)) == boxes.stat().st_size
        cluster.start(CURATOR)
        ends_well_after_all(cluster, CURATOR)
        assert not boxes.exists(), "what was not bought is destroyed in the end"


def fill(path: Path) -> None:
    """Let a file take all the room on its disk."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[None]:
    """A file system of its own, in memory, of a size; needs the right to mount."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a file system here: the disk of limited size is not tried")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize(
    ("name", "kind"), [(CURATOR, "sealed"), pytest.param(OWNER, "ask-all", marks=pytest.mark.slow)]
)
def test_a_disk_that_is_really_full(tmp_path: Path, name: str, kind: str) -> None:
    with session(tmp_path / "session", kind) as cluster, small_disk(cluster.directory(name) / "state", "2m"):
        ballast = cluster.directory(name) / "state" / "ballast"
        cluster.start_all()
        cluster.until(lambda: recorded_bytes(cluster, name) > UNDER_WAY, "some rounds")
        fill(ballast)
        told = stopped(cluster, name, "Make room on the disk").error["what"]
        assert str(cluster.directory(name) / "state" / name) in told
        assert "No space left on device." in told
        cluster.start(name)
        assert cluster.end(name)[name].error["kind"] == "TranscriptUnwritable", "there is still no room"
        ballast.unlink()
        cluster.start(name)
        ends_well_after_all(cluster, name)
