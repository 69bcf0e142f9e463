"""A simulated network in which things go wrong, and the parties' loops as far as connections go.

What `curator.hub` and `protocol.runtime.connection` do is done here in simulated time: signs of life,
silence, a connection that is lost on one side or on both, another attempt after a pause, a hello on the new
one. Which of a peer's connections the curator listens to is decided by its own `Connections`.

A connection keeps the order of its frames, as TCP does; frames of different peers overtake each other. When
a connection ends, a beginning of what was on its way still arrives, perhaps after the hello of the next.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from curator.connections import Connections
from hushbid.faults.mutation import Mutator
from hushbid.faults.plan import Fault, Kind, Way
from hushbid.simulated_network import World
from protocol.config.session import TimeoutSection
from protocol.machine import Connected, Lost, Returned
from protocol.messages import CONTROL_SEQUENCE
from protocol.names import CONSUMER, CURATOR
from protocol.runtime.dealer import RECONNECT_MAX_MS, RECONNECT_MS
from protocol.runtime.driver import Outgoing

__all__ = ["FaultyNetwork"]

HANDSHAKE: Final = 4
"""Latencies that a handshake takes."""
_HOLDING: Final = (Kind.CLOG, Kind.PARTITION)
"""Faults that keep frames from arriving while they last."""


@dataclass(eq=False, slots=True)
class _Flight:
    """A frame on its way."""

    data: bytes
    sent: float
    dropped: bool = False


@dataclass(eq=False, slots=True)
class _Connection:
    """One TCP connection between a peer and the curator."""

    peer: str
    number: int
    ended: bool = False
    """Both ends know, or will: nothing can be sent any more."""
    severed: bool = False
    """Neither end knows that nothing arrives any more."""
    flights: dict[Way, deque[_Flight]] = field(
        default_factory=lambda: {Way.TO_CURATOR: deque(), Way.FROM_CURATOR: deque()}
    )
    last: dict[Way, float] = field(default_factory=lambda: {Way.TO_CURATOR: 0.0, Way.FROM_CURATOR: 0.0})
    """When the last frame of each way arrives."""

    @property
    def route(self) -> bytes:
        """What the curator calls it."""
        return self.number.to_bytes(5)


@dataclass(eq=False, slots=True)
class _Station:
    """What a participant's loop knows of its connection (`protocol.runtime.connection`)."""

    connection: _Connection | None = None
    heard: float = 0.0
    lost: bool = False
    pause: float = RECONNECT_MS / 1000
    life: int = 0
    """Which start of its process this is."""


