"""`hushbid bench rounds`: a real session beside a bare scatter-gather of the same frames, in one run.

Both have the same number of processes, frame sizes, encryption and machine. The ratio is the share of the
network's own speed left by protocol, scoring, verification and recording.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.cluster.file import open_cluster
from hushbid.lab.bench.bare import bare_rounds
from hushbid.lab.bench.random_cluster import DIMENSION, write_cluster
from hushbid.protocol.wire.codec import HEADER_BYTES, encode_message
from hushbid.protocol.wire.messages import Bid, Broadcast, Candidate, fixed
from hushbid.running.directory import prepare
from hushbid.running.launcher import run_parties

__all__ = ["bench_rounds"]


def bench_rounds(
    *, owners: int, points: int, columns: int, rounds: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure rounds per second: bare, with ``durability = "flush"``, with "fsync", and bare again.

    The session is `exact` and `ask-all`, with CURVE and recording, over random points. `ratio` is flush over
    bare.
    """
    broadcast, reply = _frame_sizes(columns)

    def bare() -> float:
        say("bare ROUTER/DEALER scatter-gather")
        return bare_rounds(owners, 2 * rounds, broadcast, reply, curve=True).rate

    with tempfile.TemporaryDirectory(prefix="hushbid-bench-") as name:
        cluster = write_cluster(Path(name), owners=owners, points=points, columns=columns, rounds=rounds)
        before = bare()
        measured = {}
        for durability in ("flush", "fsync"):
            say(f"session, durability {durability}")
            opened = open_cluster(cluster, settings=[f'run.durability="{durability}"'])
            ended = run_parties(prepare(opened, Path(name) / "runs"), say=say)
            measured[durability] = ended.curator.rounds / ended.curator.wall_seconds
        after = bare()
    reference = (before + after) / 2
    return {
        "owners": owners,
        "points": points,
        "columns": columns,
        "rounds": rounds,
        "broadcast_bytes": broadcast,
        "reply_bytes": reply,
        "bare_rounds_per_second": reference,
        "bare_spread": abs(before - after) / reference,
        "flush_rounds_per_second": measured["flush"],
        "fsync_rounds_per_second": measured["fsync"],
        "ratio": measured["flush"] / reference,
        "ratio_fsync": measured["fsync"] / reference,
    }


def _frame_sizes(columns: int) -> tuple[int, int]:
    """Bytes of a broadcast's frame, and of a bid's with its point."""
    candidate = Candidate(
        point=np.zeros(columns), features=np.zeros(DIMENSION, dtype=np.int16), attributes=bytes(2)
    )
    broadcast = Broadcast(round=1000, weights=np.zeros(DIMENSION, dtype=np.int32), noise="none")
    bid = Bid(round=1000, exhausted=False, score=fixed(0), handle=fixed(0), candidate=candidate)
    return HEADER_BYTES + len(encode_message(broadcast)), HEADER_BYTES + len(encode_message(bid))
