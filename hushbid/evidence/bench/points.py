"""`hushbid bench points`: points that a private session buys a second, beside a bare loop."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median_high
from typing import Any

import numpy as np

from hushbid.cluster.file import open_cluster
from hushbid.consumer.events import PurchasesChecked
from hushbid.evidence.bench.bare import bare_rounds
from hushbid.evidence.bench.relay import relay
from hushbid.evidence.bench.rules import BOX_BYTES, with_setting
from hushbid.evidence.bench.session import DIMENSION, write_cluster
from hushbid.protocol.crypto.sealing import SEAL_BYTES, SIGNATURE_BYTES
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.wire.codec import HEADER_BYTES, encode_message
from hushbid.protocol.wire.messages import Bid, Broadcast, SealedCandidate, fixed
from hushbid.running.directory import prepare, redirect
from hushbid.running.launcher import run_parties

__all__ = ["bench_points", "times_of"]


@dataclass(frozen=True)
class _Measured:
    """What one session took, in seconds.

    Attributes:
        session: From the first broadcast to the end of the last round.
        whole: From the start of the parties' processes until the consumer had the last points.
    """

    session: float
    whole: float


def bench_points(
    *,
    owners: int,
    points: int,
    columns: int,
    bought: int,
    batch: int,
    repeats: int,
    delay: float = 0.0,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Measure points bought a second, from the first broadcast to the end of the last round.

    The session is sealed and filtered, with secure noise, fsync, CURVE and recording; then the same with a
    curator that is blind. The bare loop passes frames of one point each; it is measured before and after.

    With a delay, owners and the consumer reach the curator through a relay on loopback that hands every byte
    on so much later, in both directions. The bare loop is never delayed, so that a delayed session has no
    ratio to it: a round of either would be little but the delay.

    Args:
        bought: p, which `batch` divides.
        repeats: Sessions; their median counts.
        delay: Delay of a byte on its way through the network, in seconds; 0: no relay.
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
        before = bare()
        measured: dict[str, list[_Measured]] = {"private": [], "blind": []}
        files = {setting: with_setting(plain, setting) for setting in measured}
        for _ in range(repeats):
            for setting, found in measured.items():
                say(
                    f"session ({setting}), {rounds} rounds of {batch}"
                    + (f", {delay:g} s each way" if delay else "")
                )
                found.append(_measure(files[setting], place / "runs", delay, say))
        after = bare()
    rates, blind = ([rounds * batch / each.session for each in found] for found in measured.values())
    rate, reference = median_high(rates), (before + after) / 2
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
        "points_per_second_low": min(rates),
        "points_per_second_high": max(rates),
        "ratio": None if delay else rate / reference,
        "blind_points_per_second": median_high(blind),
        "blind_points_per_second_low": min(blind),
        "blind_points_per_second_high": max(blind),
        "blind_ratio": median_high(blind) / rate,
        "delay": delay,
        "session_seconds": median_high([each.session for each in measured["private"]]),
        "whole_seconds": median_high([each.whole for each in measured["private"]]),
        "blind_whole_seconds": median_high([each.whole for each in measured["blind"]]),
    }


def _measure(file: Path, runs: Path, delay: float, say: Callable[[str], None]) -> _Measured:
    prepared = prepare(open_cluster(file), runs)
    with contextlib.ExitStack() as stack:
        if delay:
            redirect(prepared, stack.enter_context(relay(prepared.session.network.address, delay=delay)))
        started = time.monotonic()
        ended = run_parties(prepared, say=say)
    place = next(party.directory for party in prepared.parties if party.name == CONSUMER)
    delivered = max(times_of(place / ended.consumer.transcript, PurchasesChecked.KIND))
    return _Measured(session=ended.curator.wall_seconds, whole=delivered - started)


def times_of(transcript: Path, kind: str) -> list[float]:
    """When the records of a party were made that have an item of this kind.

    All parties' records have the time of one clock: it is the machine's.
    """
    with TranscriptReader(transcript) as records:
        return [record.now for record in records if any(item.kind == kind for item in record.items)]
