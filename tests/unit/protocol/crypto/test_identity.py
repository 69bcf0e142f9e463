"""One Ed25519 key per party: what derives from it, what is no key, and what never shows."""

from __future__ import annotations

import hashlib
import tomllib

import nacl.bindings
import nacl.public
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st
from zmq.utils import z85

from hushbid.protocol.crypto.identity import Identity, PublicIdentity, roster_identity, simulated_identity
from hushbid.protocol.errors import ConfigError

ALICE = Identity(bytes(range(32)))
seeds = st.binary(min_size=32, max_size=32)

P = 2**255 - 19
EIGHTH = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
"""A point of order 8."""
NOT_KEYS = {
    "neutral point": (1).to_bytes(32, "little"),
    "order 2": (P - 1).to_bytes(32, "little"),
    "order 4": bytes(32),
    "order 8": EIGHTH,
    "order 8, other sign": EIGHTH[:31] + b"\x85",
    "neutral point, not canonical": (P + 1).to_bytes(32, "little"),
    "mixed order": nacl.bindings.crypto_core_ed25519_add(ALICE.public.raw, EIGHTH),
    "not on the curve": (2).to_bytes(32, "little"),
    "all ones": b"\xff" * 32,
}


def text(raw: bytes) -> str:
    return z85.encode(raw).decode("ascii")


def test_a_known_seed_gives_the_known_verify_key() -> None:
    # RFC 8032, section 7.1, test 1.
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    known = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    assert Identity(seed).public.raw == known


@given(seeds)
def test_transport_and_sealing_keys_are_the_identitys_mapped_key(seed: bytes) -> None:
    identity = Identity(seed)
    # libsodium's documentation: the X25519 secret is the scalar that Ed25519 derives from the seed.
    scalar = bytearray(hashlib.sha512(seed).digest()[:32])
    scalar[0] &= 248
    scalar[31] = scalar[31] & 127 | 64
    assert bytes(identity.sealing) == scalar
    assert bytes(identity.sealing.public_key) == bytes(identity.public.sealing)
    assert z85.decode(identity.curve_secret) == scalar
    assert zmq.curve_public(identity.curve_secret) == identity.curve_public == identity.public.curve
    assert identity.signing.verify_key == identity.public.verify


@given(seeds)
def test_keys_are_written_as_zeromq_writes_them_and_come_back(seed: bytes) -> None:
    identity = Identity(seed)
    assert identity.secret == text(seed)
    assert identity.public.text == text(identity.public.raw)
    assert Identity.from_secret(identity.secret) == identity
    assert PublicIdentity.from_bytes(identity.public.raw) == PublicIdentity(identity.public.text)


def test_a_key_stands_in_a_toml_string() -> None:
    alphabet = z85.Z85CHARS.decode("ascii")
    assert tomllib.loads(f'key = "{alphabet}"') == {"key": alphabet}
    seen = "".join(Identity(hashlib.sha256(bytes([number])).digest()).secret for number in range(64))
    assert set(seen) == set(alphabet), "all of it is used"


@pytest.mark.parametrize(
    "broken", ["", "short", "~" * 40, "#" * 40, "é" * 40, "_" * 40, " " * 40, ALICE.public.text + "0" * 5]
)
def test_what_is_no_z85_of_32_bytes_is_no_key(broken: str) -> None:
    for make in (PublicIdentity, Identity.from_secret):
        with pytest.raises(ConfigError, match="40 characters of Z85") as caught:
            make(broken)
        assert not broken.strip() or broken not in str(caught.value)
        assert caught.value.__cause__ is None


@pytest.mark.parametrize("name", NOT_KEYS)
def test_a_point_that_is_no_full_key_is_refused_and_the_refusal_names_whose_it_is(name: str) -> None:
    with pytest.raises(ConfigError, match="no public key"):
        PublicIdentity.from_bytes(NOT_KEYS[name])
    with pytest.raises(ConfigError, match="the roster gives to heron") as caught:
        roster_identity(text(NOT_KEYS[name]), "heron")
    assert text(NOT_KEYS[name]) not in str(caught.value)
    assert "hushbid keys show" in caught.value.advice


def test_a_seed_of_another_length_is_refused() -> None:
    with pytest.raises(ConfigError, match="32 bytes, not 31"):
        Identity(bytes(31))


def test_no_text_of_an_identity_shows_a_secret() -> None:
    secrets = [ALICE.secret, ALICE.curve_secret.decode(), ALICE.seed.hex(), repr(ALICE.seed)]
    for shown in (repr(ALICE), str(ALICE), f"{ALICE}", repr([ALICE])):
        assert ALICE.public.text in shown
        assert not any(secret in shown for secret in secrets)


def test_a_simulated_identity_is_the_same_for_all_who_have_the_session_file() -> None:
    digest = hashlib.sha256(b"session").digest()
    made = simulated_identity(digest, 7, "heron")
    assert made == simulated_identity(digest, 7, "heron")
    assert made.public.text == "PD]$BY9RzF]^YA?O15[B]r0d#4aPDsbd0ewXBc3*"
    others = [
        simulated_identity(hashlib.sha256(b"other").digest(), 7, "heron"),
        simulated_identity(digest, 8, "heron"),
        simulated_identity(digest, 7, "stork"),
    ]
    assert len({made, *others}) == 4
