"""`hushbid bench points`: points that the default private session buys a second, beside a bare loop."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.bench.bare import bare_rounds
from hushbid.bench.rules import BOX_BYTES, with_setting
from hushbid.bench.session import DIMENSION, write_cluster
from hushbid.cluster import open_cluster
from hushbid.launcher import run_parties
from hushbid.run_directory import prepare
from protocol.messages import Bid, Broadcast, SealedCandidate, fixed
from protocol.names import CURATOR
from protocol.sealing import SEAL_BYTES, SIGNATURE_BYTES
from protocol.wire import HEADER_BYTES, encode_message

__all__ = ["bench_points"]


def bench_points(
    *,
    owners: int,
    points: int,
    columns: int,
    bought: int,
    batch: int,
    repeats: int,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Measure points bought a second, from the first broadcast to the end of the last round.

    The session is sealed and filtered, with secure noise, fsync, CURVE and recording. The bare loop passes
    frames of one point each; it is measured before and after.

    Args:
        owners: K.
        points: Points of each owner.
        columns: Feature columns of a point.
        bought: p.
        batch: b, the points that a round buys; divides p.
        repeats: Sessions; their median counts.
        say: Told what is being measured.

    Returns:
        The figures under the names of the command line's JSON.
    """
    broadcast = Broadcast(round=1000, weights=np.zeros(DIMENSION, dtype=np.int32), noise="secure")
    candidate = SealedCandidate(
        features=np.zeros(DIMENSION, dtype=np.int16),
        box=bytes(BOX_BYTES + SEAL_BYTES),
        signature=bytes(SIGNATURE_BYTES),
    )
    bid = Bid(round=1000, exhausted=False, score=fixed(0), handle=fixed(1), candidate=candidate)
    down, up = (HEADER_BYTES + len(encode_message(message)) for message in (broadcast, bid))

    def bare() -> float:
        say("bare ROUTER/DEALER scatter-gather")
        return bare_rounds(owners, 1000, down, up, curve=True)

    rounds = bought // batch
    with tempfile.TemporaryDirectory(prefix="hushbid-bench-") as name:
        place = Path(name)
        plain = write_cluster(
            place, owners=owners, points=points, columns=columns, rounds=rounds, batch=batch, whole=True
        )
        file = with_setting(plain, "private")
        before = bare()
        measured = []
        for _ in range(repeats):
            say(f"session, {rounds} rounds of {batch}")
            ended = run_parties(prepare(open_cluster(file), place / "runs"), say=say)
            measured.append(batch * float(ended.results[CURATOR]["rounds_per_second"]))
        after = bare()
    rate, reference = sorted(measured)[len(measured) // 2], (before + after) / 2
    return {
        "owners": owners,
        "points": points,
        "columns": columns,
        "bought": rounds * batch,
        "batch": batch,
        "rounds": rounds,
        "bare_rounds_per_second": reference,
        "bare_spread": abs(before - after) / reference,
        "points_per_second": rate,
        "points_per_second_low": min(measured),
        "points_per_second_high": max(measured),
        "ratio": rate / reference,
    }