class FaultyNetwork:
    """Carries frames, and has the faults of a plan happen to them.

    Args:
        faults: What goes wrong; each begins when so many frames have been carried.
        timeouts: The session's.
        beat: The frame of a sign of life.
        latency: Seconds that a frame travels, on average; one frame takes half of it, another one and a half.
        healed: Simulated seconds after which nothing goes wrong any more, but for what `mutators` do.
        mutators: Owners that do not keep to the protocol.
        rng: For latencies, and for how much of a lost connection still arrives.
    """

    def __init__(
        self,
        faults: Iterable[Fault],
        *,
        timeouts: TimeoutSection,
        beat: bytes,
        latency: float,
        healed: float,
        mutators: Mapping[str, Mutator],
        rng: np.random.Generator,
    ) -> None:
        self._faults = deque(sorted(faults, key=lambda fault: fault.after))
        self._timeouts = timeouts
        self._beat = beat
        self._latency = latency
        self._healed = healed
        self._mutators = mutators
        self._rng = rng
        self.happened: Counter[str] = Counter()
        """How often what went wrong, by name."""
        self._agenda: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = 0
        self._carried = 0
        self._windows: list[tuple[Fault, float]] = []
        """Faults that last, with when each is over."""
        self._stations: dict[str, _Station] = {}
        self._routes: dict[bytes, _Connection] = {}
        self._life = 0
        """Which start of the curator's process this is."""
        self._connections = Connections()
        self._heard: dict[str, float] = {}
        self._lost: set[str] = set()
        self._newest: dict[str, int] = {}
        self._latest_sent = 0.0
        self._world: World

    # -- what a simulation asks ---------------------------------------------------------------------

    def join(self, world: World) -> None:
        """See `Network`."""
        self._world = world
        self._at(self._healed, self._heal)

    @property
    def next_due(self) -> float:
        """See `Network`."""
        return self._agenda[0][0] if self._agenda else math.inf

    def turn(self, now: float) -> None:
        """See `Network`."""
        _, _, action = heapq.heappop(self._agenda)
        action(now)

    def send(self, sender: str, frame: Outgoing, now: float) -> bool:
        """See `Network`."""
        return self._send_from_curator(frame, now) if sender == CURATOR else self._send_to(sender, frame, now)

    def started(self, party: str, now: float) -> None:
        """A process begins its loop; a participant's tries to connect."""
        if party == CURATOR:
            self._life += 1
            self._connections = Connections()
            self._heard, self._lost = {}, set()
            self._at(now + self._timeouts.beat, partial(self._curators_tick, self._life))
            return
        life = self._stations[party].life + 1 if party in self._stations else 1
        self._stations[party] = _Station(heard=now, life=life)
        self._at(now, partial(self._attempt, party, life))
        self._at(now + self._timeouts.beat, partial(self._tick, party, life))

    def stopped(self, party: str, now: float) -> None:
        """A process is gone, and with it its connections and all that was on its way to it."""
        into = Way.TO_CURATOR if party == CURATOR else Way.FROM_CURATOR
        for connection in list(self._routes.values()):
            if party in (CURATOR, connection.peer):
                self._drop(connection.flights[into])
                if not connection.ended:
                    self._end(connection, now)
        self.happened[f"crash of the {party}" if party in (CURATOR, CONSUMER) else "crash of an owner"] += 1

    def round_began(self, number: int, now: float) -> None:
        """See `Network`: nothing here goes by rounds."""

    # -- the curator's loop (curator.hub) -------------------------------------------------------------

    def _curators_tick(self, life: int, now: float) -> None:
        world = self._world
        if life != self._life or not world.is_up(CURATOR):
            return
        if not world.goes_on(CURATOR):
            for connection in list(self._routes.values()):
                self._close(connection, Way.FROM_CURATOR, now)
            return
        for peer in list(self._connections.current):
            if peer not in self._lost and now - self._heard[peer] > self._timeouts.silence:
                self._lost.add(peer)
                self.happened["silence of a peer"] += 1
                world.feed(CURATOR, Lost(peer), now)
        for peer in list(self._connections.current):
            if not self._put_on_current(peer, self._beat, CONTROL_SEQUENCE, now):
                self._lose(peer, now)
        world.send_out(CURATOR, now)
        self._at(now + self._timeouts.beat, partial(self._curators_tick, life))

    def _send_from_curator(self, frame: Outgoing, now: float) -> bool:
        peer = frame.peer
        if frame.kind == "refused":
            return self._put_refusal(peer, frame, now)
        if frame.kind == "welcome":
            self._connections.accept(peer)
            self._heard[peer] = now
            self._lost.discard(peer)
        if self._put_on_current(peer, frame.data, frame.sequence, now):
            self._count_carried(now)
            return True
        self._lose(peer, now)
        return False

    def _put_refusal(self, peer: str, frame: Outgoing, now: float) -> bool:
        connection = self._routes[self._connections.next_to_be_told(peer)]
        mutator = self._mutators.get(peer)
        if mutator is not None and mutator.is_deaf():
            self.happened["mutation: deaf to its refusal"] += 1
            return True
        self._put(connection, Way.FROM_CURATOR, frame.data, CONTROL_SEQUENCE, now)
        return True

    def _put_on_current(self, peer: str, data: bytes, sequence: int, now: float) -> bool:
        route = self._connections.current.get(peer)
        connection = self._routes.get(route) if route is not None else None
        if connection is None or connection.ended:
            return False
        if self._lasting(peer, Way.FROM_CURATOR, Kind.QUEUE_FULL) is not None:
            self.happened["queue that was full"] += 1
            return False
        self._put(connection, Way.FROM_CURATOR, data, sequence, now)
        return True

    def _lose(self, peer: str, now: float) -> None:
        if peer in self._lost or not self._world.goes_on(CURATOR):
            return
        self._lost.add(peer)
        self._connections.current.pop(peer, None)
        self._world.feed(CURATOR, Lost(peer), now)

    def _take(self, connection: _Connection, data: bytes, now: float) -> None:
        """The curator takes a frame in, as `Hub` does."""
        world, peer, route = self._world, connection.peer, connection.route
        if not world.goes_on(CURATOR) or not self._connections.hears(peer, route, data):
            return
        current = self._connections.current.get(peer) == route
        if current:
            self._heard[peer] = now
            if peer in self._lost:
                self._lost.discard(peer)
                world.feed(CURATOR, Returned(peer), now)
        refusals = world.curator.ledger.refusals
        before = len(refusals)
        world.receive(CURATOR, peer, data, now)
        if len(refusals) > before:
            self._connections.refuse(peer, route)
            if current:
                self._lose(peer, now)
        world.send_out(CURATOR, now)

    # -- a participant's loop (protocol.runtime.connection) ---------------------------------------------

    def _tick(self, party: str, life: int, now: float) -> None:
        station = self._stations[party]
        if life != station.life or not self._world.is_up(party):
            return
        connection = station.connection
        if not self._world.goes_on(party):
            if connection is not None:
                self._close(connection, Way.TO_CURATOR, now)
            return
        if connection is not None and now - station.heard > self._timeouts.silence:
            self.happened["silence of the curator"] += 1
            self._mourn(party, now)
            self._close(connection, Way.TO_CURATOR, now)
            station.connection = None
            self._at(now, partial(self._attempt, party, life))
        elif connection is not None:
            self._put(connection, Way.TO_CURATOR, self._beat, CONTROL_SEQUENCE, now)
        self._at(now + self._timeouts.beat, partial(self._tick, party, life))

    def _attempt(self, party: str, life: int, now: float) -> None:
        """Try to connect, and again after a pause that doubles."""
        station = self._stations[party]
        if life != station.life or station.connection is not None or not self._world.goes_on(party):
            return
        blocked = any(self._lasting(party, way, *_HOLDING) for way in (Way.TO_CURATOR, Way.FROM_CURATOR))
        if blocked or not self._world.goes_on(CURATOR):
            self._at(now + station.pause, partial(self._attempt, party, life))
            station.pause = min(2 * station.pause, RECONNECT_MAX_MS / 1000)
        else:
            self._at(now + HANDSHAKE * self._latency, partial(self._establish, party, life, self._life))

    def _establish(self, party: str, life: int, curators_life: int, now: float) -> None:
        station = self._stations[party]
        if life != station.life or not self._world.goes_on(party):
            return
        if curators_life != self._life or not self._world.goes_on(CURATOR):
            self._attempt(party, life, now)
            return
        self._number += 1
        station.connection = _Connection(party, self._number)
        self._routes[station.connection.route] = station.connection
        station.heard, station.pause = now, RECONNECT_MS / 1000
        self._world.feed(party, Connected(), now)
        self._world.send_out(party, now)

    def _send_to(self, sender: str, frame: Outgoing, now: float) -> bool:
        connection = self._stations[sender].connection
        if connection is None:
            return False
        mutator = self._mutators.get(sender)
        frames = [frame.data] if mutator is None else mutator.sent(frame, self.happened)
        for other in self._mutators.values():
            if other is not mutator:
                other.overhear(frame.data)
        for data in frames:
            self._put(connection, Way.TO_CURATOR, data, frame.sequence, now)
        self._count_carried(now)
        return True

    def _hear(self, connection: _Connection, data: bytes, now: float) -> None:
        """A participant takes a frame in, as `Connection` does."""
        party = connection.peer
        if not self._world.goes_on(party):
            return
        station = self._stations[party]
        station.heard = now
        if station.lost and station.connection is not None:
            station.lost = False
            self._world.feed(party, Returned(CURATOR), now)
        self._world.receive(party, CURATOR, data, now)
        self._world.send_out(party, now)

    def _mourn(self, party: str, now: float) -> None:
        station = self._stations[party]
        if not station.lost and self._world.goes_on(party):
            station.lost = True
            self._world.feed(party, Lost(CURATOR), now)
            self._world.send_out(party, now)

    def _notice_end(self, connection: _Connection, life: int, now: float) -> None:
        """A participant sees that its connection has ended, and connects anew."""
        station = self._stations[connection.peer]
        if station.life != life or station.connection is not connection:
            return
        station.connection = None
        self._mourn(connection.peer, now)
        self._at(now + station.pause, partial(self._attempt, connection.peer, life))

    # -- connections and what is on them ----------------------------------------------------------------

    def _put(self, connection: _Connection, way: Way, data: bytes, sequence: int, now: float) -> None:
        if connection.ended or connection.severed:
            self.happened["frame lost"] += 1
            return
        travel = self._latency * (0.5 + self._rng.random())
        slow = self._lasting(connection.peer, way, Kind.DELAY)
        if slow is not None:
            self.happened["frame delayed"] += 1
            travel += self._rng.exponential(slow.seconds / 4)
        due = connection.last[way] = max(connection.last[way], now + travel)
        flight = _Flight(data, now)
        connection.flights[way].append(flight)
        self._at(due, partial(self._arrive, connection, way, flight))
        if sequence != CONTROL_SEQUENCE and self._lasting(connection.peer, way, Kind.DUPLICATION) is not None:
            self.happened["frame duplicated"] += 1
            again = _Flight(data, now)
            connection.flights[way].append(again)
            self._at(
                due + self._rng.exponential(4 * self._latency), partial(self._arrive, connection, way, again)
            )

    def _arrive(self, connection: _Connection, way: Way, flight: _Flight, now: float) -> None:
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
            self._at(held, partial(self._arrive, connection, way, flight))
            return
        connection.flights[way].remove(flight)
        if way is Way.FROM_CURATOR:
            self._hear(connection, flight.data, now)
            return
        self.happened["frame overtaken by another peer's"] += flight.sent < self._latest_sent
        self._latest_sent = max(self._latest_sent, flight.sent)
        newest = self._newest[connection.peer] = max(self._newest.get(connection.peer, 0), connection.number)
        self.happened["frame of an old connection after the new one's hello"] += connection.number < newest
        self._take(connection, flight.data, now)

    def _end(self, connection: _Connection, now: float, linger: float = 0.0) -> None:
        """A connection ends: a beginning of what is on its way still arrives, `linger` seconds later."""
        connection.ended = True
        for way, flights in connection.flights.items():
            arriving = int(self._rng.integers(len(flights) + 1))
            late = deque(_Flight(flight.data, flight.sent) for flight in list(flights)[:arriving])
            if way is Way.TO_CURATOR:
                due = max(connection.last[way], now) + linger
            else:
                # It has come to the peer's machine, and is read before or after the end is noticed.
                due = now + 2 * self._latency * self._rng.random()
            connection.last[way] = due
            for flight in late:
                self._at(due, partial(self._arrive, connection, way, flight))
            self.happened["frame lost"] += len(flights) - arriving
            for flight in flights:
                flight.dropped = True
            connection.flights[way] = late
        if self._world.is_up(connection.peer):
            life = self._stations[connection.peer].life
            self._at(now + self._latency, partial(self._notice_end, connection, life))

    def _close(self, connection: _Connection, sent: Way, now: float) -> None:
        """One side ends a connection: what it sent still arrives, what was sent to it does not."""
        if connection.ended:
            return
        connection.ended = True
        self._drop(connection.flights[Way.FROM_CURATOR if sent is Way.TO_CURATOR else Way.TO_CURATOR])
        if sent is Way.FROM_CURATOR and self._world.is_up(connection.peer):
            due = max(now + self._latency, connection.last[sent])
            life = self._stations[connection.peer].life
            self._at(due, partial(self._notice_end, connection, life))

    def _drop(self, flights: deque[_Flight]) -> None:
        for flight in flights:
            flight.dropped = True
        self.happened["frame lost"] += len(flights)
        flights.clear()

    # -- faults -----------------------------------------------------------------------------------------

    def _count_carried(self, now: float) -> None:
        self._carried += 1
        while self._faults and self._faults[0].after <= self._carried:
            # After the step that is under way, as nothing can happen within one.
            self._at(now, partial(self._begin, self._faults.popleft()))

    def _begin(self, fault: Fault, now: float) -> None:
        if now >= self._healed:
            return
        self.happened[fault.name] += 1
        if fault.kind not in (Kind.RESET, Kind.SILENT_LOSS):
            self._windows.append((fault, min(now + fault.seconds, self._healed)))
            self._at(now + fault.seconds, self._clear_windows)
            return
        station = self._stations.get(fault.peer)
        if station is None or station.connection is None or station.connection.ended:
            return
        if fault.kind is Kind.RESET:
            self._end(station.connection, now, linger=fault.seconds)
            return
        station.connection.severed = True
        for flights in station.connection.flights.values():
            self._drop(flights)

    def _clear_windows(self, now: float) -> None:
        self._windows = [(fault, end) for fault, end in self._windows if end > now]

    def _heal(self, _now: float) -> None:
        self._windows.clear()
        self._faults.clear()
        self._world.spare()

    def _lasting(self, peer: str, way: Way, *kinds: Kind) -> Fault | None:
        """A fault of these kinds that lasts, and that frames of a peer meet with this way."""
        for fault, _ in self._windows:
            if fault.kind in kinds and fault.peer == peer and fault.way in (way, Way.BOTH):
                return fault
        return None

    def _held_until(self, peer: str, way: Way) -> float:
        return max(
            (
                end
                for fault, end in self._windows
                if fault.kind in _HOLDING and fault.peer == peer and fault.way in (way, Way.BOTH)
            ),
            default=0.0,
        )

    def _at(self, due: float, action: Callable[[float], None]) -> None:
        self._number += 1
        heapq.heappush(self._agenda, (due, self._number, action))
