"""Blinding: masks keep order and ties and nothing else, broadcasts open in their own session and round."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from itertools import pairwise

import nacl.bindings
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hushbid.protocol.crypto.blinding import (
    BROADCAST_EXTRA,
    MASK_BYTES,
    NOT_SENT,
    BlindKeys,
    Mask,
    account_statement,
    blind_bid_statement,
    blind_digest,
    broadcast_statement,
)
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.wire.arrays import pack_array

SEED = hashlib.sha256(b"the map's seed").digest()
SESSION = bytes(range(16))
KEYS = BlindKeys(SEED, SESSION)
OTHERS = {
    "another session": BlindKeys(SEED, bytes(16)),
    "another seed": BlindKeys(bytes(32), SESSION),
}
BOUND = 2**52
"""More than any session's scores."""
WEIGHTS = np.arange(-4, 4, dtype=np.int32)

scores = st.integers(-BOUND, BOUND)


def masked_by(mask: Mask, values: Sequence[int]) -> list[bytes]:
    """Masked scores of points with the same φ."""
    return mask.of(values, np.zeros((len(values), 4), dtype=np.int16))


# -- masks ---------------------------------------------------------------------------------------------


@given(st.lists(scores, min_size=1, max_size=20), st.integers(1, 10**7))
@example([-BOUND, BOUND, 0, -1, 1, BOUND - 1, 1 - BOUND, 0, BOUND, -BOUND], 1)
def test_order_and_ties_survive_and_every_mask_has_one_width(values: list[int], number: int) -> None:
    masked = masked_by(KEYS.mask(number, BOUND), values)
    assert {len(score) for score in masked} == {MASK_BYTES}
    for one, first in zip(values, masked, strict=True):
        for other, second in zip(values, masked, strict=True):
            assert (one < other, one == other) == (first < second, first == second)


@pytest.mark.parametrize("bound", [1, 77, BOUND])
def test_a_box_of_nothing_is_below_every_point_and_above_what_is_not_sent(bound: int) -> None:
    for number in range(1, 50):
        mask = KEYS.mask(number, bound)
        (lowest, highest) = masked_by(mask, [-bound, bound])
        assert NOT_SENT < mask.of_nothing < lowest < highest
        assert len(mask.of_nothing) == len(NOT_SENT) == MASK_BYTES


@pytest.mark.parametrize("score", [BOUND + 1, -BOUND - 1])
def test_a_score_beyond_the_bound_is_not_masked(score: int) -> None:
    with pytest.raises(LocalProtocolError, match="outside of its bound"):
        masked_by(KEYS.mask(1, BOUND), [0, score])


def test_a_bound_that_16_bytes_do_not_hold_is_refused_and_every_other_is_held() -> None:
    """The scale is below 2^62 and the offset below 2^126, so that B may be 2^64."""
    for number in range(1, 50):
        (largest,) = masked_by(KEYS.mask(number, 2**64), [2**64])
        assert len(largest) == MASK_BYTES
    with pytest.raises(LocalProtocolError, match="too large to be masked"):
        KEYS.mask(1, 2**67)


def scale_of(number: int, keys: BlindKeys = KEYS) -> int:
    """a, read off two masked scores that differ by 1."""
    low, high = (int.from_bytes(score, "big") for score in masked_by(keys.mask(number, BOUND), [0, 1]))
    return high - low


def test_every_round_session_and_seed_has_another_map() -> None:
    scales = [scale_of(number) for number in range(1, 101)]
    scales += [scale_of(1, other) for other in OTHERS.values()]
    assert len(set(scales)) == 102
    assert all(2**61 <= scale < 2**62 for scale in scales)
    zeros = {masked_by(KEYS.mask(number, BOUND), [0])[0] for number in range(1, 101)}
    assert len(zeros) == 100


def test_masks_of_one_round_are_the_same_for_all_who_have_the_seed() -> None:
    again = BlindKeys(SEED, SESSION)
    assert masked_by(again.mask(7, BOUND), [-5, 12]) == masked_by(KEYS.mask(7, BOUND), [-5, 12])


def test_what_breaks_ties_hides_the_scale_from_the_gcd_and_differences_hardly() -> None:
    """Not hidden: quotients of differences are those of scores, to 1 part in their size."""
    rng = np.random.default_rng(1)
    values = rng.integers(-(2**40), 2**40, size=40).tolist()
    rows = rng.integers(-500, 500, size=(40, 4)).astype(np.int16)
    scale = scale_of(3)
    same, apart = (
        [int.from_bytes(score, "big") for score in KEYS.mask(3, BOUND).of(values, each)]
        for each in (np.repeat(rows[:1], 40, axis=0), rows)
    )
    assert math.gcd(*(one - other for one, other in pairwise(same))) == scale
    assert math.gcd(*(one - other for one, other in pairwise(apart))) < 2**16
    quotient = (apart[2] - apart[0]) / (apart[1] - apart[0])
    assert quotient == pytest.approx((values[2] - values[0]) / (values[1] - values[0]), rel=1e-9)


