"""The other parties' end: one DEALER socket that connects, and what happens to its connection.

ZeroMQ connects and reconnects unasked. What became of it comes from the socket's monitor, read in the same
loop:

=============================  ==================================================================
what is at the other end       happenings
=============================  ==================================================================
a curator that knows us        CONNECTED
a curator without our key      AUTHENTICATION_FAILED, once: ZeroMQ does not try again
a curator with another key     HANDSHAKE_FAILED, again and again: count, and give up
something that is no ZeroMQ    HANDSHAKE_FAILED, again and again
nobody                         nothing: watch the clock
a curator that was restarted   DISCONNECTED, and CONNECTED when it is back
=============================  ==================================================================

After a violation of ZMTP libzmq does not try again, without a word. `happenings` notices the silence and
connects anew: the peer may be a proxy before a curator that is being restarted, or the line garbled a byte.

libzmq's own growing pause is one of attempts that TCP refuses. After a connection that was made it begins
anew, and a line that garbles each connection would be tried ten times a second. So `happenings` counts
connections on which nothing was heard, and makes the pause longer after a few.
"""

from __future__ import annotations

import errno
import time
from collections import Counter
from enum import StrEnum
from typing import Final

import zmq

from hushbid.protocol.closing import Closing
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.limits import ARRIVED_QUEUE_FRAMES, MAX_FRAME_BYTES
from hushbid.protocol.runtime.keys import KeyPair, PublicKey
from hushbid.protocol.runtime.network.router import Drop
from hushbid.protocol.runtime.network.transport import (
    MAX_TO_CURATOR_BYTES,
    MONITOR_EVENT,
    Address,
    check_frame,
    configure,
    connection_failed,
    parse_address,
    resolved,
)
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import log

__all__ = ["DealerEndpoint", "Happening"]

RECONNECT_MS: Final = 100
RECONNECT_MAX_MS: Final = 2_000
"""Longest pause between two attempts to connect; it doubles from `RECONNECT_MS` on."""

MUTE_CONNECTIONS: Final = 3
"""So many connections in a row may end without a frame before the pause doubles with each."""

CONNECT_MS: Final = 5_000
"""How long an attempt waits for TCP's answer: a silent firewall must not keep us from the host's other
addresses.
"""

OTHER_ADDRESS_AFTER_S: Final = 1.0
"""How long one of a host's addresses is tried before the next."""

ABANDONED_AFTER_S: Final = 1.0
"""Silence after the end of a connection that shows that libzmq has given up; it announces further attempts
within microseconds.
"""

_FAILED: Final = zmq.Event.HANDSHAKE_FAILED_NO_DETAIL | zmq.Event.HANDSHAKE_FAILED_PROTOCOL
_RETRYING: Final = zmq.Event.CONNECT_RETRIED | zmq.Event.CONNECT_DELAYED
_WATCHED: Final = (
    _FAILED
    | _RETRYING
    | zmq.Event.CONNECTED
    | zmq.Event.DISCONNECTED
    | zmq.Event.HANDSHAKE_SUCCEEDED
    | zmq.Event.HANDSHAKE_FAILED_AUTH
)


class Happening(StrEnum):
    """What became of the connection."""

    CONNECTED = "connected"
    """The handshake succeeded: each side knows who the other is."""
    DISCONNECTED = "disconnected"
    """The connection has ended; queued frames may be lost."""
    AUTHENTICATION_FAILED = "authentication-failed"
    """Our key is not on the curator's roster; there will be no further attempt."""
    HANDSHAKE_FAILED = "handshake-failed"
    """The server has another key than expected, or does not speak our protocol; attempts go on for ever."""


