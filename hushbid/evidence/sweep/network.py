"""A simulated network with faults, and the connection handling of the parties' loops.

It repeats the behaviour of `hushbid.curator.hub` and `hushbid.protocol.runtime.network.connection` in
simulated time: signs of life, connections lost on one or both sides, another attempt after a pause, a hello
on the new connection. The parties' own `Presence` and `CuratorPresence` decide who is present, and which of a
peer's connections the curator listens to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from hushbid.curator.presence import Presence
from hushbid.evidence.sweep.mutation import Mutator
from hushbid.evidence.sweep.plan import FaultKind, Way
from hushbid.evidence.sweep.wires import HOLDING, SimulatedConnection, Wires
from hushbid.protocol.config.session import TimeoutSection
from hushbid.protocol.machine.machine import Lost
from hushbid.protocol.machine.presence import CuratorPresence
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.runtime.network.dealer import (
    ABANDONED_AFTER_S,
    MUTE_CONNECTIONS,
    RECONNECT_MAX_MS,
    RECONNECT_MS,
)
from hushbid.protocol.wire.messages import CONTROL_SEQUENCE
from hushbid.simulation.network import World

__all__ = ["FaultyNetwork"]

HANDSHAKE: Final = 4
"""Duration of a handshake, in latencies."""


@dataclass(eq=False, slots=True)
class _Station:
    """A participant's view of its connection (`hushbid.protocol.runtime.network.connection`)."""

    presence: CuratorPresence
    life: int
    """Counts the starts of its process."""
    connection: SimulatedConnection | None = None
    pause: float = RECONNECT_MS / 1000
    mute: int = 0
    """Number of connections that have ended since it last heard the curator."""


