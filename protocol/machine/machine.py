"""The machine interface: a role as seen from outside.

A role is a state machine without I/O. `Machine.step(event, now)` takes one event and returns the effects for
a driver to carry out: frames to send, timers to set, numerics to run. Time, noise, floating-point results and
the network enter only as events, so the same events always give the same effects.

The legal transitions are a table (`Machine.TRANSITIONS`), from which docs/protocol.md draws its diagrams. A
step either returns its effects, or raises a typed error and leaves the state unchanged.
"""

from __future__ import annotations

import hashlib
from abc import ABC
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple, Self

from protocol.errors import ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from protocol.privacy.accounting import Cost, cost_to_record
from protocol.wire.codec import encode_message
from protocol.wire.link import Link
from protocol.wire.messages import (
    CONTROL_SEQUENCE,
    Batch,
    Hello,
    Message,
    Refused,
    SubspaceTarget,
    Welcome,
    without_box,
)
from protocol.wire.values import Item, Value

__all__ = [
    "Charge",
    "Computation",
    "Connected",
    "Effect",
    "Event",
    "Finish",
    "HeadSigned",
    "Lost",
    "Machine",
    "Offended",
    "Received",
    "Restarted",
    "Returned",
    "Send",
    "SetTimer",
    "SignHead",
    "Started",
    "TimerFired",
    "Transition",
    "expand",
    "trigger_of",
]

STORY_LENGTH: Final = 12
"""Number of steps shown in an error about an illegal transition."""
_CONTROL: Final = (Hello, Welcome, Refused)
"""Messages that make or end a link instead of travelling on it: the only unnumbered ones."""


class Event(ABC):
    """Something that happened. Subclasses are frozen dataclasses with the same fields as their item."""

    KIND: ClassVar[str]

    def item(self) -> Item:
        """The event as a transcript item."""
        raise NotImplementedError

    @classmethod
    def restored(cls, fields: Mapping[str, Any]) -> Self:
        """Rebuild the event from its item's fields, public and private."""
        return cls(**fields)


class Effect(ABC):
    """Something to do. Subclasses are frozen dataclasses."""

    KIND: ClassVar[str]

    def item(self) -> Item:
        """The effect as a transcript item."""
        raise NotImplementedError


class Computation(Effect):
    """Something to compute within the party; the transcript records only its outcome, an event."""

    HAS_OUTCOME: ClassVar[bool] = True
    """Whether it results in an event; otherwise it only changes the party's stored state, and may be
    repeated.
    """
    LONG: ClassVar[bool] = False
    """Whether it may take longer than a health check waits for a party's loop."""

    def item(self) -> Item:
        raise LocalProtocolError(f"A {self.KIND} is not recorded; its outcome is.")


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The process is up. The event contains the session, so that a transcript is self-contained.

    `protocol.transcript.session_file.started` makes one from a session file.
    """

    KIND: ClassVar[str] = "started"
    configuration: Mapping[str, Any] = field(default_factory=dict)
    """The session file without its seeds."""
    seeds: Mapping[str, Any] = field(default_factory=dict)
    data: bytes = b""
    """Digest of the party's data (`protocol.data.dataset_digest`); empty if it has none."""

    def item(self) -> Item:
        private: dict[str, Value] = {"seeds": self.seeds, "data": self.data}
        return Item(self.KIND, {"configuration": self.configuration}, private)


@dataclass(frozen=True, slots=True)
class Restarted(Event):
    """The process ended and is up again: the machine is as in its transcript, apart from connections."""

    KIND: ClassVar[str] = "restarted"

    def item(self) -> Item:
        return Item(self.KIND, {}, {})


@dataclass(frozen=True, slots=True)
class Connected(Event):
    """A connection to the curator is established (owners and consumer)."""

    KIND: ClassVar[str] = "connected"

    def item(self) -> Item:
        return Item(self.KIND, {}, {})


@dataclass(frozen=True, slots=True)
class Lost(Event):
    """A peer was silent for longer than the session's limit, or its connection ended."""

    KIND: ClassVar[str] = "lost"
    peer: str

    def item(self) -> Item:
        return Item(self.KIND, {}, {"peer": self.peer})


