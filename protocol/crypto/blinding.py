r"""Cryptography of the rule `blind`: broadcasts that the curator cannot read, scores that it only orders.

Both come from the seed of the secret feature map, which the consumer draws and seals to every owner, and
which the curator does not have. Two keys follow from it, each for one use::

    broadcast key   BLAKE2b-256, keyed with the seed, of b"hushbid blind broadcast 1\0" || session
    mask key        BLAKE2b-256, keyed with the seed, of b"hushbid blind mask 1\0" || session

**Broadcasts.** XChaCha20-Poly1305 (libsodium's IETF construction) of the weight as `protocol.wire.arrays`
encodes it; the nonce is the round, big-endian, in 24 bytes, and what is bound beside is the session and the
round. The key serves one session, and in a session a round has one weight: it is on the consumer's record
before it leaves, and a consumer that starts again sends the recorded bytes.

**Masks.** A score s, |s| ≤ B, is replaced by a·(s + B + 1) + c + t, where a and c are the round's and follow
from the mask key: 62 bits, and up to 126. t is from 0 and below a: a keyed hash of φ, in 64 bits, times a. So
the order of scores survives, points of one score are in an order that φ alone decides, and those of one φ are
equal. That order must not be the one in which an owner sent its boxes: one record more changes that, and then
two points of S could be others (docs/privacy.md). 16 bytes, big-endian, are in the order of the numbers. That
hides the offset, and the scale up to a factor of two; t keeps a from being the common divisor of all
differences. It hides no more. Maps that hide distances too were tried, down to ranks alone, and tell nearly
as much: what tells is the series of a box's scores over the rounds. So what is not needed is not sent. An
owner's b new boxes are all untaken. Older boxes that score lower than all new ones cannot be among the b
best: it sends zeros instead of their scores.

**Padding.** Where an owner has fewer points than it must hand over, it hands over boxes of nothing: zeros,
whose score is -B - 1, below every point's. The curator can tell them, as it can under `sealed`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import nacl.bindings
import nacl.exceptions
import numpy as np

from protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from protocol.space.grid import Features
from protocol.wire.arrays import Array, ArrayError, pack_array, unpack_array

__all__ = [
    "BROADCAST_EXTRA",
    "MASK_BYTES",
    "NOT_SENT",
    "BlindKeys",
    "Mask",
    "account_statement",
    "blind_bid_statement",
    "blind_digest",
    "blind_digest_of",
    "broadcast_statement",
]

MASK_BYTES: Final = 16
"""Bytes of a masked score."""
BROADCAST_EXTRA: Final = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_ABYTES
"""How much longer an encrypted broadcast is than the weight."""

_NONCE_BYTES: Final = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
_KEY_BYTES: Final = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_KEYBYTES
_TIE_BYTES: Final = 8
"""Of the hash that orders points of one score."""
NOT_SENT: Final = bytes(MASK_BYTES)
"""In the place of a score that no choice can depend on."""


class BlindKeys:
    """The keys of one session, which its consumer and its owners have.

    Args:
        seed: Seed of the secret feature map.
        session: The session's identifier, 16 bytes.
    """

    def __init__(self, seed: bytes, session: bytes) -> None:
        self._session = session
        self._broadcast = _derived(seed, b"hushbid blind broadcast 1\0" + session)
        self._mask = _derived(seed, b"hushbid blind mask 1\0" + session)

    def encrypt(self, weights: Array, number: int) -> bytes:
        """A round's weight, encrypted; `BROADCAST_EXTRA` bytes longer than the array as it is encoded."""
        bound = self._bound(number)
        return nacl.bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(
            pack_array(weights), bound, _nonce(number), self._broadcast
        )

    def decrypt(self, box: bytes, number: int) -> Array:
        """The weight that `encrypt` encrypted.

        Raises:
            RemoteProtocolError: `MISMATCH`: it is of another session or round, or was changed;
                `MALFORMED`: what it holds is no array.
        """
        try:
            packed = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
                box, self._bound(number), _nonce(number), self._broadcast
            )
        except (nacl.exceptions.CryptoError, ValueError):  # the latter of what is shorter than a tag
            raise RemoteProtocolError(
                Offence.MISMATCH,
                "A broadcast does not open with the session's key: it is of another session or round, or was "
                "changed on its way.",
                advice="Compare the session files, and the versions of hushbid.",
            ) from None
        try:
            weights = np.array(unpack_array(packed))
        except ArrayError:
            raise RemoteProtocolError(Offence.MALFORMED, "A broadcast holds no weight.") from None
        weights.flags.writeable = False
        return weights

    def mask(self, number: int, bound: int) -> Mask:
        """The mask of a round.

        Args:
            number: The round, from 1.
            bound: B, what no score of a point is above in magnitude.

        Raises:
            LocalProtocolError: B is too large to be masked in 16 bytes.
        """
        drawn = hashlib.blake2b(self._bound(number), key=self._mask, digest_size=24).digest()
        scale = int.from_bytes(drawn[:8], "big") >> 2 | 2**61
        ties = hashlib.blake2b(self._bound(number), key=self._mask, digest_size=_KEY_BYTES).digest()
        return Mask(scale, (int.from_bytes(drawn[8:], "big") >> 2) + 1, bound, ties)

    def _bound(self, number: int) -> bytes:
        return self._session + number.to_bytes(8, "big")


