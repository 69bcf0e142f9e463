"""Which peers are here, silent or gone: a state machine without I/O that takes time as an argument.

The curator's loop (`hushbid.curator.hub`) and the network of the fault sweeps
(`hushbid.evidence.sweep.network`) use it. They report what happens on connections, and pass its results,
`Lost` and `Returned`, to the curator's machine.

A peer is here from its welcome on. It is lost when it is silent for too long, and back when it speaks on the
same connection. It is also lost when its connection ends, and back with the welcome on another one.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from hushbid.curator.connections import Connections
from hushbid.protocol.config.session import TimeoutSection
from hushbid.protocol.machine.machine import Lost, Returned

__all__ = ["Presence"]


class Presence:
    """The peers of one curator's process. Of the time-outs only `silence` and `beat` matter here."""

    def __init__(self, timeouts: TimeoutSection) -> None:
        self.connections = Connections()
        """The connection of each peer that is listened to."""
        self._timeouts = timeouts
        self._heard: dict[str, float] = {}
        """When each peer was last heard on its connection."""
        self._lost: set[str] = set()
        self._unreachable: dict[bytes, tuple[str, float]] = {}
        """Connections that failed to take a frame: the peer, and the time of the failure."""

    def heard(self, peer: str, route: bytes, now: float) -> Returned | None:
        """Note a frame on a connection that is listened to; return `Returned` if its peer was silent."""
        if self.connections.current.get(peer) != route:
            return None  # another connection's hello, which may be refused
        self._heard[peer] = now
        if peer not in self._lost:
            return None
        self._lost.discard(peer)
        return Returned(peer)

    def welcomed(self, peer: str, now: float) -> bytes | None:
        """Note that a peer's newest hello was answered; return the connection that it replaces, if any."""
        self._heard[peer] = now
        self._lost.discard(peer)
        return self.connections.accept(peer)

    def gone(self, peer: str) -> Lost | None:
        """Note that a peer's connection has ended, or counts as ended; the peer has to say hello on another.

        Returns `Lost` unless the peer was lost already.
        """
        if peer in self._lost:
            return None
        self._lost.add(peer)
        self.connections.current.pop(peer, None)
        return Lost(peer)

    def silent(self, now: float) -> list[Lost]:
        """Peers that have been silent for too long. They keep their connection, and may return on it."""
        over = [
            peer
            for peer in self.connections.current
            if peer not in self._lost and now - self._heard[peer] > self._timeouts.silence
        ]
        self._lost.update(over)
        return [Lost(peer) for peer in over]

    def unheard(self) -> list[tuple[str, bytes]]:
        """Silent peers that have kept their connection, and the connection."""
        return [(peer, route) for peer, route in self.connections.current.items() if peer in self._lost]

    # -- connections that no longer take frames ---------------------------------------------------------

    def not_sent(self, peer: str, route: bytes, now: float) -> None:
        """Note a frame that could not be sent: no other is sent on its connection, to avoid a gap."""
        self._unreachable[route] = (peer, now)

    def reaches(self, route: bytes) -> bool:
        """Whether everything sent on a connection so far was taken."""
        return route not in self._unreachable

    @property
    def hears_out(self) -> bool:
        """Whether some peers cannot be sent anything but may still be heard."""
        return bool(self._unreachable)

    def heard_out(self, speaking: AbstractSet[bytes], now: float) -> list[str]:
        """Peers whose connection takes no frame and from which nothing more comes: they are gone.

        A connection that has ended may still have frames to read, the last of them a farewell. A peer that
        speaks but does not read is given one beat.

        Args:
            speaking: The connections that delivered frames in this turn.
        """
        over = [
            (route, peer)
            for route, (peer, since) in self._unreachable.items()
            if since < now and (route not in speaking or now - since >= self._timeouts.beat)
        ]
        for route, _ in over:
            del self._unreachable[route]
        return [peer for route, peer in over if self.connections.current.get(peer) == route]
