"""The connection to the curator, and the curator's own address."""

from __future__ import annotations

import os
import socket
import time
from typing import Final

import zmq

from hushbid.preflight.subject import Subject
from hushbid.protocol.errors import ConnectionFailed
from hushbid.protocol.runtime.network.dealer import DealerEndpoint, Happening
from hushbid.protocol.runtime.network.router import RouterEndpoint
from hushbid.protocol.runtime.network.transport import parse_address, resolved

__all__ = ["address", "connection", "handshake", "listen"]

CONNECT_SECONDS: Final = 3.0
"""Time for TCP to answer at one address."""
HANDSHAKE_SECONDS: Final = 10.0


def listen(subject: Subject) -> str:
    """Whether the curator can bind its address now."""
    with RouterEndpoint(subject.listen, pair=subject.pair, roster={}) as endpoint:
        return f"{endpoint.address} can be bound; the others are told {subject.session.file.network.address}"


def address(subject: Subject) -> str:
    """Whether the curator's host name resolves."""
    where = parse_address(subject.session.file.network.address)
    if not where.is_name:
        return f"{where.text} is numeric"
    found = resolved(where)
    if not found:
        raise ConnectionFailed(
            f"The curator's host name {where.host} is unknown here.",
            advice="Correct the address, or this machine's DNS; the curator's operator can invite you to "
            "another (`hushbid invite --address`).",
        )
    return f"{where.host} is {', '.join(each.host for each in found)}"


def connection(subject: Subject) -> str:
    """Whether anything answers there."""
    where = parse_address(subject.session.file.network.address)
    silent: dict[str, str] = {}
    for each in resolved(where):
        try:
            with socket.create_connection((each.host, int(each.port)), timeout=CONNECT_SECONDS):
                others = f"; not at {', '.join(silent)}" if silent else ""
                return f"{each.host} answers at port {each.port}{others}"
        except OSError as error:
            silent[each.host] = os.strerror(error.errno) if error.errno else "no answer"
    why = ", ".join(f"{host}: {reason}" for host, reason in silent.items())
    raise ConnectionFailed(
        f"Nobody answers at {where.text} ({why}).",
        advice="Start the curator, or see to its address, where it listens, and the firewalls between. "
        "Parties may be started in any order: `--offline` leaves this out.",
    )


def handshake(subject: Subject) -> str:
    """Whether the answering peer is the roster's curator and knows our key. This does not enrol."""
    where = subject.session.file.network.address
    with DealerEndpoint(where, pair=subject.pair, server_key=subject.curator) as endpoint:
        happening = _first(endpoint)
    if happening is Happening.CONNECTED:
        return "the curator has the key that the roster gives it, and lets this party in"
    if happening is Happening.AUTHENTICATION_FAILED:
        raise ConnectionFailed(
            f"The curator at {where} does not know our key.",
            advice="Its session file has another key for this party, or has revoked it: compare the "
            "fingerprint with the curator's operator (`hushbid keys list` there).",
        )
    raise ConnectionFailed(
        f"The peer at {where} is not the curator of the roster: it has another key, or is not hushbid.",
        advice="Compare the curator's fingerprint with its operator, and check what listens there.",
    )


def _first(endpoint: DealerEndpoint) -> Happening | None:
    """The first event of a connection; None if there is none."""
    give_up = time.monotonic() + HANDSHAKE_SECONDS
    poller = zmq.Poller()
    poller.register(endpoint.monitor, zmq.POLLIN)
    while (left := give_up - time.monotonic()) > 0:
        poller.poll(min(200, int(left * 1000)))
        if happened := endpoint.happenings():
            return happened[0]
    return None
