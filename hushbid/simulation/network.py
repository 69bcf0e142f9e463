"""The networks that carry the frames of a simulated session.

A network is told of sent frames, and of processes that died or came up. It brings about the consequences:
frames that arrive, connections that stand or are lost. `SteadyNetwork` loses nothing unasked;
`hushbid.evidence.sweep.network` has one that does.
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
"""In the place of a frame: the sender's connection has ended."""


class World(Protocol):
    """The parties of a simulation, as their network sees them."""

    @property
    def parties(self) -> Sequence[str]:
        """Their names, the curator's first."""

    @property
    def curator(self) -> CuratorMachine:
        """The curator's machine."""

    def is_up(self, party: str) -> bool:
        """Whether a party's process runs, or has come to its end."""

    def goes_on(self, party: str) -> bool:
        """Whether a party's process runs, and its machine is not done."""

    def feed(self, party: str, event: Event, now: float) -> None:
        """Let an event happen to a party that is up; what comes of it leaves with the next `send_out`."""

    def lacks(self, party: str, sender: str, data: bytes) -> bool:
        """Whether a frame comes to a party after one that did not."""

    def receive(self, party: str, sender: str, data: bytes, now: float) -> None:
        """Hand a frame to a party that is up; what comes of it leaves with the next `send_out`."""

    def send_out(self, party: str, now: float) -> None:
        """Let what a party has to send leave."""

    def spare(self) -> None:
        """Let no process die any more."""


class Network(Protocol):
    """Carries frames. All methods but `next_due` are told what time it is, in simulated seconds."""

    def join(self, world: World) -> None:
        """Learn whom it connects, before anything else."""

    @property
    def next_due(self) -> float:
        """When the next thing happens; infinity: nothing will."""

    def turn(self, now: float) -> None:
        """Bring about the first thing that is due."""

    def send(self, sender: str, frame: Outgoing, now: float) -> bool:
        """Take a frame; False: it cannot leave, and its link sends it again after the next hello."""

    def started(self, party: str, now: float) -> None:
        """A party's process is up, for the first time or again."""

    def stopped(self, party: str, now: float) -> None:
        """A party's process has died."""

    def round_began(self, number: int, now: float) -> None:
        """The curator has begun a round."""


class SteadyNetwork:
    """Every frame arrives, `LATENCY` after it was sent, unless its receiver dies or loses its connection.

    Args:
        away: Names the owners that have no connection while a round is under way, 0 being enrolment. An
            owner loses it when the round begins, and with it the frames that are on their way.
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
        """Deliver the next frame, or tell of the end of a connection."""
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
        """Lose what is on its way to a party, and tell its peers after what it had sent."""
        self._drop(lambda _sender, receiver: receiver == party)
        for peer in self._peers(party):
            self._post(party, peer, _GONE, now)

    def round_began(self, number: int, now: float) -> None:
        """Cut owners off whose connection is gone, and let those whose connection is new say hello."""
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
        """Parties that have a connection to a party, or can have one."""
        if party in self._cut:
            return []
        peers = [name for name in self._world.parties if name != CURATOR] if party == CURATOR else [CURATOR]
        return [peer for peer in peers if self._world.is_up(peer) and peer not in self._cut]
