"""Replaying a transcript: the recorded events through the same machine, and every effect compared.

A record has an event, then in order the effects that left the machine and the outcomes of its computations
(`hushbid.protocol.runtime.driver.Driver.feed`). A replay feeds event and outcomes, and computes nothing:
time, noise and floating-point results are the recorded ones. Recovery is a replay whose numerics take up
earlier results (`restore`), and whose driver continues from there.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hushbid.protocol.errors import DataError, LocalProtocolError, RemoteProtocolError, ReplayDivergence
from hushbid.protocol.machine.base import Machine
from hushbid.protocol.machine.machine import (
    Computation,
    Connected,
    Effect,
    Event,
    Finish,
    HeadSigned,
    Lost,
    Offended,
    Received,
    Restarted,
    Returned,
    Send,
    Started,
    TimerFired,
)
from hushbid.protocol.names import an
from hushbid.protocol.transcript.record import Record, RecordedItem
from hushbid.protocol.wire.blind import Award, BlindCandidate
from hushbid.protocol.wire.codec import Direction, decode_message, encode_message, read_message
from hushbid.protocol.wire.messages import Delivery, Hello, SealedCandidate, with_boxes
from hushbid.protocol.wire.unlinked import Picked
from hushbid.protocol.wire.values import Item, pack_value

__all__ = ["EventReader", "Replay", "Restore", "filler_box"]

Restore = Callable[[Computation, Event | None], None]
"""Takes up the result of a computation."""

_PASSED_ON: Final = frozenset({"delivery", "award", "picked"})
"""Messages that bring boxes to the consumer."""
_COMMON: Final[tuple[type[Event], ...]] = (
    Started,
    Restarted,
    Connected,
    Lost,
    Returned,
    TimerFired,
    Offended,
    HeadSigned,
)


def filler_box(digest: bytes, length: int) -> bytes:
    """Stands for a box of which the transcript has the digest: as long, and beginning with it."""
    return digest.ljust(length, b"\0")


class EventReader:
    """Rebuilds events from recorded items.

    Args:
        outcomes: The role's own events (`TransitionTable.outcomes`).
        direction: What a peer may say, by the peer's name.
        box: Returns the sealed box of a SHA-256; None: there are none.
    """

    def __init__(
        self,
        outcomes: Iterable[type[Event]],
        direction: Callable[[str], Direction],
        box: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._kinds = {kind.KIND: kind for kind in (*_COMMON, *outcomes)}
        self._direction = direction
        self._box = box

    def __call__(self, item: RecordedItem) -> Event:
        """The recorded event.

        Raises:
            DataError: Its kind is unknown, or it is redacted or malformed.
        """
        if item.redacted:
            raise DataError(
                f"The {item.kind} has no private values: the transcript is redacted.",
                advice="Only the file that the party itself recorded can be replayed.",
            )
        try:
            if item.kind == Received.KIND:
                return self._received(item.private["frame"])
            return self._kinds[item.kind].restored({**item.public, **item.private})
        except (KeyError, TypeError, ValueError, RemoteProtocolError) as error:
            # Not chained: its text may quote a value.
            reason = type(error).__name__
        raise DataError(
            f"A {item.kind} cannot be read ({reason}).",
            advice="Replay with the version of hushbid that recorded it, and with this party's own files.",
        )

    def _received(self, frame: Any) -> Received:
        peer, body = frame["peer"], frame["body"]
        # The body was checked when it came; its digest is in the chain.
        message = read_message(self._direction(peer), body)
        if "digest" in frame and self._box is not None:
            message = with_boxes(message, self._box)
        return Received(peer, frame["sequence"], frame["acknowledged"], body, message)


class Replay:
    """Steps a machine through its transcript.

    Args:
        machine: A fresh one, of the same session.
        restore: Takes up the result of each computation; None: nothing is kept.
    """

    def __init__(self, machine: Machine, read: EventReader, restore: Restore | None = None) -> None:
        self.machine = machine
        self.finished: Finish | None = None
        self._read = read
        self._restore = restore
        self._head: bytes | None = None
        """Digest of the previous record."""

    def step(self, record: Record) -> list[Effect]:
        """Feed one record, compare everything that follows, and return the effects without computations.

        Raises:
            ReplayDivergence: The machine's effects differ from the recorded ones.
            DataError: The record cannot be read.
        """
        recorded = deque(record.effects)
        effects: list[Effect] = []
        pending = deque(self._fed(record, self._read(record.event)))
        while pending and self.finished is None:
            effect = pending.popleft()
            if isinstance(effect, Computation):
                pending.extend(self._computed(record, effect, recorded))
                continue
            _compare(record, effect, recorded.popleft() if recorded else None)
            effects.append(effect)
            if isinstance(effect, Finish) and effect.final:
                self.finished = effect
        if recorded:
            raise _diverged(record, an(recorded[0].kind), "nothing")
        self._head = record.digest
        return effects

    def _fed(self, record: Record, event: Event) -> tuple[Effect, ...]:
        try:
            return self.machine.step(event, record.now)
        except (RemoteProtocolError, LocalProtocolError) as error:
            # Its text may tell who said what.
            reason = error.code if isinstance(error, RemoteProtocolError) else "it cannot happen here"
        raise _diverged(record, f"the event {event.KIND}", f"an error ({reason})")

    def _computed(
        self, record: Record, effect: Computation, recorded: deque[RecordedItem]
    ) -> tuple[Effect, ...]:
        """The machine's answer to the recorded outcome of a computation."""
        outcome: Event | None = None
        if effect.HAS_OUTCOME:
            if not recorded:
                raise _diverged(record, "nothing", an(effect.KIND))
            outcome = self._read(recorded.popleft())
            if isinstance(outcome, HeadSigned) and self._head not in (None, outcome.head):
                raise _diverged(record, "another head of the transcript", "the chain's own")
        if self._restore is not None:
            self._restore(effect, outcome)
        return self._fed(record, outcome) if outcome is not None else ()


