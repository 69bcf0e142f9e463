"""Vectors of the rule `blind`: keys, a broadcast, masks, a bid with void boxes, and an account."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from hushbid.interop.exchange import OWNER, SEED, golden_session, key_of, session_text
from hushbid.protocol.crypto.blinding import (
    MASK_BYTES,
    NOT_SENT,
    BlindKeys,
    account_statement,
    blind_bid_statement,
    blind_digest,
    broadcast_statement,
)
from hushbid.protocol.crypto.sealing import EPHEMERAL_BYTES, pack_content, seal, sign
from hushbid.protocol.crypto.unlinking import OwnMask, PairKey
from hushbid.protocol.data.attributes import Attributes, pack_attributes
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.account import account_content
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import Features, Weights
from hushbid.protocol.space.jitter import scores_of
from hushbid.protocol.space.scoring import score_bound
from hushbid.protocol.wire.arrays import pack_array
from hushbid.protocol.wire.blind import Account
from hushbid.protocol.wire.unlinked import PLACE_BYTES

__all__ = ["blind_vectors"]

_ROUND: Final = 2
_ROWS: Final = ((0.0, 0.25, 0.5), (0.5, 1.0, 0.125), (1.0, 0.0, 0.75), (0.5, 1.0, 0.125))
"""Points in boxes 1 to 4, the first two of them sent in round 1; the fourth repeats the second."""


def blind_vectors() -> dict[str, Any]:
    """All vectors of the rule, by name."""
    session = golden_session("blind")
    keys = BlindKeys(SEED, session.identifier)
    weights = np.array([2**22, -(2**21), 3, 0, -7, 2**20, 12345, -98765, 40][: session.weight_coordinates])
    weights = weights.astype(np.int32)
    features = session.space.map(SEED).hash(np.array(_ROWS))
    return {
        "toml": session_text("blind"),
        "session digest": session.digest.hex(),
        "seed": SEED.hex(),
        "keys": {"broadcast": keys._broadcast.hex(), "mask": keys._mask.hex()},
        "broadcast": _broadcast(session, keys, weights),
        "masks": _masks(session, keys, weights, features),
        "bid": _bid(session, keys, weights, features),
        "account": _account(session),
        "unlinked": _unlinked(session, keys, weights, features),
    }


def _broadcast(session: Session, keys: BlindKeys, weights: Weights) -> dict[str, Any]:
    box = keys.encrypt(weights, _ROUND)
    statement = broadcast_statement(session.identifier, _ROUND, box)
    return {
        "round": _ROUND,
        "weights": weights.tolist(),
        "weights as an array": pack_array(weights).hex(),
        "box": box.hex(),
        "statement": statement.hex(),
        "signature": sign(statement, key_of(CONSUMER).signing).hex(),
    }


def _masks(session: Session, keys: BlindKeys, weights: Weights, features: Features) -> dict[str, Any]:
    bound = score_bound(weights, session.space.coordinate_bound, session.jitter)
    mask = keys.mask(_ROUND, bound)
    scores = [-bound, -1, 0, 0, 1, bound]
    rows = [features[at] for at in (0, 0, 0, 1, 1, 2)]
    return {
        "round": _ROUND,
        "B": bound,
        "scores": scores,
        "features": [row.tolist() for row in rows],
        "masked": [score.hex() for score in mask.of(scores, np.stack(rows))],
        "of nothing": mask.of_nothing.hex(),
    }


def _bid(session: Session, keys: BlindKeys, weights: Weights, features: Features) -> dict[str, Any]:
    """An owner's second bid: two points, one of them a copy of an earlier one, and an empty box."""
    bound = score_bound(weights, session.space.coordinate_bound, session.jitter)
    mask, consumer, batch = keys.mask(_ROUND, bound), key_of(CONSUMER).public, session.batch
    attributes = [pack_attributes(Attributes(label, f"row-{label}"), 40) for label in "abcd"]
    contents = [
        pack_content(np.array(row), attribute, session.box_bytes)
        for row, attribute in zip(_ROWS[2:], attributes[2:], strict=True)
    ]
    secrets = [bytes([number]) * EPHEMERAL_BYTES for number in range(1, batch)]
    boxes = [
        seal(content, consumer.sealing, secret) for content, secret in zip(contents, secrets, strict=True)
    ]
    boxes.append(bytes(session.box_length))  # an empty box
    known = scores_of(features, weights, session.jitter).tolist()
    # The first bid also had two points and an empty box, with a lower number than new boxes.
    scores = [known[0], known[1], None, known[2], known[3], None]
    rows = [features[0], features[1], None, features[2], features[3], None]
    masked = [
        mask.of_nothing if score is None or row is None else mask.of([score], row[None])[0]
        for score, row in zip(scores, rows, strict=True)
    ]
    said = b"".join(masked)
    digests = [blind_digest(batch + 1 + place, box) for place, box in enumerate(boxes)]
    digests.append(hashlib.sha256(said).digest())
    statement = blind_bid_statement(session.identifier, OWNER, _ROUND, digests)
    return {
        "owner": OWNER,
        "round": _ROUND,
        "first box": batch + 1,
        "contents": [content.hex() for content in contents],
        "ephemeral secrets": [secret.hex() for secret in secrets],
        "boxes": [box.hex() for box in boxes],
        "scores": scores,
        "features": [None if row is None else row.tolist() for row in rows],
        "masked": [score.hex() for score in masked],
        "masked, not sent": NOT_SENT.hex(),
        "digests": [digest.hex() for digest in digests],
        "statement": statement.hex(),
        "signature": sign(statement, key_of(OWNER).signing).hex(),
        "award": _award(boxes, masked, batch),
    }


