"""`hushbid bench tender`: the cost of one round beside fifty, and its duration between machines."""

from __future__ import annotations

import contextlib
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import tomli_w

from hushbid.cluster.file import open_cluster
from hushbid.consumer.events import PurchasesChecked
from hushbid.lab.bench.random_cluster import write_cluster
from hushbid.lab.bench.relay import relay
from hushbid.lab.bench.rules import BOX_BYTES
from hushbid.lab.bench.scale import in_own_process
from hushbid.lab.bench.scale_cell import ScaleCell
from hushbid.lab.bench.session_cost import sent_bodies, times_of
from hushbid.plan.submissions import ALIKE
from hushbid.protocol.machine.weighing import WeightsComputed
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.wire.codec import HEADER_BYTES
from hushbid.running.directory import prepare, redirect
from hushbid.running.launcher import run_parties

__all__ = ["bench_tender"]

ROUNDS: Final = 50
_OWNERS: Final = 4
_POINTS: Final = 2_000
COLUMNS: Final = 64
_TENDER: Final = "submission"
_RELEASE: Final = {"mechanism": "filtered-gaussian", "epsilon": 1.0, "neighbours": "substitute-one"}


def bench_tender(
    *, owners: int, bought: int, delay: float, columns: int = COLUMNS, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure a tender beside `sealed` in fifty rounds, and a tender with four distant owners.

    The first two are simulated, each in a process of its own, with p points at each owner, and so is a tender
    in which each owner submits fewer points, 4·p/K. The last one uses processes, CURVE, transcripts and
    fsync, and a relay that delays every byte.

    Args:
        owners: K of the simulated sessions.
        bought: p.
        delay: One-way delay, in seconds.
        columns: Bytes of a point of the four distant owners.
    """
    few = min(bought, -(-ALIKE * bought // owners))
    batches = {"sealed": -(-bought // ROUNDS), "tender": bought, "tender_few": few}
    cells = {
        name: ScaleCell(name.partition("_")[0], owners, bought, batch, owner_points=bought)
        for name, batch in batches.items()
    }
    costs = {}
    for name, cell in cells.items():
        say(f"{cell.rule}, K = {owners}, p = {bought}, b = {cell.batch}")
        costs[name] = in_own_process(cell)
    say(f"a tender of {_OWNERS} owners, {delay:g} s each way")
    seconds, size = _far(bought, columns, delay, say)
    sealed, tender = costs["sealed"], costs["tender"]
    measured = {name: asdict(cells[name]) | asdict(cost) for name, cost in costs.items()}
    return {
        "owners": owners,
        "bought": bought,
        "sealed": measured["sealed"],
        "tender": measured["tender"],
        "tender_few": measured["tender_few"],
        "processor_ratio": tender.seconds / sealed.seconds,
        "bytes_ratio": _bytes(tender) / _bytes(sealed),
        "delay": delay,
        "far_owners": _OWNERS,
        "far_columns": columns,
        "call_to_delivery_seconds": seconds,
        "tender_bytes": size,
    }


def _bytes(cost: Any) -> int:
    return int(cost.received_bytes) + int(cost.sent_bytes)


def _far(bought: int, columns: int, delay: float, say: Callable[[str], None]) -> tuple[float, int]:
    """Seconds from the call until the consumer has checked the last point, and bytes of an owner's tender."""
    with tempfile.TemporaryDirectory(prefix="hushbid-bench-") as name, contextlib.ExitStack() as stack:
        place = Path(name)
        plain = write_cluster(
            place, owners=_OWNERS, points=_POINTS, columns=columns, rounds=bought, whole=True
        )
        table = tomllib.loads(plain.read_text(encoding="utf-8"))
        table["session"].pop("batch")
        table["features"].pop("seed")
        table.pop("summary")
        table |= {
            "target": _RELEASE,
            "acquisition": {"rule": "tender", "box_bytes": columns + BOX_BYTES - COLUMNS},
            "run": {"durability": "fsync"},
        }
        plain.write_text(tomli_w.dumps(table), encoding="utf-8")
        prepared = prepare(open_cluster(plain), place / "runs")
        redirect(prepared, stack.enter_context(relay(prepared.session.network.address, delay=delay)))
        ended = run_parties(prepared, say=say)
        directories = {party.name: party.directory for party in prepared.parties}
        called, checked = (
            times_of(directories[party] / found.transcript, kind)
            for party, found, kind in (
                (CURATOR, ended.curator, WeightsComputed.KIND),
                (CONSUMER, ended.consumer, PurchasesChecked.KIND),
            )
        )
        owner, found = next(iter(ended.owners.items()))
        tenders = [body for _, body in sent_bodies(directories[owner] / found.transcript, {_TENDER})]
    return max(checked) - min(called), sum(HEADER_BYTES + len(body) for body in tenders)
