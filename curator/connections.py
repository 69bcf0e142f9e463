"""Which connection of each peer is listened to, and how often a peer may open another.

Every frame that is recorded or logged passes here first. A connection counts from its hello on, may say one
hello, and is ignored once it is refused: a peer that floods the curator makes it count, not write. New
connections are counted as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from enum import StrEnum
from typing import Final

from hushbid.protocol import limits
from hushbid.protocol.errors import Offence, RemoteProtocolError
from hushbid.protocol.wire.codec import HEADER_BYTES, decode_frame, encode_message
from hushbid.protocol.wire.messages import CONTROL_SEQUENCE, Beat, Refused

__all__ = ["REPLACED", "Connections", "Ignored"]

REPLACED: Final = Refused(
    code=Offence.DUPLICATE.value,
    detail="Another process has said hello with this party's key since.",
    advice="A party runs once, with one state directory: stop the other process, or leave it to that one.",
)
"""The refusal of a frame on a connection that the same peer has replaced."""

_BEAT: Final = encode_message(Beat())
_HELLO: Final = b"\x88\xa4kind\xa5hello"
"""The first bytes of every hello's body."""
_ROUTES: Final = 2**32


class Ignored(StrEnum):
    """Why a frame was neither recorded nor answered; the keys of `Connections.ignored`."""

    UNNAMED = "unnamed"
    """In an insecure session: the connection has not said which party it is."""
    NO_HELLO = "no-hello"
    """Its connection was replaced or refused, or never said hello. The peer will send the frame again."""
    OLD_CONNECTION = "old-connection"
    """A later connection of the same peer was welcomed; who says hello is told (`Connections.late`)."""
    SECOND_HELLO = "second-hello"
    """An unnumbered or unreadable frame on a connection that had already said hello or was refused."""
    TOO_MANY_REFUSALS = "too-many-refusals"
    """It would open a connection for a peer that was refused `MAX_REFUSALS_PER_PEER` times."""
    TOO_MANY_HELLOS = "too-many-hellos"
    """It would open a connection for a peer that already had `MAX_HELLOS_PER_PEER`."""


class Connections:
    """The connections of all peers, identified by the endpoint's routes; no two routes are equal."""

    def __init__(self) -> None:
        self.current: dict[str, bytes] = {}
        """The connection with each peer's newest accepted hello."""
        self.ignored: Counter[str] = Counter()
        """Number of ignored frames, by `Ignored`."""
        self._greeting: dict[str, bytes] = {}
        self._greeted: set[bytes] = set()
        self._newest: dict[str, bytes] = {}
        """The newest connection of each peer that was welcomed."""
        self._late: list[bytes] = []
        self._hellos: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self._to_be_told: defaultdict[str, deque[bytes]] = defaultdict(deque)

    def hears(self, peer: str, route: bytes, frame: bytes) -> bool:
        """Whether a frame is to be handled; if not, it is counted."""
        if self.current.get(peer) == route:
            if not frame.startswith(_HELLO, HEADER_BYTES):
                return True
            self.ignored[Ignored.SECOND_HELLO] += 1
            return False
        reason = self._why_no_greeting(peer, route, frame)
        if reason is not None:
            self.ignored[reason] += 1
            if reason is Ignored.OLD_CONNECTION:
                self._greeted.add(route)
                self._hellos[peer] += 1
                self._late.append(route)
            return False
        self._greeted.add(route)
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
        if self._hellos[peer] >= limits.MAX_HELLOS_PER_PEER:
            return Ignored.TOO_MANY_HELLOS
        newest = self._greeting.get(peer, self._newest.get(peer))
        if newest is not None and _is_older(route, newest):
            # A delayed hello from a connection that its peer gave up, or of another process that connected
            # before. Compared with the frames exchanged since, it would look as if the peer had lost its
            # state.
            return Ignored.OLD_CONNECTION
        return None

    def late(self) -> list[bytes]:
        """Connections whose hello came after that of a newer one, since the last call: they were replaced."""
        late, self._late = self._late, []
        return late

    def greets(self, peer: str) -> bool:
        """Whether a peer has said hello on a connection that is neither welcomed nor refused yet."""
        return peer in self._greeting

    def accept(self, peer: str) -> bytes | None:
        """Make the connection of a peer's newest hello its own; return the one that it replaces, if any."""
        before = self.current.get(peer)
        route = self._greeting.pop(peer, None)
        if route is None:
            return None
        self.current[peer] = self._newest[peer] = route
        return before

    def refuse(self, peer: str, route: bytes) -> bool:
        """Ignore a connection from now on; return whether this was the peer's last permitted refusal."""
        self._refusals[peer] += 1
        self._to_be_told[peer].append(route)
        if self._greeting.get(peer) == route:
            del self._greeting[peer]
        if self.current.get(peer) == route:
            del self.current[peer]
        return self._refusals[peer] == limits.MAX_REFUSALS_PER_PEER

    def next_to_be_told(self, peer: str) -> bytes:
        """The connection whose refusal is sent next: refusals are sent in the order of `refuse`."""
        return self._to_be_told[peer].popleft()


def _is_older(route: bytes, other: bytes) -> bool:
    """Whether one connection is older than another: libzmq counts them in 32 bits, which wrap around."""
    ahead = (int.from_bytes(other) - int.from_bytes(route)) % _ROUTES
    return 0 < ahead < _ROUTES // 2


def _may_be_hello(frame: bytes) -> bool:
    """Whether a frame is unnumbered, as hellos are, and not a beat; unreadable frames get an answer."""
    try:
        decoded = decode_frame(frame)
    except RemoteProtocolError:
        return True
    return decoded.sequence == CONTROL_SEQUENCE and decoded.body != _BEAT
