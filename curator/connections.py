"""Which connection of each peer is listened to, and how often a peer may make another.

All that is recorded and logged of a peer comes from frames that pass here. A connection is heard from its
hello on, says one hello in its life, and is not heard any more once it was refused: a peer that floods the
curator makes it count, not write. New connections are counted, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from enum import StrEnum
from typing import Final

from protocol import limits
from protocol.errors import Offence, RemoteProtocolError
from protocol.wire.codec import HEADER_BYTES, decode_frame, encode_message
from protocol.wire.messages import CONTROL_SEQUENCE, Beat, Refused

__all__ = ["REPLACED", "Connections", "Ignored"]

REPLACED: Final = Refused(
    code=Offence.DUPLICATE.value,
    detail="Another process has said hello with this party's key since.",
    advice="A party runs once, with one state directory: stop the other process, or leave it to that one.",
)
"""A frame on a connection that a newer one of the same peer has replaced."""

_BEAT: Final = encode_message(Beat())
_HELLO: Final = b"\x88\xa4kind\xa5hello"
"""How the body of every hello begins."""
_ROUTES: Final = 2**32


class Ignored(StrEnum):
    """Why a frame was neither recorded nor answered; the keys of `Connections.ignored`."""

    UNNAMED = "unnamed"
    """In an insecure session: its connection has not said whose it is."""
    NO_HELLO = "no-hello"
    """Its connection was replaced or refused, or never said hello. What it has to say, it will say again."""
    OLD_CONNECTION = "old-connection"
    """Its connection is older than one on which its peer has said hello since: what comes of it is late."""
    SECOND_HELLO = "second-hello"
    """An unnumbered or unreadable frame of a connection that had said hello, or was refused, before."""
    TOO_MANY_REFUSALS = "too-many-refusals"
    """It would begin a connection of a peer that was refused `MAX_REFUSALS_PER_PEER` times."""
    TOO_MANY_HELLOS = "too-many-hellos"
    """It would begin a connection of a peer that had `MAX_HELLOS_PER_PEER`."""


class Connections:
    """The connections of all peers. A connection's route is what the endpoint calls it; no two are equal."""

    def __init__(self) -> None:
        self.current: dict[str, bytes] = {}
        """The connection of each peer's newest accepted hello."""
        self.ignored: Counter[str] = Counter()
        """Frames that were not listened to, by `Ignored`."""
        self._greeting: dict[str, bytes] = {}
        self._greeted: set[bytes] = set()
        self._newest: dict[str, bytes] = {}
        """The newest connection on which each peer has said hello."""
        self._hellos: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self._to_be_told: defaultdict[str, deque[bytes]] = defaultdict(deque)

    def hears(self, peer: str, route: bytes, frame: bytes) -> bool:
        """Whether a frame is to be dealt with; if not, it is counted."""
        if self.current.get(peer) == route:
            if not frame.startswith(_HELLO, HEADER_BYTES):
                return True
            self.ignored[Ignored.SECOND_HELLO] += 1
            return False
        reason = self._why_no_greeting(peer, route, frame)
        if reason is not None:
            self.ignored[reason] += 1
            return False
        self._greeted.add(route)
        self._newest[peer] = route
        self._hellos[peer] += 1
        self._greeting[peer] = route
        return True

    def _why_no_greeting(self, peer: str, route: bytes, frame: bytes) -> Ignored | None:
        if self._refusals[peer] >= limits.MAX_REFUSALS_PER_PEER:
            return Ignored.TOO_MANY_REFUSALS
        if not _may_be_hello(frame):
            return Ignored.NO_HELLO
        if route in self._greeted:
            return Ignored.SECOND_HELLO
        if peer in self._newest and _is_older(route, self._newest[peer]):
            # A hello that was held up, on a connection that its peer has given up: by what was exchanged
            # since, it would look as if the peer had lost its state.
            return Ignored.OLD_CONNECTION
        if self._hellos[peer] >= limits.MAX_HELLOS_PER_PEER:
            return Ignored.TOO_MANY_HELLOS
        return None

    def accept(self, peer: str) -> bytes | None:
        """Take the connection of its newest hello for the peer's, when it is welcomed.

        Returns:
            The one in whose place it is, if there was one.
        """
        before = self.current.get(peer)
        route = self._greeting.pop(peer, None)
        if route is None:
            return None
        self.current[peer] = route
        return before

    def refuse(self, peer: str, route: bytes) -> bool:
        """Listen no more to a connection; returns whether this was the last refusal that the peer can get."""
        self._refusals[peer] += 1
        self._to_be_told[peer].append(route)
        if self._greeting.get(peer) == route:
            del self._greeting[peer]
        if self.current.get(peer) == route:
            del self.current[peer]
        return self._refusals[peer] == limits.MAX_REFUSALS_PER_PEER

    def next_to_be_told(self, peer: str) -> bytes:
        """The connection whose refusal leaves next: refusals leave in the order of `refuse`."""
        return self._to_be_told[peer].popleft()


def _is_older(route: bytes, other: bytes) -> bool:
    """Whether a connection was made before another one: libzmq counts them, in 32 bits that wrap around."""
    ahead = (int.from_bytes(other) - int.from_bytes(route)) % _ROUTES
    return 0 < ahead < _ROUTES // 2


def _may_be_hello(frame: bytes) -> bool:
    """Whether a frame is unnumbered, as hellos are, but no beat; who sends what cannot be read is told so."""
    try:
        decoded = decode_frame(frame)
    except RemoteProtocolError:
        return True
    return decoded.sequence == CONTROL_SEQUENCE and decoded.body != _BEAT
