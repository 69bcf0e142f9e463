"""Connections between the curator and its peers, the frames on them, and their faults.

A connection keeps the order of its frames, as TCP does; frames of different peers overtake each other. When a
connection ends, the first frames in flight still arrive, perhaps after the next connection's hello.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

import numpy as np

from hushbid.evidence.sweep.plan import FaultKind, LineFault, Way
from hushbid.evidence.sweep.stream import Stream, garbled
from hushbid.protocol.wire.messages import CONTROL_SEQUENCE

__all__ = ["HOLDING", "Ends", "SimulatedConnection", "Wires"]

_SEQUENCE: Final = slice(21, 29)
"""Position of a frame's number (docs/wire.md)."""
HOLDING: Final = (FaultKind.CLOG, FaultKind.PARTITION)
"""Faults that keep frames from arriving while they last."""


@dataclass(eq=False, slots=True)
class _Flight:
    data: bytes
    sent: float
    dropped: bool = False


@dataclass(eq=False, slots=True)
class SimulatedConnection:
    """One TCP connection between a peer and the curator."""

    peer: str
    number: int
    ended: bool = False
    """Whether the connection has ended and both ends know, or will: nothing more can be sent."""
    severed: bool = False
    """Whether nothing arrives any more, and neither end knows it."""
    flights: dict[Way, deque[_Flight]] = field(
        default_factory=lambda: {Way.TO_CURATOR: deque(), Way.FROM_CURATOR: deque()}
    )
    last: dict[Way, float] = field(default_factory=lambda: {Way.TO_CURATOR: 0.0, Way.FROM_CURATOR: 0.0})
    """Arrival time of the last frame in each direction."""
    streams: dict[Way, Stream] = field(init=False)
    """Its bytes in each direction."""

    def __post_init__(self) -> None:
        ways = Way.TO_CURATOR, Way.FROM_CURATOR
        self.streams = {way: Stream(f"connection {self.number} {way.value}".encode()) for way in ways}

    @property
    def route(self) -> bytes:
        """The curator's name for it."""
        return self.number.to_bytes(5)


class Ends(Protocol):
    """The parties' loops at the ends of the wires."""

    def arrived(self, connection: SimulatedConnection, way: Way, data: bytes, now: float) -> None:
        """A frame has arrived."""

    def ended(self, connection: SimulatedConnection, due: float) -> None:
        """A connection has ended; its participant can notice from `due` on."""

    def broken(self, connection: SimulatedConnection, way: Way, now: float) -> None:
        """Invalid bytes came this way of a connection, and their reader has ended it."""

    def connection_of(self, peer: str) -> SimulatedConnection | None:
        """A participant's connection, if it has one."""

    def healed(self) -> None:
        """There are no more faults."""


