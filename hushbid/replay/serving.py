"""Serving a page to the browsers of this machine: read only, behind an address that nobody can guess."""

from __future__ import annotations

import gzip
import hmac
import secrets
import socketserver
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs

from hushbid.protocol.closing import Closing
from hushbid.protocol.errors import ConfigError

__all__ = ["LOOPBACK", "PageServer", "Served"]

LOOPBACK: Final = "127.0.0.1"
_TOKEN_BYTES: Final = 32
_PATIENCE: Final = 10.0
"""Seconds that a connection may be silent."""
_LONGEST_NUMBER: Final = 18
"""Digits of a version in a request; more are none of ours."""
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address has the token
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True)
class Served:
    """What is served from now on.

    Args:
        version: Higher than that of everything that was served before; 0: nothing is known yet.
        page: Makes the page when a browser asks for it.
        news: What a page that is open is told, as JSON, with the facts of `facts_version`.
        without_facts: The same for a page that has these facts already.
    """

    version: int
    page: Callable[[], str]
    news: bytes = field(repr=False)
    facts_version: int
    without_facts: bytes = field(repr=False)


class PageServer(Closing):
    """Answers at ``http://127.0.0.1:PORT/TOKEN/`` with the page, and at ``TOKEN/facts`` with what is new.

    ``facts?since=VERSION`` has no content (204) if that version is still the newest. Everything else is not
    found, and no method but GET is allowed. Nothing is logged.

    Args:
        port: 0: one that the system chooses.

    Raises:
        ConfigError: The port is taken, or not for this user.
    """

    def __init__(self, port: int, first: Served) -> None:
        self._token = secrets.token_urlsafe(_TOKEN_BYTES)
        try:
            self._server = _Server(port, self._token, first)
        except OSError as error:
            raise ConfigError(
                f"Port {port} of {LOOPBACK} cannot be listened at: {error.strerror}.",
                advice="Name another with --port, or leave it out: the system then chooses one.",
            ) from None
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """The page's address; whoever has it can read the page, on this machine alone."""
        return f"http://{LOOPBACK}:{self._server.server_port}/{self._token}/"

    def serve(self, what: Served) -> None:
        """Answer with this from now on."""
        self._server.served = what

    def close(self) -> None:
        """Answer nobody any more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, token: str, served: Served) -> None:
        self.token = token
        self.served = served
        super().__init__((LOOPBACK, port), _Handler)

    def server_bind(self) -> None:
        """Bind without asking a name server for this machine's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that went away: it asks again."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _PATIENCE
    server_version = "hushbid"
    sys_version = ""

    def parse_request(self) -> bool:
        """Take GET alone, and none that was sent to another name: a page elsewhere may point its own here."""
        if not super().parse_request():
            return False
        if self.command != "GET":
            self._answer(HTTPStatus.METHOD_NOT_ALLOWED, b"", Allow="GET")
            return False
        port = self.server.server_port
        if self.headers.get_all("Host") not in ([f"{LOOPBACK}:{port}"], [f"localhost:{port}"]):
            self._answer(HTTPStatus.NOT_FOUND, b"")
            return False
        return True

    def do_GET(self) -> None:
        """Answer with the page, or with what is new."""
        path, _, query = self.path.partition("?")
        match path.split("/"):
            case ["", token, ("" | "facts") as what] if self._is_ours(token):
                self._answer_with(what, query)
            case _:
                self._answer(HTTPStatus.NOT_FOUND, b"")

    def _is_ours(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.server.token.encode())

    def _answer_with(self, what: str, query: str) -> None:
        served = self.server.served
        if what == "":
            page = served.page().encode()
            self._answer(HTTPStatus.OK, page, Content_Type="text/html; charset=utf-8")
            return
        since = _version(query)
        if since == served.version:
            self._answer(HTTPStatus.NO_CONTENT, b"")
        else:
            news = served.without_facts if since >= served.facts_version else served.news
            packed = gzip.compress(news, mtime=0)
            self._answer(HTTPStatus.OK, packed, Content_Type="application/json", Content_Encoding="gzip")

    def send_error(self, code: int, *_words: Any, **_more: Any) -> None:
        """Refuse what is no request, in as few words as everything else."""
        self._answer(HTTPStatus(code), b"")

    def _answer(self, status: HTTPStatus, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in (_HEADERS | headers).items():
            self.send_header(name.replace("_", "-"), value)
        if status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a request has the token."""


def _version(query: str) -> int:
    """The version that a page has; 0, and with it everything: what it names is none."""
    text = parse_qs(query).get("since", ["0"])[0]
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER else 0
