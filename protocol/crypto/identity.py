"""A party's identity: one Ed25519 key, from which its transport key and its sealing key derive.

The roster of a session file gives each party's Ed25519 verify key, 32 bytes, as 40 characters of Z85 (ZeroMQ
RFC 32). Z85's alphabet has neither quotes nor a backslash, so a key needs no escaping in a TOML string. The
party's X25519 key, used for CURVE and for opening boxes sealed to it, is the same key mapped to Curve25519
(libsodium's ``crypto_sign_ed25519_pk_to_curve25519`` and ``..._sk_to_curve25519``).

One key for signatures and for encryption is acceptable here: EC-Schnorr signatures and ECIES with a hashed
shared secret stay secure under one key (Degabriele, Lehmann, Paterson, Smart and Strefler, *On the Joint
Security of Encryption and Signature in EMV*, CT-RSA 2012), and so do Ed25519 and a key encapsulation over the
mapped key (Thormarker, *On using the same key pair for Ed25519 and an X25519 based KEM*, 2021, in the random
oracle model). Boxes and CURVE are not exactly those schemes, but they too use the shared point only through a
hash (HSalsa20), and every signed statement begins with its own tag (`hushbid.protocol.crypto.sealing`). The
price is why libsodium's documentation prefers two keys where they are affordable: a thief of the one key can
sign, connect and decrypt as its party, including boxes sealed to it earlier (a box has no forward secrecy; a
CURVE connection has), and no use can be revoked separately. The gain is a roster of one key per party, which
two people can compare by telephone.

Two verify keys that differ only in their sign bit map to the same Curve25519 key. Where a party is recognised
by its mapped key, the roster must not contain both (`hushbid.protocol.runtime.network.authentication` refuses
it).
"""

from __future__ import annotations

import base64
import hashlib
import string
import struct
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final, Self

import nacl.bindings
import nacl.public
import nacl.signing

from hushbid.protocol.errors import ConfigError

__all__ = [
    "KEY_BYTES",
    "Identity",
    "PublicIdentity",
    "fingerprint_of",
    "roster_identity",
    "simulated_identity",
]

KEY_BYTES: Final = 32
"""Bytes of every key: Ed25519 seed and verify key, X25519 secret and public key."""
KEY_TEXT: Final = 40
"""Characters of a key in Z85."""

# Z85 is the standard library's base 85 with another alphabet.
_DIGITS: Final = string.digits + string.ascii_lowercase + string.ascii_uppercase
_Z85: Final = f"{_DIGITS}.-:+=^!/*?&<>()[]{{}}@%$#"
_B85: Final = f"{_DIGITS.swapcase()}!#$%&()*+-;<=>?@^_`{{|}}~"
_TO_Z85: Final = str.maketrans(_B85, _Z85)
_TO_B85: Final = str.maketrans(_Z85, _B85)

_SIMULATED: Final = b"hushbid simulated identity 1\0"


@dataclass(frozen=True)
class PublicIdentity:
    """The public identity of a party.

    Args:
        text: The Ed25519 verify key, 40 characters of Z85.

    Raises:
        ConfigError: The text is not such a key: not Z85, or not a canonical point of the curve's main
            subgroup (with a point of low order anybody could sign, and open what is sealed to it). The error
            does not quote the text, which may be a secret in the wrong place.
    """

    text: str

    def __post_init__(self) -> None:
        if not nacl.bindings.crypto_core_ed25519_is_valid_point(_decoded(self.text)):
            raise ConfigError(
                f"The {KEY_TEXT} characters of Z85 that were given are no public key: they are no point of "
                "Ed25519's main subgroup.",
                advice="Copy the key again, as `hushbid keys show` prints it; keys of other sorts do not do.",
            )

    def __str__(self) -> str:
        return self.text

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """The identity whose verify key is these 32 bytes. Raises `ConfigError` if it is not a valid key."""
        return cls(_encoded(raw))

    @cached_property
    def raw(self) -> bytes:
        return _decoded(self.text)

    @cached_property
    def fingerprint(self) -> str:
        """The text that two people compare over the telephone (`fingerprint_of`)."""
        return fingerprint_of(self.raw)

    @cached_property
    def verify(self) -> nacl.signing.VerifyKey:
        """The key that checks the party's signatures."""
        return nacl.signing.VerifyKey(self.raw)

    @cached_property
    def sealing(self) -> nacl.public.PublicKey:
        """The X25519 key for sealing messages to the party."""
        return self.verify.to_curve25519_public_key()

    @cached_property
    def curve(self) -> bytes:
        """That X25519 key in ZeroMQ's form: 40 bytes of Z85."""
        return _encoded(bytes(self.sealing)).encode("ascii")


