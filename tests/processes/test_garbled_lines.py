"""An extra byte on the line between a party and the curator costs a connection, but no session.

ZMTP's framing is not authenticated: anybody on the line can add a byte anywhere. CURVE notices, at the latest
when a frame does not decrypt, and ZeroMQ ends the connection.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hushbid.protocol.runtime.keys import new_keypair
from hushbid.protocol.runtime.network.dealer import DealerEndpoint, Happening
from hushbid.protocol.runtime.network.router import RouterEndpoint
from tests.processes.cluster import PATIENCE, Cluster, Ended, Puppet
from tests.processes.proxy import Proxy

ROUNDS = 44
OWNER, OTHER, PACER = "heron", "magpie", "ostrich"
LONG = b"\x02\0\0\0\0\0\0"
"""How a frame of 256 bytes to 64 KiB begins."""


class Fault(NamedTuple):
    """A byte that is added to the line of a party."""

    party: str
    inward: bool
    """Whether it is on its way to the curator."""
    byte: int
    place: int
    """Where in a chunk; a chunk usually begins with a frame."""


PLACES = {
    True: (
        (0xFF, 0),  # a long command of which more is to follow
        (0x00, 0),  # an empty frame
        (0x00, 1),  # a length of nothing
        (0x5A, 20),  # a byte of what is encrypted
    ),
    False: ((0xFF, 0), (0x5A, 20)),
}
"""By way: bytes, and where in a chunk they are added."""
FAULTS = [
    Fault(party, inward, byte, place)
    for party in (OWNER, "consumer")
    for inward, places in PLACES.items()
    for byte, place in places
]
STEP = (ROUNDS - 4) // (len(FAULTS) + 1)


@dataclass(frozen=True)
class Session:
    cluster: Cluster
    ended: dict[str, Ended]


def inject(proxy: Proxy, fault: Fault) -> None:
    def garbled(data: bytes, inward: bool) -> bytes | None:
        if inward is not fault.inward or len(data) <= fault.place:
            return None
        return data[: fault.place] + bytes([fault.byte]) + data[fault.place :]

    proxy.garble = garbled


def befall(cluster: Cluster, proxy: Proxy, pacer: Puppet, fault: Fault, stop: int) -> None:
    """Add a byte while rounds go on, and wait for the party's return."""
    here = "heron is here again" if fault.party == OWNER else "consumer is here again"
    back = cluster.log("curator").count(here) + 1
    inject(proxy, fault)
    pacer.let_go()
    pacer.hold_bids_from(stop)
    cluster.until(lambda: cluster.log("curator").count(here) >= back, f"a return after {fault}")
    cluster.until(lambda: pacer.held, f"round {stop}")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    place: Path = tmp_path_factory.mktemp("garbled")
    changes = {
        "session.points": ROUNDS,
        "timeouts.beat": 0.05,
        "timeouts.silence": 2.0,
        "timeouts.comeback": 60.0,
    }
    with Cluster(place, (OWNER, OTHER, PACER), rows=ROUNDS + 20, changes=changes) as cluster:
        proxies = {name: Proxy(cluster.port) for name in (OWNER, "consumer")}
        try:
            for name, proxy in proxies.items():
                cluster.change(name, {"network.address": f"tcp://127.0.0.1:{proxy.port}"})
            pacer = cluster.puppet(PACER)
            pacer.hold_bids_from(2)
            cluster.start("curator", "consumer", OWNER, OTHER)
            cluster.until(lambda: pacer.held, "round 2")
            for number, fault in enumerate(FAULTS, 1):
                befall(cluster, proxies[fault.party], pacer, fault, 2 + number * STEP)
            pacer.let_go()
            ended = cluster.end()
        finally:
            for proxy in proxies.values():
                proxy.close()
        yield Session(cluster, ended)


def test_everybody_finishes_and_all_points_are_delivered(session: Session) -> None:
    assert {name: end.code for name, end in session.ended.items()} == dict.fromkeys(
        ("curator", "consumer", OWNER, OTHER), 0
    )
    assert session.ended["consumer"].json["points_delivered"] == ROUNDS


def test_nobody_is_refused_or_absent(session: Session) -> None:
    result = session.ended["curator"].json
    assert result["refusals"] == []
    assert result["absences"] == {}
    assert "was refused" not in session.cluster.log("curator")


def test_cut_connections_are_counted_and_logged(session: Session) -> None:
    said = session.cluster.log("curator")
    assert f"a connection of {OWNER} was cut: framing; the peer may connect again" in said
    assert "a connection of consumer was cut: framing; the peer may connect again" in said
    # A new connection of which no frame was taken yet has no name, and is not counted.
    (count,) = re.findall(r"connections that were cut: (\d+) \(framing\)", said)
    assert 2 <= int(count) <= sum(fault.inward for fault in FAULTS)


def through(
    place: Path, garble: Callable[[bytes, bool], bytes | None], changes: Mapping[str, Any]
) -> tuple[dict[str, Ended], str]:
    """A session whose owner's line is garbled once: how all ended, and the curator's log."""
    with Cluster(place, (OWNER, OTHER), rows=20, changes=changes) as cluster:
        proxy = Proxy(cluster.port)
        proxy.linger = 1.0  # what an owner sends last is looked at before its connection is seen to end
        try:
            cluster.change(OWNER, {"network.address": f"tcp://127.0.0.1:{proxy.port}"})
            proxy.garble = garble
            cluster.start("curator", "consumer", OWNER, OTHER)
            ended = cluster.end()
        finally:
            proxy.close()
        assert proxy.garble is None, "there was such a frame"
        return ended, cluster.log("curator")


