"""The driver's core: feeds a machine, records every step, and hands out what may leave.

The same core runs under ZeroMQ, in simulation and in tests; what differs is where frames go, what the
clock says, and the journal. Nothing is handed out before the journal has it durably.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from protocol.machine import (
    Computation,
    Effect,
    Event,
    Finish,
    Machine,
    Offended,
    Received,
    Send,
    SetTimer,
    TimerFired,
)
from protocol.messages import CONTROL_SEQUENCE, Beat, Message
from protocol.transcript.item import Item
from protocol.transcript.journal import JournalLike
from protocol.wire import Direction, Frame, decode_frame, decode_message, encode_frame, encode_message

__all__ = ["Driver", "Numerics", "Outgoing"]


class Numerics(Protocol):
    """What carries out a machine's effects that are computations."""

    def perform(self, effect: Computation) -> Event | None:
        """The outcome as an event, if the computation has one."""
        ...


class Outgoing(NamedTuple):
    """A frame that may leave."""

    peer: str
    kind: str
    sequence: int
    data: bytes


class Driver:
    """Runs one machine.

    Args:
        machine: The party's machine.
        numerics: Carries out its computations.
        journal: Where steps are recorded.
        session: The session's 16 bytes.
        direction: What a peer may say, by the peer's name.
        decode: Decodes a body; a simulation passes a caching one.
    """

    def __init__(
        self,
        machine: Machine,
        numerics: Numerics,
        journal: JournalLike,
        *,
        session: bytes,
        direction: Callable[[str], Direction],
        decode: Callable[[Direction, bytes], Message] = decode_message,
    ) -> None:
        self.machine = machine
        self.finished: Finish | None = None
        self._numerics = numerics
        self._journal = journal
        self._session = session
        self._direction = direction
        self._decode = decode
        self._timers: dict[str, SetTimer] = {}
        self._outgoing: list[Outgoing] = []

    def receive(self, peer: str, data: bytes, now: float) -> None:
        """Take a frame of a peer: a step, or an offence that is recorded; its faults raise nothing."""
        sequence = acknowledged = CONTROL_SEQUENCE
        try:
            frame = decode_frame(data)
            sequence, acknowledged = frame.sequence, frame.acknowledged
            # A hello says itself which session it is for, and is answered by why it cannot be welcomed: else
            # a party with another session file could not even be told.
            if frame.session != self._session and frame.sequence != CONTROL_SEQUENCE:
                raise RemoteProtocolError(
                    Offence.SESSION,
                    "The frame belongs to another session: the session files differ.",
                    advice="Use the same session file on both sides.",
                )
            message = self._decode(self._direction(peer), frame.body)
        except RemoteProtocolError as error:
            self.feed(_offended(peer, sequence, acknowledged, error), now)
            return
        if type(message) is Beat:
            return
        event = Received(peer, sequence, acknowledged, frame.body, message)
        if not self.machine.is_repeat(event):
            self.feed(event, now)

    def feed(self, event: Event, now: float) -> None:
        """Take an event, and all that its computations give rise to, and record it as one step.

        The record has the event, then in their order the effects that leave the machine and the outcomes
        of the computations that it asked for: what a replay has to feed it. After the end nothing is
        taken any more.
        """
        if self.finished is not None:
            return
        try:
            effects = self.machine.step(event, now)
        except RemoteProtocolError as error:
            if not isinstance(event, Received):
                raise
            event = _offended(event.peer, event.sequence, event.acknowledged, error)
            effects = self.machine.step(event, now)
        recorded: list[Item] = []
        pending = deque(effects)
        try:
            while pending and self.finished is None:
                effect = pending.popleft()
                if not isinstance(effect, Computation):
                    recorded.append(effect.item())
                    self._carry_out(effect)
                    continue
                outcome = self._numerics.perform(effect)
                if outcome is not None:
                    recorded.append(outcome.item())
                    pending.extend(self.machine.step(outcome, now))
        finally:
            # Also when a computation fails, a disk that is full among them: what came is on record.
            self._journal.append(now, event.item(), recorded)

    def fire_due(self, now: float) -> None:
        """Fire the timers that are due."""
        while self.finished is None:
            due = min(self._timers.values(), key=lambda timer: timer.due, default=None)
            if due is None or due.due > now:
                return
            del self._timers[due.name]
            self.feed(TimerFired(due.name, due.attempt), now)

    @property
    def next_due(self) -> float | None:
        """When the next timer is due."""
        return min((timer.due for timer in self._timers.values()), default=None)

    def release(self) -> list[Outgoing]:
        """Give out what may leave, once all that was recorded before it is durable.

        While nothing leaves, nothing has to be durable yet: what a crash takes, the peers will send again.
        """
        if not self._outgoing:
            return []
        self._journal.commit()
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def settle(self) -> None:
        """Make durable what was recorded since the last frame left; a loop does so when it has time."""
        self._journal.commit()

    def beat(self) -> bytes:
        """The frame of a sign of life."""
        return encode_frame(Frame(self._session, CONTROL_SEQUENCE, 0, encode_message(Beat())))

    def _carry_out(self, effect: Effect) -> None:
        if type(effect) is Send:
            data = encode_frame(Frame(self._session, effect.sequence, effect.acknowledged, effect.body))
            self._outgoing.append(Outgoing(effect.peer, effect.kind, effect.sequence, data))
        elif type(effect) is SetTimer:
            self._timers[effect.name] = effect
        elif type(effect) is Finish:
            self.finished = effect
        else:
            raise LocalProtocolError(f"No driver carries out a {effect.KIND}.")


def _offended(peer: str, sequence: int, acknowledged: int, error: RemoteProtocolError) -> Offended:
    return Offended(peer, sequence, acknowledged, error.offence, error.what, error.advice)