@dataclass(frozen=True)
class Identity:
    """A party's identity with its secret, which neither `repr` nor `str` reveals.

    The nacl keys that it returns are less careful: their ``str`` is the secret.

    Args:
        seed: 32 bytes, the Ed25519 seed from which everything else derives.

    Raises:
        ConfigError: The seed has another length.
    """

    seed: bytes = field(repr=False)
    public: PublicIdentity = field(init=False)

    def __post_init__(self) -> None:
        if len(self.seed) != KEY_BYTES:
            raise ConfigError(f"A secret key has {KEY_BYTES} bytes, not {len(self.seed)}.")
        public = PublicIdentity.from_bytes(bytes(self.signing.verify_key))
        object.__setattr__(self, "public", public)

    @classmethod
    def from_secret(cls, text: str) -> Self:
        """The identity whose seed is given in Z85; otherwise a `ConfigError` that does not quote it."""
        return cls(_decoded(text))

    @property
    def secret(self) -> str:
        """The seed as 40 characters of Z85."""
        return _encoded(self.seed)

    @cached_property
    def signing(self) -> nacl.signing.SigningKey:
        """The key with which the party signs."""
        return nacl.signing.SigningKey(self.seed)

    @cached_property
    def sealing(self) -> nacl.public.PrivateKey:
        """The X25519 key that opens what is sealed to the party."""
        return self.signing.to_curve25519_private_key()

    @property
    def buffers(self) -> tuple[bytes, ...]:
        """The objects that hold the secret as long as the identity lives, the keys made of it among them."""
        return self.seed, bytes(self.signing), self.signing._signing_key, bytes(self.sealing)

    @property
    def curve_public(self) -> bytes:
        return self.public.curve

    @property
    def curve_secret(self) -> bytes:
        return _encoded(bytes(self.sealing)).encode("ascii")


def roster_identity(text: str, party: str) -> PublicIdentity:
    """The identity whose key a roster gives to a party. Raises `ConfigError` if it is not a valid key."""
    try:
        return PublicIdentity(text)
    except ConfigError as error:
        raise ConfigError(
            f"The key that the roster gives to {party} cannot be used. {error.what}",
            advice=f"Have the roster corrected: `hushbid keys show` prints the key of {party}.",
        ) from None


def fingerprint_of(raw: bytes) -> str:
    """80 bits of the SHA-256 of a verify key's 32 bytes, in four groups of base32."""
    text = base64.b32encode(hashlib.sha256(raw).digest()[:10]).decode("ascii")
    return "-".join(text[start : start + 4] for start in range(0, len(text), 4))


@lru_cache(maxsize=1024)
def simulated_identity(session_digest: bytes, seed: int, party: str) -> Identity:
    """The identity of a party in simulated sessions.

    It protects nobody: anyone with the session file can compute it, secret included. It lets a simulation
    seal, open and sign as a deployed session does, with the same bytes every time. Every signature check
    needs one, so the most recent ones are cached.

    Args:
        session_digest: SHA-256 of what defines the session (`SessionFile.digest`), 32 bytes.
        seed: The simulation's seed, 0 to 2^64 - 1.
    """
    assert len(session_digest) == hashlib.sha256().digest_size, "struct would pad or cut it"
    name = party.encode("utf-8")
    fields = struct.pack(">32sQI", session_digest, seed, len(name))
    return Identity(hashlib.sha256(_SIMULATED + fields + name).digest())


def _encoded(raw: bytes) -> str:
    return base64.b85encode(raw).decode("ascii").translate(_TO_Z85)


def _decoded(text: str) -> bytes:
    """The 32 bytes of a key's text."""
    try:
        # A space is in neither alphabet. Base 85 has characters that Z85 lacks, which must not pass.
        plain = "".join(character if character in _Z85 else " " for character in text)
        raw = base64.b85decode(plain.translate(_TO_B85)) if len(text) == KEY_TEXT else b""
    except ValueError:
        raw = b""
    if len(raw) != KEY_BYTES:
        raise ConfigError(
            f"A key is {KEY_TEXT} characters of Z85; the {len(text)} given are not a key.",
            advice="Copy the key again, whole, as `hushbid keys show` prints it.",
        )
    return raw