def test_points_of_one_score_are_in_an_order_of_their_own_in_every_round() -> None:
    rows = np.arange(80, dtype=np.int16).reshape(20, 4)
    orders = []
    for number in (1, 2):
        mask = KEYS.mask(number, BOUND)
        masked = mask.of([7] * 20, rows)
        assert masked_by(mask, [6])[0] < min(masked) < max(masked) < masked_by(mask, [8])[0]
        assert masked == mask.of([7] * 20, rows.copy())
        assert sorted(range(20), key=masked.__getitem__) == sorted(
            range(20), key=lambda at: mask.tie(rows[at])
        )
        orders.append(sorted(range(20), key=masked.__getitem__))
    assert orders[0] != orders[1]


# -- broadcasts ----------------------------------------------------------------------------------------


def test_a_broadcast_opens_to_the_weight_and_is_read_only() -> None:
    box = KEYS.encrypt(WEIGHTS, 3)
    opened = BlindKeys(SEED, SESSION).decrypt(box, 3)
    assert opened.dtype == WEIGHTS.dtype
    assert np.array_equal(opened, WEIGHTS)
    assert not opened.flags.writeable
    assert len(box) == len(pack_array(WEIGHTS)) + BROADCAST_EXTRA


@pytest.mark.parametrize("what", [*OTHERS, "another round", "the round before"])
def test_a_broadcast_of_another_session_or_round_does_not_open(what: str) -> None:
    box = KEYS.encrypt(WEIGHTS, 3)
    number = {"another round": 4, "the round before": 2}.get(what, 3)
    with pytest.raises(RemoteProtocolError, match="another session or round") as caught:
        OTHERS.get(what, KEYS).decrypt(box, number)
    assert caught.value.offence is Offence.MISMATCH


def test_a_broadcast_with_any_byte_changed_or_missing_does_not_open() -> None:
    box = KEYS.encrypt(WEIGHTS, 3)
    changed = [box[:at] + bytes([box[at] ^ 1]) + box[at + 1 :] for at in range(len(box))]
    for bad in (*changed, box[:-1], box + b"\0", box[:BROADCAST_EXTRA], box[: BROADCAST_EXTRA - 1], b""):
        with pytest.raises(RemoteProtocolError) as caught:
            KEYS.decrypt(bad, 3)
        assert caught.value.offence is Offence.MISMATCH


def stream(number: int, keys: BlindKeys = KEYS) -> bytes:
    """The key stream of a round's weight: the same for two rounds only under one nonce."""
    box, packed = keys.encrypt(WEIGHTS, number), pack_array(WEIGHTS)
    return bytes(one ^ other for one, other in zip(box, packed, strict=False))


def test_no_two_rounds_or_sessions_share_a_nonce_under_one_key() -> None:
    streams = [stream(number) for number in range(1, 301)] + [stream(1, other) for other in OTHERS.values()]
    assert len(set(streams)) == 302
    assert stream(1) == stream(1), "the control: one nonce gives one stream"


def by_the_page(plain: bytes, number: int) -> bytes:
    """A broadcast, built as the module's docstring says."""
    key = hashlib.blake2b(b"hushbid blind broadcast 1\0" + SESSION, key=SEED, digest_size=32).digest()
    bound = SESSION + number.to_bytes(8, "big")
    encrypt = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_encrypt
    return encrypt(plain, bound, number.to_bytes(24, "big"), key)


def test_a_broadcast_is_made_as_documented() -> None:
    assert KEYS.encrypt(WEIGHTS, 9) == by_the_page(pack_array(WEIGHTS), 9)


@pytest.mark.parametrize("content", [b"", b"no array", pack_array(WEIGHTS)[:-1]])
def test_a_broadcast_that_opens_and_holds_no_array_is_malformed(content: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="holds no weight") as caught:
        KEYS.decrypt(by_the_page(content, 9), 9)
    assert caught.value.offence is Offence.MALFORMED


# -- what is signed ------------------------------------------------------------------------------------


def test_no_two_statements_are_alike() -> None:
    """Variable-length fields have their length before them, so that no byte moves to another field."""
    digest = blind_digest(1, b"box")
    statements = [
        blind_bid_statement(SESSION, "owner-1", 1, [digest]),
        blind_bid_statement(SESSION, "owner-1", 2, [digest]),
        blind_bid_statement(SESSION, "owner-2", 1, [digest]),
        blind_bid_statement(SESSION, "owner-", 1, [b"1" + digest]),
        blind_bid_statement(bytes(16), "owner-1", 1, [digest]),
        blind_bid_statement(SESSION, "owner-1", 1, [blind_digest(2, b"box")]),
        blind_bid_statement(SESSION, "owner-1", 1, [blind_digest(1, b"bo")]),
        broadcast_statement(SESSION, 1, b"box"),
        broadcast_statement(SESSION, 2, b"box"),
        broadcast_statement(SESSION, 0, b"box"),
        account_statement(SESSION, b"box"),
    ]
    assert len(set(statements)) == len(statements)