class DealerEndpoint(Closing):
    """A connecting DEALER socket. It belongs to one thread, and `close` leaves nothing behind.

    Args:
        address: Where to connect, ``tcp://host:port``. Nobody needs to be there yet.
        pair, server_key: Our keys and the curator's. Both None: no security, for loopback addresses only.

    Raises:
        ConfigError: The address is malformed, only one of the keys is given, or security is off and the
            address is not loopback.
        ConnectionFailed: ZeroMQ refuses the address.
    """

    def __init__(self, address: str, *, pair: KeyPair | None, server_key: PublicKey | None) -> None:
        self._where = parse_address(address)
        self._targets: list[Address] = []
        """Addresses still to be tried, of the host's when it was last looked up."""
        self._target: Address | None = None
        self._dialled_at = 0.0
        self._unanswered = False
        self._unknown = False
        if (pair is None) != (server_key is None):
            raise ConfigError(
                "A secure connection needs our own key pair and the curator's public key; one is missing.",
                advice="Give both.",
            )
        if self._where.port == "*":
            raise ConfigError(f"{address} has no port to connect to.", advice="Write the curator's port.")
        if pair is None and not self._where.is_loopback:
            raise ConfigError(
                f"Without security a party connects within this machine alone, and {address} is elsewhere.",
                advice="Connect to tcp://127.0.0.1:PORT, or give the party its keys.",
            )
        self.drops: Counter[str] = Counter()
        """Frames not delivered, by `router.Drop`."""
        self._connected = False
        self._handshaking = False
        self._refused = False
        self._ended_at: float | None = None
        self._mute = 0
        """Number of connections that ended since a frame was heard, the present one not counted."""
        self._made = False
        """Whether TCP has connected since an end was counted."""
        self._paused_until: float | None = None
        self._closed = False
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.socket = self._context.socket(zmq.DEALER)
        """For a `zmq.Poller`; use nothing else of it."""
        self.monitor = self.socket.get_monitor_socket(_WATCHED)
        """For a `zmq.Poller`: readable when there are happenings."""
        try:
            self._configure(pair, server_key)
            self._dial()
        except zmq.ZMQError as error:
            self.close()
            raise connection_failed("connect to", self._where, error) from error
        except BaseException:
            self.close()
            raise

    def _configure(self, pair: KeyPair | None, server_key: PublicKey | None) -> None:
        socket = self.socket
        configure(socket, self._where, secure=pair is not None, longest=MAX_FRAME_BYTES)
        socket.set(zmq.RCVHWM, ARRIVED_QUEUE_FRAMES)
        # Without IMMEDIATE frames would queue for a curator that may never come, and go to its successor.
        socket.set(zmq.IMMEDIATE, 1)
        socket.set(zmq.RECONNECT_IVL, RECONNECT_MS)
        socket.set(zmq.RECONNECT_IVL_MAX, RECONNECT_MAX_MS)
        socket.set(zmq.CONNECT_TIMEOUT, CONNECT_MS)
        if pair is not None and server_key is not None:
            socket.set(zmq.CURVE_PUBLICKEY, pair.curve_public)
            socket.set(zmq.CURVE_SECRETKEY, pair.curve_secret)
            socket.set(zmq.CURVE_SERVERKEY, server_key.curve)

    def happenings(self) -> list[Happening]:
        """Changes of the connection since the last call, in order. Call it in every turn of the loop."""
        now = time.monotonic()
        if self._paused_until is not None:
            self._events()  # of what was under way when the pause began
            if now < self._paused_until:
                return []
            self._paused_until = None
            self._dial()
        mute = self._mute
        happened = [happening for event in self._events() if (happening := self._follow(event)) is not None]
        if self._mute > max(mute, MUTE_CONNECTIONS) and not (self._made or self._refused):
            self._pause(now)
            return happened
        abandoned = self._ended_at is not None and now - self._ended_at > ABANDONED_AFTER_S
        elsewhere = self._unanswered and now - self._dialled_at > OTHER_ADDRESS_AFTER_S
        if abandoned or elsewhere:
            self._dial()
        return happened

    def _events(self) -> list[zmq.Event]:
        events: list[zmq.Event] = []
        try:
            while True:
                event, _ = MONITOR_EVENT.unpack(self.monitor.recv_multipart(zmq.NOBLOCK)[0])
                events.append(zmq.Event(event))
        except zmq.Again:
            return events

    def _follow(self, event: zmq.Event) -> Happening | None:
        """The meaning of an event of libzmq's for the user, if any."""
        if event in _RETRYING:
            self._ended_at = None
            # A name is looked up again, for its host may have moved, as a recreated container has.
            self._unanswered = event is zmq.Event.CONNECT_RETRIED and self._where.is_name
        elif event is zmq.Event.CONNECTED:
            self._made = True
            self._handshaking = True
            self._unanswered = False
            self._ended_at = None
        elif event is zmq.Event.HANDSHAKE_SUCCEEDED:
            self._handshaking = False
            self._connected = True
            return Happening.CONNECTED
        elif event is zmq.Event.HANDSHAKE_FAILED_AUTH:
            self._handshaking = False
            self._refused = True
            return Happening.AUTHENTICATION_FAILED
        elif event in _FAILED and not self._connected:
            self._handshaking = False
            return Happening.HANDSHAKE_FAILED
        elif event is zmq.Event.DISCONNECTED or event in _FAILED:
            # A frame that does not decrypt. Told of it, libzmq 4.3.5 mostly keeps the connection and reads no
            # more from it: `event_handshake_failed_protocol` changes the errno that says what to do.
            return self._ended()
        return None

    def _ended(self) -> Happening | None:
        was_connected, was_handshaking = self._connected, self._handshaking
        self._mute += self._made
        self._made = False
        self._connected = self._handshaking = False
        self._ended_at = None if self._refused else time.monotonic()
        if was_connected:
            return Happening.DISCONNECTED
        # libzmq reports no failure for a greeting that is not ZMTP's; one that it reports is handed on above.
        return Happening.HANDSHAKE_FAILED if was_handshaking else None

    def _pause(self, now: float) -> None:
        """Make no connection for a while: nothing was heard on the last ones."""
        self._hang_up()
        self._connected = self._handshaking = self._unanswered = False
        self._ended_at = None
        pause = min(RECONNECT_MS << min(self._mute - MUTE_CONNECTIONS, 16), RECONNECT_MAX_MS)
        self._paused_until = now + pause / 1000

    def _hang_up(self) -> None:
        if self._target is not None:
            try:
                self.socket.disconnect(self._target.text)
            except zmq.ZMQError as error:
                if error.errno != errno.ENOENT:  # libzmq has forgotten the endpoint already
                    raise

    def _dial(self) -> None:
        """Connect to the next of the host's addresses; after the last, look them up again."""
        self._ended_at = None
        self._unanswered = False
        self._hang_up()
        if not self._targets:
            self._targets = list(resolved(self._where))
            self._note_unknown(not self._targets)
        # Without an address the name is left to ZeroMQ, which looks it up at each of its attempts.
        self._target = self._targets.pop(0) if self._targets else self._where
        self.socket.set(zmq.IPV6, 0 if self._target.is_ipv4 else 1)
        self.socket.connect(self._target.text)
        self._dialled_at = time.monotonic()

    def _note_unknown(self, unknown: bool) -> None:
        """Log once that the host's name leads nowhere."""
        if unknown and not self._unknown:
            log(LogEvent.HOST_UNKNOWN, host=self._where.host)
        self._unknown = unknown

    def receive(self, limit: int, *, wait_ms: int = 0) -> list[bytes]:
        """Take at most `limit` arrived messages, waiting at most `wait_ms` for the first.

        Waiting in ``recv`` itself spares a poll, and an empty attempt, for every frame.
        """
        frames: list[bytes] = []
        recv = self.socket.recv
        flags = zmq.NOBLOCK
        if wait_ms > 0:
            self.socket.set(zmq.RCVTIMEO, wait_ms)
            flags = zmq.Flag(0)
        try:
            for _ in range(limit):
                body = recv(flags, copy=False)
                flags = zmq.NOBLOCK
                if body.more:
                    while body.more:
                        body = recv(zmq.NOBLOCK, copy=False)
                    self.drops[Drop.PART_COUNT] += 1
                else:
                    frames.append(body.bytes)
        except zmq.Again:
            pass
        if frames:
            self._mute = 0
        return frames

    def send(self, frame: bytes) -> bool:
        """Queue a frame for the curator, without waiting.

        Returns:
            Whether it was queued: False if there is no connection, or its queue is full. True does not
                promise delivery.

        Raises:
            LocalProtocolError: The frame is over `MAX_TO_CURATOR_BYTES`.
        """
        check_frame(frame, MAX_TO_CURATOR_BYTES)
        try:
            self.socket.send(frame)
        except zmq.Again:
            self.drops[Drop.QUEUE_FULL if self._connected else Drop.PEER_GONE] += 1
            return False
        return True

    def close(self) -> None:
        """Send what is queued, for at most `LINGER_MS`, then end sockets and context. Idempotent."""
        if self._closed:
            return
        self._closed = True
        # libzmq's own thread waits for room in a full monitor (libzmq issue 3575); disable_monitor then
        # never returns: a party that computed for minutes while its connection failed would hang here.
        self._events()
        self.socket.disable_monitor()
        self.monitor.close()  # disable_monitor leaves this end open, and the context would wait for it
        self.socket.close()
        self._context.term()
