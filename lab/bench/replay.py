"""`hushbid bench replay`: replay speed of a transcript, beside its session and beside reading alone."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median_high
from typing import Any

from hushbid.cluster.file import open_cluster
from hushbid.lab.bench.random_cluster import write_cluster
from hushbid.lab.bench.rules import SETTINGS, with_setting
from hushbid.protocol.names import CURATOR
from hushbid.protocol.runtime.blas_threads import keep_one_blas_thread
from hushbid.protocol.transcript.verify import verify
from hushbid.running.directory import prepare
from hushbid.running.launcher import run_parties
from hushbid.transcripts.replay import replayed

__all__ = ["bench_replay"]


def bench_replay(
    *, owners: int, points: int, columns: int, rounds: int, repeats: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure how many of a curator's rounds are replayed per second, on one core.

    The limit is the speed of reading and checking the same file without a machine. The median of `repeats`
    counts.
    """
    keep_one_blas_thread()
    found: dict[str, Any] = {"owners": owners, "points": points, "columns": columns, "rounds": rounds}
    with tempfile.TemporaryDirectory(prefix="hushbid-bench-") as name:
        place = Path(name)
        plain = write_cluster(place, owners=owners, points=points, columns=columns, rounds=rounds, whole=True)
        for setting in SETTINGS:
            say(f"session, {setting}")
            prepared = prepare(open_cluster(with_setting(plain, setting)), place / "runs")
            result = run_parties(prepared, say=say).curator
            directory = next(party.directory for party in prepared.parties if party.name == CURATOR)
            transcript = directory / result.transcript
            say(f"replay, {setting}")
            recorded = result.rounds / result.wall_seconds
            reading = rounds / _median(repeats, lambda path=transcript: verify(path))  # type: ignore[misc]
            replay = rounds / _median(repeats, lambda path=transcript: replayed(path))  # type: ignore[misc]
            found[setting] = {
                "recorded_rounds_per_second": recorded,
                "reading_rounds_per_second": reading,
                "replay_rounds_per_second": replay,
                "ratio_to_recorded": replay / recorded,
                "ratio_to_reading": replay / reading,
            }
    return found


def _median(repeats: int, job: Callable[[], object]) -> float:
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        job()
        seconds.append(time.perf_counter() - started)
    return median_high(seconds)
