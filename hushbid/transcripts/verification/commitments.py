"""Check the order of commitments in a transcript: owners commit to rows before they see the map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hushbid.protocol.errors import RemoteProtocolError
from hushbid.protocol.names import CONSUMER, CURATOR, an
from hushbid.protocol.session.points import signs_rows
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.verify import RecordedFrame
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import Commitment, Roots

__all__ = ["KINDS", "Commitments"]

_RELEASES: Final = ("target", "subspace-target", "nested-target", "maps")
KINDS: Final = frozenset({"commitment", "roots", "secret-map", *_RELEASES})
"""The relevant kinds of messages."""


class Commitments:
    """Takes the frames of a party's transcript, in order.

    Args:
        fault: Called with a record's number and its fault.
    """

    def __init__(self, session: Session, party: str, fault: Callable[[int, str], None]) -> None:
        self._session = session
        self._party = party
        self._fault = fault
        self._committed: dict[str, Commitment] = {}
        """Each owner's commitment in this file."""
        self._told: frozenset[str] | None = None
        """Owners whose roots the consumer knows; None before it is told."""

    def take(self, record: int, frame: RecordedFrame) -> None:
        """Take a frame of `KINDS` when it is first sent or received."""
        owner = self._party if self._party not in (CURATOR, CONSUMER) else frame.peer
        if frame.message == "commitment":
            self._commit(record, owner, frame.body)
        elif frame.message == "roots":
            self._tell(record, frame.body)
        elif frame.message == "secret-map":
            known = self._told if self._party == CURATOR else self._committed
            if owner not in (known or ()):
                self._fault(record, f"a map came to {owner} before its rows were committed to")
        elif self._told is None:
            self._fault(record, f"{an(frame.message)} left before the owners' rows were committed to")

    def _commit(self, record: int, owner: str, body: bytes) -> None:
        message = _decoded(Direction.OWNER_TO_CURATOR, body)
        if not isinstance(message, Commitment) or not signs_rows(self._session, owner, message):
            self._fault(record, f"a commitment of {owner} is not signed by it")
        elif owner in self._committed:
            self._fault(record, f"{owner} committed to its rows a second time")
        else:
            self._committed[owner] = message

    def _tell(self, record: int, body: bytes) -> None:
        message = _decoded(Direction.CURATOR_TO_CONSUMER, body)
        try:
            found = message.of(self._session.file.owners) if isinstance(message, Roots) else None
        except ValueError:
            found = None
        if found is None:
            self._fault(record, "the roots are not those of the session's owners")
            return
        if self._told is not None:
            self._fault(record, "the roots were announced a second time")
        self._told = frozenset(found)
        for owner, told in found.items():
            if not signs_rows(self._session, owner, told):
                self._fault(record, f"the root announced for {owner} is not signed by it")
            elif self._party == CURATOR and self._committed.get(owner) != told:
                self._fault(record, f"the root announced for {owner} is not what it committed to")


def _decoded(direction: Direction, body: bytes) -> object:
    try:
        return decode_message(direction, body)
    except RemoteProtocolError:
        return None
