"""The networks that carry the frames of a simulated session.

A network learns of sent frames, and of processes that start or die. It produces the consequences: frames
arrive, connections are made or lost. `SteadyNetwork` loses nothing unless told to;
`hushbid.evidence.sweep.network` has a faulty one.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from hushbid.curator.machine import CuratorMachine
from hushbid.protocol.machine.machine import Connected, Event, Lost
from hushbid.protocol.names import CURATOR
from hushbid.protocol.runtime.driver import Outgoing

__all__ = ["Network", "SteadyNetwork", "World"]

LATENCY: Final = 1e-3
"""Seconds that a frame travels in a `SteadyNetwork`."""
_GONE: Final = b""
"""Stands in place of a frame: the sender's connection has ended."""


class World(Protocol):
    """The parties of a simulation, as their network sees them."""

    @property
    def parties(self) -> Sequence[str]:
        """Their names, the curator's first."""

    @property
    def curator(self) -> CuratorMachine:
        """The curator's machine."""

    def is_up(self, party: str) -> bool:
        """Whether a party's process is running, or has finished."""

    def goes_on(self, party: str) -> bool:
        """Whether a party's process is running, and its machine is not done."""

    def feed(self, party: str, event: Event, now: float) -> None:
        """Feed an event to a party that is up; its effects leave with the next `send_out`."""

    def lacks(self, party: str, sender: str, data: bytes) -> bool:
        """Whether a party lacks the frame before this one."""

    def receive(self, party: str, sender: str, data: bytes, now: float) -> None:
        """Hand a frame to a party that is up; its effects leave with the next `send_out`."""

    def send_out(self, party: str, now: float) -> None:
        """Send everything that a party has to send."""

    def spare(self) -> None:
        """Cancel the remaining crashes."""


class Network(Protocol):
    """Carries frames. All methods except `next_due` get the current time, in simulated seconds."""

    def join(self, world: World) -> None:
        """Set the parties to connect; call this first."""

    @property
    def next_due(self) -> float:
        """Time of the next event; infinity if there is none."""

    def turn(self, now: float) -> None:
        """Execute the next event."""

    def send(self, sender: str, frame: Outgoing, now: float) -> bool:
        """Accept a frame; False: it cannot leave, and its link resends it after the next hello."""

    def started(self, party: str, now: float) -> None:
        """A party's process is up, for the first time or again."""

    def stopped(self, party: str, now: float) -> None:
        """A party's process has died."""

    def round_began(self, number: int, now: float) -> None:
        """The curator has begun a round."""


class SteadyNetwork:
    """Every frame arrives, `LATENCY` after it was sent, unless its receiver dies or loses its connection.

    Args:
        away: Returns the owners without a connection during a round; round 0 is enrolment. An owner loses its
            connection when the round begins, with the frames in flight.
    """

    def __init__(self, away: Callable[[int], Collection[str]] | None = None) -> None:
        self._away = away or (lambda _round: ())
        self._cut = frozenset(self._away(0))
        self._queue: list[tuple[float, int, str, str, bytes]] = []
        self._number = 0
        self._world: World

    def join(self, world: World) -> None:
        self._world = world

    @property
    def next_due(self) -> float:
        return self._queue[0][0] if self._queue else math.inf

    def turn(self, now: float) -> None:
        """Deliver the next frame, or report the end of a connection."""
        _, _, sender, receiver, data = heapq.heappop(self._queue)
        if not self._world.goes_on(receiver):
            return
        if data == _GONE:
            self._world.feed(receiver, Lost(sender), now)
        else:
            self._world.receive(receiver, sender, data, now)
        self._world.send_out(receiver, now)

    def send(self, sender: str, frame: Outgoing, now: float) -> bool:
        if not self._cut.isdisjoint((sender, frame.peer)) or not self._world.is_up(frame.peer):
            return False
        self._post(sender, frame.peer, frame.data, now)
        return True

    def started(self, party: str, now: float) -> None:
        """Connect a party to all that are up."""
        for peer in self._peers(party):
            participant = party if peer == CURATOR else peer
            if self._world.goes_on(participant):
                self._world.feed(participant, Connected(), now)
                self._world.send_out(participant, now)

    def stopped(self, party: str, now: float) -> None:
        """Drop the frames in flight to a party, and tell its peers after delivering what it had sent."""
        self._drop(lambda _sender, receiver: receiver == party)
        for peer in self._peers(party):
            self._post(party, peer, _GONE, now)

    def round_began(self, number: int, now: float) -> None:
        """Cut off owners that lose their connection, and let owners with a new connection say hello."""
        away = frozenset(self._away(number))
        changed, self._cut = sorted(self._cut ^ away), away
        for name in changed:
            if name not in away:
                self._world.feed(name, Connected(), now)
                self._world.send_out(name, now)
                continue
            self._drop(lambda sender, receiver, name=name: name in (sender, receiver))  # type: ignore[misc]
            for party, peer in ((CURATOR, name), (name, CURATOR)):
                self._world.feed(party, Lost(peer), now)
                self._world.send_out(party, now)

    def _post(self, sender: str, receiver: str, data: bytes, now: float) -> None:
        self._number += 1
        heapq.heappush(self._queue, (now + LATENCY, self._number, sender, receiver, data))

    def _drop(self, which: Callable[[str, str], bool]) -> None:
        self._queue = [entry for entry in self._queue if not which(entry[2], entry[3])]
        heapq.heapify(self._queue)

    def _peers(self, party: str) -> list[str]:
        """Parties that are or can be connected to a party."""
        if party in self._cut:
            return []
        peers = [name for name in self._world.parties if name != CURATOR] if party == CURATOR else [CURATOR]
        return [peer for peer in peers if self._world.is_up(peer) and peer not in self._cut]
