"""The computations of `tender` that an owner of few rows lacks, written from docs/wire.md."""

from __future__ import annotations

import hashlib

import nacl.public


def root_of(digest: bytes, place: int, path: bytes) -> tuple[int, bytes]:
    """Depth and root of the tree that a point's digest leads to."""
    depth = len(path) // 32
    for level in range(depth):
        other = path[32 * level : 32 * level + 32]
        pair = other + digest if place >> level & 1 else digest + other
        digest = hashlib.sha256(b"hushbid node 1\0" + pair).digest()
    return depth, digest


def opened(box: bytes, number: int, secret: nacl.public.PrivateKey) -> bytes:
    """The content of a numbered box."""
    bound = box[:32] + bytes(secret.public_key) + number.to_bytes(8, "big")
    nonce = hashlib.blake2b(bound, digest_size=24).digest()
    return nacl.public.Box(secret, nacl.public.PublicKey(box[:32])).decrypt(box[32:], nonce)


def compared(rows: list[int], towards: list[int], most: int) -> set[int]:
    """The remaining rows among which a message's are chosen; `towards` is y·a of every row."""
    if len(rows) <= most:
        return set(rows)
    half = most // 2
    order = sorted(rows, key=lambda row: (-towards[row], row))
    rest = order[half:]
    return {*order[:half], *(rest[place * len(rest) // half] for place in range(half))}
