"""ZMTP 3.1 with CURVE (RFC 23 and 26), by hand: a peer with a valid key that sends what no library would.

A `CurvePeer` encrypts frames and commands alike, writes them in one piece, and hangs up with a reset.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from types import TracebackType
from typing import Self

import nacl.bindings as sodium
import zmq.utils.z85

from hushbid.protocol.runtime.keys import KeyPair, PublicKey

__all__ = ["CurvePeer", "greeting"]

_COMMAND, _LONG = 0x04, 0x02
_PROPERTIES = b"\x0bSocket-Type" + struct.pack(">I", 6) + b"DEALER"


def greeting(mechanism: bytes) -> bytes:
    """The 64 bytes that begin a connection of ZMTP 3.1."""
    return b"\xff" + bytes(8) + b"\x7f\x03\x01" + mechanism.ljust(20, b"\0") + bytes(32)


def _framed(body: bytes, flags: int) -> bytes:
    if len(body) < 256:
        return bytes([flags, len(body)]) + body
    return bytes([flags | _LONG]) + struct.pack(">Q", len(body)) + body


class CurvePeer:
    """A connection with a key of the roster, after its handshake.

    Args:
        port: The curator's, on this machine.
        curator: Its key.
        pair: Ours.
        routing_id: The routing id to claim.
        receive_buffer: Bytes of the kernel's buffer, for a peer that reads nothing; None: the default.
    """

    def __init__(
        self,
        port: int,
        curator: PublicKey,
        pair: KeyPair,
        *,
        routing_id: bytes = b"",
        receive_buffer: int | None = None,
    ) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(10.0)
        self.socket.connect(("127.0.0.1", port))
        self._nonce = 0
        self._shake_hands(
            zmq.utils.z85.decode(curator.curve), zmq.utils.z85.decode(pair.curve_secret), routing_id
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def _shake_hands(self, server: bytes, secret: bytes, routing_id: bytes) -> None:
        public = sodium.crypto_scalarmult_base(secret)
        short_public, short_secret = sodium.crypto_box_keypair()
        self.socket.sendall(greeting(b"CURVE"))
        self._read(64)
        nonce = self._next_nonce()
        box = sodium.crypto_box(bytes(64), b"CurveZMQHELLO---" + nonce, server, short_secret)
        self._write_command(b"\x05HELLO\x01\x00" + bytes(72) + short_public + nonce + box)
        welcome = self._read_command()
        plain = sodium.crypto_box_open(welcome[24:], b"WELCOME-" + welcome[8:24], server, short_secret)
        short_server, cookie = plain[:32], plain[32:]
        vouch_nonce = os.urandom(16)
        vouch = sodium.crypto_box(short_public + server, b"VOUCH---" + vouch_nonce, short_server, secret)
        about = _PROPERTIES + b"\x08Identity" + struct.pack(">I", len(routing_id)) + routing_id
        nonce = self._next_nonce()
        box = sodium.crypto_box(
            public + vouch_nonce + vouch + about, b"CurveZMQINITIATE" + nonce, short_server, short_secret
        )
        self._write_command(b"\x08INITIATE" + cookie + nonce + box)
        if not self._read_command().startswith(b"\x05READY"):
            raise ConnectionRefusedError("The curator did not take our key.")
        self._shared = sodium.crypto_box_beforenm(short_server, short_secret)

    def _next_nonce(self) -> bytes:
        self._nonce += 1
        return struct.pack(">Q", self._nonce)

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            more = self.socket.recv(size - len(found))
            if not more:
                raise ConnectionResetError("The curator hung up.")
            found += more
        return found

    def _write_command(self, body: bytes) -> None:
        self.socket.sendall(_framed(body, _COMMAND))

    def _read_command(self) -> bytes:
        flags, size = self._read(2)
        if flags & _LONG:
            (size,) = struct.unpack(">Q", bytes([size]) + self._read(7))
        return self._read(size)

    def message(self, body: bytes, *, more: bool = False, command: bool = False) -> bytes:
        """The bytes of a message's part, or of a command, on the line."""
        nonce = self._next_nonce()
        plain = bytes([more | command << 1]) + body
        box = sodium.crypto_box_afternm(plain, b"CurveZMQMESSAGEC" + nonce, self._shared)
        return _framed(b"\x07MESSAGE" + nonce + box, 0)

    def write(self, data: bytes) -> None:
        """Send bytes as they are.

        Raises:
            OSError: The connection has ended, or takes nothing for ten seconds.
        """
        self.socket.sendall(data)

    def reset(self) -> None:
        """Hang up without a word: unread bytes are lost on either side."""
        with contextlib.suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
