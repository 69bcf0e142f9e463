"""Whom the curator's socket cuts, and whom it does not: real connections on loopback."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import zmq

from protocol.limits import MAX_CONNECTIONS_PER_PEER, MAX_UNNAMED_CONNECTIONS, SMALL_FRAME_BYTES
from protocol.runtime.connection_limits import Cut
from protocol.runtime.keys import KeyPair, new_keypair
from protocol.runtime.router import Arrival, Drop, RouterEndpoint

CURATOR, ALICE, BOB = (new_keypair() for _ in range(3))
DEADLINE_S = 20.0


class Door:
    """A curator's socket, and who comes to it."""

    def __init__(self) -> None:
        self.open = ExitStack()
        roster = {ALICE.public.text: "alice", BOB.public.text: "bob"}
        self.router = self.open.enter_context(
            RouterEndpoint("tcp://127.0.0.1:*", pair=CURATOR, roster=roster, longest=SMALL_FRAME_BYTES)
        )
        self.arrived: list[Arrival] = []

    def stranger(self, source: str) -> socket.socket:
        """A connection from an address of this machine's, on which nothing is said."""
        where = ("127.0.0.1", int(self.router.address.rpartition(":")[2]))
        made = socket.create_connection(where, timeout=DEADLINE_S, source_address=(source, 0))
        return self.open.enter_context(made)

    def peer(self, pair: KeyPair) -> zmq.Socket[bytes]:
        """A peer whose connection is not made again when it is cut."""
        context = self.open.enter_context(zmq.Context())
        dealer = self.open.enter_context(context.socket(zmq.DEALER))
        dealer.linger, dealer.reconnect_ivl = 0, -1
        dealer.curve_publickey, dealer.curve_secretkey = pair.curve_public, pair.curve_secret
        dealer.curve_serverkey = CURATOR.public.curve
        dealer.connect(self.router.address)
        return dealer

    def until(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, f"not within {DEADLINE_S:g} s: {what}; {self.router.cuts}"
            self.arrived += self.router.receive(1000, wait_ms=20)

    def hear(self, dealer: zmq.Socket[bytes], text: bytes = b"hello") -> Arrival:
        """Have a peer send a frame, and return it as it arrived."""
        count = len(self.arrived)
        dealer.send(text)
        self.until(lambda: len(self.arrived) > count, "arrival")
        return self.arrived[-1]


@pytest.fixture
def door() -> Iterator[Door]:
    door = Door()
    with door.open:
        yield door


def is_cut(connection: socket.socket) -> bool:
    """Whether the other end has ended it; what it said before is read."""
    connection.settimeout(0.2)
    try:
        while connection.recv(1000):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def test_a_crowd_loses_its_own_oldest_and_nobody_elses(door: Door) -> None:
    elsewhere = door.stranger("127.0.0.2")  # the oldest of all
    crowd = [door.stranger("127.0.0.1") for _ in range(MAX_UNNAMED_CONNECTIONS + 50)]
    door.until(lambda: door.router.cuts[Cut.CROWD] >= 51, "the cuts")
    assert door.router.cuts == {Cut.CROWD: 51}
    assert all(is_cut(connection) for connection in crowd[:51])
    assert not is_cut(crowd[-1])
    assert not is_cut(elsewhere)


def test_a_crowd_keeps_no_peer_out(door: Door) -> None:
    crowd = [door.stranger("127.0.0.1") for _ in range(MAX_UNNAMED_CONNECTIONS)]
    alice = door.peer(ALICE)
    assert door.hear(alice).peer == "alice"
    # Whose frame was taken is none of the crowd any more, whatever follows.
    crowd += [door.stranger("127.0.0.1") for _ in range(MAX_UNNAMED_CONNECTIONS)]
    door.until(lambda: door.router.cuts[Cut.CROWD] >= MAX_UNNAMED_CONNECTIONS, "the cuts")
    assert door.hear(alice, b"still here") == Arrival(door.arrived[0].route, "alice", b"still here")


def test_of_a_peers_connections_the_newest_stay(door: Door) -> None:
    bob = door.peer(BOB)
    bobs = door.hear(bob).route
    routes = [door.hear(door.peer(ALICE)).route for _ in range(MAX_CONNECTIONS_PER_PEER + 2)]
    door.until(lambda: not door.router.send(routes[1], b""), "the cuts")
    assert door.router.cuts == {Cut.SUPERSEDED: 2}
    assert not door.router.send(routes[0], b"")
    for route in (*routes[2:], bobs):
        assert door.router.send(route, b"welcome")


@pytest.mark.parametrize("speaks_first", [True, False])
def test_a_message_without_end_is_cut(door: Door, speaks_first: bool) -> None:
    alice = door.peer(ALICE)
    if speaks_first:
        door.hear(alice)
    part = bytes(SMALL_FRAME_BYTES // 2)
    for _ in range(2000):
        alice.send(part, zmq.SNDMORE)  # nothing leaves before the last part
    alice.send(b"")
    door.until(lambda: door.router.cuts[Cut.FLOOD] == 1, "the cut")
    assert door.router.drops[Drop.PART_COUNT] == 0, "it never was complete"
    assert door.hear(door.peer(ALICE)).peer == "alice", "its next connection is heard"


def test_frames_that_are_taken_add_up_to_nothing(door: Door) -> None:
    alice = door.peer(ALICE)
    frame = bytes(SMALL_FRAME_BYTES)
    for _ in range(500):  # 16 MB: twice what may arrive without a frame to show for it
        door.hear(alice, frame)
    assert not door.router.cuts
