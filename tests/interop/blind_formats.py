"""The computations of parties under `blind`, written from docs/wire.md: it imports nothing of hushbid."""

from __future__ import annotations

import hashlib
from typing import Any

import nacl.bindings
import nacl.exceptions
import nacl.public
import nacl.signing
import numpy as np
import numpy.typing as npt

from tests.interop.minimal.feature_map import FeatureMap
from tests.interop.minimal.formats import jitter_of, message_of, packed_array

Ints = npt.NDArray[Any]


def keys(seed: bytes, session: bytes) -> tuple[bytes, bytes]:
    """For broadcasts, and for masks."""
    made = [
        hashlib.blake2b(f"hushbid blind {use} 1\0".encode() + session, key=seed, digest_size=32).digest()
        for use in ("broadcast", "mask")
    ]
    return made[0], made[1]


def decrypted(box: bytes, key: bytes, session: bytes, round_: int) -> bytes:
    bound, nonce = session + round_.to_bytes(8, "big"), round_.to_bytes(24, "big")
    return nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(box, bound, nonce, key)


def bound(weights: list[int], norm: int, *, jitter: bool) -> int:
    """B; `norm` is N."""
    *rest, last = weights if jitter else [*weights, 0]
    return sum(map(abs, rest)) * norm + abs(last) * 24480 + 1


def norm(feature_map: FeatureMap) -> int:
    """N of `paired`, by all its angles."""
    return max(abs(feature_map.coordinate(angle)) for angle in range(2**16))


def masked(score: int, features: Ints | None, key: bytes, session: bytes, round_: int, limit: int) -> bytes:
    """A masked score; without features, that of an empty box."""
    place = session + round_.to_bytes(8, "big")
    drawn = hashlib.blake2b(place, key=key, digest_size=24).digest()
    ties = hashlib.blake2b(place, key=key, digest_size=32).digest()
    scale = 2**61 | int.from_bytes(drawn[:8], "big") >> 2
    offset = (int.from_bytes(drawn[8:], "big") >> 2) + 1
    if features is None:
        return offset.to_bytes(16, "big")
    hashed = hashlib.blake2b(features.astype("<i2").tobytes(), key=ties, digest_size=8).digest()
    tie = int.from_bytes(hashed, "big") * scale // 2**64
    return (scale * (score + limit + 1) + offset + tie).to_bytes(16, "big")


def statement(what: str, session: bytes, round_: int, name: str, content: bytes) -> bytes:
    """The signed statement: `what` is ``broadcast``, ``bid`` or ``account``."""
    parts = (f"hushbid blind {what} 1\0".encode(), session, round_.to_bytes(8, "big"))
    return b"".join((*parts, len(name).to_bytes(4, "big"), name.encode(), content))


def digest(handle: int, box: bytes) -> bytes:
    """Of a box in a bid."""
    return hashlib.sha256(
        b"hushbid blind box 1\0" + handle.to_bytes(8, "big") + hashlib.sha256(box).digest()
    ).digest()


def account(vector: dict[str, Any]) -> bytes:
    """An account's content, as bytes."""
    floats = [vector[name] for name in ("settlement", "errors", "gains", "gain_errors")]
    whole = [vector[name] for name in ("sold", "void")]
    return b"".join(
        (
            *(np.array(part, "<f8").tobytes() for part in floats),
            *(np.array(part, "<i8").tobytes() for part in whole),
            vector["signal"].to_bytes(1, "big", signed=True),
        )
    )


def array(weights: list[int]) -> bytes:
    """A weight as an array of numbers."""
    return packed_array(np.array(weights, np.int32))


def _point(content: bytes) -> Ints:
    """The point in a box."""
    pair: Any = message_of(content[4 : 4 + int.from_bytes(content[:4], "big")])
    return np.asarray(pair[0])


class Consumer:
    """A consumer's findings in an awarded box."""

    def __init__(
        self,
        vector: dict[str, Any],
        feature_map: FeatureMap,
        own: nacl.signing.SigningKey,
        owner: nacl.signing.VerifyKey,
    ) -> None:
        self._vector, self._map, self._verify = vector, feature_map, owner
        self._secret = own.to_curve25519_private_key()

    def verdict(self, handle: int, box: bytes, score: bytes) -> str:
        """Its dispute; ``good`` or ``nothing`` without one."""
        vector, bid = self._vector, self._vector["bid"]
        session = bytes.fromhex(vector["session digest"])[:16]
        content = b""
        try:
            if any(box):
                content = nacl.public.SealedBox(self._secret).decrypt(box)
        except nacl.exceptions.CryptoError:
            return "the box does not open"
        digests = [bytes.fromhex(each) for each in bid["digests"]]
        said = statement("bid", session, bid["round"], bid["owner"], b"".join(digests))
        try:
            self._verify.verify(said, bytes.fromhex(bid["signature"]))
        except nacl.exceptions.BadSignatureError:
            return "the owner's signature does not hold"
        if digests[handle - bid["first box"]] != digest(handle, box):
            return "the owner's signature does not hold"
        place = (bytes.fromhex(vector["keys"]["mask"]), session, bid["round"], vector["masks"]["B"])
        if not content:
            right = masked(0, None, *place) == score
            return "nothing" if right else "the box holds nothing, and was scored as a point"
        features = self._map.hash(_point(content)[None])[0]
        *weights, jitter = vector["broadcast"]["weights"]
        found = int(features.astype(np.int64) @ np.array(weights))
        found += jitter * jitter_of(session, features)
        return "good" if masked(found, features, *place) == score else "the score is not the point's"
