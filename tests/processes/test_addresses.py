"""Host names: which of their addresses are tried, and where a curator with a name listens."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.keys import new_keypair
from hushbid.protocol.runtime.network.dealer import CONNECT_MS, DealerEndpoint, Happening
from hushbid.protocol.runtime.network.router import RouterEndpoint
from hushbid.protocol.runtime.network.transport import listen_address, parse_address, resolved

CURATOR, ALICE = new_keypair(), new_keypair()
DEADLINE_S = 120.0
V4, V6 = "127.0.0.1", "::1"


def has_ipv6() -> bool:
    try:
        with socket.create_server((V6, 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


class Names:
    """Stands for DNS: ``curator.test`` has whatever addresses the test gives it."""

    def __init__(self) -> None:
        self.hosts: list[str] = []
        self.asked = 0

    def __call__(self, host: str, port: int, **_: Any) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        assert host == "curator.test"
        self.asked += 1
        if not self.hosts:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(0, 0, 0, "", (each, port)) for each in self.hosts]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    found = Names()
    monkeypatch.setattr(socket, "getaddrinfo", found)
    return found


@pytest.fixture
def ends() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def router(ends: ExitStack, address: str) -> int:
    """Bind a curator's end; returns its port."""
    endpoint = ends.enter_context(RouterEndpoint(address, pair=CURATOR, roster={ALICE.public.text: "alice"}))
    return int(endpoint.address.rpartition(":")[2])


def dealer(ends: ExitStack, port: int) -> DealerEndpoint:
    address = f"tcp://curator.test:{port}"
    return ends.enter_context(DealerEndpoint(address, pair=ALICE, server_key=CURATOR.public))


def connected(endpoint: DealerEndpoint) -> bool:
    """Wait for the connection's first event: whether it stands."""
    return happenings(endpoint, until=bool)[0] is Happening.CONNECTED


def happenings(endpoint: DealerEndpoint, *, until: Callable[[list[Happening]], bool]) -> list[Happening]:
    """Watch a connection until enough has happened to it."""
    found: list[Happening] = []
    deadline = time.monotonic() + DEADLINE_S
    while not until(found):
        assert time.monotonic() < deadline, found
        found += endpoint.happenings()
        time.sleep(0.02)
    return found


@needs_ipv6
@pytest.mark.parametrize("hosts", [(V4, V6), (V6, V4)], ids=["IPv4 first", "IPv6 first"])
@pytest.mark.parametrize("bound", ["tcp://127.0.0.1:*", "tcp://[::1]:*", "tcp://*:*"])
def test_a_curator_is_found_at_whichever_of_its_addresses_it_listens(
    names: Names, ends: ExitStack, bound: str, hosts: tuple[str, str]
) -> None:
    names.hosts = list(hosts)
    assert connected(dealer(ends, router(ends, bound)))


@needs_ipv6
def test_an_address_that_never_answers_keeps_nobody_from_the_next(names: Names, ends: ExitStack) -> None:
    port = router(ends, "tcp://127.0.0.1:*")
    clogged = ends.enter_context(socket.socket(socket.AF_INET6))
    clogged.bind((V6, port))
    clogged.listen(0)
    for _ in range(4):  # whose queue is full, Linux does not even refuse
        filler = ends.enter_context(socket.socket(socket.AF_INET6))
        filler.setblocking(False)
        filler.connect_ex((V6, port))
    names.hosts = [V6, V4]
    begun = time.monotonic()
    assert connected(dealer(ends, port))
    assert time.monotonic() - begun > CONNECT_MS / 1000 / 2, "the first was to be tried, in vain"


def test_a_name_that_is_unknown_at_first_is_looked_up_again(
    names: Names, ends: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = dealer(ends, router(ends, "tcp://127.0.0.1:*"))
    assert happenings(endpoint, until=lambda _: names.asked >= 2) == []
    names.hosts = [V4]
    assert connected(endpoint)
    told = [record.getMessage() for record in caplog.records]
    assert told == ["the host name curator.test is unknown here; it is looked up again"], "once"


def test_a_host_that_moved_is_found_again(names: Names, ends: ExitStack) -> None:
    names.hosts = ["127.0.0.2"]
    first = RouterEndpoint("tcp://127.0.0.2:*", pair=CURATOR, roster={ALICE.public.text: "alice"})
    port = int(first.address.rpartition(":")[2])
    endpoint = dealer(ends, port)
    assert connected(endpoint)
    first.close()
    router(ends, f"tcp://127.0.0.3:{port}")
    names.hosts = ["127.0.0.3"]
    happened = happenings(endpoint, until=lambda found: Happening.CONNECTED in found)
    assert happened == [Happening.DISCONNECTED, Happening.CONNECTED]


def test_a_numeric_address_is_not_looked_up(names: Names) -> None:
    for text in ("tcp://127.0.0.1:5790", "tcp://[::1]:5790"):
        assert resolved(parse_address(text)) == (parse_address(text),)
    assert names.asked == 0


@pytest.mark.parametrize(
    ("contact", "listen"),
    [
        ("tcp://curator.example.org:5790", "tcp://*:5790"),
        ("tcp://localhost:5790", "tcp://127.0.0.1:5790"),
        ("tcp://127.0.0.1:*", "tcp://127.0.0.1:*"),
        ("tcp://192.0.2.7:5790", "tcp://192.0.2.7:5790"),
        ("tcp://[2001:db8::7]:5790", "tcp://[2001:db8::7]:5790"),
        ("tcp://*:5790", "tcp://*:5790"),
    ],
)
def test_a_curator_listens_at_its_numeric_address_and_at_all_of_a_name_s(contact: str, listen: str) -> None:
    assert listen_address(contact) == listen
    parse_address(listen)


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(ConfigError, match="not an address"):
        listen_address("curator.example.org:5790")


@pytest.mark.parametrize(
    ("text", "wildcard", "name"),
    [
        ("tcp://*:1", True, False),
        ("tcp://0.0.0.0:1", True, False),
        ("tcp://[::]:1", True, False),
        ("tcp://curator:1", False, True),
        ("tcp://10.0.0.1:1", False, False),
        ("tcp://[fe80::1%eth0]:1", False, False),
    ],
)
def test_kinds_of_hosts_are_told_apart(text: str, wildcard: bool, name: bool) -> None:
    where = parse_address(text)
    assert (where.is_wildcard, where.is_name) == (wildcard, name)
