"""Which peers are here, silent or gone: a state machine without I/O that takes time as an argument.

The curator's loop (`curator.hub`) and the network of fault sweeps (`hushbid.evidence.sweep.network`) follow
it. They bring what happens on connections, and feed what comes out, `Lost` and `Returned`, to the curator's
machine.

A peer is here from its welcome on. It is lost when it is silent for too long, and back when it speaks on the
same connection; or when its connection has ended, and back with the welcome on another one.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from curator.connections import Connections
from protocol.config.session import TimeoutSection
from protocol.machine.machine import Lost, Returned

__all__ = ["Presence"]


class Presence:
    """The peers of one curator's process.

    Args:
        timeouts: The session's, of which `silence` and `beat` count, in seconds.
    """

    def __init__(self, timeouts: TimeoutSection) -> None:
        self.connections = Connections()
        """Which connection of each peer is listened to."""
        self._timeouts = timeouts
        self._heard: dict[str, float] = {}
        """When each peer was last heard on its connection."""
        self._lost: set[str] = set()
        self._unreachable: dict[bytes, tuple[str, float]] = {}
        """Connections on which a frame could not be sent: whose they are, and since when."""

    def heard(self, peer: str, route: bytes, now: float) -> Returned | None:
        """A frame that is listened to has come on a connection.

        Returns:
            That its peer is back, if it was silent.
        """
        if self.connections.current.get(peer) != route:
            return None  # the hello of another connection, which may be refused
        self._heard[peer] = now
        if peer not in self._lost:
            return None
        self._lost.discard(peer)
        return Returned(peer)

    def welcomed(self, peer: str, now: float) -> bytes | None:
        """A peer's newest hello is answered: its connection is the peer's from now on.

        Returns:
            The one in whose place it is, if there was one.
        """
        self._heard[peer] = now
        self._lost.discard(peer)
        return self.connections.accept(peer)

    def gone(self, peer: str) -> Lost | None:
        """A peer's connection has ended, or is to count as ended; it has to say hello on another one.

        Returns:
            That it is lost, if it was not before.
        """
        if peer in self._lost:
            return None
        self._lost.add(peer)
        self.connections.current.pop(peer, None)
        return Lost(peer)

    def silent(self, now: float) -> list[Lost]:
        """Peers that have been silent for too long. Its connection stays, so that it can come back on it."""
        over = [
            peer
            for peer in self.connections.current
            if peer not in self._lost and now - self._heard[peer] > self._timeouts.silence
        ]
        self._lost.update(over)
        return [Lost(peer) for peer in over]

    # -- connections that take no frame any more ------------------------------------------------------

    def not_sent(self, peer: str, route: bytes, now: float) -> None:
        """A frame could not be sent on a connection: no other is sent on it, for the peer would see a gap."""
        self._unreachable[route] = (peer, now)

    def reaches(self, route: bytes) -> bool:
        """Whether all that was to be sent on a connection was sent."""
        return route not in self._unreachable

    @property
    def hears_out(self) -> bool:
        """Whether there are peers that cannot be sent anything, and may still be heard."""
        return bool(self._unreachable)

    def heard_out(self, speaking: AbstractSet[bytes], now: float) -> list[str]:
        """Peers whose connection takes no frame, and that have said all: they are gone.

        A connection that has ended may have frames waiting here: a farewell is the last that its peer says.
        One on which a peer only speaks, and does not read, is given a beat.

        Args:
            speaking: The connections of which there were frames in this turn.
            now: Seconds.
        """
        over = [
            (route, peer)
            for route, (peer, since) in self._unreachable.items()
            if since < now and (route not in speaking or now - since >= self._timeouts.beat)
        ]
        for route, _ in over:
            del self._unreachable[route]
        return [peer for route, peer in over if self.connections.current.get(peer) == route]