@dataclass(frozen=True, slots=True)
class Returned(Event):
    """A lost peer shows signs of life again on its old connection."""

    KIND: ClassVar[str] = "returned"
    peer: str

    def item(self) -> Item:
        return Item(self.KIND, {}, {"peer": self.peer})


@dataclass(frozen=True, slots=True)
class TimerFired(Event):
    """A timer has run out. `attempt` distinguishes it from an earlier one of the same name."""

    KIND: ClassVar[str] = "timer"
    name: str
    attempt: int

    def item(self) -> Item:
        return Item(self.KIND, {"name": self.name, "attempt": self.attempt}, {})


@dataclass(frozen=True, slots=True)
class Received(Event):
    """A frame of a peer was received and decoded."""

    KIND: ClassVar[str] = "received"
    peer: str
    sequence: int
    acknowledged: int
    body: bytes
    message: Message

    def item(self) -> Item:
        kept = without_box(self.message)
        if kept is None:
            return _frame_item(self, self.message.kind, self.body)
        # An unsold box is destroyed at the end (DESIGN §3), so a transcript contains only its digest.
        digest = hashlib.sha256(self.body).digest()
        return _frame_item(self, self.message.kind, encode_message(kept), digest=digest)


@dataclass(frozen=True, slots=True)
class Offended(Event):
    """A peer broke the protocol: the decoder or a step refused one of its frames."""

    KIND: ClassVar[str] = "offended"
    peer: str
    sequence: int
    acknowledged: int
    offence: Offence
    detail: str
    advice: str

    def item(self) -> Item:
        return Item(
            self.KIND,
            {},
            {
                "peer": self.peer,
                "sequence": self.sequence,
                "acknowledged": self.acknowledged,
                "offence": self.offence.value,
                "detail": self.detail,
                "advice": self.advice,
            },
        )

    @classmethod
    def restored(cls, fields: Mapping[str, Any]) -> Self:
        return cls(**{**fields, "offence": Offence(fields["offence"])})


@dataclass(frozen=True, slots=True)
class Send(Effect):
    """Send a frame. Sequence 0 makes the link; the link holds any other frame until it is acknowledged."""

    KIND: ClassVar[str] = "send"
    peer: str
    sequence: int
    acknowledged: int
    kind: str
    body: bytes

    def item(self) -> Item:
        return _frame_item(self, self.kind, self.body)


@dataclass(frozen=True, slots=True)
class SetTimer(Effect):
    """Fire `TimerFired(name, attempt)` at `due`, replacing an earlier timer of that name."""

    KIND: ClassVar[str] = "set-timer"
    name: str
    attempt: int
    due: float

    def item(self) -> Item:
        return Item(self.KIND, {"name": self.name, "attempt": self.attempt, "due": self.due}, {})


@dataclass(frozen=True, slots=True)
class SignHead(Computation):
    """Sign the transcript up to this step, so that it cannot be rewritten later."""

    KIND: ClassVar[str] = "sign-head"


@dataclass(frozen=True, slots=True)
class HeadSigned(Event):
    """The head of the transcript before this record, signed by the party."""

    KIND: ClassVar[str] = "head-signed"
    head: bytes
    signature: bytes

    def item(self) -> Item:
        return Item(self.KIND, {"head": self.head, "signature": self.signature}, {})


@dataclass(frozen=True, slots=True)
class Finish(Effect):
    """The party is done; its process ends with `code` once its frames have left."""

    KIND: ClassVar[str] = "finish"
    code: ExitCode
    reason: str
    advice: str = ""
    final: bool = True
    """Whether the session is over for the party. If not, its process ends and its machine stays in its phase;
    a restarted process resumes from there, when the obstacle may be gone. The frame that led to it is not
    recorded: it may be from a curator other than the session's.
    """

    def item(self) -> Item:
        return Item(self.KIND, {"code": int(self.code)}, {"reason": self.reason, "advice": self.advice})


