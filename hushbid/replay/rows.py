"""A row of a replay: a step as one party's transcript tells it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Key", "Row"]


class Key(NamedTuple):
    """What one message, or one group of messages, has in all transcripts that tell it."""

    sender: str
    receiver: str
    what: tuple[Any, ...]


@dataclass(slots=True)
class Row:
    """A step as one transcript tells it. `peers` are at its other end than the curator."""

    round: int
    seconds: float
    kind: str
    sender: str
    receiver: str
    event: bool = False
    size: int | None = None
    count: int = 1
    note: str = ""
    again: bool = False
    late: bool = False
    arrived: bool = True
    key: Key | None = None
    peers: list[str] = field(default_factory=list)
