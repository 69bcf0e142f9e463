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
from hushbid.protocol.space.expansion import Words
from hushbid.protocol.space.grid import Features, Scores

__all__ = ["Masked", "OwnMask", "PairKey", "Places"]

_KEY_BYTES: Final = 32
_WORD_BYTES: Final = 8
_LOW_BITS: Final = 16
"""Bits of a masked score that follow from a box's number."""

Numbers = npt.NDArray[np.intp]
Masked = npt.NDArray[np.uint64]
"""Masked scores, shape (n, 2): each is two words, big-endian, the higher one first."""


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

    def taken(self, handles: Sequence[int]) -> Numbers:
        """The places of boxes of these numbers, ascending."""
        return np.sort(self._places[np.asarray(handles, dtype=np.intp) - 1])

    def arranged(self, scores: npt.NDArray[Any]) -> bytes:
        """Masked scores of all `count` boxes, in the order of their numbers, put in their places."""
        return scores[self._numbers].tobytes()

    def shuffled(self, rows: Sequence[int]) -> tuple[int, ...]:
        """The rows of a bid's new boxes, best first, put in the order of the boxes' numbers."""
        return tuple(rows[at] for at in self._batch.tolist())

    def ties(self, features: Features) -> Words:
        """64 bits that follow from each φ, int16 of shape (n, d); uint64 of shape (n,)."""
        rows, size = np.ascontiguousarray(features, dtype="<i2").tobytes(), 2 * features.shape[1]
        found = b"".join(self._tie(rows[at : at + size]) for at in range(0, len(rows), size))
        return np.frombuffer(found, dtype=">u8").astype(np.uint64)

    def tie(self, features: Features) -> int:
        """`ties` of one φ, shape (d,)."""
        return int.from_bytes(self._tie(np.ascontiguousarray(features, dtype="<i2").tobytes()), "big")

    def _tie(self, row: bytes) -> bytes:
        hashed = self._ties.copy()
        hashed.update(row)
        return hashed.digest()

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
        """Masked scores of points in boxes; φ is int16 (n, d); `LocalProtocolError` beyond the bound."""
        exact = np.array(scores, dtype=np.int64)
        return _as_bytes(self.masked(np.array(handles, dtype=np.intp), exact, self.places.ties(features)))

    def masked(self, handles: Numbers, scores: Scores, ties: Words) -> Masked:
        """`of` as numbers, of points whose `Places.ties` are known; raises as that."""
        self._mask.check(scores.tolist())
        own = self.places.low()[handles - 1].astype(np.uint64)
        own += _product(ties, self._step)[0] << np.uint64(_LOW_BITS)
        # Modulo 2^128, where a negative score counts as 2^64 more than it is.
        high, low = _product(scores.astype(np.uint64), self._mask.scale)
        high -= np.where(scores < 0, np.uint64(self._mask.scale), np.uint64(0))
        high, low = _sum(high, low, self._of(0))
        total = low + own
        return _joined(high + (total < low), total)

    def highest(self, score: int, features: Features) -> bytes:
        """The highest masked score of a point with this φ, shape (d,), in any box."""
        most = self._of(score) + self.tie(features) + self.SPREAD
        return most.to_bytes(MASK_BYTES, "big")

    def floors(self) -> list[bytes]:
        """For each box that may be sent, in the order of numbers, what stands for no score of its own."""
        return _as_bytes(self.masked_floors())

    def masked_floors(self) -> Masked:
        """`floors` as numbers."""
        words = self.places.floors().astype(np.uint64)
        drawn = _product(words, self._mask.scale)[0]
        return _joined(*_sum(np.zeros_like(drawn), drawn, self._mask.offset))

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
        return self.places.tie(features) * self._step >> 8 * _WORD_BYTES


def _keyed(key: bytes, purpose: bytes) -> bytes:
    return hashlib.blake2b(purpose, key=key, digest_size=_KEY_BYTES).digest()


def _product(words: Words, factor: int) -> tuple[Words, Words]:
    """The higher and the lower word of each word times a factor below 2^64."""
    half, lower = np.uint64(32), np.uint64(2**32 - 1)
    high, low = np.uint64(factor >> 32), np.uint64(factor & 2**32 - 1)
    above, below = words >> half, words & lower
    least, one, other = below * low, below * high, above * low
    middle = (least >> half) + (one & lower) + (other & lower)
    return (
        above * high + (one >> half) + (other >> half) + (middle >> half),
        (middle << half) | (least & lower),
    )


def _sum(high: Words, low: Words, added: int) -> tuple[Words, Words]:
    """Numbers of two words each, plus one below 2^128, modulo 2^128."""
    total = low + np.uint64(added & 2**64 - 1)
    return high + np.uint64(added >> 64) + (total < low), total


def _joined(high: Words, low: Words) -> Masked:
    return np.stack([high, low], axis=1).astype(">u8")


def _as_bytes(masked: Masked) -> list[bytes]:
    packed = masked.tobytes()
    return [packed[at : at + MASK_BYTES] for at in range(0, len(packed), MASK_BYTES)]


def _words(key: bytes, tag: bytes, count: int) -> npt.NDArray[Any]:
    drawn = hashlib.shake_256(tag + key).digest(_WORD_BYTES * count)
    return np.frombuffer(drawn, dtype=">u8")
