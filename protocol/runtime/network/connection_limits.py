"""How many connections the curator keeps, and how much memory each may take.

libzmq bounds a frame. It bounds neither connections nor the parts of an endless message; and it must not
bound the frames that wait to be taken (`RouterEndpoint`). So a thread follows the ROUTER's monitor, which
names the descriptor of every connection that comes and goes, and shuts down (shutdown(2)) those over a limit;
libzmq then cleans up as after any connection. A connection is *unnamed* until a frame has been taken from it,
which takes a key of the roster:

- Unnamed ones may be as many as `MAX_UNNAMED_BYTES` can hold, and as descriptors are left for
  (`descriptors`). With one more, the oldest of the network with most of them is cut. So a
  holder of many loses them to newcomers from elsewhere, and a peer that authenticates promptly is done before
  its turn comes.
- A peer has at most `MAX_CONNECTIONS_PER_PEER`; its newest stay.
- Bytes that have arrived on a connection outside of taken frames are bounded. A peer that is cut for that may
  not return before the socket is found empty; otherwise each connection would bring more.

ZMTP's framing is not authenticated: whoever can write into a peer's TCP stream can garble it, and libzmq ends
the connection. The thread tells the loop of such ends, so that the peer counts as gone at once
(`ConnectionLimits.broken`). A garbled length may be one that libzmq takes: then everything that follows is
the rest of one frame, and only the loop can see that its peer is silent (`ConnectionLimits.cut_if_stalled`).

libzmq may reuse a closed descriptor at once for another connection. So a connection is only shut down if it
has the cookie that the kernel gave it when it was accepted. And a frame's descriptor names a connection only
if no earlier connection can have sent the frame. What those sent is queued when libzmq closes the descriptor,
and has been taken once the socket was found empty after the next connection was accepted
(`ConnectionLimits.drained`). Until then a frame names none, unless its descriptor is a new one.

In a flood the thread lags behind libzmq by at most `UNREAD_EVENTS` events: then libzmq waits. The thread
takes turns with the loop at the interpreter's lock, so it makes few calls that release it.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import struct
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import zmq

from hushbid.protocol import limits
from hushbid.protocol.runtime.network.transport import CURVE_OVERHEAD_BYTES, MONITOR_EVENT
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import log

__all__ = ["UNREAD_EVENTS", "ConnectionLimits", "Cut"]

UNREAD_EVENTS: Final = 1_001
"""The monitor's queue: libzmq's fixed 1,000, and one."""

LOOK_MS: Final = 100
"""How often the bytes of all unnamed connections are checked, and in turn those of peers."""
LOOK_SECONDS: Final = 0.005
"""Duration of a check of peers' connections, at least one: a connection costs 2 to 5 µs, during which the
loop waits for the interpreter's lock. With 10,000, each peer is checked once a second.
"""
_GREETING_BYTES: Final = 64 * 2**10
"""More than the handshake and the overhead of a first frame."""
_SMALL_FRAMES_BYTES: Final = 2**20
"""More than hours of signs of life, which arrive while the loop is busy."""
_SHORT_HEADER_BYTES: Final = 2
_LONG_HEADER_BYTES: Final = 9
"""ZMTP's headers of frames of less than 256 bytes, and of longer ones."""
_TRICKLE_BYTES: Final = 1024
"""More than the signs of life of a beat, encrypted; a frame that is under way brings more."""
_TRICKLES: Final = 2
"""In so many beats in a row: a peer that has just come back has bytes without a frame in one at most."""
_ENDPOINT: Final = "inproc://connections"
_SO_COOKIE: Final = 57
"""Linux's cookie: 8 bytes that no other socket has had since the machine started."""
_TCP_INFO_BYTES: Final = 136
_ESTABLISHED: Final = 1
"""``tcpi_state``, the first byte, if neither side has ended the connection."""
_LAST_RECEIVED: Final = 52
"""Offset of ``tcpi_last_data_recv``, in milliseconds."""
_BREACH_MS: Final = 5_000
"""After a breach, data came just now; a peer given up for silence has been silent for longer
(`transport`).
"""
_BYTES_RECEIVED: Final = 128
"""Offset of ``tcpi_bytes_received`` in Linux's ``struct tcp_info``."""


