"""The common part of both ends of a connection: the form of an address, and the options of a socket.

Times are milliseconds unless stated otherwise, as in ZeroMQ. TCP detects a dead machine or a cut cable, by
keepalives on an idle connection and a limit on unacknowledged data. Neither detects a process that spins; the
parties' own messages do. ZMTP's heartbeats stay off: with them libzmq 4.3.5 aborts a process whose peer fills
its queue and hangs up (`Assertion failed: !_io_error`, libzmq issue 4364), so any peer could end the curator.
"""

from __future__ import annotations

import errno
import ipaddress
import re
import socket as sockets
import struct
from dataclasses import dataclass
from typing import Final

import zmq

from hushbid.protocol.errors import ConfigError, ConnectionFailed, LocalProtocolError
from hushbid.protocol.limits import MAX_FRAME_BYTES, MAX_TARGET_BYTES, PEER_QUEUE_FRAMES
from hushbid.protocol.wire.codec import HEADER_BYTES

__all__ = [
    "MAX_TO_CURATOR_BYTES",
    "Address",
    "check_frame",
    "configure",
    "connection_failed",
    "contact_address",
    "is_loopback_ip",
    "listen_address",
    "parse_address",
    "resolved",
]

MAX_TO_CURATOR_BYTES: Final = HEADER_BYTES + MAX_TARGET_BYTES
"""Longest frame towards the curator, which the consumer's target can be; deliveries go the other way."""

LINGER_MS: Final = 2_000
"""How long closing waits for unsent frames."""

HANDSHAKE_MS: Final = 10_000
"""How long a connection may take from TCP to the end of authentication."""

KEEPALIVE_IDLE_S: Final = 15
KEEPALIVE_INTERVAL_S: Final = 5
KEEPALIVES: Final = 3
"""An idle connection ends after so many unanswered keepalives: 30 s with the idle time before them."""

UNACKNOWLEDGED_MS: Final = 30_000
"""How long bytes may stay unacknowledged, or a peer take nothing, before a connection ends (Linux)."""

CURVE_OVERHEAD_BYTES: Final = 33
"""Bytes that CURVE's MESSAGE command adds to a frame (RFC 26): name 8, nonce 8, authenticator 16, flags 1."""

MONITOR_EVENT: Final = struct.Struct("=HI")
"""The first part of a monitor's message: event, and value or descriptor. `zmq.utils.monitor`, which takes it
apart too, imports asyncio: a twentieth of a party's start.
"""

_ADDRESS = re.compile(
    r"tcp://(?P<host>\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|\*|[\w.-]+):(?P<port>\*|\d{1,5})", re.ASCII
)


@dataclass(frozen=True)
class Address:
    """Where a socket binds or connects: ``tcp://host:port``.

    Args:
        text: The whole, as ZeroMQ takes it.
        host: The host without brackets.
        port: ``*`` lets the system choose one for a bind.
    """

    text: str
    host: str
    port: str

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine is behind it."""
        return self.host == "localhost" or is_loopback_ip(self.host)

    @property
    def is_wildcard(self) -> bool:
        """Whether it means all of a machine's addresses, so that nobody can connect to it."""
        return self.host in ("*", "0.0.0.0", "::")  # noqa: S104 - recognised, not bound

    @property
    def is_name(self) -> bool:
        """Whether the host has to be looked up."""
        return not self.is_wildcard and _version(self.host) is None

    @property
    def is_ipv4(self) -> bool:
        return _version(self.host) == 4


def parse_address(text: str) -> Address:
    """Read ``tcp://host:port``; an IPv6 host is in brackets.

    Raises:
        ConfigError: The text is not of this form.
    """
    match = _ADDRESS.fullmatch(text)
    if match is None or (match["port"] != "*" and int(match["port"]) > 65535):
        raise ConfigError(
            f"{text!r} is not an address.",
            advice="Write tcp://HOST:PORT, an IPv6 host in brackets: tcp://[::1]:5555.",
        )
    return Address(text, match["host"].strip("[]"), match["port"])


def contact_address(text: str) -> Address:
    """Read an address at which others are to find the curator.

    Raises:
        ConfigError: The text is no address, or one to listen at only.
    """
    where = parse_address(text)
    if where.port == "*" or where.is_wildcard:
        raise ConfigError(
            f"{where.text} is an address to listen at, and none to connect to.",
            advice="Give the curator's host and port with --address, or in the session file's [network].",
        )
    return where


