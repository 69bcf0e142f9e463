"""Real sockets on loopback. Nothing sleeps: `until` polls everything that is open, up to a deadline."""

from __future__ import annotations

import logging
import os
import socket as sockets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import zmq

from hushbid.protocol.errors import ConfigError, ConnectionFailed, LocalProtocolError
from hushbid.protocol.limits import (
    MAX_BYTES_PER_DRAIN,
    MAX_CONNECTIONS_PER_PEER,
    MAX_FRAME_BYTES,
    MAX_HELD_PER_PEER,
    PEER_QUEUE_FRAMES,
)
from hushbid.protocol.runtime.keys import KeyPair, PublicKey, new_keypair
from hushbid.protocol.runtime.network import authentication
from hushbid.protocol.runtime.network.authentication import Authenticator, Rejection
from hushbid.protocol.runtime.network.dealer import DealerEndpoint, Happening
from hushbid.protocol.runtime.network.router import Arrival, Drop, RouterEndpoint
from hushbid.protocol.runtime.network.transport import MAX_TO_CURATOR_BYTES, parse_address

CURATOR, ALICE, BOB, STRANGER = (new_keypair() for _ in range(4))
ROSTER = {ALICE.public.text: "alice", BOB.public.text: "bob"}
LOOPBACK = "tcp://127.0.0.1:*"
DEADLINE_S = 60.0
ROOT = Path(__file__).resolve().parents[2]


