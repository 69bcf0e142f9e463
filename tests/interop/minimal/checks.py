"""The recipient's checks of points: docs/wire.md, "Sealed points"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import nacl.exceptions
import nacl.signing

from tests.interop.minimal import formats
from tests.interop.minimal.formats import Session


def root_by(node: bytes, place: int, path: list[bytes]) -> bytes:
    """The root that a leaf's digest leads to."""
    for level, other in enumerate(path):
        pair = (other, node) if place >> level & 1 else (node, other)
        node = formats.node(*pair)
    return node


def root_of(opening: bytes, node: bytes) -> bytes:
    """The root of a row's leaf by the opening before its content; none beyond the tree."""
    place, path = int.from_bytes(opening[16:20], "big"), formats.parts(opening[20:])
    return root_by(node, place, path) if place >> len(path) == 0 else b""


def is_signed(key: nacl.signing.VerifyKey, said: bytes, signature: bytes) -> bool:
    """Whether a signature holds."""
    try:
        key.verify(said, signature)
    except (nacl.exceptions.CryptoError, ValueError):
        return False
    return True


def owner_signed(session: Session, purchase: Mapping[str, Any]) -> bool:
    """Whether an owner signed its delivered points: a single one, or a batch's or submission's."""
    candidate, place = purchase["candidate"], (session.identifier, purchase["owner"], purchase["bid_round"])
    handle = int(purchase["handle"][0])
    hashed = formats.hashed(candidate["box"], candidate["features"])
    digest = formats.batched_digest(handle, hashed)
    if "path" in candidate:
        nodes = formats.parts(candidate["path"])
        root = root_by(digest, candidate["place"], nodes)
        said = formats.statement("submission", *place, len(nodes), root)
    elif "digests" in candidate:
        if digest not in formats.parts(candidate["digests"]):
            return False
        said = formats.batch_statement(*place, candidate["digests"])
    else:
        said = formats.candidate_statement(*place, handle, hashed)
    return is_signed(session.verify_key(purchase["owner"]), said, candidate["signature"])
