"""The secret feature map on its way from the consumer to an owner (DESIGN §3, `sealed`)."""

from __future__ import annotations

from typing import Final

from hushbid.protocol.crypto.identity import Identity, PublicIdentity
from hushbid.protocol.crypto.sealing import open_between, seal_between
from hushbid.protocol.errors import Offence, RemoteProtocolError
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import SEED_BYTES, FeatureMap

__all__ = ["open_map", "seal_map"]

_CONTEXT: Final = b"hushbid secret map 1\0"


def seal_map(
    seed: bytes, digest: bytes, session: Session, owner: PublicIdentity, consumer: Identity, nonce: bytes
) -> bytes:
    """Seal the map's seed and digest for one owner, which can verify that they are the consumer's.

    Args:
        seed: `SEED_BYTES` random bytes.
        digest: Digest of the seed's map (`FeatureMap.digest`).
        nonce: Random bytes, used for this box only.

    Returns:
        `limits.MAP_BOX_BYTES` bytes.
    """
    return seal_between(
        seed + digest, owner.sealing, consumer.sealing, nonce, context=_CONTEXT + session.identifier
    )


def open_map(
    box: bytes, session: Session, consumer: PublicIdentity, owner: Identity
) -> tuple[FeatureMap, bytes]:
    """Open the result of `seal_map`, from this consumer in this session: the map and its seed.

    Raises:
        RemoteProtocolError: `MISMATCH`: the box does not open; `CONFIGURATION`: the seed gives another map
            here than at the consumer.
    """
    content = open_between(box, consumer.sealing, owner.sealing, context=_CONTEXT + session.identifier)
    feature_map = session.space.map(content[:SEED_BYTES])
    if feature_map.digest != content[SEED_BYTES:]:
        raise RemoteProtocolError(
            Offence.CONFIGURATION,
            "The consumer's feature map is not ours: the digests of W and b differ.",
            advice="Use the same version of hushbid on both sides.",
        )
    return feature_map, content[:SEED_BYTES]