class Wire:
    """Endpoints of one test, pumped together, with frames and events in order."""

    def __init__(self) -> None:
        self.open = ExitStack()
        self.arrived: list[Arrival] = []
        self.happened: dict[DealerEndpoint, list[Happening]] = {}
        self.got: dict[DealerEndpoint, list[bytes]] = {}
        self.routers: list[RouterEndpoint] = []

    def router(self, address: str = LOOPBACK, *, secure: bool = True) -> RouterEndpoint:
        endpoint = RouterEndpoint(address, pair=CURATOR if secure else None, roster=ROSTER)
        self.routers.append(self.open.enter_context(endpoint))
        return endpoint

    def dealer(
        self, address: str, pair: KeyPair | None = ALICE, server_key: PublicKey | None = CURATOR.public
    ) -> DealerEndpoint:
        endpoint = self.open.enter_context(DealerEndpoint(address, pair=pair, server_key=server_key))
        self.happened[endpoint], self.got[endpoint] = [], []
        return endpoint

    def raw(self, address: str, pair: KeyPair = ALICE, **options: object) -> zmq.Socket[bytes]:
        """A peer with a valid key that keeps none of our rules."""
        context = self.open.enter_context(zmq.Context())
        socket = self.open.enter_context(context.socket(zmq.DEALER))
        socket.linger = 0
        socket.curve_publickey, socket.curve_secretkey = pair.curve_public, pair.curve_secret
        socket.curve_serverkey = CURATOR.public.curve
        for name, value in options.items():
            setattr(socket, name, value)
        socket.connect(address)
        return socket

    def pump(self) -> None:
        poller = zmq.Poller()
        for router in self.routers:
            poller.register(router.socket, zmq.POLLIN)
        for dealer in self.got:
            poller.register(dealer.socket, zmq.POLLIN)
            poller.register(dealer.monitor, zmq.POLLIN)
        poller.poll(20)
        for router in self.routers:
            self.arrived += router.receive(1000)
        for dealer, frames in self.got.items():
            self.happened[dealer] += dealer.happenings()
            frames += dealer.receive(1000)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, f"not within {DEADLINE_S:g} s: {what}; {self.happened}"
            self.pump()

    def connect(self, address: str, pair: KeyPair | None = ALICE) -> DealerEndpoint:
        dealer = self.dealer(address, pair, CURATOR.public if pair else None)
        self.until(lambda: Happening.CONNECTED in self.happened[dealer], "connection")
        return dealer

    def introduce(self, dealer: DealerEndpoint, text: bytes = b"hello") -> Arrival:
        """Send one frame and return it as it arrived."""
        count = len(self.arrived)
        assert dealer.send(text)
        self.until(lambda: len(self.arrived) > count, "arrival")
        return self.arrived[-1]

    def close_router(self, router: RouterEndpoint) -> None:
        self.routers.remove(router)
        router.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A wire whose endpoints are closed after the test, and leave no thread and no descriptor behind."""
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    wire = Wire()
    with wire.open:
        yield wire
    assert threading.active_count() == threads
    # libzmq's own threads close their last descriptors a moment after zmq_ctx_term returns
    wire.routers, wire.got = [], {}
    wire.until(lambda: len(os.listdir("/proc/self/fd")) <= files, "closing of descriptors")


def test_a_registered_key_passes_and_is_named(wire: Wire) -> None:
    router = wire.router()
    for pair, name in ((ALICE, "alice"), (BOB, "bob")):
        dealer = wire.connect(router.address, pair)
        arrival = wire.introduce(dealer)
        assert (arrival.peer, arrival.frame) == (name, b"hello")
        assert router.send(arrival.route, b"welcome " + name.encode())
        wire.until(lambda dealer=dealer: bool(wire.got[dealer]), "an answer")  # type: ignore[misc]
        assert wire.got[dealer] == [b"welcome " + name.encode()]
        assert wire.happened[dealer] == [Happening.CONNECTED]
    assert not router.drops
    assert not router.refusals


def test_an_unregistered_key_is_told_once_and_reaches_nobody(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    router = wire.router()
    with caplog.at_level(logging.DEBUG):
        dealer = wire.dealer(router.address, STRANGER)
        wire.until(lambda: bool(wire.happened[dealer]), "a happening")
        assert not dealer.send(b"let me in")
        alice = wire.connect(router.address)
        wire.introduce(alice)
    assert [arrival.peer for arrival in wire.arrived] == ["alice"]
    assert wire.happened[dealer] == [Happening.AUTHENTICATION_FAILED]
    assert router.refusals == {Rejection.UNKNOWN_KEY: 1}
    assert "unknown-key" in caplog.text
    (refused,) = [vars(line)["fields"] for line in caplog.records if "fields" in vars(line)]
    assert STRANGER.public.fingerprint in refused["fingerprints"]
    assert len(refused["fingerprints"]) == 2
    assert STRANGER.public.text not in caplog.text


def test_a_wrong_server_key_fails_again_and_again(wire: Wire) -> None:
    router = wire.router()
    dealer = wire.dealer(router.address, ALICE, STRANGER.public)
    wire.until(lambda: len(wire.happened[dealer]) >= 3, "three failures")
    assert set(wire.happened[dealer]) == {Happening.HANDSHAKE_FAILED}
    assert not wire.arrived


def test_a_server_that_does_not_speak_zmtp_fails_again_and_again(wire: Wire) -> None:
    with sockets.create_server(("127.0.0.1", 0)) as server:
        accepted = 0

        def serve() -> None:
            nonlocal accepted
            while accepted < 2:
                with server.accept()[0] as connection:
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    accepted += 1

        thread = threading.Thread(target=serve)
        thread.start()
        dealer = wire.dealer(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        wire.until(lambda: len(wire.happened[dealer]) >= 2, "two failures")
        thread.join(DEADLINE_S)
    assert accepted == 2
    assert set(wire.happened[dealer]) == {Happening.HANDSHAKE_FAILED}


def test_a_curator_that_comes_after_something_else_at_its_address_is_found(wire: Wire) -> None:
    with sockets.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        dealer = wire.dealer(f"tcp://127.0.0.1:{port}")
        with server.accept()[0] as connection:
            connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")
            wire.until(lambda: Happening.HANDSHAKE_FAILED in wire.happened[dealer], "a failure")
    wire.router(f"tcp://127.0.0.1:{port}")
    wire.until(lambda: Happening.CONNECTED in wire.happened[dealer], "connection")
    assert wire.introduce(dealer).peer == "alice"


def test_nobody_there_is_silence_and_sends_nothing(wire: Wire) -> None:
    with sockets.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    dealer = wire.dealer(address)
    assert not dealer.send(b"anyone?")
    assert dealer.drops == {Drop.PEER_GONE: 1}
    wire.router(address)
    wire.until(lambda: Happening.CONNECTED in wire.happened[dealer], "connection")
    assert wire.happened[dealer] == [Happening.CONNECTED]
    assert wire.introduce(dealer, b"first").frame == b"first", "the frame from before was not kept"


def test_a_dealer_finds_a_restarted_router_again(wire: Wire) -> None:
    router = wire.router()
    dealer = wire.connect(router.address)
    before = wire.introduce(dealer).route
    for restart in range(1, 4):
        wire.close_router(router)
        wire.until(lambda: wire.happened[dealer][-1] is Happening.DISCONNECTED, "the loss")
        router = wire.router(router.address)
        assert not router.send(before, b"stale")
        assert router.drops == {Drop.PEER_GONE: 1}
        count = 2 * restart + 1
        wire.until(lambda count=count: len(wire.happened[dealer]) == count, "return")  # type: ignore[misc]
    assert wire.happened[dealer] == [Happening.CONNECTED] + [Happening.DISCONNECTED, Happening.CONNECTED] * 3
    assert wire.introduce(dealer).peer == "alice"


def test_a_peer_that_left_cannot_be_sent_to(wire: Wire) -> None:
    router = wire.router()
    with wire.raw(router.address) as peer:
        peer.send(b"hello")
        wire.until(lambda: bool(wire.arrived), "arrival")
        route = wire.arrived[0].route
        assert router.send(route, b"still here")
    wire.until(lambda: not router.send(route, b"gone?"), "notice of the departure")
    assert router.drops[Drop.PEER_GONE] == 1


def test_a_routing_id_that_another_has_gains_nothing(wire: Wire) -> None:
    router = wire.router()
    alice = wire.connect(router.address, ALICE)
    route = wire.introduce(alice).route
    thief = wire.raw(router.address, BOB, routing_id=route)
    thief.send(b"I am alice")
    bob = wire.connect(router.address, BOB)  # an honest connection, made after it
    wire.introduce(bob)
    for number in range(50):
        assert router.send(route, b"for alice %d" % number)
    wire.until(lambda: len(wire.got[alice]) == 50, "alice's messages")
    assert not thief.poll(0)
    assert [arrival.peer for arrival in wire.arrived] == ["alice", "bob"]
    assert {arrival.frame for arrival in wire.arrived} == {b"hello"}


def test_a_routing_id_that_another_had_does_not_lend_its_name(wire: Wire) -> None:
    router = wire.router()
    with wire.raw(router.address, ALICE) as alice:
        alice.send(b"hello")
        wire.until(lambda: bool(wire.arrived), "arrival")
        route = wire.arrived[0].route
    wire.until(lambda: not router.send(route, b""), "notice of the departure")
    thief = wire.raw(router.address, BOB, routing_id=route)
    thief.send(b"I am alice")
    wire.until(lambda: len(wire.arrived) == 2, "arrival")
    assert wire.arrived[1] == Arrival(route, "bob", b"I am alice")


def test_a_routing_id_of_ones_own_choice_is_dropped(wire: Wire) -> None:
    router = wire.router()
    wire.raw(router.address, routing_id=b"alice").send(b"hello")
    wire.until(lambda: router.drops[Drop.CLAIMED_ROUTE] == 1, "the drop")
    assert not wire.arrived


def test_an_oversized_frame_disconnects_its_sender_alone(wire: Wire) -> None:
    router = wire.router()
    bob = wire.connect(router.address, BOB)
    route = wire.introduce(bob).route
    culprit = wire.raw(router.address, ALICE, sndhwm=0)
    culprit.send(b"hello")
    wire.until(lambda: len(wire.arrived) == 2, "arrival")
    culprit_route = wire.arrived[1].route
    culprit.send(b"x" * (MAX_TO_CURATOR_BYTES + 1))
    wire.until(lambda: not router.send(culprit_route, b""), "the cut")
    assert router.send(route, b"business as usual")
    wire.until(lambda: wire.got[bob] == [b"business as usual"], "bob's message")
    assert wire.introduce(bob, b"indeed").frame == b"indeed"
    assert wire.happened[bob] == [Happening.CONNECTED]
    assert [arrival.peer for arrival in wire.arrived] == ["bob", "alice", "bob"]


@pytest.mark.parametrize("pair", [ALICE, None], ids=["curve", "insecure"])
def test_the_largest_frame_passes_and_a_larger_one_is_not_sent(wire: Wire, pair: KeyPair | None) -> None:
    router = wire.router(secure=pair is not None)
    dealer = wire.connect(router.address, pair)
    longest = b"x" * MAX_TO_CURATOR_BYTES
    route = wire.introduce(dealer, longest).route
    assert wire.arrived[0].frame == longest
    largest = b"x" * MAX_FRAME_BYTES
    assert router.send(route, largest)
    wire.until(lambda: wire.got[dealer] == [largest], "the largest frame back")
    with pytest.raises(LocalProtocolError, match=str(MAX_TO_CURATOR_BYTES)):
        dealer.send(longest + b"x")
    with pytest.raises(LocalProtocolError, match=str(MAX_FRAME_BYTES)):
        router.send(route, largest + b"x")
    assert wire.introduce(dealer).frame == b"hello"


def test_messages_of_no_or_several_parts_are_dropped_and_counted(wire: Wire) -> None:
    router = wire.router()
    peer = wire.raw(router.address)
    peer.send_multipart([b"one", b"two"])
    peer.send_multipart([b"one", b"two", b"three"])
    peer.send(b"well-formed")
    wire.until(lambda: bool(wire.arrived), "arrival")
    assert [arrival.frame for arrival in wire.arrived] == [b"well-formed"]
    assert router.drops == {Drop.PART_COUNT: 2}


def test_a_dealer_drops_messages_of_several_parts(wire: Wire) -> None:
    router = wire.router()
    dealer = wire.connect(router.address)
    route = wire.introduce(dealer).route
    router.socket.send_multipart([route, b"one", b"two"])
    assert router.send(route, b"well-formed")
    wire.until(lambda: bool(wire.got[dealer]), "a message")
    assert wire.got[dealer] == [b"well-formed"]
    assert dealer.drops == {Drop.PART_COUNT: 1}


def test_messages_keep_their_order_and_a_limit_is_kept(wire: Wire) -> None:
    router = wire.router()
    alice, bob = wire.connect(router.address, ALICE), wire.connect(router.address, BOB)
    frames = [b"%d" % number for number in range(500)]
    for frame in frames:
        for dealer in (alice, bob):
            wire.until(lambda dealer=dealer, frame=frame: dealer.send(frame), "room")  # type: ignore[misc]
    wire.until(lambda: len(wire.arrived) == 1000, "all messages")
    for name in ("alice", "bob"):
        assert [arrival.frame for arrival in wire.arrived if arrival.peer == name] == frames
    for frame in frames[:10]:
        alice.send(frame)
    assert router.socket.poll(int(DEADLINE_S * 1000))
    taken = router.receive(3)
    assert 1 <= len(taken) <= 3
    assert [arrival.frame for arrival in taken] == frames[: len(taken)]


def test_a_drain_ends_with_the_frame_that_fills_it(wire: Wire) -> None:
    router = wire.router()
    frame = b"x" * MAX_TO_CURATOR_BYTES
    needed = -(-MAX_BYTES_PER_DRAIN // len(frame))
    # Several connections, and so several peers: one alone does not fill a drain.
    pairs = [ALICE, BOB] * MAX_CONNECTIONS_PER_PEER
    dealers = [wire.connect(router.address, pair) for pair in pairs[: 2 * needed // MAX_HELD_PER_PEER + 1]]
    known = router._limits
    assert known is not None
    # A frame that is taken before the limits' thread has heard of its connection names none.
    wire.until(lambda: known._drained == len(dealers), "connections")
    for dealer in dealers:
        wire.introduce(dealer)  # of who has not spoken, no more than one frame is let in
    drains: list[int] = []
    deadline, pause = time.monotonic() + DEADLINE_S, 0.2
    while max(drains, default=0) < needed:  # on a busy machine the queues fill more slowly
        for dealer in dealers:
            for _ in range(MAX_HELD_PER_PEER):
                assert dealer.send(frame)
        taken = 0
        while taken < len(dealers) * MAX_HELD_PER_PEER:
            assert time.monotonic() < deadline, (drains, router.cuts)
            time.sleep(pause)
            drains.append(len(router.receive(1000, wait_ms=100)))
            taken += drains[-1]
        pause *= 2
    assert max(drains) == needed, "with less, nothing would have been cut off"
    assert not router.cuts


def test_a_peer_that_reads_nothing_fills_its_queue_and_delays_nobody(wire: Wire) -> None:
    router = wire.router()
    bob = wire.connect(router.address, BOB)
    bobs = wire.introduce(bob).route
    sleeper = wire.raw(router.address, ALICE, rcvhwm=1)
    sleeper.send(b"hello")
    wire.until(lambda: len(wire.arrived) == 2, "arrival")
    route, frame = wire.arrived[1].route, b"x" * 2**20
    wire.until(lambda: not router.send(route, frame), "a full queue")
    assert router.drops[Drop.QUEUE_FULL] == 1
    start = time.monotonic()
    for _ in range(100):
        router.send(route, frame)
        assert router.send(bobs, b"tick")
        wire.until(lambda: bool(wire.got[bob]), "a tick")
        wire.got[bob].clear()
    assert time.monotonic() - start < DEADLINE_S / 2
    assert router.drops[Drop.QUEUE_FULL] > 100 - PEER_QUEUE_FRAMES
    sleeper.close()  # else closing the router would wait for its queue


def test_a_port_in_use_is_a_connection_error_with_advice(wire: Wire) -> None:
    router = wire.router()
    with pytest.raises(ConnectionFailed, match="Address already in use") as caught:
        wire.router(router.address)
    assert router.address in caught.value.what
    assert "another port" in caught.value.advice
    with pytest.raises(ConnectionFailed, match="No such device"):
        wire.router("tcp://no-such-interface:5000")
    with pytest.raises(ConnectionFailed, match="assign requested address"):
        wire.router("tcp://192.0.2.1:5000")  # TEST-NET-1: nobody's
    assert wire.introduce(wire.connect(router.address)).peer == "alice"


def test_ipv6_loopback(wire: Wire) -> None:
    try:
        with sockets.create_server(("::1", 0), family=sockets.AF_INET6):
            pass
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    router = wire.router("tcp://[::1]:*")
    assert router.address.startswith("tcp://[::1]:")
    assert wire.introduce(wire.connect(router.address)).peer == "alice"


def test_every_interface_takes_both_families(wire: Wire) -> None:
    port = wire.router("tcp://*:*").address.rpartition(":")[2]
    assert wire.introduce(wire.connect(f"tcp://127.0.0.1:{port}")).peer == "alice"


@pytest.mark.parametrize("address", [LOOPBACK, "tcp://[::1]:*"])
def test_without_security_there_are_no_names(wire: Wire, address: str) -> None:
    try:
        router = wire.router(address, secure=False)
    except ConnectionFailed:
        pytest.skip("this machine has no IPv6 loopback")
    arrival = wire.introduce(wire.connect(router.address, None))
    assert arrival.peer is None
    assert router.send(arrival.route, b"welcome")


@pytest.mark.parametrize(
    "address",
    ["tcp://*:*", "tcp://0.0.0.0:5000", "tcp://[::]:5000", "tcp://192.0.2.1:5000", "tcp://curator:5000"],
)
def test_security_cannot_be_switched_off_beyond_this_machine(wire: Wire, address: str) -> None:
    with pytest.raises(ConfigError, match="Without security"):
        wire.router(address, secure=False)
    with pytest.raises(ConfigError):
        wire.dealer(address, None, None)


def test_secure_and_insecure_ends_do_not_meet(wire: Wire) -> None:
    secure, insecure = wire.router(), wire.router(secure=False)
    plain = wire.dealer(secure.address, None, None)
    curve = wire.dealer(insecure.address)
    for dealer in (plain, curve):
        wire.until(lambda dealer=dealer: bool(wire.happened[dealer]), "a failure")  # type: ignore[misc]
        assert set(wire.happened[dealer]) == {Happening.HANDSHAKE_FAILED}
        assert not dealer.send(b"hello")
    assert not wire.arrived


def test_half_a_dealers_keys_are_refused(wire: Wire) -> None:
    for pair, server_key in ((ALICE, None), (None, CURATOR.public)):
        with pytest.raises(ConfigError, match="one is missing"):
            wire.dealer("tcp://127.0.0.1:5000", pair, server_key)


def test_a_roster_with_something_else_than_a_key_is_refused_and_leaves_nothing(wire: Wire) -> None:
    with pytest.raises(ConfigError, match="Z85"):
        RouterEndpoint(LOOPBACK, pair=CURATOR, roster={"alice": "alice"})


def test_two_keys_that_no_handshake_tells_apart_are_refused_and_their_parties_named(wire: Wire) -> None:
    raw = ALICE.public.raw
    negated = PublicKey.from_bytes(raw[:31] + bytes([raw[31] ^ 0x80]))
    assert negated.curve == ALICE.public.curve
    with pytest.raises(ConfigError, match="to alice and to mallory differ only in the sign"):
        RouterEndpoint(LOOPBACK, pair=CURATOR, roster=ROSTER | {negated.text: "mallory"})


@pytest.mark.parametrize(
    "text",
    ["", "127.0.0.1:5000", "tcp://127.0.0.1", "tcp://127.0.0.1:", "tcp://127.0.0.1:70000", "tcp://::1:5000",
     "ipc:///tmp/x", "inproc://x", "tcp://a;b:5000", "tcp://127.0.0.1:5000\n", "udp://127.0.0.1:5000"],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not an address"):
        parse_address(text)


@pytest.mark.parametrize(
    ("text", "loopback"),
    [("tcp://127.0.0.1:1", True), ("tcp://127.9.9.9:1", True), ("tcp://[::1]:1", True),
     ("tcp://localhost:1", True),
     ("tcp://[::ffff:127.0.0.1]:1", True), ("tcp://[::ffff:10.0.0.1]:1", False), ("tcp://10.0.0.1:1", False),
     ("tcp://*:1", False), ("tcp://0.0.0.0:1", False), ("tcp://localhost.example:1", False)],
)  # fmt: skip
def test_loopback_is_known(text: str, loopback: bool) -> None:
    assert parse_address(text).is_loopback is loopback


ZAP_KEY = bytes(range(32))
ZAP_REQUESTS = {
    "unknown key": ([b"1.0", b"7", b"hushbid", b"10.0.0.9", b"", b"CURVE", ZAP_KEY], Rejection.UNKNOWN_KEY),
    "short key": ([b"1.0", b"7", b"hushbid", b"10.0.0.9", b"", b"CURVE", b"abc"], Rejection.MALFORMED),
    "no credentials": ([b"1.0", b"7", b"hushbid", b"10.0.0.9", b"", b"CURVE"], Rejection.MALFORMED),
    "plain": ([b"1.0", b"7", b"hushbid", b"10.0.0.9", b"", b"PLAIN", b"u", b"p"], Rejection.MECHANISM),
    "null": ([b"1.0", b"7", b"hushbid", b"127.0.0.1", b"", b"NULL"], Rejection.MECHANISM),
    "other domain": ([b"1.0", b"7", b"global", b"10.0.0.9", b"", b"CURVE", ZAP_KEY], Rejection.MALFORMED),
    "other version": ([b"2.0", b"7", b"hushbid", b"10.0.0.9", b"", b"CURVE", ZAP_KEY], Rejection.MALFORMED),
    "truncated": ([b"1.0", b"7", b"hushbid"], Rejection.MALFORMED),
}


def ask(request: list[bytes], roster: dict[str, str] | None) -> tuple[list[bytes], dict[str, int]]:
    """The handler's answer to one request, and its counts."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    handler = Authenticator(context, roster)
    with context.socket(zmq.REQ) as client:
        client.linger, client.rcvtimeo = 0, int(DEADLINE_S * 1000)
        client.connect("inproc://zeromq.zap.01")
        client.send_multipart(request)
        reply = client.recv_multipart()
    context.term()
    handler.join()
    return reply, dict(handler.refusals)