def test_a_garbled_length_that_is_a_length_costs_no_round(tmp_path: Path) -> None:
    """The curator takes what follows for the rest of one frame, and would wait for its end for minutes."""
    changes = {"session.points": 6, "timeouts.silence": 1.0, "timeouts.comeback": 60.0}

    def lengthened(data: bytes, inward: bool) -> bytes | None:
        at = data.find(LONG) + len(LONG)
        return data[:at] + b"\x40" + data[at:] if inward and at >= len(LONG) else None

    ended, _ = through(tmp_path, lengthened, changes)
    assert {name: end.code for name, end in ended.items()} == dict.fromkeys(ended, 0)
    assert ended["curator"].json["absences"] == {}
    assert ended["consumer"].json["points_delivered"] == 6


@pytest.mark.parametrize("inward", [True, False], ids=["a bid", "a broadcast"])
def test_a_frame_that_is_taken_out_whole_costs_nobody_the_session(tmp_path: Path, inward: bool) -> None:
    """CURVE numbers frames, and accepts one after a gap: only the next one shows what is missing."""
    # On a busy machine an owner takes seconds for a bid; rounds that do not wait end before its fifth.
    changes = {"session.points": 12, "timeouts.round": 8.0, "timeouts.comeback": 60.0}
    seen: list[int] = []

    def without_one(data: bytes, way: bool) -> bytes | None:
        if way is not inward or len(data) < 150:
            return None
        seen.append(len(data))
        return b"" if len(seen) == 5 else None

    ended, said = through(tmp_path, without_one, changes)
    assert {name: end.code for name, end in ended.items()} == dict.fromkeys(ended, 0)
    assert ended["curator"].json["refusals"] == []
    assert "was refused" not in said
    assert ended["consumer"].json["points_delivered"] == 12
    if inward:  # nothing is asked of the owner until it answers: its farewell is the frame after the gap
        assert f"a connection of {OWNER} was cut: gap; the peer may connect again" in said
    else:
        assert f"{OWNER} is here again" in said


def test_a_line_that_is_garbled_for_good_is_tried_less_and_less_and_as_ever_once_it_is_mended() -> None:
    curator, party = new_keypair(), new_keypair()
    with RouterEndpoint("tcp://127.0.0.1:*", pair=curator, roster={party.public.text: OWNER}) as router:
        proxy = Proxy(int(router.address.rpartition(":")[2]))
        proxy.for_good = True
        proxy.garble = lambda data, inward: b"\xff" + data if inward and len(data) > 900 else None
        try:
            with DealerEndpoint(
                f"tcp://127.0.0.1:{proxy.port}", pair=party, server_key=curator.public
            ) as dealer:
                made: list[float] = []

                def turn() -> bool:
                    """A turn of both loops; returns whether a frame came through, both ways."""
                    if Happening.CONNECTED in dealer.happenings():
                        made.append(time.monotonic())
                        dealer.send(b"x" * 1_000)
                    for arrival in router.receive(10, wait_ms=5):
                        router.send(arrival.route, b"welcome")
                    return bool(dealer.receive(10))

                until = time.monotonic() + PATIENCE
                while not made or time.monotonic() - made[0] < 8.0:
                    assert not turn()
                    assert time.monotonic() < until, made
                pauses = [later - earlier for earlier, later in pairwise(made)]
                assert 5 <= len(pauses) <= 10, pauses
                assert max(pauses[:3]) < 1.0, pauses
                assert pauses[-1] > 1.5, pauses
                proxy.garble = None
                while not turn():
                    assert time.monotonic() < until, "the line is mended"
                # What was heard on a connection makes its end one of those that come once.
                for _ in range(3):
                    proxy.cut_after(0)
                    dealer.send(b"x")
                    cut = time.monotonic()
                    while not turn():
                        assert time.monotonic() < until, "it is cut, and connects anew"
                    assert time.monotonic() - cut < 1.5
        finally:
            proxy.close()


@pytest.mark.parametrize(("place", "byte"), [(0, 0xFF), (1, 0), (20, 0x5A)])
def test_a_party_whose_line_is_garbled_connects_anew(place: int, byte: int) -> None:
    curator, party = new_keypair(), new_keypair()
    roster = {party.public.text: OWNER}
    with RouterEndpoint("tcp://127.0.0.1:*", pair=curator, roster=roster) as router:
        proxy = Proxy(int(router.address.rpartition(":")[2]))
        address = f"tcp://127.0.0.1:{proxy.port}"
        try:
            with DealerEndpoint(address, pair=party, server_key=curator.public) as dealer:
                happened: list[Happening] = []
                deadline = time.monotonic() + PATIENCE
                while happened != [Happening.CONNECTED, Happening.DISCONNECTED, Happening.CONNECTED]:
                    assert time.monotonic() < deadline, happened
                    news = dealer.happenings()
                    happened += news
                    if Happening.CONNECTED in news:
                        dealer.send(b"hello")
                    for arrival in router.receive(10, wait_ms=20):
                        proxy.garble = lambda data, _: data[:place] + bytes([byte]) + data[place:]
                        router.send(arrival.route, b"x" * 50)
                assert dealer.receive(10) == []
        finally:
            proxy.close()
