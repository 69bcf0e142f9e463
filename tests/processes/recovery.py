"""Interrupted sessions of real processes, and what must hold at their end."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.party import beginning
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.record import Record
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import Broadcast, SealedBroadcast
from hushbid.transcripts.replay import replayed
from hushbid.transcripts.verification.whole_session import verify_all
from tests.processes.cluster import BLIND, SEALED, SECURE, Cluster, Ended

__all__ = [
    "KINDS",
    "OWNERS",
    "POINTS",
    "SHORT",
    "Recorded",
    "broadcasts",
    "check_whole",
    "delivery",
    "differences",
    "end_well",
    "noise_drawn",
    "recorded_bytes",
    "session",
    "spendings",
]

OWNERS: Final = ("heron", "magpie")
POINTS: Final = 160
"""Rounds of a session: three batches of noise."""
SHORT: Final[Mapping[str, Any]] = {"session.points": 70}
"""Changes for a session that nobody is to catch in its rounds: two batches."""
SESSION_SECONDS: Final = 240.0
"""Within which a session has ended, with all that is started again in it."""

# Nobody is given up while a busy machine starts it again.
_PATIENT: Final[dict[str, Any]] = {
    "session.points": POINTS,
    "timeouts.closing": 10.0,
    **{
        f"timeouts.{name}": 120.0
        for name in ("enrolment", "round", "pause", "delivery", "comeback", "abandon", "silence")
    },
}
_OF_VALIDATION: Final = {"epsilon": 8.0, "neighbours": "substitute-one"}
_OF_SUMMARY: Final = {"epsilon": 8.0, "neighbours": "add-remove-one"}
KINDS: Final[Mapping[str, dict[str, Any]]] = {
    "sealed": {
        **SEALED,
        **SECURE,
        "target": {"mechanism": "gaussian", **_OF_VALIDATION},
        "summary": {"mechanism": "filtered-gaussian", **_OF_SUMMARY},
    },
    "blind": {
        **BLIND,
        **SECURE,
        "target": {"mechanism": "gaussian", **_OF_VALIDATION},
        "summary": {"mechanism": "filtered-gaussian", **_OF_SUMMARY},
    },
    "blind-simulated": {
        **BLIND,
        "target": {"mechanism": "gaussian", **_OF_VALIDATION},
        "summary": {"mechanism": "gaussian", **_OF_SUMMARY},
    },
    "ask-all": {"acquisition.rule": "ask-all"},
    "winner-only": {
        "acquisition.rule": "winner-only",
        "target": {"mechanism": "gaussian", **_OF_VALIDATION},
        "summary": {"mechanism": "gaussian", **_OF_SUMMARY},
    },
}
"""Changes to a session file. The noise of all but "sealed" and "blind" is simulated, so that two sessions are
alike."""


def session(place: Path, kind: str, changes: Mapping[str, Any] | None = None) -> Cluster:
    """A session of a kind, not started yet, in a new directory."""
    place.mkdir()
    return Cluster(place, OWNERS, rows=POINTS, changes={**_PATIENT, **KINDS[kind], **(changes or {})})


def recorded_bytes(cluster: Cluster, name: str) -> int:
    """The length of a party's transcript."""
    path = cluster.transcript_path(name)
    return path.stat().st_size if path.exists() else 0


def end_well(cluster: Cluster) -> dict[str, Ended]:
    """Wait for all parties, none of which may have failed."""
    ended = cluster.end(seconds=SESSION_SECONDS)
    for name, how in ended.items():
        assert how.code == 0, f"{name}: {how.err}"
    return ended


def delivery(cluster: Cluster) -> dict[str, Any]:
    """The content of the consumer's file of delivered points."""
    with np.load(cluster.directory(CONSUMER) / "state" / "delivered.npz") as arrays:
        return dict(arrays)


def differences(found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """The arrays in which two deliveries differ: points, winning owners, rounds."""
    return [
        name
        for name in sorted({*found, *expected})
        if name not in found or name not in expected or not np.array_equal(found[name], expected[name])
    ]


def check_whole(cluster: Cluster, ended: Mapping[str, Ended]) -> None:
    """Nothing is lost, nothing was done twice, and every transcript holds and agrees with the others."""
    result = ended[CURATOR].json
    points = cluster.session.file.session.points
    assert (result["rounds"], result["points_delivered"]) == (points, points)
    assert result["absences"] == {}
    assert result["faults"] == result["refusals"] == result["disputes"] == []
    assert delivery(cluster)["rounds"].tolist() == list(range(1, points + 1))
    shown = broadcasts(cluster)
    assert set(shown) == set(range(1, points + 1))
    assert {len(values) for values in shown.values()} == {1}, "a release has one value"
    assert set(noise_drawn(cluster).values()) <= {1}, "its noise was drawn once"
    for name in cluster.names:
        found = replayed(cluster.transcript_path(name))
        assert found.finished
        assert found.torn_bytes == 0
    assert verify_all([cluster.transcript_path(name) for name in cluster.names])["ok"]
    for owner in OWNERS if cluster.session.noise_protects else ():
        (spending,) = spendings(cluster.directory(owner) / "data.npz.ledger")  # it was charged once
        assert spending["transcript"] == beginning(cluster.transcript_path(owner))


class Recorded(Protocol):
    """A session whose transcripts can be read."""

    @property
    def owners(self) -> Sequence[str]: ...

    @property
    def session(self) -> Session: ...

    def records(self, name: str) -> Sequence[Record]: ...


def _fields(cluster: Recorded, party: str, kind: str) -> list[dict[str, Any]]:
    """The public and private fields of all items of a kind in a party's transcript."""
    items = (item for record in cluster.records(party) for item in record.items)
    return [{**item.public, **item.private} for item in items if item.kind == kind]


def broadcasts(cluster: Recorded) -> dict[int, set[bytes]]:
    """Each round's broadcast, by the transcripts of the curator and of all owners."""
    found: dict[int, set[bytes]] = defaultdict(set)
    sent = _fields(cluster, CURATOR, "send")
    received = [fields for owner in cluster.owners for fields in _fields(cluster, owner, "received")]
    for frame in (fields["frame"] for fields in sent + received):
        if frame["message"] in ("broadcast", "sealed-broadcast"):
            message = decode_message(Direction.CURATOR_TO_OWNER, frame["body"])
            assert isinstance(message, Broadcast | SealedBroadcast)
            found[message.round].add(frame["body"])
    return found


def noise_drawn(cluster: Recorded) -> Counter[int]:
    """How often each round's noise was drawn."""
    drawn: Counter[int] = Counter()
    for noise in _fields(cluster, cluster.session.weigher, "noise-drawn"):
        drawn.update(range(noise["first"], noise["first"] + len(noise["rounds"])))
    return drawn


def spendings(ledger: Path) -> list[dict[str, Any]]:
    """The recorded spendings of a dataset's lifetime ledger."""
    lines = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line.get("kind") == "session"]
