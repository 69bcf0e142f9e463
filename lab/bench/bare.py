"""The bare ceiling: a ROUTER/DEALER scatter-gather between processes that does nothing but pass bytes.

It is plain pyzmq as its manual shows it, without hushbid's code: the difference to a real session is
hushbid's own cost. The owners' processes run this module as a script; it imports nothing but pyzmq.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import zmq

if TYPE_CHECKING:
    from hushbid.lab.bench.spent import RoundCost

__all__ = ["bare_rounds"]

PATIENCE_MS: Final = 30_000
WARM_UP_ROUNDS: Final = 50
_END: Final = b""


def bare_rounds(owners: int, rounds: int, broadcast_bytes: int, reply_bytes: int, curve: bool) -> RoundCost:
    """Measure a bare scatter-gather over TCP on this machine: its cost for this process and the owners'.

    In a round each owner, a process of its own, gets one frame and returns one. `rounds` are timed after a
    short warm-up; `curve` says whether to encrypt, as a session does.

    Raises:
        ValueError: If `owners`, `rounds` or `broadcast_bytes` is not positive.
        TimeoutError: If an owner's process does not answer.
    """
    from hushbid.lab.bench.spent import RoundCost, processor_seconds

    if min(owners, rounds, broadcast_bytes) < 1:
        raise ValueError("owners, rounds and broadcast_bytes are at least 1")
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.linger = 1000
    socket.rcvtimeo = PATIENCE_MS
    server_key = b""
    if curve:
        server_key, secret = zmq.curve_keypair()
        socket.curve_server, socket.curve_publickey, socket.curve_secretkey = True, server_key, secret
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    # -P: this file's directory must not come before the standard library.
    command = [sys.executable, "-P", str(Path(__file__).resolve())]
    command += [f"tcp://127.0.0.1:{port}", str(reply_bytes), server_key.decode("ascii")]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes += [subprocess.Popen(command, stdin=subprocess.DEVNULL) for _ in range(owners)]
        routes = [socket.recv_multipart()[0] for _ in range(owners)]
        broadcast = b"w" * broadcast_bytes
        _scatter_gather(socket, routes, broadcast, min(rounds, WARM_UP_ROUNDS))
        parties = [os.getpid(), *(process.pid for process in processes)]
        spent, began = sum(filter(None, map(processor_seconds, parties))), time.perf_counter()
        _scatter_gather(socket, routes, broadcast, rounds)
        seconds = time.perf_counter() - began
        processor = sum(filter(None, map(processor_seconds, parties))) - spent
        for route in routes:
            socket.send_multipart([route, _END])
        for process in processes:
            process.wait(PATIENCE_MS / 1000)
        return RoundCost(rounds, seconds, processor)
    except (zmq.Again, subprocess.TimeoutExpired):
        raise TimeoutError(f"an owner's process did not answer within {PATIENCE_MS / 1000:g} s") from None
    finally:
        socket.close()
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
        context.term()


def _scatter_gather(socket: zmq.Socket[bytes], routes: list[bytes], broadcast: bytes, rounds: int) -> None:
    for _ in range(rounds):
        for route in routes:
            socket.send_multipart([route, broadcast])
        for _ in routes:
            socket.recv_multipart()


def _answer(address: str, reply_bytes: int, server_key: bytes) -> None:
    """An owner's process: greet, then answer every frame until an empty one comes."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.linger = 0
    socket.rcvtimeo = PATIENCE_MS  # No owner outlives a benchmark that was killed.
    if server_key:
        socket.curve_serverkey = server_key
        socket.curve_publickey, socket.curve_secretkey = zmq.curve_keypair()
    socket.connect(address)
    socket.send(b"hello")
    reply = b"b" * reply_bytes
    with contextlib.suppress(zmq.Again):
        while socket.recv() != _END:
            socket.send(reply)
    socket.close()
    context.term()


if __name__ == "__main__":
    _answer(sys.argv[1], int(sys.argv[2]), sys.argv[3].encode("ascii"))