@pytest.mark.parametrize(("request_", "refusal"), ZAP_REQUESTS.values(), ids=list(ZAP_REQUESTS))
def test_every_refusal_is_a_400_never_a_300(request_: list[bytes], refusal: Rejection) -> None:
    reply, counts = ask(request_, ROSTER)
    assert reply == [b"1.0", b"7", b"400", refusal.value.encode(), b"", b""]
    assert counts == {refusal: 1}


@pytest.mark.parametrize(
    ("address", "refusals"),
    [(b"127.0.0.1", {}), (b"::ffff:127.0.0.1", {}), (b"10.0.0.9", {Rejection.NOT_LOOPBACK: 1})],
    ids=["loopback", "mapped loopback", "elsewhere"],
)
def test_without_security_only_this_machine_may_come(address: bytes, refusals: dict[str, int]) -> None:
    reply, counts = ask([b"1.0", b"7", b"hushbid", address, b"", b"NULL"], None)
    assert counts == refusals
    assert reply[2] == (b"400" if refusals else b"200")


UNWATCHED = """
import socket, sys
from hushbid.protocol.runtime import keys
from hushbid.protocol.runtime.network import dealer

dealer.RECONNECT_MS = dealer.RECONNECT_MAX_MS = 1
server = socket.create_server(("127.0.0.1", 0))
server.settimeout(0.5)
address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
endpoint = dealer.DealerEndpoint(address, pair=keys.new_keypair(), server_key=keys.new_keypair().public)
attempts = 0
try:
    while attempts < 5000:
        server.accept()[0].close()
        attempts += 1
except TimeoutError:
    pass
endpoint.close()
print(attempts)
"""


def test_a_dealer_closes_though_nobody_looked_at_what_happened() -> None:
    # The monitor is full after some 2,000 events; then libzmq's thread stops, and with it the attempts. In a
    # process of its own, for a close that hangs there holds the interpreter's lock.
    command = [sys.executable, "-c", UNWATCHED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True, cwd=ROOT)
    assert 200 < int(done.stdout) < 5000, "the monitor was to fill"


def test_a_key_has_so_many_handshakes_and_no_other_pays_for_it(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "MAX_HELLOS_PER_PEER", 2)
    router = wire.router()
    for _ in range(2):
        wire.connect(router.address, ALICE)
    third = wire.dealer(router.address, ALICE)
    wire.until(lambda: wire.happened[third] == [Happening.AUTHENTICATION_FAILED], "a refusal")
    assert router.refusals == {Rejection.TOO_MANY: 1}
    assert wire.introduce(wire.connect(router.address, BOB)).peer == "bob"


def test_close_can_be_called_twice() -> None:
    router = RouterEndpoint(LOOPBACK, pair=CURATOR, roster=ROSTER)
    dealer = DealerEndpoint(router.address, pair=ALICE, server_key=CURATOR.public)
    for endpoint in (dealer, router, dealer, router):
        endpoint.close()
