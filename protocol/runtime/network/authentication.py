"""The ZAP handler (ZeroMQ RFC 27): who may connect.

A ROUTER with CURVE but without a running handler lets *any* key in. So the handler is up before the socket
binds, and `ZAP_ENFORCE_DOMAIN` makes a missing handler a refusal.

It has its own thread, as the main loop would delay every handshake while it computes. The thread sleeps in
`recv` and shares one counter with the loop, which only the thread writes; it ends when the context is
terminated. pyzmq's `ThreadAuthenticator` is not used: it runs an asyncio loop, compares keys by re-encoding
them in Python, and logs them in full.

A refusal has status 400, which reaches the client at once and once. Status 300 leaves it hanging.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import Final

import zmq

from hushbid.protocol.crypto.identity import roster_identity
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.limits import MAX_HELLOS_PER_PEER
from hushbid.protocol.runtime.keys import KEY_BYTES, curve_fingerprints
from hushbid.protocol.runtime.network.transport import is_loopback_ip
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import log

__all__ = ["DOMAIN", "Authenticator", "Rejection"]

DOMAIN: Final = b"hushbid"
"""The ZAP domain that the router's socket sets."""

_ENDPOINT: Final = "inproc://zeromq.zap.01"
_VERSION: Final = b"1.0"
_ACCEPTED: Final = b"200"
_REFUSED: Final = b"400"
_MAX_LOGGED: Final = 100
"""Most refusals that are logged one by one, as a stranger must not fill the disk. All are counted."""


class Rejection(StrEnum):
    """Why a connection was refused."""

    UNKNOWN_KEY = "unknown-key"
    """A CURVE key that is on no roster."""
    MECHANISM = "mechanism"
    """A security mechanism other than the one in force."""
    NOT_LOOPBACK = "not-loopback"
    """Without security, a peer that is not on this machine."""
    TOO_MANY = "too-many"
    """A peer that has had `MAX_HELLOS_PER_PEER` handshakes, or floods the curator."""
    MALFORMED = "malformed"
    """A request that is not ZAP 1.0 for our domain."""


class Authenticator:
    """Answers the handshakes of one context's sockets.

    Args:
        context: The context, without another handler. To end this one, terminate the context, then `join`.
        roster: Public key in Z85 -> name of the peer. None admits anyone on this machine without security,
            and nobody else.
        barred: Names of peers that may not connect now; the caller changes it.

    Raises:
        ConfigError: A key of the roster is invalid, or two have the same CURVE key; the error names the
            parties.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        roster: Mapping[str, str] | None,
        barred: AbstractSet[str] = frozenset(),
    ) -> None:
        self.refusals: Counter[str] = Counter()
        """Refused connections by `Rejection`."""
        self._roster = roster or {}
        self._barred = barred
        self._handshakes: Counter[bytes] = Counter()
        self._user_ids: dict[bytes, bytes] | None = None
        if roster is not None:
            self._user_ids = _user_ids(roster)
        socket = context.socket(zmq.REP)
        socket.linger = 0
        socket.bind(_ENDPOINT)  # here, not in the thread: the caller's bind must come after it
        self._thread = threading.Thread(target=self._serve, args=(socket,), name="hushbid-zap", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread's end, after the context was terminated."""
        self._thread.join()

    def _serve(self, socket: zmq.Socket[bytes]) -> None:
        try:
            while True:
                socket.send_multipart(self._answer(socket.recv_multipart()))
        except zmq.ContextTerminated:
            pass
        finally:
            socket.close()

    def _answer(self, request: Sequence[bytes]) -> list[bytes]:
        """The ZAP reply to a ZAP request: version, request id, status code and text, user id, metadata."""
        request_id = request[1] if len(request) > 1 else b""
        verdict = self._judge(request)
        if isinstance(verdict, bytes):
            return [_VERSION, request_id, _ACCEPTED, b"OK", verdict, b""]
        self._note(verdict, request)
        return [_VERSION, request_id, _REFUSED, verdict.value.encode("ascii"), b"", b""]

    def _judge(self, request: Sequence[bytes]) -> bytes | Rejection:
        """The user id of an admitted peer, or the reason for a refusal."""
        if len(request) < 6 or request[0] != _VERSION or request[2] != DOMAIN:
            return Rejection.MALFORMED
        address, mechanism, credentials = request[3], request[5], request[6:]
        if self._user_ids is None:
            if mechanism != b"NULL":
                return Rejection.MECHANISM
            return b"" if is_loopback_ip(address.decode("ascii", "replace")) else Rejection.NOT_LOOPBACK
        if mechanism != b"CURVE":
            return Rejection.MECHANISM
        if len(credentials) != 1 or len(credentials[0]) != KEY_BYTES:
            return Rejection.MALFORMED
        user_id = self._user_ids.get(credentials[0])
        if user_id is None:
            return Rejection.UNKNOWN_KEY
        self._handshakes[user_id] += 1
        if self._handshakes[user_id] > MAX_HELLOS_PER_PEER:
            return Rejection.TOO_MANY
        return Rejection.TOO_MANY if self._roster[user_id.decode("ascii")] in self._barred else user_id

    def _note(self, refusal: Rejection, request: Sequence[bytes]) -> None:
        self.refusals[refusal] += 1
        total = self.refusals.total()
        if total > _MAX_LOGGED:
            return
        address = request[3].decode("ascii", "replace") if len(request) > 3 else "?"
        fingerprints = [*curve_fingerprints(request[6])] if refusal is Rejection.UNKNOWN_KEY else []
        log(LogEvent.CONNECTION_REFUSED, address=address, reason=refusal.value, fingerprints=fingerprints)
        if total == _MAX_LOGGED:
            log(LogEvent.CONNECTIONS_REFUSED_OFTEN, count=total)


def _user_ids(roster: Mapping[str, str]) -> dict[bytes, bytes]:
    """The CURVE key shown in a handshake -> the roster's key that it is mapped from."""
    user_ids: dict[bytes, bytes] = {}
    for key, name in roster.items():
        curve = bytes(roster_identity(key, name).sealing)
        if curve in user_ids:
            # The mapping forgets a sign: with -A beside A, whose name A's owner gets would be chance.
            other = roster[user_ids[curve].decode("ascii")]
            raise ConfigError(
                f"The keys that the roster gives to {other} and to {name} differ only in the sign, and "
                "so have the same transport key.",
                advice="Have both show their keys with `hushbid keys show`: one was not made by hushbid.",
            )
        user_ids[curve] = key.encode("ascii")
    return user_ids
