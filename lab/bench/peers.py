"""`hushbid bench peers`: the same minimal round in our sessions, a bare loop and other libraries.

In a round each owner, a process of its own, gets one message and returns one, of the sizes of a round of
`sealed`. A session's round also computes weights and scores, seals, signs, checks, chooses and records; a
peer's only passes bytes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from hushbid.lab.bench.bare import bare_rounds
from hushbid.lab.bench.peer_process import PEERS, WARM_UP_ROUNDS, PeerAbsent, peer_rounds, pythons
from hushbid.lab.bench.random_cluster import write_cluster
from hushbid.lab.bench.rules import with_setting
from hushbid.lab.bench.session_cost import session_cost
from hushbid.lab.bench.spent import RoundCost
from hushbid.protocol import platform

__all__ = ["PeerRow", "bench_peers"]

_SESSIONS: Final = {
    "private": "hushbid, the private default: noise, CURVE, records, fsync",
    "sealed": "hushbid, exact: no noise, CURVE, records, no fsync",
}
_LOOPS: Final = {True: "bare ZeroMQ loop, CURVE", False: "bare ZeroMQ loop, not encrypted"}


@dataclass(frozen=True, kw_only=True)
class PeerRow:
    """The cost of rounds with one library: for each figure the smallest of several measurements.

    Attributes:
        what: The library, and how it is used.
        batch: Points bought per round, which determine the size of replies.
        version: The library's version; None: unknown, or our own session.
        broadcast_bytes, reply_bytes: Size of the message to an owner, and from one.
        seconds_per_round: Wall-clock time; None: not measured.
        processor_seconds_per_round: Processor time of all participating processes.
        processor_seconds_per_point: The same per point of the batch.
        bare_ratio: Processor time relative to the bare loop with CURVE.
        note: Why it was not measured; None if it was.
    """

    what: str
    batch: int
    version: str | None = None
    broadcast_bytes: int
    reply_bytes: int
    seconds_per_round: float | None = None
    processor_seconds_per_round: float | None = None
    processor_seconds_per_point: float | None = None
    bare_ratio: float | None = None
    note: str | None = None


@dataclass
class _Found:
    what: str
    costs: list[RoundCost]
    version: str | None = None
    note: str | None = None


def bench_peers(
    *,
    owners: int,
    points: int,
    columns: int,
    rounds: int,
    batches: Sequence[int],
    repeats: int,
    python: Path | None = None,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Measure rounds of sessions, of the bare loop and of each peer that is installed, in turn.

    Everything is started afresh for each measurement. The first rounds, which set up connections and caches,
    do not count. Processor time is that of all participating processes during the rounds.

    Args:
        rounds: Rounds per measurement.
        batches: Points bought per round; each makes rows of its own.
        repeats: Measurements of each; the smallest counts.
        python: The Python of an environment with libraries that are missing here.

    Raises:
        ConfigError: This is not Linux, or `python` is not a Python.
        PartyFailed: A session failed.
    """
    platform.check_linux("A measurement of processor time")
    homes = pythons(python)
    rows: list[PeerRow] = []
    with tempfile.TemporaryDirectory(prefix="hushbid-bench-") as name:
        for batch in batches:
            place = Path(name) / str(batch)
            place.mkdir()
            plain = write_cluster(
                place,
                owners=owners,
                points=points,
                columns=columns,
                rounds=WARM_UP_ROUNDS + rounds,
                batch=batch,
                whole=True,
            )
            rows += _rows(plain, batch, owners, rounds, repeats, homes, say)
    return {
        "owners": owners,
        "points": points,
        "columns": columns,
        "rounds": rounds,
        "warm_up_rounds": WARM_UP_ROUNDS,
        "repeats": repeats,
        "rows": [asdict(row) for row in rows],
    }


def _rows(
    plain: Path,
    batch: int,
    owners: int,
    rounds: int,
    repeats: int,
    homes: Mapping[str, Path | None],
    say: Callable[[str], None],
) -> list[PeerRow]:
    """Measure all in turn, `repeats` times; a session comes first, as it gives the sizes of messages."""
    files = {setting: with_setting(plain, setting) for setting in _SESSIONS}
    found: dict[str, _Found] = {}
    down = up = 0

    def note(key: str, what: str, cost: RoundCost, version: str | None = None) -> None:
        found.setdefault(key, _Found(what, [], version)).costs.append(cost)

    for repeat in range(repeats):
        turn = f"batch {batch}, {repeat + 1} of {repeats}"
        for setting, what in _SESSIONS.items():
            say(f"{turn}: {what}")
            session = session_cost(files[setting], plain.parent / "runs", warm_up=WARM_UP_ROUNDS, say=say)
            down, up = session.broadcast_bytes, session.reply_bytes
            note(setting, what, session)
        for curve, what in _LOOPS.items():
            say(f"{turn}: {what}")
            note(what, what, bare_rounds(owners, rounds, down, up, curve))
        for name, peer in PEERS.items():
            if name in found and found[name].note is not None:
                continue
            say(f"{turn}: {peer.what}")
            try:
                version, cost = peer_rounds(peer, homes[name], owners, rounds, down, up)
                note(name, peer.what, cost, version)
            except PeerAbsent as absent:
                found[name] = _Found(peer.what, [], note=str(absent))
    bare = _least(found[_LOOPS[True]].costs)[1]
    return [_row(each, batch, down, up, bare) for each in found.values()]


def _least(costs: Sequence[RoundCost]) -> tuple[float, float]:
    """Seconds per round: wall-clock and processor time."""
    return (
        min(cost.seconds / cost.rounds for cost in costs),
        min(cost.processor_seconds / cost.rounds for cost in costs),
    )


def _row(found: _Found, batch: int, down: int, up: int, bare: float) -> PeerRow:
    measured: dict[str, float] = {}
    if found.note is None:
        seconds, processor = _least(found.costs)
        measured = {
            "seconds_per_round": seconds,
            "processor_seconds_per_round": processor,
            "processor_seconds_per_point": processor / batch,
            "bare_ratio": processor / bare,
        }
    return PeerRow(
        what=found.what,
        batch=batch,
        version=found.version,
        broadcast_bytes=down,
        reply_bytes=up,
        note=found.note,
        **measured,
    )