class Mask:
    """The secret increasing map of one round.

    Args:
        scale: a, positive.
        offset: c, positive.
        bound: B, what no score of a point is above in magnitude.
        ties: Keys the hash that orders points of one score.
    """

    def __init__(self, scale: int, offset: int, bound: int, ties: bytes) -> None:
        if scale * (2 * bound + 2) + offset >= 2 ** (8 * MASK_BYTES):
            raise LocalProtocolError("A bound of scores is too large to be masked.")
        self.bound = bound
        self._scale, self._base = scale, scale * (bound + 1) + offset
        self.of_nothing: bytes = self._of(-bound - 1).to_bytes(MASK_BYTES, "big")
        """The masked score of a box of nothing: below those of all points."""
        self._keyed = hashlib.blake2b(key=ties, digest_size=_TIE_BYTES)

    def of(self, scores: Sequence[int], features: Features) -> list[bytes]:
        """The masked scores of points, `MASK_BYTES` long each.

        Args:
            scores: The points', n of them.
            features: Their φ, int16 of shape (n, d).

        Raises:
            LocalProtocolError: One is above the bound.
        """
        if scores and not -self.bound <= min(scores) <= max(scores) <= self.bound:
            raise LocalProtocolError("A score lies outside of its bound.")
        rows, size = _packed(features), 2 * features.shape[1]
        return [
            (self._of(score) + self._tie(rows[at : at + size])).to_bytes(MASK_BYTES, "big")
            for score, at in zip(scores, range(0, len(rows), size), strict=True)
        ]

    def tie(self, features: Features) -> int:
        """What orders a point among those of its score, highest first: below a.

        Args:
            features: Its φ, int16 of shape (d,).
        """
        return self._tie(_packed(features))

    def _tie(self, row: bytes) -> int:
        hashed = self._keyed.copy()
        hashed.update(row)
        return int.from_bytes(hashed.digest(), "big") * self._scale >> 8 * _TIE_BYTES

    def _of(self, score: int) -> int:
        return self._scale * score + self._base


def _packed(features: Features) -> bytes:
    return np.ascontiguousarray(features, dtype="<i2").tobytes()


def blind_digest(handle: int, box: bytes) -> bytes:
    """The digest of one box that its owner signs: SHA-256 of a tag, the number, and the box's digest."""
    return blind_digest_of(handle, hashlib.sha256(box).digest())


def blind_digest_of(handle: int, digest: bytes) -> bytes:
    """`blind_digest` of a box of which there is the SHA-256 alone, as in a curator's transcript."""
    parts = (handle.to_bytes(8, "big"), digest)
    return hashlib.sha256(b"".join((b"hushbid blind box 1\0", *parts))).digest()


def blind_bid_statement(session: bytes, owner: str, number: int, digests: Sequence[bytes]) -> bytes:
    """An owner's statement for a bid: a tag, session, round, name, and the digests of boxes and of scores."""
    return _statement(b"hushbid blind bid 1\0", session, number, owner, b"".join(digests))


def broadcast_statement(session: bytes, number: int, box: bytes) -> bytes:
    """The consumer's statement for a broadcast: a tag, session, round, and SHA-256 of what is encrypted."""
    return _statement(b"hushbid blind broadcast 1\0", session, number, "", hashlib.sha256(box).digest())


def account_statement(session: bytes, content: bytes) -> bytes:
    """The consumer's statement for its account of a session: a tag, session, and SHA-256 of the account."""
    return _statement(b"hushbid blind account 1\0", session, 0, "", hashlib.sha256(content).digest())


def _statement(tag: bytes, session: bytes, number: int, name: str, content: bytes) -> bytes:
    encoded = name.encode()
    return b"".join(
        (tag, session, number.to_bytes(8, "big"), len(encoded).to_bytes(4, "big"), encoded, content)
    )


def _derived(key: bytes, purpose: bytes) -> bytes:
    return hashlib.blake2b(purpose, key=key, digest_size=_KEY_BYTES).digest()


def _nonce(number: int) -> bytes:
    return number.to_bytes(_NONCE_BYTES, "big")
