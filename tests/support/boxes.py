"""Boxes as a session has them, with a number or without."""

from __future__ import annotations

from typing import Final

from hushbid.protocol.crypto.sealing import open_sealed, seal, seal_numbered
from hushbid.protocol.session.session import Session

EPHEMERAL: Final = bytes(range(32))


def sealed_to(session: Session, party: str, content: bytes, handle: int = 1) -> bytes:
    """A box of this number that a party can open."""
    recipient = session.public_identity(party).sealing
    if session.numbered_boxes:
        return seal_numbered({handle: content}, recipient, EPHEMERAL)[0]
    return seal(content, recipient, EPHEMERAL)


def opened_by(session: Session, party: str, box: bytes, handle: int = 1) -> bytes:
    """A party's content of a box of this number."""
    number = handle if session.numbered_boxes else None
    return open_sealed(box, session.simulated_identity(party).sealing, number=number)
