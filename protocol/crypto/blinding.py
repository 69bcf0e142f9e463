r"""Cryptography of the rule `blind`: broadcasts the curator cannot read, and scores it can only order.

Both derive from the seed of the secret feature map. The consumer draws it and seals it to every owner; the
curator does not have it. Two keys follow from it, each for one use::

    broadcast key   BLAKE2b-256, keyed with the seed, of b"hushbid blind broadcast 1\0" || session
    mask key        BLAKE2b-256, keyed with the seed, of b"hushbid blind mask 1\0" || session

**Broadcasts.** XChaCha20-Poly1305 (libsodium's IETF construction) encrypts the weight as
`hushbid.protocol.wire.arrays` encodes it. The nonce is the round, big-endian, in 24 bytes; the associated
data are the session and the round. The key serves one session, and a round of a session has one weight: the
consumer records the weight before sending it, and after a restart sends the recorded bytes.

**Masks.** A score s, |s| ≤ B, is replaced by a·(s + B + 1) + c + t, where a (62 bits) and c (up to 126) are
the round's and derive from the mask key. t is in [0, a): a keyed hash of φ, in 64 bits, scaled by a. So the
order of scores is kept, φ alone orders points of equal score, and points of equal φ have equal masks. That
order must not follow the order in which an owner sent its boxes: adding a record changes it, and then two
points of S could change (docs/privacy.md). A masked score is 16 bytes, big-endian, so bytes sort as numbers
do. The mask hides the offset, and the scale up to a factor of two; t keeps a from being the common divisor of
all differences. It hides no more. Maps that also hide distances were tried, down to ranks alone, and reveal
nearly as much: the series of a box's scores over the rounds is what reveals it. So unneeded scores are not
sent. An owner's b new boxes are all untaken, so older boxes that score below every new one cannot be among
the b best: the owner sends zeros instead of their scores.

**Padding.** An owner with fewer points than it must hand over fills up with empty boxes: zeros, whose score
is -B - 1, below every point's. The curator can recognise them, as it can under `sealed`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import nacl.bindings
import nacl.exceptions
import numpy as np

from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.space.grid import Features
from hushbid.protocol.wire.arrays import Array, ArrayError, pack_array, unpack_array

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
"""Bytes by which an encrypted broadcast is longer than the weight."""

_NONCE_BYTES: Final = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
_KEY_BYTES: Final = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_KEYBYTES
_TIE_BYTES: Final = 8
"""Bytes of the hash that orders points of equal score."""
NOT_SENT: Final = bytes(MASK_BYTES)
"""Replaces a score that no choice can depend on."""


class BlindKeys:
    """The keys of one session, known to its consumer and its owners.

    Args:
        seed: Seed of the secret feature map.
        session: The session's identifier, 16 bytes.
    """

    def __init__(self, seed: bytes, session: bytes) -> None:
        self._session = session
        self._broadcast = _derived(seed, b"hushbid blind broadcast 1\0" + session)
        self._mask = _derived(seed, b"hushbid blind mask 1\0" + session)

    def encrypt(self, weights: Array, number: int) -> bytes:
        """Encrypt a round's weight; the result is `BROADCAST_EXTRA` bytes longer than the encoded array."""
        bound = self._bound(number)
        return nacl.bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(
            pack_array(weights), bound, _nonce(number), self._broadcast
        )

    def decrypt(self, box: bytes, number: int) -> Array:
        """Decrypt the result of `encrypt`.

        Raises:
            RemoteProtocolError: `MISMATCH`: it belongs to another session or round, or was changed;
                `MALFORMED`: its content is not an array.
        """
        try:
            packed = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
                box, self._bound(number), _nonce(number), self._broadcast
            )
        except (nacl.exceptions.CryptoError, ValueError):  # ValueError: shorter than a tag
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
        """The mask of round 1, 2, … for scores up to `bound`; `LocalProtocolError` if that is too large."""
        drawn = hashlib.blake2b(self._bound(number), key=self._mask, digest_size=24).digest()
        scale = int.from_bytes(drawn[:8], "big") >> 2 | 2**61
        ties = hashlib.blake2b(self._bound(number), key=self._mask, digest_size=_KEY_BYTES).digest()
        return Mask(scale, (int.from_bytes(drawn[8:], "big") >> 2) + 1, bound, ties)

    def _bound(self, number: int) -> bytes:
        return self._session + number.to_bytes(8, "big")


class Mask:
    """The secret increasing function of one round.

    Args:
        scale: a, positive.
        offset: c, positive.
        bound: B, an upper bound on the magnitude of all scores.
        ties: Key of the hash that orders points of equal score.
    """

    def __init__(self, scale: int, offset: int, bound: int, ties: bytes) -> None:
        if scale * (2 * bound + 2) + offset >= 2 ** (8 * MASK_BYTES):
            raise LocalProtocolError("A bound of scores is too large to be masked.")
        self.bound = bound
        self._scale, self._base = scale, scale * (bound + 1) + offset
        self.of_nothing: bytes = self._of(-bound - 1).to_bytes(MASK_BYTES, "big")
        """The masked score of an empty box, below those of all points."""
        self._keyed = hashlib.blake2b(key=ties, digest_size=_TIE_BYTES)

    def of(self, scores: Sequence[int], features: Features) -> list[bytes]:
        """Masked scores of points with φ, int16 (n, d); `LocalProtocolError` if one exceeds the bound."""
        self.check(scores)
        rows, size = _packed(features), 2 * features.shape[1]
        return [
            (self._of(score) + self._tie(rows[at : at + size])).to_bytes(MASK_BYTES, "big")
            for score, at in zip(scores, range(0, len(rows), size), strict=True)
        ]

    def tie(self, features: Features) -> int:
        """The key that orders points of equal score by φ, shape (d,), highest first; below a."""
        return self._tie(_packed(features))

    @property
    def scale(self) -> int:
        """a: the masked scores of a score s are a·(s + B + 1) + c and the a - 1 numbers above."""
        return self._scale

    @property
    def offset(self) -> int:
        return self._of(-self.bound - 1)

    def check(self, scores: Sequence[int]) -> None:
        """Raise `LocalProtocolError` if a score exceeds the bound."""
        if scores and not -self.bound <= min(scores) <= max(scores) <= self.bound:
            raise LocalProtocolError("A score lies outside of its bound.")

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
    """`blind_digest` of a box given by its SHA-256, as in a curator's transcript."""
    parts = (handle.to_bytes(8, "big"), digest)
    return hashlib.sha256(b"".join((b"hushbid blind box 1\0", *parts))).digest()


def blind_bid_statement(session: bytes, owner: str, number: int, digests: Sequence[bytes]) -> bytes:
    """An owner's statement for a bid: a tag, session, round, name, and digests of boxes and scores."""
    return _statement(b"hushbid blind bid 1\0", session, number, owner, b"".join(digests))


def broadcast_statement(session: bytes, number: int, box: bytes) -> bytes:
    """The consumer's statement for a broadcast: a tag, session, round, and SHA-256 of the ciphertext."""
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
