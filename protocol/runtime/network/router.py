"""The curator's end: one ROUTER socket that binds.

A peer's identity is the `User-Id` that the ZAP handler gave to its connection, read from every single frame
(0.3 µs). It is never inferred from the routing id, even for a known connection: a peer with a valid key can
claim a routing id that another connection had. Such claims gain little. That of an id in use is ignored
(ROUTER_HANDOVER is off), and frames under an id not of ZeroMQ's own form are dropped. A peer could still
guess, out of 2^32, the id of a peer that has just gone, and receive what is sent to it before its next
connection says Hello; or the id of the next connection, for which libzmq 4.3.5 aborts the process (`Assertion
failed: ok`). So the ids start at random (`_scatter_routes`) and never leave this process, and a key has
`MAX_HELLOS_PER_PEER` handshakes, with which it could advance the ids to its claims.

ZeroMQ completes a multipart message before it can be seen here, and `MAXMSGSIZE` counts its parts one by one.
`ConnectionLimits` cuts peers that send parts without end, have too many connections, or send frames faster
than they are taken.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import zmq

from hushbid.protocol.closing import Closing
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.limits import (
    MAX_BYTES_PER_DRAIN,
    MAX_UNNAMED_CONNECTIONS,
    MAX_WAITING_CONNECTIONS,
)
from hushbid.protocol.runtime.keys import KeyPair
from hushbid.protocol.runtime.network.authentication import DOMAIN, Authenticator
from hushbid.protocol.runtime.network.connection_limits import ConnectionLimits, Cut
from hushbid.protocol.runtime.network.transport import (
    MAX_TO_CURATOR_BYTES,
    Address,
    check_frame,
    configure,
    connection_failed,
    parse_address,
)

__all__ = ["Arrival", "Drop", "RouterEndpoint"]

_AUTOMATIC_ID_BYTES = 5
"""Length of a routing id that libzmq draws: a zero byte and 32 bits."""


_MANY_FRAMES = 512
"""More frames in one drain than an honest peer has under way, minutes of signs of life included."""


class Drop(StrEnum):
    """Why a frame was not delivered; the keys of `RouterEndpoint.drops`."""

    PART_COUNT = "part-count"
    """A message of no or of several parts."""
    CLAIMED_ROUTE = "claimed-route"
    """It came by a routing id that the peer chose itself."""
    NO_IDENTITY = "no-identity"
    """Its connection has no key of the roster."""
    PEER_GONE = "peer-gone"
    """Its connection has ended."""
    QUEUE_FULL = "queue-full"
    """Its peer has not read the last `PEER_QUEUE_FRAMES` frames."""


class Arrival(NamedTuple):
    """A frame and where it came from."""

    route: bytes
    """The connection, for `RouterEndpoint.send`. A peer that reconnects gets another."""
    peer: str | None
    """The roster's name for the connection's key; None without security."""
    frame: bytes


def _scatter_routes() -> None:
    """Start the next ROUTER's ids at random: libzmq takes the first from C's `rand`, never seeded."""
    ctypes.CDLL(None).srand(ctypes.c_uint(int.from_bytes(os.urandom(4))))


class RouterEndpoint(Closing):
    """A bound ROUTER socket. It belongs to one thread, and `close` leaves nothing behind.

    Args:
        address: Where to bind, ``tcp://host:port``; port ``*`` lets the system choose.
        pair: Our keys. None means no security at all, and is for loopback addresses only.
        roster: Public key in Z85 -> name of the peer: who may connect. Unused without security.
        longest: Bytes of the longest frame to take (`hushbid.protocol.session.sizes.longest_to_curator`).
        strangers: Most connections that have sent nothing under a key of the roster
            (`hushbid.protocol.runtime.network.descriptors.descriptors_for_strangers`).

    Raises:
        ConfigError: If the address or a key is malformed, or security is off and the address is not loopback.
        ConnectionFailed: If the address cannot be bound.
    """

    def __init__(
        self,
        address: str,
        *,
        pair: KeyPair | None,
        roster: Mapping[str, str],
        longest: int = MAX_TO_CURATOR_BYTES,
        strangers: int = MAX_UNNAMED_CONNECTIONS,
    ) -> None:
        where = parse_address(address)
        if pair is None and not where.is_loopback:
            raise ConfigError(
                f"Without security a curator binds to this machine alone, and {address} is open to others.",
                advice="Bind to tcp://127.0.0.1:PORT, or give the curator its keys.",
            )
        self.drops: Counter[str] = Counter()
        """Frames not delivered, by `Drop`."""
        self._names = dict(roster) if pair is not None else None
        self._closed = False
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._authenticator: Authenticator | None = None
        self._limits: ConnectionLimits | None = None
        _scatter_routes()
        self.socket = self._context.socket(zmq.ROUTER)
        """For a `zmq.Poller`; use nothing else of it."""
        try:
            barred: set[str] = set()
            self._authenticator = Authenticator(self._context, self._names, barred)
            self._configure(where, pair, longest)
            self._limits = ConnectionLimits(self.socket, longest=longest, strangers=strangers, barred=barred)
            self.socket.bind(where.text)
            self.address = self.socket.get_string(zmq.LAST_ENDPOINT)
            """The endpoint that was bound, with its real port."""
        except zmq.ZMQError as error:
            self.close()
            raise connection_failed("bind to", where, error) from error
        except BaseException:
            self.close()
            raise

    def _configure(self, where: Address, pair: KeyPair | None, longest: int) -> None:
        socket = self.socket
        configure(socket, where, secure=pair is not None, longest=longest)
        # No limit: where a connection is lost whose input stood still at one, and a PING is among what it had
        # sent, libzmq 4.3.5 aborts the process (`Assertion failed: !_io_error`).
        socket.set(zmq.RCVHWM, 0)
        socket.set(zmq.BACKLOG, MAX_WAITING_CONNECTIONS)
        socket.set(zmq.ROUTER_MANDATORY, 1)
        socket.set(zmq.ROUTER_HANDOVER, 0)
        socket.set_string(zmq.ZAP_DOMAIN, DOMAIN.decode("ascii"))
        socket.set(zmq.ZAP_ENFORCE_DOMAIN, 1)
        if pair is not None:
            socket.set(zmq.CURVE_SERVER, 1)
            socket.set(zmq.CURVE_PUBLICKEY, pair.curve_public)
            socket.set(zmq.CURVE_SECRETKEY, pair.curve_secret)

    @property
    def refusals(self) -> Counter[str]:
        """Refused connections, by `authentication.Refusal`; do not change it."""
        assert self._authenticator is not None, "set by __init__"
        return self._authenticator.refusals

    def broken(self) -> list[tuple[bytes, str | None]]:
        """Route and peer of connections that ZeroMQ ended since the last call: their bytes were no frames."""
        assert self._limits is not None, "set by __init__"
        waiting = self._limits.broken
        return [waiting.popleft() for _ in range(len(waiting))]

    def cut(self, route: bytes, why: Cut) -> bool:
        assert self._limits is not None, "set by __init__"
        return self._limits.cut(route, why)

    def cut_if_stalled(self, route: bytes) -> bool:
        assert self._limits is not None, "set by __init__"
        return self._limits.cut_if_stalled(route)

    @property
    def cuts(self) -> Counter[str]:
        """Connections that were cut, by `connection_limits.Cut`; do not change it."""
        assert self._limits is not None, "set by __init__"
        return self._limits.cuts

    def receive(self, limit: int, *, wait_ms: int = 0) -> list[Arrival]:
        """Take at most `limit` arrived messages, waiting at most `wait_ms` for the first.

        It stops after `MAX_BYTES_PER_DRAIN` bytes, those of dropped messages included. Waiting in ``recv``
        itself spares a poll, and an empty attempt, for every drain.
        """
        arrivals: list[Arrival] = []
        taken = 0
        assert self._limits is not None, "set by __init__"
        took, accepted = self._limits.took, self._limits.accepted
        recv = self.socket.recv
        flags = zmq.NOBLOCK
        if wait_ms > 0:
            self.socket.set(zmq.RCVTIMEO, wait_ms)
            flags = zmq.Flag(0)
        try:
            for _ in range(limit):
                # Two bare recv calls: recv_multipart costs twice as much. The body is taken as a Frame, for
                # only a Frame knows its User-Id. Once the first part is here, the others are too.
                route = recv(flags)
                flags = zmq.NOBLOCK
                body = recv(zmq.NOBLOCK, copy=False)
                taken += len(body)
                if body.more:
                    while body.more:
                        body = recv(zmq.NOBLOCK, copy=False)
                        taken += len(body)
                    self.drops[Drop.PART_COUNT] += 1
                    self._limits.bar(self._peer(body))
                elif len(route) != _AUTOMATIC_ID_BYTES or route[0] != 0:
                    self.drops[Drop.CLAIMED_ROUTE] += 1
                    self._limits.bar(self._peer(body))
                elif (peer := self._peer(body)) is None and self._names is not None:
                    self.drops[Drop.NO_IDENTITY] += 1
                else:
                    took(route, body, peer)
                    arrivals.append(Arrival(route, peer, body.bytes))
                if taken >= MAX_BYTES_PER_DRAIN:
                    break
        except zmq.Again:
            self._limits.drained(accepted)
        else:
            # More waits. Who sent most of it may be on a connection that no longer is, or has no name yet.
            for peer, count in Counter(arrival.peer for arrival in arrivals).items():
                if count > _MANY_FRAMES:
                    self._limits.bar(peer)
        return arrivals

    def _peer(self, body: zmq.Frame) -> str | None:
        if self._names is None:
            return None
        try:
            return self._names.get(str(body.get("User-Id")))
        except zmq.ZMQError:  # the connection has no such property
            return None

    def send(self, route: bytes, frame: bytes) -> bool:
        """Queue a frame for a connection, without waiting.

        Returns:
            Whether it was queued: False if the connection has ended or its queue is full. True does not
                promise delivery.

        Raises:
            LocalProtocolError: The frame is over `MAX_FRAME_BYTES`.
        """
        check_frame(frame)
        try:
            self.socket.send(route, zmq.SNDMORE)
        except zmq.Again:
            self.drops[Drop.QUEUE_FULL] += 1
            return False
        except zmq.ZMQError as error:
            if error.errno != errno.EHOSTUNREACH:
                raise
            self.drops[Drop.PEER_GONE] += 1
            return False
        self.socket.send(frame)
        return True

    def close(self) -> None:
        """Send what is queued, for at most `LINGER_MS`, then end socket, thread and context. Idempotent."""
        if self._closed:
            return
        self._closed = True
        # Not disable_monitor: it holds the interpreter's lock while libzmq may wait for the monitor's reader.
        # The end of the socket ends the monitor.
        self.socket.close()
        self._context.term()
        for helper in (self._authenticator, self._limits):
            if helper is not None:
                helper.join()