@dataclass(frozen=True, slots=True)
class Charge(Effect):
    """Charge releases to a budget. The charge is recorded durably before any of them leaves."""

    KIND: ClassVar[str] = "charge"
    neighbours: str
    """The datasets that the costs compare."""
    first: int
    """Number of the first release, from 1."""
    last: int
    costs: tuple[Cost, ...]
    """The cost of all these releases together."""

    def item(self) -> Item:
        costs = [cost_to_record(cost) for cost in self.costs]
        fields: dict[str, Any] = {
            "neighbours": self.neighbours,
            "first": self.first,
            "last": self.last,
            "costs": costs,
        }
        return Item(self.KIND, fields, {})


def _frame_item(frame: Received | Send, message: str, body: bytes, **more: bytes) -> Item:
    """A frame as a transcript item.

    Only its number is public: who was asked, who was present and who won depend on data.
    """
    fields: dict[str, Value] = {
        "peer": frame.peer,
        "sequence": frame.sequence,
        "acknowledged": frame.acknowledged,
        "message": message,
        "body": body,
        **more,
    }
    return Item(frame.KIND, {}, {"frame": fields})


class Transition(NamedTuple):
    """A row of a machine's table: in `phase`, on `trigger`, `handler` runs and ends in one of `to`.

    A trigger is an event's kind; for received messages it is "received:" and the message's kind, and for
    timers "timer:" and the timer's name. It determines the handler's arguments: ``handler(peer, message)``
    for a message, ``handler()`` for a timer, ``handler(event)`` for any other event.
    """

    phase: str
    trigger: str
    handler: str
    to: tuple[str, ...]


_STANDS_FOR: Final[Mapping[type[Message], str]] = {
    SubspaceTarget: "received:target",
    Batch: "received:bid",
}
"""A target in a subspace counts as a target, and a batch as a bid: no state distinguishes them."""


def trigger_of(event: Event) -> str:
    """The name of an event in a transition table."""
    if isinstance(event, Received):
        return _STANDS_FOR.get(type(event.message)) or f"received:{event.message.kind}"
    if isinstance(event, TimerFired):
        return f"timer:{event.name}"
    return event.KIND


def expand(phases: Iterable[str], trigger: str, handler: str, *to: str) -> tuple[Transition, ...]:
    """The same row for several phases; without `to`, each phase stays."""
    return tuple(Transition(phase, trigger, handler, to or (phase,)) for phase in phases)


