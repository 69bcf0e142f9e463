"""`hushbid bench owners`: the cost of a session of many owners on one machine, one process each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from hushbid.cluster.file import open_cluster
from hushbid.cluster.parties import Party
from hushbid.lab.bench.random_cluster import write_cluster
from hushbid.lab.bench.rules import with_setting
from hushbid.lab.bench.spent import Watch, descendants
from hushbid.protocol import platform
from hushbid.protocol.names import CURATOR
from hushbid.protocol.runtime.telemetry.status_file import Status, status_path
from hushbid.running.directory import prepare
from hushbid.running.launcher import run_parties
from hushbid.running.simulate import Follow
from hushbid.text_files import check_directory_place

__all__ = ["bench_owners"]

_POINTS: Final = 100
_COLUMNS: Final = 16
_ROUNDS: Final = 50
_BATCH: Final = 2
_BETWEEN_LOOKS: Final = 2.0
"""Seconds between two readings of all processes' memory; a reading takes milliseconds per process."""


def bench_owners(
    *, owners: int, setting: str, place: Path, say: Callable[[str], None], follow: Follow | None = None
) -> dict[str, Any]:
    """Run a session with a process for each party, to the end.

    Each owner has 100 points of 16 bytes, and 100 are bought in rounds of two, with d = 140. The session uses
    CURVE, transcripts and secure noise, and every record is on disk before a frame leaves.

    Args:
        setting: "private", which is sealed, or "blind" (`hushbid.lab.bench.rules`).
        place: Directory for the parties' data and the run's directory; created if need be.
        say: Called with the last lines of parties that fail.
        follow: Called about ten times a second.

    Raises:
        ConfigError: This is not Linux, or the directory cannot be written.
        PartyFailed: The run failed.
    """
    platform.check_linux("A session of many processes")
    check_directory_place(place)
    place.mkdir(parents=True, exist_ok=True)
    plain = write_cluster(
        place, owners=owners, points=_POINTS, columns=_COLUMNS, rounds=_ROUNDS, batch=_BATCH, whole=True
    )
    prepared = prepare(open_cluster(with_setting(plain, setting)), place / "runs")
    began, before = time.monotonic(), _processor_seconds()
    with _Memory() as memory:
        ended = run_parties(prepared, follow, say)
    took, spent = time.monotonic() - began, _processor_seconds() - before
    curator = ended.curator
    counted = Status.read(status_path(_state(prepared.parties[0]), CURATOR)).counters
    return {
        "owners": owners,
        "setting": setting,
        "rounds": curator.rounds,
        "bought": ended.consumer.points_delivered,
        "absent": sum(curator.absences.values()),
        "failed": len(ended.failed),
        "whole_seconds": took,
        "rounds_seconds": curator.wall_seconds,
        "processor_seconds": spent,
        "memory_bytes": memory.most,
        "received_bytes": counted["bytes_received"],
        "sent_bytes": counted["bytes_sent"],
        "transcript_bytes": sum(
            path.stat().st_size for party in prepared.parties for path in _state(party).glob("*.transcript")
        ),
        "directory": str(prepared.path),
    }


def _state(party: Party) -> Path:
    return party.directory / "state"


def _processor_seconds() -> float:
    used = os.times()
    return used.children_user + used.children_system


class _Memory(Watch):
    """Samples the memory of this process's children in a thread; shared pages count in part (``Pss``)."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0

    def _look(self) -> None:
        while not self._ended.wait(_BETWEEN_LOOKS):
            self.most = max(self.most, sum(map(_share, descendants(os.getpid()))))


def _share(process: int) -> int:
    """A process's memory in bytes, shared pages in part; 0 if it has ended."""
    try:
        with open(f"/proc/{process}/smaps_rollup", encoding="ascii") as sums:
            return next((1024 * int(line.split()[1]) for line in sums if line.startswith("Pss:")), 0)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
