"""How long messages of a session are."""

from __future__ import annotations

import numpy as np

from hushbid.protocol import limits
from hushbid.protocol.crypto.blinding import BROADCAST_EXTRA
from hushbid.protocol.crypto.sealing import DIGEST_BYTES
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.arrays import pack_array
from hushbid.protocol.wire.codec import HEADER_BYTES
from hushbid.protocol.wire.unlinked import PLACE_BYTES

__all__ = ["longest_to_curator", "sealed_weight_bytes"]


def sealed_weight_bytes(session: Session) -> int:
    """Bytes of an encrypted broadcast (`hushbid.protocol.crypto.blinding`)."""
    weights = np.zeros(session.weight_coordinates, dtype=np.int32)
    return len(pack_array(weights)) + BROADCAST_EXTRA


def longest_to_curator(session: Session) -> int:
    """Upper bound in bytes on any frame of an owner or the consumer in this session.

    It is below the protocol's limit for all sessions, because each connection can make the curator hold
    this much. It allows for a point, a box, three arrays of the feature map's dimension, a basis of the
    seed set's directions and all sealed maps together, as far as a message has them, and
    `SMALL_FRAME_BYTES` for everything else.
    """
    most, owners = HEADER_BYTES + limits.MAX_TARGET_BYTES, len(session.file.roster.owners)
    maps = limits.MAP_BOX_BYTES * owners
    if not session.curator_reads:
        boxes = session.batch * (session.box_length + DIGEST_BYTES)
        bid = session.file.longest_bid + boxes
        weight = 4 * session.weight_coordinates
        if session.unlinked:
            weight += PLACE_BYTES * (session.file.session.points + session.batch)
        told = (4 * 8 + 2 * 8) * owners
        return min(most, max(bid, limits.SMALL_FRAME_BYTES + max(weight, told, maps)))
    point = 8 * session.space.columns + (session.box_length if session.rule.sealed else 0)
    if session.batch > 1 or session.rule.herds:
        beside = DIGEST_BYTES + 2 * 8 + 2 * session.space.dimension
        point = session.batch * (point + beside + (0 if session.rule.sealed else limits.MAX_ATTRIBUTES))
    arrays = (3 * 8 + 2 * session.directions) * session.space.dimension
    return min(most, limits.SMALL_FRAME_BYTES + point + arrays + maps)