class Machine(ABC):
    """A role's state machine.

    A subclass sets `TRANSITIONS` and `PHASES` (the first is the initial one) and defines the handlers, whose
    arguments `Transition` describes. They validate first, then change the state and collect effects with
    `_send`, `_set_timer` and `_do`. `check` states the invariants; it runs after every step.
    """

    TRANSITIONS: ClassVar[tuple[Transition, ...]] = ()
    OUTCOMES: ClassVar[tuple[type[Event], ...]] = ()
    """Events that result from the role's own computations."""
    PHASES: ClassVar[tuple[str, ...]] = ()
    _table: ClassVar[dict[tuple[str, str], tuple[str, tuple[str, ...]]]]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls._table = {(row.phase, row.trigger): (row.handler, row.to) for row in cls.TRANSITIONS}
        if len(cls._table) != len(cls.TRANSITIONS):
            raise TypeError(f"{cls.__name__} has two transitions for one phase and trigger")

    def __init__(self) -> None:
        self.phase = self.PHASES[0]
        self.links: dict[str, Link] = {}
        self._effects: list[Effect] = []
        self._attempts: dict[str, int] = {}
        self._now = 0.0
        self._story: deque[str] = deque(maxlen=STORY_LENGTH)

    # -- the only entry point ----------------------------------------------------------------------

    def step(self, event: Event, now: float) -> tuple[Effect, ...]:
        """Take one event.

        Args:
            event: What happened.
            now: The party's clock, in seconds; never decreasing.

        Returns:
            The effects, in order.

        Raises:
            RemoteProtocolError: The event is a peer's breach. The state is unchanged; the driver follows up
                with `Offended`.
            LocalProtocolError: The event cannot happen here: a bug. The state is unchanged, unless the
                handler itself is the bug.
        """
        if type(event) is Received and not self._is_due(event):
            return ()
        if type(event) is TimerFired and self._attempts.get(event.name) != event.attempt:
            return ()
        trigger = trigger_of(event)
        row = self._table.get((self.phase, trigger))
        if row is None:
            raise self._out_of_turn(event, trigger)
        handler, to = row
        self._effects = []
        before = self.phase
        self._now = now
        self._dispatch(handler, event)
        if type(event) is Received and event.sequence != CONTROL_SEQUENCE:
            self.links[event.peer].accept(event.sequence, event.acknowledged)
        if self.phase not in to:
            raise LocalProtocolError(f"{handler} went from {before} to {self.phase}.{self._told()}")
        self._story.append(f"{before} -{trigger}-> {self.phase}")
        self.check()
        effects, self._effects = tuple(self._effects), []
        return effects

    def _dispatch(self, handler: str, event: Event) -> None:
        """Call a handler with the arguments of its trigger."""
        handle = getattr(self, handler)
        if isinstance(event, Received):
            handle(event.peer, event.message)
        elif isinstance(event, TimerFired):
            handle()
        else:
            handle(event)

    def is_repeat(self, event: Received) -> bool:
        """Whether a numbered frame was received before: it changes nothing and is not recorded."""
        link = self.links.get(event.peer)
        return link is not None and CONTROL_SEQUENCE < event.sequence <= link.received

    def check(self) -> None:  # noqa: B027 - a role may have none
        """Raise `LocalProtocolError` unless the invariants hold."""

    def _is_due(self, event: Received) -> bool:
        """Whether a received frame is new; duplicates are dropped, and gaps are the peer's offence."""
        control = isinstance(event.message, _CONTROL)
        if control != (event.sequence == CONTROL_SEQUENCE):
            raise RemoteProtocolError(
                Offence.SEQUENCE,
                f"A {event.message.kind} came {'with' if control else 'without'} a number among the frames.",
            )
        if control:
            return True
        link = self.links.get(event.peer)
        if link is None:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN,
                f"A {event.message.kind} came before any hello.",
                advice="Say hello first.",
            )
        link.check_acknowledged(event.acknowledged)
        if not link.is_new(event.sequence):
            return False
        link.check_held(event.acknowledged)
        return True

    def _out_of_turn(self, event: Event, trigger: str) -> Exception:
        if isinstance(event, Received):
            return RemoteProtocolError(Offence.OUT_OF_TURN, f"A {event.message.kind} has no place here.")
        return LocalProtocolError(f"{trigger} cannot happen in {self.phase}.{self._told()}")

    def _told(self) -> str:
        return f" Before: {'; '.join(self._story)}." if self._story else ""

    # -- for handlers ------------------------------------------------------------------------------

    def _do(self, effect: Effect) -> None:
        self._effects.append(effect)

    def _send(self, peer: str, message: Message, body: bytes | None = None) -> None:
        """Send a message on the peer's link; `body`, if given, is the encoded message."""
        link = self.links[peer]
        encoded = encode_message(message) if body is None else body
        sequence = link.give_out(message.kind, encoded)
        self._do(Send(peer, sequence, link.received, message.kind, encoded))

    def _greet(self, peer: str, message: Hello | Welcome | Refused) -> None:
        """Send a message that makes or ends a link."""
        self._do(Send(peer, CONTROL_SEQUENCE, 0, message.kind, encode_message(message)))

    def _resend(self, peer: str, after: int) -> None:
        """Send again, from the stored bytes, every frame that the peer lacks."""
        link = self.links[peer]
        link.release(after)
        for sequence, kind, body in link.held:
            self._do(Send(peer, sequence, link.received, kind, body))

    def _set_timer(self, name: str, seconds: float) -> None:
        """Schedule `TimerFired(name)` in that many seconds, replacing an earlier timer of that name."""
        self._set_timer_at(name, self._now + seconds)

    def _set_timer_at(self, name: str, due: float) -> None:
        """Schedule a timer at a time on the party's clock."""
        attempt = self._attempts.get(name, 0) + 1
        self._attempts[name] = attempt
        self._do(SetTimer(name, attempt, due))

    def _clear_timer(self, name: str) -> None:
        """Cancel a timer: if it fires, nothing happens."""
        if name in self._attempts:
            self._attempts[name] += 1
