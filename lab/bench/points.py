"""`hushbid bench points`: points per second of a private session, beside a bare loop."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median_high
from typing import Any, Final

import numpy as np

from hushbid.lab.bench.bare import bare_rounds
from hushbid.lab.bench.random_cluster import DIMENSION, write_cluster
from hushbid.lab.bench.rules import BOX_BYTES, with_setting
from hushbid.lab.bench.session_cost import SessionCost, check_python, session_cost
from hushbid.lab.bench.spent import RoundCost
from hushbid.protocol.crypto.sealing import SEAL_BYTES, SIGNATURE_BYTES
from hushbid.protocol.wire.codec import HEADER_BYTES, encode_message
from hushbid.protocol.wire.messages import Bid, Broadcast, SealedCandidate, fixed

__all__ = ["SETTINGS", "bench_points"]


SETTINGS: Final = ("private", "blind", "sealed")
"""Settings measured in turn (`hushbid.lab.bench.rules`); `sealed` has neither noise nor fsync."""


def bench_points(
    *,
    owners: int,
    points: int,
    columns: int,
    bought: int,
    batch: int,
    repeats: int,
    delay: float = 0.0,
    against: Path | None = None,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Measure points bought per second, from the first broadcast to the end of the last round.

    The session is sealed and filtered, with secure noise, fsync, CURVE and recording; then come the same with
    a blind curator, and one without noise and fsync. The bare loop passes frames of one point each; it is
    measured before and after. Processor time counts all parties during the rounds; the smallest of several
    counts.

    With a delay, owners and the consumer reach the curator through a relay on loopback that delays every byte
    in both directions. There is then no ratio: a round of the bare loop would be little but the delay.

    Args:
        bought: p, a multiple of `batch`.
        repeats: Number of sessions; the median counts.
        delay: One-way network delay in seconds; 0: no relay.
        against: The Python of another checkout; its sessions alternate with these.

    Raises:
        ConfigError: The other checkout cannot run a session.
    """
    if against is not None:
        check_python(against)
    broadcast = Broadcast(round=1000, weights=np.zeros(DIMENSION, dtype=np.int32), noise="secure")
    candidate = SealedCandidate(
        features=np.zeros(DIMENSION, dtype=np.int16),
        box=bytes(BOX_BYTES + SEAL_BYTES),
        signature=bytes(SIGNATURE_BYTES),
    )
    bid = Bid(round=1000, exhausted=False, score=fixed(0), handle=fixed(1), candidate=candidate)
    down, up = (HEADER_BYTES + len(encode_message(message)) for message in (broadcast, bid))

    def bare() -> RoundCost:
        say("bare ROUTER/DEALER scatter-gather")
        return bare_rounds(owners, 1000, down, up, curve=True)

    rounds = bought // batch
    checkouts = [None] if against is None else [None, against]
    found: dict[tuple[Path | None, str], list[SessionCost]] = {}
    with tempfile.TemporaryDirectory(prefix="hushbid-bench-") as name:
        place = Path(name)
        plain = write_cluster(
            place, owners=owners, points=points, columns=columns, rounds=rounds, batch=batch, whole=True
        )
        before = bare()
        files = {setting: with_setting(plain, setting) for setting in SETTINGS}
        for repeat in range(repeats):
            for setting in SETTINGS:
                for python in checkouts[:: -1 if repeat % 2 else 1]:
                    say(
                        f"session ({setting}), {rounds} rounds of {batch}"
                        + (f", {delay:g} s each way" if delay else "")
                        + ("" if python is None else ", the other checkout")
                    )
                    cost = session_cost(files[setting], place / "runs", python=python, delay=delay, say=say)
                    found.setdefault((python, setting), []).append(cost)
        after = bare()
    reference = (before.rate + after.rate) / 2
    bare_seconds = min(each.processor_seconds / each.rounds for each in (before, after))
    own = _figures(batch, found, None, bare_seconds)
    rates = [batch * cost.rate for cost in found[None, "private"]]
    blind = [batch * cost.rate for cost in found[None, "blind"]]
    return {
        "owners": owners,
        "points": points,
        "columns": columns,
        "bought": rounds * batch,
        "batch": batch,
        "rounds": rounds,
        "bare_rounds_per_second": reference,
        "bare_spread": abs(before.rate - after.rate) / reference,
        "bare_processor_seconds_per_round": bare_seconds,
        "points_per_second": own["points_per_second"],
        "points_per_second_low": min(rates),
        "points_per_second_high": max(rates),
        "ratio": None if delay else own["points_per_second"] / reference,
        "blind_points_per_second": own["blind_points_per_second"],
        "blind_points_per_second_low": min(blind),
        "blind_points_per_second_high": max(blind),
        "blind_ratio": own["blind_points_per_second"] / own["points_per_second"],
        "sealed_points_per_second": own["sealed_points_per_second"],
        "processor_seconds_per_point": own["processor_seconds_per_point"],
        "blind_processor_seconds_per_point": own["blind_processor_seconds_per_point"],
        "sealed_processor_seconds_per_point": own["sealed_processor_seconds_per_point"],
        "processor_ratio": own["processor_ratio"],
        "delay": delay,
        "session_seconds": own["session_seconds"],
        "whole_seconds": own["whole_seconds"],
        "blind_whole_seconds": own["blind_whole_seconds"],
        "against": None if against is None else _figures(batch, found, against, bare_seconds),
    }


def _figures(
    batch: int,
    found: Mapping[tuple[Path | None, str], Sequence[SessionCost]],
    python: Path | None,
    bare_seconds: float,
) -> dict[str, Any]:
    """The figures of one checkout: medians of times, and the smallest processor time."""
    figures: dict[str, Any] = {}
    for setting in SETTINGS:
        costs = found[python, setting]
        prefix = "" if setting == "private" else f"{setting}_"
        figures |= {
            f"{prefix}points_per_second": batch * median_high([cost.rate for cost in costs]),
            f"{prefix}processor_seconds_per_point": min(
                cost.processor_seconds / (batch * cost.rounds) for cost in costs
            ),
            f"{prefix}session_seconds": median_high([cost.seconds for cost in costs]),
            f"{prefix}whole_seconds": median_high([cost.whole for cost in costs]),
        }
    spent = figures["processor_seconds_per_point"]  # 0 if a session passed between two readings
    return figures | {"processor_ratio": bare_seconds / spent if spent else None}
