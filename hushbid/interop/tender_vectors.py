"""Vectors of the rule `tender`: trees, a signed submission with its boxes, aims, and choices with ties."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import nacl.bindings
import numpy as np

from hushbid.interop.exchange import OWNER, golden_session, key_of
from hushbid.protocol.crypto.sealing import (
    EPHEMERAL_BYTES,
    NONCE_BYTES,
    batched_digest,
    pack_content,
    seal_numbered,
    sign,
    submission_statement,
)
from hushbid.protocol.data.attributes import Attributes, pack_attributes
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.releases import Prior
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import FEATURE_UNIT
from hushbid.protocol.space.herding import herd, shortlisted
from hushbid.protocol.wire.merkle import Tree

__all__ = ["tender_vectors"]

_EPHEMERAL: Final = bytes(range(50, 50 + EPHEMERAL_BYTES))
_HANDLES: Final = (4, 258, 0)
"""Numbers of two points, and of padding."""
_ROWS: Final = (
    (-23170, 23170, 0, 1, 2, 3, -1, 256),
    (16384, 0, 1, 0, 0, 0, 0, 0),
    (16384, 0, 256, 0, 0, 0, 0, 0),
    (16384, 0, -1, 0, 0, 0, 0, 0),
    (16384, 0, 1, 0, 0, 0, 0, 0),
    (-9000, -21000, 12000, -7000, 300, 15000, -2, 1),
    (32767, -32768, 0, -32768, 32767, -32768, 32767, -32768),
    (0, 0, 0, 0, 0, 0, 0, 0),
)
"""Four points with equal scores where the third coordinates of aim and total are 0, two of them copies; the
longest point; and zeros."""
_EMBEDDING: Final = (6.0, -0.25, 0.0, FEATURE_UNIT / 2, FEATURE_UNIT * 1.5, -FEATURE_UNIT / 2, 0.125, -7.0)
"""Coordinates beyond the limit, and halves of a unit."""
_SEED_TOTAL: Final = (-6, -2, 2, 6, 20_000, -20_001, 30_003, -40_002)
_SEED_SIZE: Final = 4
_TOWARDS: Final = (5, -3, 9, 9, 0, 7, -3, 2, 9, -8, 4, 1, 0, 6)
_COMPARED: Final = 6


def tender_vectors() -> dict[str, Any]:
    """All vectors of the rule, by name."""
    session = golden_session("tender")
    return {
        "session digest": session.digest.hex(),
        "trees": [_tree(count) for count in (1, 2, 3, 5)],
        "submission": _submission(session),
        "choices": [_choice(session), _choice(golden_session("sealed"))],
        "compared": _compared(),
    }


def _tree(count: int) -> dict[str, Any]:
    leaves = [hashlib.sha256(b"hushbid vector: leaf %d" % number).digest() for number in range(count)]
    tree = Tree(leaves)
    return {
        "leaves": [leaf.hex() for leaf in leaves],
        "depth": tree.depth,
        "root": tree.root.hex(),
        "paths": [tree.path(place).hex() for place in range(count)],
    }


def _submission(session: Session) -> dict[str, Any]:
    """Two points and padding in one message."""
    recipient = key_of(CONSUMER).public.sealing
    contents = [
        pack_content(np.array(point), pack_attributes(Attributes(label, row), 40), session.box_bytes)
        for point, label, row in (((0.5, 1.0, 0.125), "b", "row-2"), ((1.0, 0.0, 0.75), "ä", "row-3"))
    ]
    handles = _HANDLES[:2]
    boxes = seal_numbered(dict(zip(handles, contents, strict=True)), recipient, _EPHEMERAL)
    boxes.append(bytes(session.box_length))
    ephemeral_key = nacl.bindings.crypto_scalarmult_base(_EPHEMERAL)
    bound = [ephemeral_key + bytes(recipient) + handle.to_bytes(8, "big") for handle in handles]
    features = [*np.array(_ROWS[:2], dtype=np.int16), np.zeros(len(_ROWS[0]), dtype=np.int16)]
    digests = list(map(batched_digest, _HANDLES, boxes, features))
    tree = Tree(digests)
    statement = submission_statement(session.identifier, OWNER, 1, tree.depth, tree.root)
    return {
        "owner": OWNER,
        "round": 1,
        "handles": list(_HANDLES),
        "features": [row.tolist() for row in features],
        "contents": [content.hex() for content in contents],
        "ephemeral secret": _EPHEMERAL.hex(),
        "nonces": [hashlib.blake2b(each, digest_size=NONCE_BYTES).hexdigest() for each in bound],
        "boxes": [box.hex() for box in boxes],
        "digests": [digest.hex() for digest in digests],
        "depth": tree.depth,
        "root": tree.root.hex(),
        "paths": [tree.path(place).hex() for place in range(len(_HANDLES))],
        "statement": statement.hex(),
        "signature": sign(statement, key_of(OWNER).signing).hex(),
    }


def _choice(session: Session) -> dict[str, Any]:
    """The aim of a session's target, and all rows in the order of their choice."""
    embedding, total = np.array(_EMBEDDING), np.array(_SEED_TOTAL, dtype=np.int64)
    prior = Prior.of_total(total, _SEED_SIZE)
    aim = session.target.aim(embedding, prior)
    features = np.array(_ROWS, dtype=np.int16)
    values = aim.statistic.of(features)
    clips = aim.statistic.centre is not None
    return {
        "mechanism": session.target.name,
        "embedding": embedding.tolist(),
        "seed_total": total.tolist(),
        "seed_size": _SEED_SIZE,
        **({"c": prior.centre.tolist(), "rho": prior.spread, "R": prior.radius} if clips else {}),
        "features": features.tolist(),
        "y": values.tolist(),
        "a": aim.mean.tolist(),
        "chosen": list(herd(values, aim.mean, len(features), features=features)),
    }


def _compared() -> dict[str, Any]:
    """The rows that are compared when only a few may be; y has one coordinate, and the aim is 1."""
    features = np.array(_TOWARDS, dtype=np.int16)[:, None]
    rows = shortlisted(
        lambda some: some.astype(np.int64),
        np.ones(1, dtype=np.int64),
        features,
        np.arange(len(features)),
        most=_COMPARED,
    )
    return {"y·a": list(_TOWARDS), "most": _COMPARED, "rows": rows.tolist()}
