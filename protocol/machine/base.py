"""The base of every role's machine: its table of transitions, its links and its timers.

A role is a state machine without I/O. `Machine.step(event, now)` takes one event and returns the effects for
a driver to carry out: frames to send, timers to set, numerics to run. The legal transitions are a
`TransitionTable`, from which docs/protocol.md draws its diagrams. A step either returns its effects, or
raises a typed error and leaves the state unchanged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Self, TypeVar

from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.machine import Effect, Event, Received, Send, SetTimer, TimerFired
from hushbid.protocol.wire.codec import encode_message
from hushbid.protocol.wire.link import Link
from hushbid.protocol.wire.messages import CONTROL_SEQUENCE, Hello, Message, Refused, Welcome

__all__ = ["Machine", "Transition", "TransitionTable", "fired", "happened", "received"]

STORY_LENGTH: Final = 12
"""Number of steps shown in an error about an illegal transition."""
_CONTROL: Final = (Hello, Welcome, Refused)
"""Messages that make or end a link instead of travelling on it: the only unnumbered ones."""

M = TypeVar("M", bound="Machine")
M_contra = TypeVar("M_contra", bound="Machine", contravariant=True)
E = TypeVar("E", bound=Event)
T = TypeVar("T", bound=Message)


@dataclass(frozen=True, slots=True)
class Transition(Generic[M_contra]):
    """A row of a machine's table: in `phase`, on `trigger`, `handler` runs and ends in one of `to`.

    Rows are made by `received`, `fired` and `happened`, which check the handler's type against its trigger.
    A trigger is an event's kind; for received messages it is "received:" and the message's kind, and for
    timers "timer:" and the timer's name.
    """

    phase: str
    trigger: str
    handler: Callable[..., None]
    to: tuple[str, ...]


def received(
    phases: str | tuple[str, ...], message: type[T], handler: Callable[[M, str, T], None], *to: str
) -> tuple[Transition[M], ...]:
    """Rows for a message: ``handler(machine, peer, message)``. Without `to`, each phase stays."""
    return _rows(phases, f"received:{message.model_fields['kind'].default}", handler, to)


def fired(
    phases: str | tuple[str, ...], timer: str, handler: Callable[[M], None], *to: str
) -> tuple[Transition[M], ...]:
    """Rows for a timer: ``handler(machine)``. Without `to`, each phase stays."""
    return _rows(phases, f"timer:{timer}", handler, to)


def happened(
    phases: str | tuple[str, ...], event: type[E], handler: Callable[[M, E], None], *to: str
) -> tuple[Transition[M], ...]:
    """Rows for any other event: ``handler(machine, event)``. Without `to`, each phase stays."""
    return _rows(phases, event.KIND, handler, to)


def _rows(
    phases: str | tuple[str, ...], trigger: str, handler: Callable[..., None], to: tuple[str, ...]
) -> tuple[Transition[Any], ...]:
    phases = (phases,) if isinstance(phases, str) else phases
    return tuple(Transition(phase, trigger, handler, to or (phase,)) for phase in phases)


@dataclass(frozen=True, eq=False)
class TransitionTable(Generic[M_contra]):
    """What a machine does on which event in which phase; anything else is an error.

    Attributes:
        phases: All phases; the first is the initial one.
        rows: The legal transitions, also `by_trigger`: by phase and trigger.
        outcomes: Events that result from the role's own computations.
    """

    phases: tuple[str, ...]
    rows: tuple[Transition[M_contra], ...]
    outcomes: tuple[type[Event], ...] = ()
    by_trigger: Mapping[tuple[str, str], Transition[M_contra]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        by_trigger = {(row.phase, row.trigger): row for row in self.rows}
        if len(by_trigger) != len(self.rows):
            raise TypeError("A table has two transitions for one phase and trigger.")
        object.__setattr__(self, "by_trigger", by_trigger)


class Machine:
    """A role's state machine, which acts by its `table`.

    Handlers validate first, then change the state and collect effects with `send`, `set_timer` and `do`.
    `check` states the invariants; it runs after every step.
    """

    def __init__(self, table: TransitionTable[Self]) -> None:
        self.table = table
        self.phase = table.phases[0]
        self.links: dict[str, Link] = {}
        self.now = 0.0
        """The time of the last step, on the party's clock."""
        self._effects: list[Effect] = []
        self._attempts: dict[str, int] = {}
        self._story: deque[str] = deque(maxlen=STORY_LENGTH)

    # -- the only entry point ----------------------------------------------------------------------

    def step(self, event: Event, now: float) -> tuple[Effect, ...]:
        """Take one event, and return its effects in order.

        Args:
            now: The party's clock, in seconds; never decreasing.

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
        trigger = event.trigger
        row = self.table.by_trigger.get((self.phase, trigger))
        if row is None:
            raise self._out_of_turn(event, trigger)
        self._effects = []
        before = self.phase
        self.now = now
        self._dispatch(row.handler, event)
        if type(event) is Received and event.sequence != CONTROL_SEQUENCE:
            self.links[event.peer].accept(event.sequence, event.acknowledged)
        if self.phase not in row.to:
            name = row.handler.__name__
            raise LocalProtocolError(f"{name} went from {before} to {self.phase}.{self._told()}")
        self._story.append(f"{before} -{trigger}-> {self.phase}")
        self.check()
        effects, self._effects = tuple(self._effects), []
        return effects

    def _dispatch(self, handler: Callable[..., None], event: Event) -> None:
        """Call a handler with the arguments of its trigger."""
        if isinstance(event, Received):
            handler(self, event.peer, event.message)
        elif isinstance(event, TimerFired):
            handler(self)
        else:
            handler(self, event)

    def lacks(self, peer: str, sequence: int) -> bool:
        """Whether a frame of that number comes after one that did not: somebody on the line took it out.

        Neither ZMTP nor CURVE tells. So it is no offence: the reader gives the connection up, and both sides
        send again what the other lacks. A machine that is given the frame all the same refuses it.
        """
        link = self.links.get(peer)
        return link is not None and sequence > link.received + 1

    def is_repeat(self, event: Received) -> bool:
        """Whether a numbered frame was received before: it changes nothing and is not recorded."""
        link = self.links.get(event.peer)
        return link is not None and CONTROL_SEQUENCE < event.sequence <= link.received

    def check(self) -> None:
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

    def do(self, effect: Effect) -> None:
        self._effects.append(effect)

    def send(self, peer: str, message: Message, body: bytes | None = None) -> None:
        """Send a message on the peer's link; `body`, if given, is the encoded message."""
        link = self.links[peer]
        encoded = encode_message(message) if body is None else body
        sequence = link.give_out(message.kind, encoded)
        self.do(Send(peer, sequence, link.received, message.kind, encoded))

    def greet(self, peer: str, message: Hello | Welcome | Refused) -> None:
        """Send a message that makes or ends a link."""
        self.do(Send(peer, CONTROL_SEQUENCE, 0, message.kind, encode_message(message)))

    def resend(self, peer: str, after: int) -> None:
        """Send again, from the stored bytes, every frame that the peer lacks."""
        link = self.links[peer]
        link.release(after)
        for sequence, kind, body in link.held:
            self.do(Send(peer, sequence, link.received, kind, body))

    def set_timer(self, name: str, seconds: float) -> None:
        """Schedule `TimerFired(name)` in that many seconds, replacing an earlier timer of that name."""
        self.set_timer_at(name, self.now + seconds)

    def set_timer_at(self, name: str, due: float) -> None:
        attempt = self._attempts.get(name, 0) + 1
        self._attempts[name] = attempt
        self.do(SetTimer(name, attempt, due))

    def clear_timer(self, name: str) -> None:
        """Cancel a timer: if it fires, nothing happens."""
        if name in self._attempts:
            self._attempts[name] += 1
