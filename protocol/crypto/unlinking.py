r"""What keeps a blind curator from following a box: places, low bits and floors that each owner keys anew.

Sessions of version 4 (`hushbid.protocol.wire.messages.COMMITTED_VERSION`) have this; those of version 3 do
not. An owner and the consumer share a key, which no other owner has::

    pair key    BLAKE2b-256, keyed with X25519 of both parties' keys as `crypto_box` has it,
                of b"hushbid blind pair 1\0" || session
    round key   BLAKE2b-256, keyed with the pair key, of the round, big-endian, in 8 bytes

From a round key follow, as SHAKE-256 of a tag and the key, whole numbers in big-endian order:

**Places.** In round ℓ an owner sends b·ℓ scores, whatever it has sent before. Box 1, 2, … has a word of 8
bytes, and the boxes' scores stand in the order of their words. So the curator cannot tell which score is of
which box, and no place connects two rounds. A place whose box was never sent, since its owner missed a
round, holds `NOT_SENT`.

**Order in a bid.** Likewise the b new boxes of a bid are numbered in an order of words, not by score.

**Low bits.** A masked score is a·(s + B + 1) + c + t. In t, 46 bits follow from φ under the round key, and
the lowest 16 from the number of the box. So equal points of two owners differ, and so do two equal rows of
one owner. The order of points of equal score is one of (owner, φ): it does not depend on what was sent
before, as the lemma needs (docs/privacy.md). The lowest bits alone order the copies of one φ of one owner,
and whichever of these is taken, the sum is the same.

**Floors.** An empty box has a value of [c, c + a), below every point's, and so has a box that cannot be
chosen, as it scores below the b new ones. To the curator they are alike. An empty box is a real one: a
sealed content of zeros.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import nacl.bindings
import nacl.exceptions
import nacl.public
import numpy as np
import numpy.typing as npt

from hushbid.protocol.crypto.blinding import MASK_BYTES, Mask
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.space.grid import Features

__all__ = ["OwnMask", "PairKey", "Places"]

_KEY_BYTES: Final = 32
_WORD_BYTES: Final = 8
_LOW_BITS: Final = 16
"""Bits of a masked score that follow from a box's number."""

Numbers = npt.NDArray[np.intp]


class PairKey:
    """What one owner and the consumer share in a session.

    Args:
        secret: The X25519 key of the one.
        other: That of the other.
        session: The session's identifier, 16 bytes.

    Raises:
        ConfigError: The other's key has low order, so that everybody could have what is shared.
    """

    def __init__(self, secret: nacl.public.PrivateKey, other: nacl.public.PublicKey, session: bytes) -> None:
        try:
            shared = nacl.bindings.crypto_box_beforenm(bytes(other), bytes(secret))
        except nacl.exceptions.CryptoError:
            raise ConfigError(
                "A key of the roster has low order: what is encrypted to it is open to everybody.",
                advice="Have its party make a new one (`hushbid keys new`).",
            ) from None
        self._key = _keyed(shared, b"hushbid blind pair 1\0" + session)

    def places(self, number: int, batch: int) -> Places:
        """What follows for round 1, 2, …, in a session that buys `batch` points a round."""
        return Places(_keyed(self._key, number.to_bytes(8, "big")), batch * number, batch)