def _award(boxes: list[bytes], masked: list[bytes], batch: int) -> list[dict[str, Any]]:
    """Awards of the bid's boxes, and the consumer's findings."""

    def of(handle: int, verdict: str, **changes: str) -> dict[str, Any]:
        there = {"box": boxes[handle - batch - 1].hex(), "score": masked[handle - 1].hex()}
        return {"handle": handle, **there, **changes, "verdict": verdict}

    first = batch + 1
    broken = bytes([boxes[0][0] ^ 1]) + boxes[0][1:]
    return [
        of(first, "good"),
        of(first + 1, "good"),
        of(first + 2, "nothing"),
        of(first, "the box does not open", box=broken.hex()),
        of(first, "the owner's signature does not hold", box=boxes[1].hex()),
        of(first, "the score is not the point's", score=masked[batch + 1].hex()),
        of(first + 2, "the box holds nothing, and was scored as a point", score=masked[batch].hex()),
    ]


def _unlinked(session: Session, keys: BlindKeys, weights: Weights, features: Features) -> dict[str, Any]:
    """The scores of the owner's second bid in their places, with the identifier of this session.

    Box 3 is empty, and box 2 is not shown.
    """
    owner, consumer = key_of(OWNER), key_of(CONSUMER)
    pair = PairKey(owner.sealing, consumer.public.sealing, session.identifier)
    places = pair.places(_ROUND, session.batch)
    bound = score_bound(weights, session.space.coordinate_bound, session.jitter)
    mask = OwnMask(keys.mask(_ROUND, bound), places)
    shown = {1: 0, 4: 2, 5: 3}
    """Number of a box, and the row in it; the sixth and third are empty."""
    rows = features[list(shown.values())]
    scores = scores_of(rows, weights, session.jitter).tolist()
    masked = mask.floors()
    for handle, score in zip(shown, mask.of(list(shown), scores, rows), strict=True):
        masked[handle - 1] = score
    taken = sorted(places.place(handle) for handle in (1, 2))
    return {
        "round": _ROUND,
        "batch": session.batch,
        "pair key": pair._key.hex(),
        "round key": places._key.hex(),
        "places of boxes": [places.place(handle) for handle in range(1, places.count + 1)],
        "best first, in the order of numbers": list(places.shuffled(range(session.batch))),
        "low bits": places.low().tolist(),
        "spare": places.spare,
        "boxes": list(shown),
        "scores": scores,
        "features": rows.tolist(),
        "masked, by number": [score.hex() for score in masked],
        "scores of the bid": places.arranged(np.array(masked, dtype=f"V{MASK_BYTES}")).hex(),
        "taken, of boxes 1 and 2": b"".join(place.to_bytes(PLACE_BYTES, "big") for place in taken).hex(),
    }


def _account(session: Session) -> Mapping[str, Any]:
    told: dict[str, Any] = {
        "settlement": np.array([0.25]),
        "errors": np.array([-1.0]),
        "gains": np.array([-0.125]),
        "gain_errors": np.array([0.5]),
        "signal": -1,
        "sold": np.array([5], dtype=np.int64),
        "void": np.array([1], dtype=np.int64),
    }
    content = account_content(Account.model_construct(**told, signature=bytes(64)))
    statement = account_statement(session.identifier, content)
    return {
        **{name: part if isinstance(part, int) else part.tolist() for name, part in told.items()},
        "content": content.hex(),
        "statement": statement.hex(),
        "signature": sign(statement, key_of(CONSUMER).signing).hex(),
    }