class Cut(StrEnum):
    """Why a connection was cut; the keys of `ConnectionLimits.cuts`."""

    CROWD = "crowd"
    """Too many connections without a taken frame."""
    SUPERSEDED = "superseded"
    """Its peer had newer connections."""
    FLOOD = "flood"
    """More bytes than a frame may have, without a frame; or more than are taken."""
    FRAMING = "framing"
    """ZeroMQ ended it: a frame over the limit, bytes that are not its protocol, or that do not decrypt."""
    STALLED = "stalled"
    """Its peer was silent: bytes came, and never the end of a frame."""
    GAP = "gap"
    """A numbered frame came, and not the one before it."""


@dataclass(slots=True, eq=False)
class _Stream:
    """An accepted connection."""

    descriptor: int
    cookie: bytes
    network: str
    number: int
    """Number of connections accepted so far, with it; 0 if its descriptor is a new one."""
    route: bytes | None = None
    peer: str | None = None
    taken: int = 0
    """Bytes of frames taken from it, as on the line; only the loop writes it."""
    looked: int = 0
    """`taken` at the last look."""
    emptied: int = 0
    """Number of times the socket had been found empty by then."""
    accounted: int = 0
    """Number of arrived bytes that are no longer held."""
    asked: int = -1
    """`taken` when it was last asked whether the connection has stalled."""
    seen: int = 0
    """Number of bytes that had arrived by then."""
    trickles: int = 0
    """How often in a row few had arrived since it was asked before."""
    kept: int = -1
    """A descriptor of our own that shows how the connection ended; -1: none."""


