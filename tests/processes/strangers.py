"""Attacks by someone without a key of the roster, each in its own process: see `ATTACKS` and `main`."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator

import zmq

from hushbid.protocol.limits import SMALL_FRAME_BYTES
from hushbid.protocol.runtime.keys import PublicKey, new_keypair
from tests.processes.curve import greeting

_KEPT = 1_600
"""Connections that an attack holds open at a time."""
_MOST = 2_000
"""Connections after which an attack is over."""
_FEWER = 1_000
"""The same of one that takes more of the curator's time with each."""
_SLOW = 600
"""Connections whose greetings are slow."""


class Stranger:
    """Somebody who can reach the curator's port, and may know its public key."""

    def __init__(self, port: int, curator: PublicKey) -> None:
        self._port = port
        self._curator = curator
        self.connections = 0

    def _connect(self) -> socket.socket:
        self.connections += 1
        made = socket.create_connection(("127.0.0.1", self._port), timeout=1.0)
        made.settimeout(0.1)
        return made

    def _each(self, kept: int, most: int = _MOST) -> Iterator[socket.socket]:
        """Open so many connections as fast as possible; the newest so many stay open."""
        held: deque[socket.socket] = deque()
        while self.connections < most:
            with contextlib.suppress(OSError):
                held.append(self._connect())
                yield held[-1]
                if len(held) > kept:
                    held.popleft().close()

    def half_open(self) -> None:
        for _ in self._each(_KEPT):
            pass

    def churn(self) -> None:
        for _ in self._each(0):
            pass

    def garbage(self) -> None:
        for number, connection in enumerate(self._each(100)):
            said = (
                os.urandom(1000),
                b"GET / HTTP/1.1\r\nHost: curator\r\n\r\n",
                b"\x01\x00\x05\x00hello" * 9,
            )
            with contextlib.suppress(OSError):
                connection.sendall(said[number % len(said)])

    def slow(self) -> None:
        """Greetings a byte at a time."""
        held = [connection.dup() for connection in self._each(0, _SLOW)]
        for byte in range(16):
            for connection in held:
                with contextlib.suppress(OSError):
                    connection.sendall(greeting(b"CURVE")[byte : byte + 1])
            time.sleep(0.02)

    def bytes(self) -> None:
        """The longest command that is read, on every connection, without its last bytes."""
        flood = greeting(b"CURVE") + b"\x06" + struct.pack(">Q", SMALL_FRAME_BYTES)
        flood += bytes(SMALL_FRAME_BYTES - 100)
        for connection in self._each(_KEPT, _FEWER):
            with contextlib.suppress(OSError):
                connection.sendall(flood)

    def other_mechanisms(self) -> None:
        for number, connection in enumerate(self._each(100)):
            mechanism = (b"NULL", b"PLAIN", b"GSSAPI")[number % 3]
            with contextlib.suppress(OSError):
                connection.sendall(
                    greeting(mechanism) + b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"
                )

    def unregistered(self) -> None:
        """Handshakes with unregistered keys."""
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        held: deque[zmq.Socket[bytes]] = deque()
        while self.connections < _FEWER:
            pair = new_keypair()
            try:
                dealer = context.socket(zmq.DEALER)
            except zmq.ZMQError as error:
                if error.errno != errno.EMFILE:
                    raise
                # A context has 1,023 at most, and on a busy machine those that were closed take a while.
                time.sleep(0.01)
                continue
            dealer.linger = 0
            dealer.curve_publickey, dealer.curve_secretkey = pair.curve_public, pair.curve_secret
            dealer.curve_serverkey = self._curator.curve
            dealer.connect(f"tcp://127.0.0.1:{self._port}")
            self.connections += 1
            held.append(dealer)
            if len(held) > 200:
                held.popleft().close()
        context.destroy(linger=0)


ATTACKS: dict[str, Callable[[Stranger], None]] = {
    "half-open connections": Stranger.half_open,
    "churn": Stranger.churn,
    "garbage": Stranger.garbage,
    "slow greetings": Stranger.slow,
    "long commands": Stranger.bytes,
    "other mechanisms": Stranger.other_mechanisms,
    "unregistered keys": Stranger.unregistered,
}


def main(kind: str, port: str, curator: str) -> None:
    """Attack, and print how many connections were made."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    stranger = Stranger(int(port), PublicKey(curator))
    ATTACKS[kind](stranger)
    print(stranger.connections)


if __name__ == "__main__":
    main(*sys.argv[1:])
