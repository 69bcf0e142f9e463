"""What whoever gets points checks of them: docs/wire.md, "Sealed points"."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import nacl.exceptions
import nacl.signing

from tests.interop.minimal import formats
from tests.interop.minimal.formats import Session


def root_by(node: bytes, place: int, path: list[bytes]) -> bytes:
    """The root that a leaf's digest leads to."""
    for level, other in enumerate(path):
        pair = other + node if place >> level & 1 else node + other
        node = hashlib.sha256(b"hushbid node 1\0" + pair).digest()
    return node


def is_signed(key: nacl.signing.VerifyKey, said: bytes, signature: bytes) -> bool:
    """Whether a signature holds."""
    try:
        key.verify(said, signature)
    except (nacl.exceptions.CryptoError, ValueError):
        return False
    return True


def owner_signed(session: Session, purchase: Mapping[str, Any]) -> bool:
    """Whether an owner signed what is delivered of it: a point alone, or one of a batch or submission."""
    candidate, place = purchase["candidate"], (session.identifier, purchase["owner"], purchase["bid_round"])
    handle = int(purchase["handle"][0])
    digest = formats.batched_digest(handle, candidate["box"], candidate["features"])
    if "path" in candidate:
        nodes = parts(candidate["path"])
        root = root_by(digest, candidate["place"], nodes)
        said = formats.root_statement(*place, len(nodes), root)
    elif "digests" in candidate:
        if digest not in parts(candidate["digests"]):
            return False
        said = formats.batch_statement(*place, candidate["digests"])
    else:
        said = formats.candidate_statement(*place, handle, candidate["box"], candidate["features"])
    return is_signed(session.verify_key(purchase["owner"]), said, candidate["signature"])


def parts(whole: bytes, size: int = 32) -> list[bytes]:
    """Its digests, or other parts of one size."""
    return [whole[at : at + size] for at in range(0, len(whole), size)]