class ConnectionLimits:
    """Follows the connections of one ROUTER. Make it before the socket binds; close the socket before `join`.

    Args:
        longest: Bytes of the longest frame that the socket takes.
        strangers: Most unnamed connections.
        barred: Gets the names of peers that may not connect, and loses them again.
    """

    def __init__(self, router: zmq.Socket[bytes], *, longest: int, strangers: int, barred: set[str]) -> None:
        self._barred = barred
        self.cuts: Counter[str] = Counter()
        """Connections that were cut, by `Cut`."""
        self.accepted = 0
        """Number of accepted connections, for `drained`."""
        self.broken: deque[tuple[bytes, str | None]] = deque()
        """Route and peer of connections that ended as `Cut.FRAMING`, for the loop to take."""
        self.failures = 0
        """Number of failures to follow the connections; each costs a limit at most."""
        self._most_unnamed = max(
            limits.MIN_UNNAMED_CONNECTIONS,
            min(strangers, limits.MAX_UNNAMED_BYTES // longest),
        )
        self._most_unnamed_bytes = longest + _GREETING_BYTES
        self._most_untaken_bytes = limits.MAX_HELD_PER_PEER * longest + _SMALL_FRAMES_BYTES
        self._lock = threading.Lock()
        self._streams: dict[int, _Stream] = {}
        self._unnamed: defaultdict[str, dict[int, _Stream]] = defaultdict(dict)
        """By network, in order of arrival."""
        self._named: dict[bytes, _Stream] = {}
        self._of_peer: defaultdict[str, list[_Stream]] = defaultdict(list)
        self._drained = 0
        self._emptied = 0
        self._overhead = CURVE_OVERHEAD_BYTES if router.get(zmq.CURVE_SERVER) else 0
        self._descriptors: set[int] = set()
        """Descriptors that connections have had."""
        self._unlooked: list[_Stream] = []
        router.monitor(_ENDPOINT, zmq.Event.ACCEPTED | zmq.Event.DISCONNECTED)
        monitor = router.context.socket(zmq.PAIR)
        monitor.rcvhwm, monitor.rcvtimeo = 1, LOOK_MS
        monitor.connect(_ENDPOINT)
        self._thread = threading.Thread(
            target=self._follow, args=(monitor,), name="hushbid-connections", daemon=True
        )
        self._thread.start()

    def took(self, route: bytes, frame: zmq.Frame, peer: str | None) -> None:
        """Note that a frame was taken from a connection.

        Args:
            route: The ROUTER's name for the connection.
            peer: The party whose key the connection has; None without security.
        """
        size = len(frame) + self._overhead
        size += _SHORT_HEADER_BYTES if size < 256 else _LONG_HEADER_BYTES
        stream = self._named.get(route)
        if stream is not None:
            stream.taken += size
            return
        with self._lock:
            # Not there if its end was noted before its last frames were taken.
            stream = self._streams.get(int(frame.get(zmq.SRCFD)))
            if stream is None:
                return
            stream.taken += size  # most likely
            if stream.number <= self._drained:
                self._name(stream, route, peer)

    def drained(self, accepted: int) -> None:
        """Note that the socket was found empty.

        Args:
            accepted: The value of `accepted` before the socket was asked.
        """
        self._drained = accepted
        self._emptied += 1
        if self._barred:
            self._barred.clear()

    def bar(self, peer: str | None) -> None:
        """Refuse a peer's connections until the socket is found empty."""
        if peer is not None:
            self._barred.add(peer)

    def cut(self, route: bytes, why: Cut) -> bool:
        """Cut a connection; return whether it had not ended yet."""
        with self._lock:
            stream = self._named.get(route)
            if stream is None:
                return False
            self._cut(stream, why)
            return True

    def cut_if_stalled(self, route: bytes) -> bool:
        """Cut a connection on which bytes trickle in, and no frame does; return whether it was cut.

        Ask once per beat, and of silent peers only. A peer cannot know that it is not heard: without this its
        signs of life would fill a frame of a garbled length for minutes.
        """
        with self._lock:
            stream = self._named.get(route)
            arrived = None if stream is None else _arrived(stream)
            if stream is None or arrived is None:
                return False
            came, stream.seen = arrived - stream.seen, arrived
            if stream.asked != stream.taken:
                stream.asked, stream.trickles = stream.taken, 0
            elif came:
                stream.trickles = stream.trickles + 1 if came <= _TRICKLE_BYTES else 0
            stalled = stream.trickles >= _TRICKLES
            if stalled:
                self._cut(stream, Cut.STALLED)
            return stalled

    def join(self) -> None:
        """Wait for the thread's end, after the socket was closed."""
        self._thread.join()

    def _name(self, stream: _Stream, route: bytes, peer: str | None) -> None:
        self._forget(stream)
        stream.route, stream.peer = route, peer
        with contextlib.suppress(OSError):
            stream.kept = os.dup(stream.descriptor)
        self._streams[stream.descriptor] = stream
        self._named[route] = stream
        if peer is not None:
            of_peer = self._of_peer[peer]
            of_peer.append(stream)
            if len(of_peer) > limits.MAX_CONNECTIONS_PER_PEER:
                self._cut(of_peer[0], Cut.SUPERSEDED)

    def _follow(self, monitor: zmq.Socket[bytes]) -> None:
        due = time.monotonic() + LOOK_MS / 1000
        try:
            while True:
                told: list[bytes] = []
                with contextlib.suppress(zmq.Again):
                    told = monitor.recv_multipart()  # the second part is our own address
                try:
                    if told:
                        event, descriptor = MONITOR_EVENT.unpack(told[0])
                        if event == zmq.Event.MONITOR_STOPPED:
                            break
                        with self._lock:
                            self._note(event, descriptor)
                    now = time.monotonic()
                    if now >= due:
                        due = now + LOOK_MS / 1000
                        with self._lock:
                            self._look()
                except Exception as error:  # who stopped reading here would keep every later peer out
                    self.failures += 1
                    if self.failures == 1:
                        log(LogEvent.CONNECTIONS_UNFOLLOWED, trace=True, reason=repr(error))
        except zmq.ContextTerminated:
            pass
        finally:
            monitor.close()
            with self._lock:
                for stream in list(self._streams.values()):
                    self._forget(stream)

    def _note(self, event: int, descriptor: int) -> None:
        known = self._streams.get(descriptor)
        if known is not None:
            if known.route is not None and _was_ended_here(known):
                self.cuts[Cut.FRAMING] += 1
                self.broken.append((known.route, known.peer))
            self._forget(known)
        if event != zmq.Event.ACCEPTED:
            return
        self.accepted += 1
        number = self.accepted if descriptor in self._descriptors else 0
        self._descriptors.add(descriptor)
        try:
            with _borrowed(descriptor) as connection:
                cookie = _cookie(connection)
                network = _network(connection.getpeername()[0])
        except OSError:  # it has ended already
            return
        stream = _Stream(descriptor, cookie, network, number)
        self._streams[descriptor] = stream
        self._unnamed[network][descriptor] = stream
        if len(self._streams) - len(self._named) > self._most_unnamed:
            crowd = max(self._unnamed.values(), key=len)
            self._cut(next(iter(crowd.values())), Cut.CROWD)

    def _look(self) -> None:
        """Cut connections on which more has arrived than frames account for."""
        for stream in [stream for crowd in self._unnamed.values() for stream in crowd.values()]:
            self._weigh(stream)
        over = time.monotonic() + LOOK_SECONDS
        if not self._unlooked:
            self._unlooked = list(self._named.values())
        while self._unlooked:
            stream = self._unlooked.pop()
            if self._streams.get(stream.descriptor) is stream:  # else it has ended since
                self._weigh(stream)
            if time.monotonic() >= over:
                break

    def _weigh(self, stream: _Stream) -> None:
        arrived = _arrived(stream)
        if arrived is None:
            return
        taken, stream.looked = stream.taken - stream.looked, stream.taken
        emptied, stream.emptied = self._emptied > stream.emptied, self._emptied
        if taken and emptied:
            # What came before that is taken, or of a message without end, and no frame follows such a one.
            stream.accounted = arrived
        else:
            stream.accounted = min(arrived, stream.accounted + taken)
        most = self._most_unnamed_bytes if stream.route is None else self._most_untaken_bytes
        if arrived - stream.accounted > most:
            self._cut(stream, Cut.FLOOD)

    def _cut(self, stream: _Stream, why: Cut) -> None:
        if why is Cut.FLOOD:
            self.bar(stream.peer)
        self.cuts[why] += 1
        self._forget(stream)
        with contextlib.suppress(OSError), _borrowed(stream.descriptor) as connection:
            if _cookie(connection) == stream.cookie:  # else it has ended already
                connection.shutdown(socket.SHUT_RDWR)

    def _forget(self, stream: _Stream) -> None:
        self._streams.pop(stream.descriptor, None)
        if stream.kept >= 0:
            os.close(stream.kept)
            stream.kept = -1
        if stream.route is not None:
            self._named.pop(stream.route, None)
        else:
            crowd = self._unnamed[stream.network]
            crowd.pop(stream.descriptor, None)
            if not crowd:
                del self._unnamed[stream.network]
        if stream.peer is not None:
            of_peer = self._of_peer[stream.peer]
            if stream in of_peer:
                of_peer.remove(stream)


def _arrived(stream: _Stream) -> int | None:
    """Number of bytes that have arrived; None if the connection has ended, which the monitor will tell."""
    try:
        with _borrowed(stream.descriptor) as connection:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    except OSError:
        return None
    if len(info) < _TCP_INFO_BYTES:
        return None  # a kernel older than 4.1 does not count
    return int(struct.unpack_from("=Q", info, _BYTES_RECEIVED)[0])


def _was_ended_here(stream: _Stream) -> bool:
    """Whether libzmq closed a connection that its peer holds open: after a breach of ZMTP.

    Its own descriptor is closed, or about to be; ours shows that the peer neither ended the connection nor
    was silent until TCP gave it up.
    """
    if stream.kept < 0:
        return False
    try:
        with _borrowed(stream.kept) as connection:
            if _cookie(connection) != stream.cookie:
                return False
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    except OSError:
        return False
    if len(info) < _LAST_RECEIVED + 4:
        return False
    silent_ms = struct.unpack_from("=I", info, _LAST_RECEIVED)[0]
    return info[0] == _ESTABLISHED and silent_ms < _BREACH_MS


@contextlib.contextmanager
def _borrowed(descriptor: int) -> Iterator[socket.socket]:
    """A socket of libzmq's as one of Python's, which does not close it; the given family does not matter."""
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=descriptor)
    try:
        yield connection
    finally:
        connection.detach()


def _cookie(connection: socket.socket) -> bytes:
    return connection.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8)


def _network(text: str) -> str:
    """The addresses that one stranger can have: an IPv4 address, or the /64 of an IPv6 address."""
    ip = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip, 64), strict=False))