def _compare(record: Record, effect: Effect, recorded: RecordedItem | None) -> None:
    """Raise `ReplayDivergence` unless an effect equals the recorded one, byte for byte."""
    if recorded is None:
        raise _diverged(record, "nothing", an(effect.KIND))
    item = effect.item()
    if item.kind != recorded.kind:
        raise _diverged(record, an(recorded.kind), an(item.kind))
    if isinstance(effect, Send):
        different = _different_fields(item.private["frame"], recorded.private.get("frame"))  # type: ignore[arg-type]
    else:
        different = _different_items(item, recorded)
    if different:
        raise _diverged(record, *(an(side) for side in _told(effect, recorded, different)))


def _different_items(item: Item, recorded: RecordedItem) -> list[str]:
    names = sorted({*item.public, *recorded.public, *item.private, *recorded.private})
    ours, theirs = {**item.public, **item.private}, {**recorded.public, **recorded.private}
    missing = object()
    return [
        name
        for name in names
        if ours.get(name, missing) is missing
        or theirs.get(name, missing) is missing
        or pack_value(ours[name]) != pack_value(theirs[name])
    ]


def _different_fields(ours: Mapping[str, Any], theirs: Any) -> list[str]:
    if not isinstance(theirs, Mapping):
        return ["frame"]
    return [
        name
        for name in sorted({*ours, *theirs})
        if ours.get(name) != theirs.get(name)
        and not (name == "body" and _same_body(ours["message"], ours[name], theirs.get(name)))
    ]


def _same_body(message: str, ours: bytes, theirs: Any) -> bool:
    """Whether two bodies that differ mean the same here."""
    if message in _PASSED_ON:
        return _same_delivery(ours, theirs)
    return message == "hello" and _same_hello(ours, theirs)


def _same_hello(ours: bytes, theirs: Any) -> bool:
    """Whether two hellos differ only in the release of the software: a session goes on with a newer one."""
    if not isinstance(theirs, bytes):
        return False
    try:
        here, recorded = (decode_message(Direction.GREETING, body) for body in (ours, theirs))
    except RemoteProtocolError:
        return False
    if not (isinstance(here, Hello) and isinstance(recorded, Hello)):
        return False
    return here == recorded.model_copy(update={"software": here.software})


def _same_delivery(ours: bytes, theirs: Any) -> bool:
    """Whether two deliveries, or awards, differ only in boxes that ours has fillers for (`filler_box`)."""
    if not isinstance(theirs, bytes):
        return False
    try:
        recorded = decode_message(Direction.CURATOR_TO_CONSUMER, theirs)
    except RemoteProtocolError:
        return False
    # Ours is not decoded: of thousands of points at a time that would take as much memory once more.
    return isinstance(recorded, Delivery | Award | Picked) and encode_message(_with_fillers(recorded)) == ours


def _with_fillers(delivery: Delivery | Award | Picked) -> Delivery | Award | Picked:
    purchases: list[Any] = []
    name = "boxes" if isinstance(delivery, Picked) else "purchases"
    for purchase in getattr(delivery, name):
        candidate = purchase.candidate
        if isinstance(candidate, SealedCandidate | BlindCandidate):
            digest = hashlib.sha256(candidate.box).digest()
            filled = candidate.model_copy(update={"box": filler_box(digest, len(candidate.box))})
            purchase = purchase.model_copy(update={"candidate": filled})
        purchases.append(purchase)
    return delivery.model_copy(update={name: tuple(purchases)})


def _told(effect: Effect, recorded: RecordedItem, different: list[str]) -> tuple[str, str]:
    """The recorded and the actual effect, by kind and names of differing fields: values may be private."""
    what = ", ".join(different)
    message = f" of {an(effect.kind)}" if isinstance(effect, Send) else ""
    return f"{recorded.kind}{message}", f"{effect.KIND}{message} with another {what}"


def _diverged(record: Record, expected: str, actual: str) -> ReplayDivergence:
    return ReplayDivergence(
        f"Record {record.number} ({record.event.kind}): recorded was {expected}, the replay gives {actual}.",
        advice="Compare the software and the environments; if they are the same, the transcript was changed "
        "together with its chain, or hushbid has a bug.",
        record=record.number,
        expected=expected,
        actual=actual,
    )
