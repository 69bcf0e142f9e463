"""Sessions to replay, and a second, direct reading of their transcripts to compare the facts with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hushbid.evidence.sweep.small_session import run, small_session
from hushbid.protocol.names import CURATOR
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.wire.values import unpack_value
from hushbid.simulation.simulator import Crash

__all__ = ["Counted", "counted", "recorded_with"]

_BOUGHT = ("delivery", "award")
"""Messages that bring chosen points to the consumer."""


@dataclass
class Counted:
    """The content of one transcript, counted without the code that makes a replay.

    Attributes:
        sent, received: Messages by kind.
        bought: Chosen points that this party passed on, or got: of numbered frames, each once.
        charged: By neighbours, the last charged release.
    """

    sent: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)
    sent_bytes: int = 0
    round: int = 0
    bought: Counter[str] = field(default_factory=Counter)
    charged: dict[str, int] = field(default_factory=dict)
    finish: int | None = None


def counted(path: Path) -> Counted:
    """Read a whole transcript directly."""
    found = Counted()
    seen: set[tuple[str, int]] = set()
    with TranscriptReader(path) as reader:
        for item in (item for record in reader for item in record.items):
            if item.kind == "charge":
                found.charged[str(item.public["neighbours"])] = item.public["last"]  # type: ignore[assignment]
            if item.kind == "finish":
                found.finish = item.public["code"]  # type: ignore[assignment]
            if item.kind not in ("send", "received"):
                continue
            frame: Mapping[str, object] = item.private["frame"]  # type: ignore[assignment]
            message, body = str(frame["message"]), frame["body"]
            assert isinstance(body, bytes)
            fields: Mapping[str, object] = unpack_value(body)  # type: ignore[assignment]
            (found.sent if item.kind == "send" else found.received)[message] += 1
            if item.kind == "send":
                found.sent_bytes += len(body)
            if isinstance(number := fields.get("round"), int):
                found.round = max(found.round, number)
            place = (item.kind, frame["sequence"])
            if message in _BOUGHT and place not in seen:
                seen.add(place)  # type: ignore[arg-type]
                purchases: Iterable[Mapping[str, object]] = fields["purchases"]  # type: ignore[assignment]
                found.bought.update(str(each["owner"]) for each in purchases)
    return found


def recorded_with(
    place: Path, rule: str, *, rounds: int = 4, owners: int = 2, crashes: Iterable[Crash] = (), batch: int = 1
) -> dict[str, Path]:
    """Transcripts of a small session under a rule, by party; processes may die in it."""
    session = small_session(
        rule,
        release="filtered-gaussian",
        rounds=rounds,
        owners=max(owners, RULES[rule].fewest_owners),
        batch=batch,
    )
    course = run(session, tuple(crashes))
    assert len(course.crashed) == len(tuple(crashes))
    paths = {party: place / f"{party}.transcript" for party in course.transcripts}
    for party, path in paths.items():
        path.write_bytes(course.transcripts[party])
    assert CURATOR in paths
    return paths
