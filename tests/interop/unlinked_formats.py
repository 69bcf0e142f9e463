"""The computations of parties whose blind curator cannot link, written from docs/wire.md alone."""

from __future__ import annotations

import hashlib

import nacl.bindings
import nacl.public
import numpy as np


def round_key(
    secret: nacl.public.PrivateKey, other: nacl.public.PublicKey, session: bytes, number: int
) -> tuple[bytes, bytes]:
    """The pair key and the round key."""
    shared = nacl.bindings.crypto_box_beforenm(bytes(other), bytes(secret))
    pair = hashlib.blake2b(b"hushbid blind pair 1\0" + session, key=shared, digest_size=32).digest()
    return pair, hashlib.blake2b(number.to_bytes(8, "big"), key=pair, digest_size=32).digest()


def drawn(key: bytes, what: str, count: int, size: int = 8) -> list[int]:
    """Whole numbers of `size` bytes."""
    made = hashlib.shake_256(f"hushbid blind {what} 1\0".encode() + key).digest(size * count)
    return [int.from_bytes(made[at : at + size], "big") for at in range(0, len(made), size)]


def in_places(key: bytes, count: int) -> list[int]:
    """The number of the box in each place."""
    words = drawn(key, "places", count)
    return [number + 1 for number in sorted(range(count), key=lambda each: (words[each], each))]


def in_boxes(key: bytes, batch: int) -> list[int]:
    """For each new box, by number, which of the best points is in it, from 0."""
    words = drawn(key, "batch", batch)
    return sorted(range(batch), key=lambda each: (words[each], each))


def scale_and_offset(mask_key: bytes, session: bytes, number: int) -> tuple[int, int]:
    """The mask's a and c."""
    made = hashlib.blake2b(session + number.to_bytes(8, "big"), key=mask_key, digest_size=24).digest()
    return 2**61 | int.from_bytes(made[:8], "big") >> 2, (int.from_bytes(made[8:], "big") >> 2) + 1


def masked(
    key: bytes, count: int, handle: int, told: tuple[int, list[int]] | None, mask: tuple[int, int], limit: int
) -> bytes:
    """The masked score of a box, by its score and φ; without them, its floor."""
    scale, offset = mask
    if told is None:
        return (offset + drawn(key, "floors", count)[handle - 1] * scale // 2**64).to_bytes(16, "big")
    score, features = told
    ties = hashlib.blake2b(b"hushbid blind ties 1\0", key=key, digest_size=32).digest()
    hashed = hashlib.blake2b(np.array(features, "<i2").tobytes(), key=ties, digest_size=8).digest()
    tie = 2**16 * (int.from_bytes(hashed, "big") * (scale // 2**16) // 2**64)
    low = drawn(key, "low bits", count, 2)[handle - 1]
    return (scale * (score + limit + 1) + offset + tie + low).to_bytes(16, "big")
