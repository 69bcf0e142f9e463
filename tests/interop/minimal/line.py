"""A party's connection to the curator: docs/wire.md, "Frame" and "Connections"."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import nacl.signing
import zmq
from zmq.utils import z85
from zmq.utils.monitor import recv_monitor_message

from tests.interop.minimal import formats
from tests.interop.minimal.formats import Frame, Session, packed

Message: TypeAlias = Mapping[str, Any]


class Party:
    """The common part of an owner and the consumer; a key signs."""

    role: str
    public: bytes | None = None
    """The digest of a map that is public."""
    outcome: str | None = None
    """As the close has it."""

    def __init__(self, session: Session, name: str, key: nacl.signing.SigningKey) -> None:
        self.session, self.name, self._key = session, name, key

    def begin(self) -> Message | None:
        """The messages after the welcome, unasked."""

    def told(self, kind: str, message: Message) -> Message:
        """The answer to a message of the rounds."""
        raise ValueError(f"a {kind} has no place here")

    def answer(self, message: Message) -> Message:
        """The answer to a numbered message of the curator's."""
        if message["kind"] != "close":
            return self.told(message["kind"], message)
        self.outcome = message["outcome"]
        # Nobody keeps a transcript here: the head is of what was said last.
        head = hashlib.sha256(message["head"]).digest()
        said = formats.head_statement(self.session.identifier, self.name, head)
        return {"kind": "farewell", "head": head, "signature": self.sign(said)}

    def sign(self, said: bytes) -> bytes:
        return self._key.sign(said).signature


class Line:
    """The connection to the curator, by CURVE with `key` unless insecure, and the numbered frames on it."""

    def __init__(self, party: Party, key: nacl.signing.SigningKey) -> None:
        tables = party.session.tables
        self._party, self._session = party, party.session
        self._sent = self._received = 0
        self._held: deque[Frame] = deque()
        self._welcomed = False
        self._context: zmq.Context[Any] = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.linger = 2000
        self._established = zmq.EVENT_CONNECTED
        if not tables["network"]["insecure"]:
            self._established = zmq.EVENT_HANDSHAKE_SUCCEEDED
            private = key.to_curve25519_private_key()
            self._socket.curve_secretkey = z85.encode(bytes(private))
            self._socket.curve_publickey = z85.encode(bytes(private.public_key))
            self._socket.curve_serverkey = z85.encode(bytes(formats.curve_key(tables["roster"]["curator"])))
        self._monitor = self._socket.get_monitor_socket(self._established | zmq.EVENT_DISCONNECTED)
        self._address = tables["network"]["address"]
        self._socket.connect(self._address)

    def run(self) -> int:
        """Take part to the end; returns the exit code."""
        timeouts = self._session.tables["timeouts"]
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._monitor, zmq.POLLIN)
        heard = beaten = time.monotonic()
        while self._party.outcome is None:
            ready = dict(poller.poll(timeouts["beat"] * 1000))
            now = time.monotonic()
            if self._monitor in ready:
                self._follow(recv_monitor_message(self._monitor)["event"])
            if self._socket in ready:
                heard = now
                self._take(Frame.read(self._socket.recv()))
            if self._welcomed and now - beaten >= timeouts["beat"]:
                beaten = now
                self._say(0, {"kind": "beat"})
            if now - heard > timeouts["abandon" if self._received else "enrolment"]:
                return 3
        return 0 if self._party.outcome == "complete" else 1

    def close(self) -> None:
        """Send the rest, and leave."""
        self._socket.disable_monitor()
        self._monitor.close()
        self._socket.close()
        self._context.term()

    def _follow(self, event: int) -> None:
        self._welcomed = False
        if event == self._established:
            how_far = {"software": "minimal 1", "sent": self._sent, "received": self._received}
            whose = {"role": self._party.role, "name": self._party.name, "session": self._session.digest}
            self._say(0, {"kind": "hello", "versions": [self._session.version], **whose, **how_far})

    def _take(self, frame: Frame) -> None:
        message = formats.message_of(frame.body)
        if frame.sequence == 0:
            self._take_unnumbered(message)
            return
        self._release(frame.acknowledged)
        if frame.sequence <= self._received:
            return
        if frame.session != self._session.identifier:
            raise ValueError("the frame is of another session")
        if not self._welcomed or frame.sequence != self._received + 1:
            self._connect_anew()
            return
        answer = self._party.answer(message)
        self._received = frame.sequence
        self._sent += 1
        self._say(self._sent, answer)

    def _connect_anew(self) -> None:
        """Give the connection up: somebody on the line removed a frame."""
        self._welcomed = False
        self._socket.disconnect(self._address)
        self._socket.connect(self._address)

    def _take_unnumbered(self, message: Message) -> None:
        if message["kind"] == "refused":
            raise ValueError(f"refused ({message['code']}): {message['detail']} {message['advice']}")
        if message["kind"] != "welcome":
            return
        if (message["version"], message["feature_map"]) != (self._session.version, self._party.public):
            raise ValueError("the curator speaks another version, or has another feature map")
        self._welcomed = True
        self._release(message["received"])
        for frame in self._held:
            self._socket.send(frame.data)
        if not self._sent and (said := self._party.begin()) is not None:
            self._sent = 1
            self._say(1, said)

    def _release(self, acknowledged: int) -> None:
        while self._held and self._held[0].sequence <= acknowledged:
            self._held.popleft()

    def _say(self, sequence: int, message: Message) -> None:
        acknowledged = self._received if sequence else 0
        frame = Frame(self._session.identifier, sequence, acknowledged, packed(message))
        if sequence:
            self._held.append(frame)
        self._socket.send(frame.data)


def run(make: Callable[..., Party], *options: str, prog: str) -> tuple[Party, int]:
    """Take part to the end, by the command line; returns the party and the exit code.

    A party is made from its session, its key, and the other options.
    """
    parser = argparse.ArgumentParser(prog=prog)
    for option in ("session", "key", *options):
        parser.add_argument(f"--{option}", required=True)
    given = vars(parser.parse_args())
    session, key = Session.read(Path(given.pop("session"))), formats.key_of_file(Path(given.pop("key")))
    party = make(session, key, **given)
    line = Line(party, key)
    try:
        return party, line.run()
    except ValueError as error:
        print(error, file=sys.stderr)
        return party, 2
    finally:
        line.close()


def signing_key(session: Session, name: str, key: nacl.signing.SigningKey) -> nacl.signing.SigningKey:
    """The key with which a party signs and opens."""
    noise = session.tables["noise"]
    simulated = noise["source"] == "simulated"
    return formats.simulated_key(session.digest, noise["seed"], name) if simulated else key
