"""Sessions for the tests of the curator's machine, up to a round, with questions about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hushbid.protocol.wire.messages import Batch, sizes
from tests.simulation.harness import CuratorBench, corners, names, session_file, weights_of

__all__ = [
    "BEST",
    "CORNERS",
    "SECOND",
    "THIRD",
    "A",
    "B",
    "C",
    "W",
    "absences",
    "bench_of",
    "bid",
    "bidding",
    "doubled",
    "halved",
    "told",
    "winners",
]

CORNERS = corners()
W = weights_of(9, 4, 2, 1)
A, B, C = names(3)
BEST, SECOND, THIRD = sorted(
    range(16), key=lambda row: (-int(CORNERS[row].astype(int) @ W), CORNERS[row].tobytes())
)[:3]
"""The corners that score best under W."""


def bench_of(rule: str = "ask-all", *, owners: int = 3, points: int = 3, **options: Any) -> CuratorBench:
    return CuratorBench(session_file(owners=names(owners), points=points, rule=rule, **options))


def bidding(rule: str = "ask-all", **options: Any) -> CuratorBench:
    """A session in which round 1's weight was broadcast."""
    bench = bench_of(rule, **options)
    bench.enrol()
    bench.broadcast(W)
    return bench


def bid(bench: CuratorBench, owner: str, row: int, handle: int = 1, **changes: Any) -> None:
    weights = bench.machine.seats[owner].weights
    assert weights is not None
    round_number = bench.machine.seats[owner].broadcast
    bench.say(owner, bench.bid(round_number, CORNERS[row], handle, weights, **changes))


def halved(whole: Batch) -> Batch:
    """The first half of a batch's points."""
    return _changed(
        whole, lambda part: part[: len(part) // 2], handles=whole.handles[: len(whole.handles) // 2]
    )


def doubled(whole: Batch) -> Batch:
    """A batch's points twice, numbered anew."""

    def twice(part: Any) -> Any:
        return part * 2 if isinstance(part, bytes) else np.tile(part, 2)

    return _changed(whole, twice, handles=sizes(range(1, 2 * len(whole.handles) + 1)))


def _changed(whole: Batch, change: Callable[[Any], Any], handles: Any) -> Batch:
    """Each part of a batch changed, except the signature, which covers all points."""
    parts = {
        name: part if name == "signature" else change(part) for name, part in dict(whole.candidates).items()
    }
    candidates = type(whole.candidates).model_construct(**parts)
    return whole.model_copy(
        update={"scores": change(whole.scores), "handles": handles, "candidates": candidates}
    )


def absences(bench: CuratorBench) -> list[tuple[int, str]]:
    return [(absence.round, absence.owner) for absence in bench.machine.ledger.absences]


def winners(bench: CuratorBench) -> list[str]:
    return [win.owner for win in bench.machine.ledger.wins]


def told(bench: CuratorBench, peer: str) -> list[str]:
    return [message.kind for message in bench.inbox.get(peer, [])]
