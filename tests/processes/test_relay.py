"""The relay that stands in for a network: what passes it, how late, and when it ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import psutil
import pytest

from hushbid.lab.bench.relay import relay
from hushbid.protocol.errors import ConnectionFailed
from hushbid.running.fork_server import party_environment
from tests.processes.cluster import PATIENCE, free_port

DELAY = 0.05
MANY = np.random.default_rng(0).bytes(3_000_000)
"""More than sockets hold."""


def connected(address: str) -> socket.socket:
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def answers(address: str) -> bool:
    try:
        connected(address).close()
    except ConnectionRefusedError:
        return False
    return True


def listening(port: int) -> socket.socket:
    listener = socket.create_server(("127.0.0.1", port))
    listener.settimeout(PATIENCE)
    return listener


def accepted(listener: socket.socket) -> socket.socket:
    found, _ = listener.accept()
    found.settimeout(PATIENCE)
    return found


def received(source: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size and (data := source.recv(min(65536, size - len(found)))):
        found += data
    return bytes(found)


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


@contextmanager
def both_ends(delay: float = DELAY) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A party's end of a connection through a relay, and the curator's."""
    port = free_port()
    with (
        listening(port) as listener,
        relay(f"tcp://127.0.0.1:{port}", delay=delay) as address,
        connected(address) as party,
        accepted(listener) as curator,
    ):
        yield party, curator


def test_bytes_arrive_whole_and_in_order_in_both_directions_at_once() -> None:
    with both_ends() as ends:
        party, curator = ends
        got: dict[str, bytes] = {}

        def listen() -> None:
            got["curator"] = received(curator, len(MANY))

        threads = [threading.Thread(target=end.sendall, args=(MANY,), daemon=True) for end in ends]
        threads.append(threading.Thread(target=listen, daemon=True))
        for thread in threads:
            thread.start()
        got["party"] = received(party, len(MANY))
        for thread in threads:
            thread.join(PATIENCE)
        assert got["party"] == MANY
        assert got["curator"] == MANY


@pytest.mark.parametrize("upwards", [True, False], ids=["to the curator", "to the party"])
def test_no_chunk_arrives_before_its_delay(upwards: bool) -> None:
    with both_ends() as (party, curator):
        source, sink = (party, curator) if upwards else (curator, party)
        arrived: list[float] = []

        def listen() -> None:
            for number in range(20):
                assert received(sink, 1) == bytes([number])
                arrived.append(time.monotonic())

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        sent = []
        for number in range(20):
            sent.append(time.monotonic())
            source.sendall(bytes([number]))
            time.sleep(0.003)  # the first are under way still
        listener.join(PATIENCE)
        assert len(arrived) == 20
        assert min(late - early for early, late in zip(sent, arrived, strict=True)) >= DELAY


@pytest.mark.parametrize("upwards", [True, False], ids=["the party closes", "the curator closes"])
def test_closing_one_side_closes_the_other_after_what_was_sent(upwards: bool) -> None:
    with both_ends() as (party, curator):
        source, sink = (party, curator) if upwards else (curator, party)
        source.sendall(b"farewell")
        closed = time.monotonic()
        source.close()
        assert received(sink, 1000) == b"farewell"  # and then the end
        assert time.monotonic() - closed >= DELAY


def test_what_is_sent_to_a_curator_that_is_not_there_yet_reaches_it() -> None:
    port = free_port()
    with relay(f"tcp://127.0.0.1:{port}", delay=DELAY) as address, connected(address) as party:
        party.sendall(b"hello")
        time.sleep(2 * DELAY)
        with listening(port) as listener, accepted(listener) as curator:
            assert received(curator, 5) == b"hello"
            curator.sendall(b"welcome")
            assert received(party, 7) == b"welcome"


def test_the_relay_ends_with_the_bench_that_is_interrupted() -> None:
    before = children()

    def interrupted() -> None:
        with both_ends():
            assert len(children() - before) == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert children() <= before


def test_the_relay_ends_with_a_bench_that_is_killed() -> None:
    bench = (
        "import time\n"
        "from hushbid.lab.bench.relay import relay\n"
        "with relay('tcp://127.0.0.1:1', delay=0.05) as address:\n"
        "    print(address, flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-P", "-c", bench]
    with subprocess.Popen(command, env=party_environment(os.environ), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        connected(address).close()
        process.kill()
    deadline = time.monotonic() + PATIENCE
    while answers(address):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_relay_that_cannot_start_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {"/bin/false": "ended before it listened", "/nowhere/python": "cannot be started"}
    for program, what in programs.items():
        monkeypatch.setattr("sys.executable", program)
        with pytest.raises(ConnectionFailed, match=what), relay("tcp://127.0.0.1:1", delay=DELAY):
            pass