class Places:
    """Where an owner's boxes stand in a round, and what is added to their scores.

    Args:
        key: The round key.
        count: How many scores a bid of the round has.
        batch: How many new boxes.
    """

    def __init__(self, key: bytes, count: int, batch: int) -> None:
        self.count = count
        self._key = key
        words = _words(key, b"hushbid blind places 1\0", count)
        self._numbers: Numbers = np.argsort(words, kind="stable")
        self._places: Numbers = np.empty(count, dtype=np.intp)
        self._places[self._numbers] = np.arange(count)
        self._batch: Numbers = np.argsort(_words(key, b"hushbid blind batch 1\0", batch), kind="stable")
        self._ties = hashlib.blake2b(key=_keyed(key, b"hushbid blind ties 1\0"), digest_size=_WORD_BYTES)
        (spare,) = _words(key, b"hushbid blind spare 1\0", 1).tolist()
        self.spare: int = spare % batch
        """How many scores fewer than all an owner may show that shows more than before, from 0 to b - 1."""

    def place(self, handle: int) -> int:
        """The place, from 0, of the score of box 1, 2, …, `count`."""
        return int(self._places[handle - 1])

    def handle(self, place: int) -> int:
        """The inverse of `place`."""
        return int(self._numbers[place]) + 1

    def arranged(self, scores: Sequence[bytes]) -> bytes:
        """Masked scores of all `count` boxes, in the order of their numbers, put in their places."""
        return b"".join(scores[number] for number in self._numbers.tolist())

    def shuffled(self, rows: Sequence[int]) -> tuple[int, ...]:
        """The rows of a bid's new boxes, best first, put in the order of the boxes' numbers."""
        return tuple(rows[at] for at in self._batch.tolist())

    def ties(self, features: Features) -> list[int]:
        """64 bits that follow from each φ, little-endian int16 of shape (n, d)."""
        rows, size, keyed = features.tobytes(), 2 * features.shape[1], self._ties
        found = []
        for at in range(0, len(rows), size):
            hashed = keyed.copy()
            hashed.update(rows[at : at + size])
            found.append(int.from_bytes(hashed.digest(), "big"))
        return found

    def low(self) -> npt.NDArray[Any]:
        """`_LOW_BITS` bits for each box, in the order of numbers, shape (count,)."""
        drawn = hashlib.shake_256(b"hushbid blind low bits 1\0" + self._key).digest(2 * self.count)
        return np.frombuffer(drawn, dtype=">u2")

    def floors(self) -> npt.NDArray[Any]:
        """64 bits for each box, likewise."""
        return _words(self._key, b"hushbid blind floors 1\0", self.count)


class OwnMask:
    """The mask of a round for one owner's boxes.

    Args:
        mask: What is the same for all owners.
        places: What is this one's.
    """

    SPREAD: Final = 2**_LOW_BITS - 1
    """How much the masked scores of one point can differ, by the number of its box."""

    def __init__(self, mask: Mask, places: Places) -> None:
        self.places = places
        self._mask = mask
        self._step = mask.scale >> _LOW_BITS

    def tie(self, features: Features) -> int:
        """The key that orders an owner's points of equal score by φ, shape (d,), highest first."""
        return self._tie(features) << _LOW_BITS

    def of(self, handles: Sequence[int], scores: Sequence[int], features: Features) -> list[bytes]:
        """The masked scores of points in boxes of these numbers; φ is int16 of shape (n, d).

        Raises `LocalProtocolError` if a score exceeds the bound.
        """
        self._mask.check(scores)
        zero, scale, step, low = self._of(0), self._mask.scale, self._step, self.places.low().tolist()
        ties = self.places.ties(np.ascontiguousarray(features, dtype="<i2"))
        return [
            (scale * score + zero + (tie * step >> 8 * _WORD_BYTES << _LOW_BITS) + low[handle - 1]).to_bytes(
                MASK_BYTES, "big"
            )
            for handle, score, tie in zip(handles, scores, ties, strict=True)
        ]

    def highest(self, score: int, features: Features) -> bytes:
        """The highest masked score of a point with this φ, shape (d,), in any box."""
        most = self._of(score) + self.tie(features) + self.SPREAD
        return most.to_bytes(MASK_BYTES, "big")

    def floors(self) -> list[bytes]:
        """For each box that may be sent, in the order of numbers, what stands for no score of its own."""
        least, scale = self._mask.offset, self._mask.scale
        return [
            (least + (word * scale >> 8 * _WORD_BYTES)).to_bytes(MASK_BYTES, "big")
            for word in self.places.floors().tolist()
        ]

    def fits(self, masked: bytes, score: int, features: Features) -> bool:
        """Whether this is the masked score of a point with this score and this φ, shape (d,), in any box."""
        above = int.from_bytes(masked, "big") - self._of(score)
        return 0 <= above < self._mask.scale and above >> _LOW_BITS == self._tie(features)

    def is_floor(self, masked: bytes) -> bool:
        """Whether this stands for no score."""
        return 0 <= int.from_bytes(masked, "big") - self._mask.offset < self._mask.scale

    def _of(self, score: int) -> int:
        """The lowest masked score of a score."""
        return self._mask.scale * (score + self._mask.bound + 1) + self._mask.offset

    def _tie(self, features: Features) -> int:
        (tie,) = self.places.ties(np.ascontiguousarray(features, dtype="<i2")[None])
        return tie * self._step >> 8 * _WORD_BYTES


def _keyed(key: bytes, purpose: bytes) -> bytes:
    return hashlib.blake2b(purpose, key=key, digest_size=_KEY_BYTES).digest()


def _words(key: bytes, tag: bytes, count: int) -> npt.NDArray[Any]:
    drawn = hashlib.shake_256(tag + key).digest(_WORD_BYTES * count)
    return np.frombuffer(drawn, dtype=">u8")
