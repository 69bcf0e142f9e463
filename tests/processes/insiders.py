"""Attacks by someone with an owner's key, each in a process of its own: see `ATTACKS`.

python -m tests.processes.insiders KIND PORT CURATORS-KEY SECRET-KEY-FILE SECONDS
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

import zmq

from hushbid.protocol.limits import SMALL_FRAME_BYTES
from hushbid.protocol.runtime.keys import PublicKey, read_secret
from hushbid.protocol.runtime.network.transport import MAX_TO_CURATOR_BYTES
from hushbid.protocol.wire.codec import Frame, encode_frame, encode_message
from hushbid.protocol.wire.messages import Beat
from tests.processes.curve import CurvePeer

_BEAT = encode_frame(Frame(bytes(16), 0, 0, encode_message(Beat())))
_PART = bytes(SMALL_FRAME_BYTES // 2)
_FIRST_ROUTE = 0x6B8B4567
"""Where a ROUTER's ids begin in a process that has not seeded C's `rand` (glibc)."""


class Insider:
    """An owner that does what it likes."""

    def __init__(self, port: int, curator: PublicKey, key: Path, until: float) -> None:
        self._port = port
        self._address = f"tcp://127.0.0.1:{port}"
        self._curator = curator
        self._pair = read_secret(key)
        self._until = until
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._context.max_sockets = 5_000

    def more(self) -> bool:
        return time.monotonic() < self._until

    def connect(self, **options: int | bytes) -> zmq.Socket[bytes]:
        dealer = self._context.socket(zmq.DEALER)
        dealer.linger, dealer.sndtimeo = 0, 100
        dealer.curve_publickey, dealer.curve_secretkey = self._pair.curve_public, self._pair.curve_secret
        dealer.curve_serverkey = self._curator.curve
        dealer.reconnect_ivl = 10
        for name, value in options.items():
            setattr(dealer, name, value)
        dealer.connect(self._address)
        return dealer

    def close(self) -> None:
        self._context.destroy(linger=0)

    def endless(self) -> None:
        """Messages of 128 MB in parts that are short enough, one after a frame and one without."""
        dealers = [self.connect(), self.connect()]
        dealers[0].send(_BEAT)
        for dealer in dealers:
            for _ in range(128 * 2**20 // len(_PART)):
                dealer.send(_PART, zmq.SNDMORE)
            dealer.send(b"")
        self._until += 1.5  # encrypting takes its time
        while self.more():
            time.sleep(0.1)

    def crowd(self) -> None:
        """Connections that each give signs of life."""
        dealers = [self.connect() for _ in range(40)]
        while self.more():
            for dealer in dealers:
                with contextlib.suppress(zmq.Again):
                    dealer.send(_BEAT, zmq.NOBLOCK)
            time.sleep(0.1)

    def pings(self) -> None:
        """More frames than are taken at once, ZMTP's PING among them, on one connection."""
        while self.more():
            with contextlib.suppress(OSError), CurvePeer(self._port, self._curator, self._pair) as peer:
                frames = [peer.message(_BEAT) for _ in range(60)]
                frames[20:20] = [peer.message(b"\4PING\0\0", command=True)]
                peer.write(b"".join(frames))
                peer.reset()

    def claims(self) -> None:
        """Connections with the routing ids that the next ones are to get."""
        claimed = [
            self.connect(routing_id=b"\0" + (_FIRST_ROUTE + number).to_bytes(4)) for number in range(100)
        ]
        while self.more():
            with self.connect() as dealer, contextlib.suppress(zmq.Again):
                dealer.send(_BEAT)
            time.sleep(0.1)
        assert claimed

    def silence(self) -> None:
        """Silent connections."""
        dealers = [self.connect() for _ in range(1_500)]
        while self.more():
            time.sleep(0.1)
        assert dealers

    def beats(self) -> None:
        """Signs of life on ever new connections: a sender of too many loses the one before."""
        while self.more():
            with self.connect(reconnect_ivl=-1) as dealer, contextlib.suppress(zmq.Again):
                while self.more():
                    dealer.send(_BEAT)

    def oversized(self) -> None:
        frame = bytes(MAX_TO_CURATOR_BYTES)
        with self.connect() as dealer:
            while self.more():
                with contextlib.suppress(zmq.Again):
                    dealer.send(frame)

    def nested(self) -> None:
        """Lists in lists in lists, on ever new connections."""
        frame = encode_frame(Frame(bytes(16), 0, 0, b"\x91" * (SMALL_FRAME_BYTES - 100)))
        while self.more():
            with self.connect() as dealer:
                with contextlib.suppress(zmq.Again):
                    dealer.send(frame)
                dealer.poll(100)


ATTACKS: dict[str, Callable[[Insider], None]] = {
    "claimed routing ids": Insider.claims,  # first: the others use ids up
    "endless messages": Insider.endless,
    "many connections": Insider.crowd,
    "pings": Insider.pings,
    "silent connections": Insider.silence,
    "signs of life": Insider.beats,
    "oversized frames": Insider.oversized,
    "nested frames": Insider.nested,
}


def main(kind: str, port: str, curator: str, key: str, seconds: str) -> None:
    insider = Insider(int(port), PublicKey(curator), Path(key), time.monotonic() + float(seconds))
    ATTACKS[kind](insider)
    insider.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