class Wires:
    """Carries frames on connections, and applies a plan's faults to them.

    Args:
        faults: The faults; each begins after a given number of frames.
        latency: Mean travel time in seconds; individual frames take between 0.5 and 1.5 times as long.
        healed: Simulated time after which there are no more faults, in seconds.
        rng: Draws latencies, and how much of a lost connection still arrives.
        garbling: Draws the changes on garbled lines.
    """

    def __init__(
        self,
        faults: Iterable[LineFault],
        *,
        latency: float,
        healed: float,
        rng: np.random.Generator,
        garbling: np.random.Generator,
    ) -> None:
        self.latency = latency
        self.happened: Counter[str] = Counter()
        """Number of faults that occurred, by name."""
        self._faults = deque(sorted(faults, key=lambda fault: fault.after))
        self._healed = healed
        self._rng = rng
        self._garbling = garbling
        self._unmet: list[LineFault] = []
        """Garbled lines that no frame has reached yet, and frames to be removed."""
        self._agenda: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = 0
        self._carried = 0
        self._windows: list[tuple[LineFault, float]] = []
        """Lasting faults, with the end of each."""
        self._newest: dict[str, int] = {}
        self._latest_sent = 0.0
        self._ends: Ends

    def join(self, ends: Ends) -> None:
        """Set the parties' loops; call this first."""
        self._ends = ends
        self.at(self._healed, self._heal)

    @property
    def next_due(self) -> float:
        """Time of the next event; infinity if there is none."""
        return self._agenda[0][0] if self._agenda else math.inf

    def turn(self, now: float) -> None:
        _, _, action = heapq.heappop(self._agenda)
        action(now)

    def at(self, due: float, action: Callable[[float], None]) -> None:
        self._number += 1
        heapq.heappush(self._agenda, (due, self._number, action))

    def connect(self, peer: str) -> SimulatedConnection:
        """Open a connection from a participant to the curator."""
        self._number += 1
        return SimulatedConnection(peer, self._number)

    # -- frames -----------------------------------------------------------------------------------------

    def put(self, connection: SimulatedConnection, way: Way, data: bytes, sequence: int, now: float) -> None:
        """Send a frame, which may or may not arrive."""
        if connection.ended or connection.severed:
            self.happened["frame lost"] += 1
            return
        travel = self.latency * (0.5 + self._rng.random())
        slow = self.lasting(connection.peer, way, FaultKind.DELAY)
        if slow is not None:
            self.happened["frame delayed"] += 1
            travel += self._rng.exponential(slow.seconds / 4)
        due = connection.last[way] = max(connection.last[way], now + travel)
        flight = _Flight(data, now)
        connection.flights[way].append(flight)
        self.at(due, partial(self._arrive, connection, way, flight))
        if (
            sequence != CONTROL_SEQUENCE
            and self.lasting(connection.peer, way, FaultKind.DUPLICATION) is not None
        ):
            self.happened["frame duplicated"] += 1
            again = _Flight(data, now)
            connection.flights[way].append(again)
            self.at(
                due + self._rng.exponential(4 * self.latency), partial(self._arrive, connection, way, again)
            )

    def _arrive(self, connection: SimulatedConnection, way: Way, flight: _Flight, now: float) -> None:
        if flight.dropped:
            return
        held = self._held_until(connection.peer, way)
        if held > now and connection.ended and way is Way.FROM_CURATOR:
            connection.flights[way].remove(flight)
            self.happened["frame lost"] += 1
            return
        if held > now:
            self.happened["frame held up"] += 1
            connection.last[way] = max(connection.last[way], held)
            self.at(held, partial(self._arrive, connection, way, flight))
            return
        connection.flights[way].remove(flight)
        if way is Way.TO_CURATOR:
            self.happened["frame overtaken by another peer's"] += flight.sent < self._latest_sent
            self._latest_sent = max(self._latest_sent, flight.sent)
            newest = max(self._newest.get(connection.peer, 0), connection.number)
            self._newest[connection.peer] = newest
            self.happened["frame of an old connection after the new one's hello"] += (
                connection.number < newest
            )
        stream = connection.streams[way]
        came = self._on_the_line(connection.peer, way, stream.packed(flight.data))
        if self._is_taken_out(connection.peer, way, flight.data):
            return
        for data in stream.taken(came):
            self._ends.arrived(connection, way, data, now)
        if stream.broken:
            self.happened["connection lost to garbled bytes"] += 1
            self.give_up(connection, way, now)

    def _on_the_line(self, peer: str, way: Way, data: bytes) -> bytes:
        """A frame's bytes after the line's faults."""
        unmet = self._unmet_on(peer, way, FaultKind.GARBLE)
        if not unmet and self.lasting(peer, way, FaultKind.GARBLE) is None:
            return data
        self._unmet = [fault for fault in self._unmet if fault not in unmet]
        self.happened["frame garbled"] += 1
        return garbled(data, self._garbling)

    def _unmet_on(self, peer: str, way: Way, kind: FaultKind) -> list[LineFault]:
        return [
            fault
            for fault in self._unmet
            if fault.kind is kind and fault.peer == peer and fault.way in (way, Way.BOTH)
        ]

    def _is_taken_out(self, peer: str, way: Way, data: bytes) -> bool:
        """Whether a frame vanishes: one numbered frame per fault."""
        faults = self._unmet_on(peer, way, FaultKind.TAKEN_OUT)
        if not faults or int.from_bytes(data[_SEQUENCE]) == CONTROL_SEQUENCE:
            return False
        self._unmet.remove(faults[0])
        self.happened["frame taken out"] += 1
        return True

    def fails_handshake(self, peer: str) -> bool:
        """Whether a handshake is garbled; on a garbled line half of them are."""
        garbles = any(self.lasting(peer, way, FaultKind.GARBLE) for way in (Way.TO_CURATOR, Way.FROM_CURATOR))
        failed = garbles and bool(self._garbling.random() < 0.5)
        self.happened["handshake garbled"] += failed
        return failed

    def give_up(self, connection: SimulatedConnection, way: Way, now: float) -> None:
        """The reader of this direction ends the connection."""
        self.drop(connection, way)
        if not connection.ended:
            self.end(connection, now)
        self._ends.broken(connection, way, now)

    def end(self, connection: SimulatedConnection, now: float, linger: float = 0.0) -> None:
        """End a connection: the first frames in flight still arrive, `linger` seconds later."""
        connection.ended = True
        for way, flights in connection.flights.items():
            arriving = int(self._rng.integers(len(flights) + 1))
            late = deque(_Flight(flight.data, flight.sent) for flight in list(flights)[:arriving])
            if way is Way.TO_CURATOR:
                due = max(connection.last[way], now) + linger
            else:
                # It has reached the peer's machine, and is read before or after the end is noticed.
                due = now + 2 * self.latency * self._rng.random()
            connection.last[way] = due
            for flight in late:
                self.at(due, partial(self._arrive, connection, way, flight))
            self.happened["frame lost"] += len(flights) - arriving
            for flight in flights:
                flight.dropped = True
            connection.flights[way] = late
        self._ends.ended(connection, now + self.latency)

    def close(self, connection: SimulatedConnection, sent: Way, now: float) -> None:
        """Close a connection from one side: what it sent still arrives, what was sent to it does not."""
        if connection.ended:
            return
        connection.ended = True
        self.drop(connection, Way.FROM_CURATOR if sent is Way.TO_CURATOR else Way.TO_CURATOR)
        if sent is Way.FROM_CURATOR:
            self._ends.ended(connection, max(now + self.latency, connection.last[sent]))

    def drop(self, connection: SimulatedConnection, way: Way) -> None:
        flights = connection.flights[way]
        for flight in flights:
            flight.dropped = True
        self.happened["frame lost"] += len(flights)
        flights.clear()

    # -- faults -----------------------------------------------------------------------------------------

    def count_carried(self, now: float) -> None:
        """Count a frame that left a machine, and start the faults that are due."""
        self._carried += 1
        while self._faults and self._faults[0].after <= self._carried:
            # After the current step, as nothing can happen within a step.
            self.at(now, partial(self._begin, self._faults.popleft()))

    def _begin(self, fault: LineFault, now: float) -> None:
        if now >= self._healed:
            return
        self.happened[fault.name] += 1
        if fault.kind in (FaultKind.GARBLE, FaultKind.TAKEN_OUT):
            self._unmet.append(fault)
        if fault.kind is FaultKind.TAKEN_OUT:
            return
        if fault.kind not in (FaultKind.RESET, FaultKind.SILENT_LOSS):
            self._windows.append((fault, min(now + fault.seconds, self._healed)))
            self.at(now + fault.seconds, self._clear_windows)
            return
        connection = self._ends.connection_of(fault.peer)
        if connection is None or connection.ended:
            return
        if fault.kind is FaultKind.RESET:
            self.end(connection, now, linger=fault.seconds)
            return
        connection.severed = True
        for way in connection.flights:
            self.drop(connection, way)

    def _clear_windows(self, now: float) -> None:
        self._windows = [(fault, end) for fault, end in self._windows if end > now]

    def _heal(self, _now: float) -> None:
        self._windows.clear()
        self._unmet.clear()
        self._faults.clear()
        self._ends.healed()

    def lasting(self, peer: str, way: Way, *kinds: FaultKind) -> LineFault | None:
        """A lasting fault of these kinds that affects a peer's frames in this direction."""
        for fault, _ in self._windows:
            if fault.kind in kinds and fault.peer == peer and fault.way in (way, Way.BOTH):
                return fault
        return None

    def _held_until(self, peer: str, way: Way) -> float:
        return max(
            (
                end
                for fault, end in self._windows
                if fault.kind in HOLDING and fault.peer == peer and fault.way in (way, Way.BOTH)
            ),
            default=0.0,
        )