class FaultyNetwork:
    """Carries frames between parties that lose and re-establish their connections.

    Args:
        beat: The frame of a sign of life.
        mutators: Owners that break the protocol.
    """

    def __init__(
        self, wires: Wires, *, timeouts: TimeoutSection, beat: bytes, mutators: Mapping[str, Mutator]
    ) -> None:
        self._wires = wires
        self._timeouts = timeouts
        self._beat = beat
        self._mutators = mutators
        self._stations: dict[str, _Station] = {}
        self._routes: dict[bytes, SimulatedConnection] = {}
        self._life = 0
        """Counts the starts of the curator's process."""
        self._presence = Presence(timeouts)
        self._world: World

    # -- the simulation's interface ---------------------------------------------------------------------

    def join(self, world: World) -> None:
        self._world = world
        self._wires.join(self)

    @property
    def next_due(self) -> float:
        return self._wires.next_due

    def turn(self, now: float) -> None:
        self._wires.turn(now)

    def send(self, sender: str, frame: Outgoing, now: float) -> bool:
        return self._send_from_curator(frame, now) if sender == CURATOR else self._send_to(sender, frame, now)

    def started(self, party: str, now: float) -> None:
        """A process begins its loop; a participant's tries to connect."""
        if party == CURATOR:
            self._life += 1
            self._presence = Presence(self._timeouts)
            self._wires.at(now + self._timeouts.beat, partial(self._curators_tick, self._life))
            return
        life = self._stations[party].life + 1 if party in self._stations else 1
        self._stations[party] = _Station(CuratorPresence(self._timeouts, now), life)
        self._wires.at(now, partial(self._attempt, party, life))
        self._wires.at(now + self._timeouts.beat, partial(self._tick, party, life))

    def stopped(self, party: str, now: float) -> None:
        """A process is gone, with its connections and everything in flight to it."""
        into = Way.TO_CURATOR if party == CURATOR else Way.FROM_CURATOR
        for connection in list(self._routes.values()):
            if party in (CURATOR, connection.peer):
                self._wires.drop(connection, into)
                if not connection.ended:
                    self._wires.end(connection, now)
        whose = f"the {party}" if party in (CURATOR, CONSUMER) else "an owner"
        self._wires.happened[f"crash of {whose}"] += 1

    def round_began(self, number: int, now: float) -> None:
        """See `Network`; rounds do not matter here."""

    # -- events on the wires ----------------------------------------------------------------------

    def arrived(self, connection: SimulatedConnection, way: Way, data: bytes, now: float) -> None:
        if way is Way.TO_CURATOR:
            self._take(connection, data, now)
        else:
            self._hear(connection, data, now)

    def ended(self, connection: SimulatedConnection, due: float) -> None:
        if self._world.is_up(connection.peer):
            life = self._stations[connection.peer].life
            self._wires.at(due, partial(self._notice_end, connection, life))

    def broken(self, connection: SimulatedConnection, way: Way, now: float) -> None:
        peer = connection.peer
        if way is Way.FROM_CURATOR:
            # libzmq does not reconnect after a violation of ZMTP that it found itself.
            if self._stations[peer].connection is connection:
                self._stations[peer].pause = ABANDONED_AFTER_S
        elif self._presence.connections.current.get(peer) == connection.route:
            self._lose(peer, now)
            self._world.send_out(CURATOR, now)

    def connection_of(self, peer: str) -> SimulatedConnection | None:
        station = self._stations.get(peer)
        return None if station is None else station.connection

    def healed(self) -> None:
        self._world.spare()

    # -- the curator's loop (curator.hub) -------------------------------------------------------------

    def _curators_tick(self, life: int, now: float) -> None:
        world = self._world
        if life != self._life or not world.is_up(CURATOR):
            return
        if not world.goes_on(CURATOR):
            for connection in list(self._routes.values()):
                self._wires.close(connection, Way.FROM_CURATOR, now)
            return
        for lost in self._presence.silent(now):
            self._wires.happened["silence of a peer"] += 1
            world.feed(CURATOR, lost, now)
        for _, route in self._presence.unheard():
            connection = self._routes[route]
            if not connection.ended and connection.streams[Way.TO_CURATOR].stalls():
                self._wires.happened["connection that had stalled"] += 1
                self._wires.give_up(connection, Way.TO_CURATOR, now)
        for peer in list(self._presence.connections.current):
            if not self._put_on_current(peer, self._beat, CONTROL_SEQUENCE, now):
                self._lose(peer, now)
        world.send_out(CURATOR, now)
        self._wires.at(now + self._timeouts.beat, partial(self._curators_tick, life))

    def _send_from_curator(self, frame: Outgoing, now: float) -> bool:
        peer = frame.peer
        if frame.kind == "refused":
            return self._put_refusal(peer, frame, now)
        if frame.kind == "welcome":
            self._presence.welcomed(peer, now)
        if self._put_on_current(peer, frame.data, frame.sequence, now):
            self._wires.count_carried(now)
            return True
        self._lose(peer, now)
        return False

    def _put_refusal(self, peer: str, frame: Outgoing, now: float) -> bool:
        connection = self._routes[self._presence.connections.next_to_be_told(peer)]
        mutator = self._mutators.get(peer)
        if mutator is not None and mutator.is_deaf():
            self._wires.happened["mutation: deaf to its refusal"] += 1
            return True
        self._wires.put(connection, Way.FROM_CURATOR, frame.data, CONTROL_SEQUENCE, now)
        return True

    def _put_on_current(self, peer: str, data: bytes, sequence: int, now: float) -> bool:
        route = self._presence.connections.current.get(peer)
        connection = self._routes.get(route) if route is not None else None
        if connection is None or connection.ended:
            return False
        if self._wires.lasting(peer, Way.FROM_CURATOR, FaultKind.QUEUE_FULL) is not None:
            self._wires.happened["queue that was full"] += 1
            return False
        self._wires.put(connection, Way.FROM_CURATOR, data, sequence, now)
        return True

    def _lose(self, peer: str, now: float) -> None:
        lost = self._presence.gone(peer) if self._world.goes_on(CURATOR) else None
        if lost is not None:
            self._world.feed(CURATOR, lost, now)

    def _take(self, connection: SimulatedConnection, data: bytes, now: float) -> None:
        """The curator receives a frame, as `Hub` does."""
        world, peer, route = self._world, connection.peer, connection.route
        connections = self._presence.connections
        if not world.goes_on(CURATOR):
            return
        if not connections.hears(peer, route, data):
            # The hub answers `REPLACED`. A participant here has one connection at a time, and has given up
            # the one that carried this frame, so nobody would hear the answer.
            connections.late()
            return
        if world.lacks(CURATOR, peer, data):
            self._wires.happened["gap that was noticed"] += 1
            self._wires.give_up(connection, Way.TO_CURATOR, now)
            return
        current = connections.current.get(peer) == route
        returned = self._presence.heard(peer, route, now)
        if returned is not None:
            world.feed(CURATOR, returned, now)
        refusals = world.curator.ledger.refusals
        before = len(refusals)
        world.receive(CURATOR, peer, data, now)
        if len(refusals) > before:
            connections.refuse(peer, route)
            if current:
                self._lose(peer, now)
        world.send_out(CURATOR, now)

    # -- a participant's loop (protocol.runtime.network.connection) ------------------------------------------

    def _tick(self, party: str, life: int, now: float) -> None:
        station = self._stations[party]
        if life != station.life or not self._world.is_up(party):
            return
        connection = station.connection
        if not self._world.goes_on(party):
            if connection is not None:
                self._wires.close(connection, Way.TO_CURATOR, now)
            return
        if connection is not None and station.presence.is_silent(now):
            self._wires.happened["silence of the curator"] += 1
            self._give_up(party, station, connection, now)
        elif connection is not None:
            self._wires.put(connection, Way.TO_CURATOR, self._beat, CONTROL_SEQUENCE, now)
        self._wires.at(now + self._timeouts.beat, partial(self._tick, party, life))

    def _give_up(self, party: str, station: _Station, connection: SimulatedConnection, now: float) -> None:
        self._mourn(party, station.presence.ended(), now)
        self._wires.close(connection, Way.TO_CURATOR, now)
        station.connection = None
        self._wires.at(now, partial(self._attempt, party, station.life))

    def _attempt(self, party: str, life: int, now: float) -> None:
        """Try to connect, and again after a pause that doubles."""
        station = self._stations[party]
        if life != station.life or station.connection is not None or not self._world.goes_on(party):
            return
        blocked = any(self._wires.lasting(party, way, *HOLDING) for way in (Way.TO_CURATOR, Way.FROM_CURATOR))
        if blocked or not self._world.goes_on(CURATOR):
            self._wires.at(now + station.pause, partial(self._attempt, party, life))
            station.pause = min(2 * station.pause, RECONNECT_MAX_MS / 1000)
        else:
            self._wires.at(
                now + HANDSHAKE * self._wires.latency, partial(self._establish, party, life, self._life)
            )

    def _establish(self, party: str, life: int, curators_life: int, now: float) -> None:
        station = self._stations[party]
        if life != station.life or not self._world.goes_on(party):
            return
        if curators_life != self._life or not self._world.goes_on(CURATOR):
            self._attempt(party, life, now)
            return
        if self._wires.fails_handshake(party):
            self._wires.at(now + ABANDONED_AFTER_S, partial(self._attempt, party, life))
            return
        station.connection = self._wires.connect(party)
        self._routes[station.connection.route] = station.connection
        station.pause = RECONNECT_MS / 1000
        self._world.feed(party, station.presence.established(now), now)
        self._world.send_out(party, now)

    def _send_to(self, sender: str, frame: Outgoing, now: float) -> bool:
        connection = self._stations[sender].connection
        if connection is None:
            return False
        mutator = self._mutators.get(sender)
        frames = [frame.data] if mutator is None else mutator.sent(frame, self._wires.happened)
        for other in self._mutators.values():
            if other is not mutator:
                other.overhear(frame.data)
        for data in frames:
            self._wires.put(connection, Way.TO_CURATOR, data, frame.sequence, now)
        self._wires.count_carried(now)
        return True

    def _hear(self, connection: SimulatedConnection, data: bytes, now: float) -> None:
        """A participant receives a frame, as `SimulatedConnection` does."""
        party = connection.peer
        if not self._world.goes_on(party):
            return
        station = self._stations[party]
        presence = station.presence
        if self._world.lacks(party, CURATOR, data):
            self._wires.happened["gap that was noticed"] += 1
            if station.connection is connection:
                self._give_up(party, station, connection, now)
            return
        station.mute = 0
        if (returned := presence.heard(now)) is not None:
            self._world.feed(party, returned, now)
        self._world.receive(party, CURATOR, data, now)
        self._mourn(party, presence.taken_in(), now)
        self._world.send_out(party, now)

    def _mourn(self, party: str, lost: Lost | None, now: float) -> None:
        if lost is not None and self._world.goes_on(party):
            self._world.feed(party, lost, now)
            self._world.send_out(party, now)

    def _notice_end(self, connection: SimulatedConnection, life: int, now: float) -> None:
        """A participant notices that its connection has ended, and reconnects."""
        station = self._stations[connection.peer]
        if station.life != life or station.connection is not connection:
            return
        station.connection = None
        station.mute += 1
        longer = RECONNECT_MS << max(station.mute - MUTE_CONNECTIONS, 0)
        station.pause = max(station.pause, min(longer, RECONNECT_MAX_MS) / 1000)
        self._mourn(connection.peer, station.presence.ended(), now)
        self._wires.at(now + station.pause, partial(self._attempt, connection.peer, life))
