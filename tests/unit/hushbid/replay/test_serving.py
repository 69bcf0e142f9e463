"""The server of a live page answers holders of its address on this machine, and nobody else."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from hushbid.protocol.errors import ConfigError
from hushbid.replay.serving import LOOPBACK, PageServer, Served

PAGE = "<p>a page</p>"


def served(version: int, facts_version: int) -> Served:
    def news(**more: object) -> bytes:
        return json.dumps({"version": version, **more}).encode()

    return Served(version, lambda: PAGE, news(facts="all"), facts_version, news(facts=None))


@pytest.fixture
def server() -> Iterator[PageServer]:
    with PageServer(0, served(5, 3)) as found:
        yield found


def ask(
    server: PageServer, path: str, *, method: str = "GET", host: str | None = None
) -> http.client.HTTPResponse:
    address = urlsplit(server.address)
    connection = http.client.HTTPConnection(LOOPBACK, address.port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", address.netloc if host is None else host)
    connection.endheaders()
    answer = connection.getresponse()
    answer.said = answer.read()  # type: ignore[attr-defined]
    connection.close()
    return answer


def root(server: PageServer) -> str:
    return urlsplit(server.address).path


def test_the_address_leads_to_the_page_which_no_cache_keeps(server: PageServer) -> None:
    answer = ask(server, root(server))
    assert (answer.status, answer.said) == (200, PAGE.encode())  # type: ignore[attr-defined]
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"


def test_each_server_has_a_token_of_its_own(server: PageServer) -> None:
    assert len(root(server)) > 40
    with PageServer(0, served(1, 1)) as other:
        assert root(other) != root(server)
        assert ask(other, root(server)).status == 404


def test_news_are_told_to_who_does_not_have_them(server: PageServer) -> None:
    told = {}
    for since in ("0", "2", "3", "4", "5", "99", "-1", "x", "9" * 5000, "²", ""):
        answer = ask(server, f"{root(server)}facts?since={since}".replace("²", "%C2%B2"))
        body = answer.said  # type: ignore[attr-defined]
        told[since] = (answer.status, json.loads(gzip.decompress(body))["facts"] if body else None)
        assert answer.headers["Cache-Control"] == "no-store"
    everything, less, nothing = (200, "all"), (200, None), (204, None)
    assert told.pop("5") == nothing
    assert [told.pop(since) for since in ("3", "4", "99")] == [less] * 3
    assert set(told.values()) == {everything}
    assert ask(server, f"{root(server)}facts").status == 200
    server.serve(served(6, 6))
    assert ask(server, f"{root(server)}facts?since=5").status == 200


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/facts", "{root}/", "{root}facts/", "{root}other", "{root}../", "/x{root}", "{short}", "//["),
        *("*", "{root}%2e%2e/facts", "http://127.0.0.1{root}", "/\xe9\xff/"),
    ],
)
def test_everything_else_is_not_found(server: PageServer, path: str) -> None:
    path = path.format(root=root(server), short=root(server)[:-2] + "/")
    host = urlsplit(server.address).netloc
    with socket.create_connection((LOOPBACK, urlsplit(server.address).port or 0), timeout=10) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1"))
        said = b"".join(iter(lambda: line.recv(4096), b""))
    assert said.startswith(b"HTTP/1.0 404 ")
    assert said.endswith(b"\r\n\r\n"), "and nothing more is said"


def test_a_name_that_was_pointed_here_is_not_answered(server: PageServer) -> None:
    port = urlsplit(server.address).port
    for host in (f"{LOOPBACK}:{port}", f"localhost:{port}"):
        assert ask(server, root(server), host=host).status == 200
    for host in ("evil.example", f"evil.example:{port}", LOOPBACK, f"{LOOPBACK}:1", "localhost", ""):
        assert ask(server, root(server), host=host).status == 404
    with socket.create_connection((LOOPBACK, port or 0), timeout=10) as line:
        line.sendall(f"GET {root(server)} HTTP/1.0\r\n\r\n".encode())
        assert line.recv(4096).startswith(b"HTTP/1.0 404 ")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "NONSENSE"])
def test_no_other_method_is_allowed(server: PageServer, method: str) -> None:
    answer = ask(server, root(server), method=method)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET"
    assert answer.said == b""  # type: ignore[attr-defined]


def test_what_is_no_request_is_refused_and_the_next_is_answered(
    server: PageServer, capfd: pytest.CaptureFixture[str]
) -> None:
    port = urlsplit(server.address).port or 0
    for nonsense in (b"\x16\x03\x01\x02\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"G" * 70_000 + b"\r\n\r\n"):
        with socket.create_connection((LOOPBACK, port), timeout=10) as line:
            line.sendall(nonsense)
            assert root(server).encode() not in line.recv(4096)
    socket.create_connection((LOOPBACK, port)).close()
    assert ask(server, root(server)).status == 200
    assert capfd.readouterr() == ("", ""), "a log would have the token"


def test_a_port_can_be_chosen_and_one_that_is_taken_is_refused() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"Port {port} of 127.0.0.1 cannot be listened at") as caught:
            PageServer(port, served(1, 1))
        assert "--port" in caught.value.advice
    with PageServer(port, served(1, 1)) as chosen:
        assert urlsplit(chosen.address).port == port
        assert ask(chosen, root(chosen)).status == 200
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((LOOPBACK, port), timeout=10)