def listen_address(contact: str) -> str:
    """The default address at which a curator listens, given the one at which others reach it.

    A name is the others' way to this machine: it may belong to a router in front of it, and many systems map
    their own name to a loopback address. So the curator listens at all addresses, except with ``localhost``.

    Raises:
        ConfigError: It is no address.
    """
    where = parse_address(contact)
    if not where.is_name:
        return contact
    return f"tcp://{'127.0.0.1' if where.is_loopback else '*'}:{where.port}"


def resolved(where: Address) -> tuple[Address, ...]:
    """The present numeric addresses of a host, in the order in which the system would try them.

    ZeroMQ looks a name up itself, but tries only the first address, and an IPv6 one if there are both kinds:
    it would never find a curator that listens at the other.

    Returns:
        The address itself if it is numeric; nothing if the name has none.
    """
    if not where.is_name:
        return (where,)
    try:
        found = sockets.getaddrinfo(where.host, int(where.port), type=sockets.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    hosts = dict.fromkeys(str(address[0]) for _, _, _, _, address in found)
    return tuple(
        parse_address(f"tcp://{f'[{host}]' if ':' in host else host}:{where.port}") for host in hosts
    )


def _version(host: str) -> int | None:
    """4 or 6 for a numeric address; None for a name."""
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None


def is_loopback_ip(text: str) -> bool:
    """Whether a numeric address, even an IPv4 one mapped into IPv6, is this machine's loopback."""
    try:
        ip = ipaddress.ip_address(text)
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback


def configure(socket: zmq.Socket[bytes], where: Address, *, secure: bool, longest: int) -> None:
    """Set the common options of both ends; call it before bind or connect.

    Args:
        longest: Bytes of the longest accepted frame; a longer one costs its sender the connection.
    """
    # MAXMSGSIZE is held against what is on the wire: without the allowance the largest frame, once encrypted,
    # would be refused.
    socket.set(zmq.MAXMSGSIZE, longest + (CURVE_OVERHEAD_BYTES if secure else 0))
    socket.set(zmq.SNDHWM, PEER_QUEUE_FRAMES)
    # No waiting in send: a peer that reads nothing would stall its round for all the others.
    socket.set(zmq.SNDTIMEO, 0)
    socket.set(zmq.LINGER, LINGER_MS)
    socket.set(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
    socket.set(zmq.TCP_KEEPALIVE, 1)
    socket.set(zmq.TCP_KEEPALIVE_IDLE, KEEPALIVE_IDLE_S)
    socket.set(zmq.TCP_KEEPALIVE_INTVL, KEEPALIVE_INTERVAL_S)
    socket.set(zmq.TCP_KEEPALIVE_CNT, KEEPALIVES)
    socket.set(zmq.TCP_MAXRT, UNACKNOWLEDGED_MS)
    # On an IPv6 socket an IPv4 address would be bound, and shown, as one mapped into IPv6:
    # tcp://[::ffff:127.0.0.1]:5555.
    socket.set(zmq.IPV6, 0 if where.is_ipv4 else 1)


def check_frame(frame: bytes, longest: int = MAX_FRAME_BYTES) -> None:
    """Refuse to send a frame for which the receiver would hang up.

    Raises:
        LocalProtocolError: The frame is over `longest` bytes.
    """
    if len(frame) > longest:
        raise LocalProtocolError(
            f"A frame of {len(frame)} bytes was to be sent; its receiver takes {longest} at most.",
            advice="This is a bug in hushbid: please report it.",
        )


def connection_failed(verb: str, address: Address, error: zmq.ZMQError) -> ConnectionFailed:
    """The error for a bind or connect that ZeroMQ refused, with what to do about it."""
    advice = {
        errno.EADDRINUSE: "Stop the process that uses this port, or choose another port.",
        errno.EADDRNOTAVAIL: "This machine has no such address: bind to one of its own, or to tcp://*:PORT.",
        errno.ENODEV: "This machine has no such interface: write a numeric address, or tcp://*:PORT.",
        errno.EACCES: "Ports below 1024 are for the administrator: choose a higher one.",
    }.get(error.errno or 0, "Check the address.")
    why = zmq.strerror(error.errno or 0)  # the exception's own text repeats the address
    return ConnectionFailed(f"Cannot {verb} {address.text}: {why}.", advice=advice)
