"""The driver's core: feeds a machine, records every step, and hands out frames that may leave.

The same core runs under ZeroMQ, in simulation and in tests. They differ in where frames go, in the clock and
in the journal. A frame is handed out only once the journal holds its step durably.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

from hushbid.protocol.errors import HushbidError, LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.base import Machine
from hushbid.protocol.machine.machine import (
    Charge,
    Computation,
    Effect,
    Event,
    Finish,
    HeadSigned,
    Offended,
    Received,
    Restarted,
    Send,
    SetTimer,
    SignHead,
    Started,
    TimerFired,
)
from hushbid.protocol.names import an
from hushbid.protocol.transcript.journal import JournalLike, NullJournal
from hushbid.protocol.transcript.record import Record
from hushbid.protocol.transcript.replay import EventReader, Replay
from hushbid.protocol.wire.codec import (
    HEADER_BYTES,
    Direction,
    Frame,
    decode_frame,
    decode_message,
    encode_frame,
    encode_message,
)
from hushbid.protocol.wire.messages import CONTROL_SEQUENCE, Beat, Message, boxes_of
from hushbid.protocol.wire.values import Item

__all__ = ["BoxKeeper", "Driver", "Numerics", "Outgoing"]

_UNREAD: Final = Item("", {}, {})
"""Stands for an item that no journal keeps."""


class Numerics(Protocol):
    """Carries out those effects of a machine that are computations."""

    def perform(self, effect: Computation) -> Event | None: ...

    def restore(self, effect: Computation, outcome: Event | None) -> None:
        """Take up, on a restart, the result of an earlier computation."""
        ...


class BoxKeeper(Protocol):
    """Keeps the sealed boxes, of which a transcript has only digests."""

    def add(self, box: bytes) -> None: ...

    def commit(self) -> None:
        """Make every added box durable."""

    def sweep(self) -> None:
        """Remove boxes that are to be destroyed, once this is on record."""


class Outgoing(NamedTuple):
    """A frame that may leave."""

    peer: str
    kind: str
    sequence: int
    data: bytes


class Driver:
    """Runs one machine.

    Args:
        session: The session's 16 bytes.
        direction: What a peer may say, by the peer's name.
        boxes: Keeps the sealed boxes that come; None: they are kept in memory only.
        charge: Charges a dataset's lifetime ledger, durably, or raises; None: the record is all.
        sign: Signs the transcript's head, for the party; None: nobody has keys.
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
        boxes: BoxKeeper | None = None,
        charge: Callable[[Charge], None] | None = None,
        sign: Callable[[bytes], bytes] | None = None,
        decode: Callable[[Direction, bytes], Message] = decode_message,
    ) -> None:
        self.machine = machine
        self.finished: Finish | None = None
        self.clock = 0.0
        """Time of the last step, on the party's clock."""
        self.acknowledged = 0
        """The last frame that the peer's signs of life acknowledge; nothing but a log follows from it."""
        self.repeats = 0
        """Frames that had been received before, and were ignored."""
        self._began: float | None = None
        self._numerics = numerics
        self._journal = journal
        self._counts_only = type(journal) is NullJournal
        """Nobody reads the records, so none are made."""
        self._session = session
        self._direction = direction
        self._boxes = boxes
        self._charge = charge
        self._sign = sign
        self._decode = decode
        self._resumed = False
        self._timers: dict[str, SetTimer] = {}
        self._next: SetTimer | None = None
        self._outgoing: list[Outgoing] = []

    def begin(self, event: Started, now: float) -> None:
        """Start the machine, or continue after `resume`; a session that was over stays so."""
        self.feed(Restarted() if self._resumed else event, now)

    def receive(self, peer: str, data: bytes, now: float) -> None:
        """Take a frame of a peer: a step, or a recorded offence. The peer's faults raise nothing."""
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
            self.acknowledged = max(self.acknowledged, acknowledged)
            return
        event = Received(peer, sequence, acknowledged, frame.body, message)
        if self.machine.is_repeat(event):
            self.repeats += 1
        else:
            self.feed(event, now)

    def lacks(self, peer: str, data: bytes) -> bool:
        """Whether a frame of this session comes after one that did not (`Machine.lacks`)."""
        try:
            frame = decode_frame(data[:HEADER_BYTES])
        except RemoteProtocolError:
            return False
        return frame.session == self._session and self.machine.lacks(peer, frame.sequence)

    def feed(self, event: Event, now: float) -> None:
        """Take an event and everything that its computations cause, and record it as one step.

        The record has the event, then in order the effects that leave the machine and the outcomes of its
        computations: what a replay has to feed it. After the end, events are ignored. A step whose
        computation fails is not recorded: after a restart the party is as it was before the step, and its
        peers resend unacknowledged frames.
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
        self._note_time(now)
        self._keep_box(event)
        handed_out = len(self._outgoing)
        try:
            recorded, failure = self._run(effects, now)
        except BaseException:
            del self._outgoing[handed_out:]  # what is not on record does not leave
            raise
        if type(event) is Received and self.finished is not None and not self.finished.final:
            return
        self._journal.append(now, _UNREAD if self._counts_only else event.item(), recorded)
        if failure is not None:
            self.settle()
            raise failure

    def _run(self, effects: Iterable[Effect], now: float) -> tuple[list[Item], HushbidError | None]:
        """Carry out effects and their consequences; returns what to record, and an error if there was one."""
        recorded: list[Item] = []
        pending = deque(effects)
        failure: HushbidError | None = None
        while pending and self.finished is None:
            effect = pending.popleft()
            if not isinstance(effect, Computation):
                if not self._counts_only:
                    recorded.append(effect.item())
                self._carry_out(effect)
                continue
            try:
                outcome = self._perform(effect)
            except HushbidError as error:
                if effect.HAS_OUTCOME:
                    raise
                # What was to be kept, on a disk that is full, say, is on record, and kept at the next start.
                failure, outcome = failure or error, None
            if outcome is not None:
                if not self._counts_only:
                    recorded.append(outcome.item())
                pending.extend(self.machine.step(outcome, now))
        return recorded, failure

    def resume(self, records: Iterable[Record], read: EventReader) -> None:
        """Bring machine and numerics to where a transcript ends, before anything else is fed.

        Nothing is resent unasked: peers say hello again, and the driver sends the frames that they lack from
        the stored bytes.

        Raises:
            ReplayDivergence, DataError: As `Replay.step`.
        """
        replay = Replay(self.machine, read, self._numerics.restore)
        for record in records:
            self._resumed = True
            self._note_time(record.now)
            for effect in replay.step(record):
                if type(effect) is SetTimer:
                    self._set(effect)
            if record.event.kind == TimerFired.KIND:
                self._forget_timer(record)
        self.finished = replay.finished

    @property
    def seconds(self) -> float:
        """Time from the first step to the last, including the time that the party was down."""
        return self.clock - self._began if self._began is not None else 0.0

    def _note_time(self, now: float) -> None:
        self.clock = now
        if self._began is None:
            self._began = now

    def fire_due(self, now: float) -> None:
        while self.finished is None:
            due = self._next
            if due is None or due.due > now:
                return
            self._drop(due)
            self.feed(TimerFired(due.name, due.attempt), now)

    @property
    def records(self) -> int:
        """Number of records in the transcript."""
        return self._journal.count

    @property
    def next_due(self) -> float | None:
        """Time at which the next timer is due."""
        return self._next.due if self._next is not None else None

    def release(self) -> list[Outgoing]:
        """Give out what may leave, once everything recorded before is durable.

        As long as nothing leaves, nothing has to be durable: peers resend what a crash takes.
        """
        if not self._outgoing:
            return []
        self.settle()
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def settle(self) -> None:
        """Make everything recorded so far durable; a loop calls it when idle."""
        if self._boxes is not None:
            self._boxes.commit()  # before the digests of them
        self._journal.commit()
        if self._boxes is not None:
            self._boxes.sweep()

    def beat(self, peer: str | None = None) -> bytes:
        """A sign of life; for a peer, with what of its frames is on record, which has to be durable."""
        received = 0 if peer is None else self.machine.links[peer].received
        return self.unrecorded(Beat(), acknowledged=received)

    def unrecorded(self, message: Message, *, acknowledged: int = 0) -> bytes:
        """The unnumbered frame of a message that is no step of the machine."""
        return encode_frame(Frame(self._session, CONTROL_SEQUENCE, acknowledged, encode_message(message)))

    def _perform(self, effect: Computation) -> Event | None:
        if type(effect) is SignHead:
            head = self._journal.head
            return HeadSigned(head, self._sign(head) if self._sign is not None else b"")
        return self._numerics.perform(effect)

    def _forget_timer(self, record: Record) -> None:
        """Drop a timer that had fired, unless its own step set it again."""
        name, attempt = record.event.public["name"], record.event.public["attempt"]
        timer = self._timers.get(str(name))
        if timer is not None and timer.attempt == attempt:
            self._drop(timer)

    def _set(self, timer: SetTimer) -> None:
        """Add a timer, replacing one of the same name."""
        self._timers[timer.name] = timer
        self._find_next()

    def _drop(self, timer: SetTimer) -> None:
        del self._timers[timer.name]
        self._find_next()

    def _find_next(self) -> None:
        # Timers are set once a round, and loops ask for the next one at every frame.
        self._next = min(self._timers.values(), key=lambda timer: timer.due, default=None)

    def _keep_box(self, event: Event) -> None:
        if self._boxes is not None and type(event) is Received:
            for box in boxes_of(event.message):
                self._boxes.add(box)

    def _carry_out(self, effect: Effect) -> None:
        if type(effect) is Send:
            data = encode_frame(Frame(self._session, effect.sequence, effect.acknowledged, effect.body))
            self._outgoing.append(Outgoing(effect.peer, effect.kind, effect.sequence, data))
        elif type(effect) is SetTimer:
            self._set(effect)
        elif type(effect) is Finish:
            self.finished = effect
        elif type(effect) is Charge:
            if self._charge is not None:
                self._charge(effect)
        else:
            raise LocalProtocolError(f"No driver carries out {an(effect.KIND)}.")


def _offended(peer: str, sequence: int, acknowledged: int, error: RemoteProtocolError) -> Offended:
    return Offended(peer, sequence, acknowledged, error.offence, error.what, error.advice)
