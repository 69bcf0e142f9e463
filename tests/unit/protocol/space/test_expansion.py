"""Numbers from a seed: words, cosines, and the laws made of them."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from scipy import stats

from hushbid.protocol.space.expansion import (
    COSINE_BITS,
    NORMAL_BITS,
    Expansion,
    Words,
    cauchys,
    cosines,
    normals,
    uniforms,
)

ALARM = 1e-6
"""A sound law fails a test with this probability, were the seed not fixed."""


def words(count: int, seed: int = 11) -> Words:
    return Expansion(b"test", seed).words(0, count)


# -- words -------------------------------------------------------------------------------------------


def test_words_are_shake_256_of_domain_seed_and_row() -> None:
    said = hashlib.shake_256(b"test\0number\x0017\0" + (3).to_bytes(8, "little")).digest(40)
    assert Expansion(b"test", 17).words(3, 5).tolist() == np.frombuffer(said, "<u8").tolist()
    secret = hashlib.shake_256(b"test\0secret\0" + bytes(32) + bytes(8)).digest(8)
    assert Expansion(b"test", bytes(32)).words(0, 1).tolist() == [int.from_bytes(secret, "little")]


def test_rows_are_those_of_their_numbers_and_begin_alike_at_any_length() -> None:
    expansion = Expansion(b"test", 1)
    rows = expansion.rows(4, 6)
    for row in range(4):
        assert np.array_equal(rows[row], expansion.words(row, 9)[:6])


def test_no_two_seeds_domains_or_rows_share_words() -> None:
    seeds: list[int | bytes] = [0, 1, 10, 2**300, b"", b"1", b"number", bytes(32)]
    first = [Expansion(domain, seed).words(0, 1)[0] for domain in (b"a", b"b") for seed in seeds]
    assert len(set(first)) == 2 * len(seeds)


# -- the same arithmetic, of Python's own whole numbers, as docs/wire.md has it -------------------------


def slow_cosine(t: int) -> int:
    quadrant, y = t >> 30, t % 2**30
    if quadrant in (0, 2):
        y = 2**30 - y
    square, total = y * y >> 30, 61
    for coefficient in (3864, 172272, 5026995, 85569306, 693598668, 1686629713):
        total = coefficient - (total * square >> 30)
    wave = total * y >> 30
    return -wave if quadrant in (1, 2) else wave


def slow_normal(word: int) -> int:
    x = (word >> 32) + 1
    e = x.bit_length() - 1
    n = (x << 31) >> e
    for _ in range(26):
        n = n * n >> 31
        bit = n >> 32
        n >>= bit
        e = 2 * e + bit
    radius = math.isqrt((32 * 2**26 - e) * 1488522236)
    return (radius * slow_cosine(word % 2**32) + 2**29) >> 30


CORNERS = [0, 1, 2**30 - 1, 2**30, 2**30 + 1, 2**31, 3 * 2**30, 2**32 - 1, 2**29, 3 * 2**29]


def test_cosines_are_those_of_the_specification() -> None:
    turns = np.array([*CORNERS, *(words(2000) >> np.uint64(32)).tolist()], dtype=np.int64)
    assert cosines(turns).tolist() == [slow_cosine(t) for t in turns.tolist()]


def test_normal_numbers_are_those_of_the_specification() -> None:
    corners = [upper << 32 | lower for upper in CORNERS for lower in CORNERS]
    sample = np.array([*corners, *words(2000).tolist()], dtype=np.uint64)
    assert normals(sample).tolist() == [slow_normal(word) for word in sample.tolist()]


def test_normal_numbers_do_not_depend_on_their_neighbours() -> None:
    sample = words(2**14 + 100)
    assert np.array_equal(normals(sample[7:])[::-1], normals(sample[7:][::-1]))
    assert np.array_equal(normals(sample.reshape(4, -1)).ravel(), normals(sample))


# -- precision and law --------------------------------------------------------------------------------


def test_cosines_are_within_four_units() -> None:
    turns = (words(300_000) >> np.uint64(32)).astype(np.int64)
    exact = np.cos(turns * (2.0 * math.pi / 2**32)) * 2.0**COSINE_BITS
    assert np.abs(cosines(turns) - exact).max() < 4.0


def test_normal_numbers_are_box_and_mullers_with_the_precision_that_is_stated() -> None:
    sample = words(300_000)
    squares = -2.0 * np.log(((sample >> np.uint64(32)).astype(np.float64) + 1.0) / 2**32)
    waves = np.cos((sample & np.uint64(2**32 - 1)).astype(np.float64) * (2.0 * math.pi / 2**32))
    found = normals(sample) * 2.0**-NORMAL_BITS
    # What 2^-24 of the square makes of the radius, and the cosine's and the last rounding.
    room = np.sqrt(squares + 2.0**-24) - np.sqrt(squares) + 2.0**-26 * (1.0 + np.sqrt(squares))
    assert (np.abs(found - np.sqrt(squares) * waves) < room).all()


def test_the_farthest_normal_number_is_as_far_out_as_is_stated() -> None:
    least = np.array([0, 2**31], dtype=np.uint64)  # the upper half 0, and the angles 0 and half a turn
    farthest = normals(least) * 2.0**-NORMAL_BITS
    assert farthest == pytest.approx([6.6604, -6.6604], abs=1e-3)
    assert 2.0 * stats.norm.sf(6.6604) < 2.8e-11


@pytest.mark.parametrize(
    ("law", "made"),
    [
        (stats.norm, lambda sample: normals(sample) * 2.0**-NORMAL_BITS),
        (stats.cauchy, cauchys),
        (stats.uniform, uniforms),
    ],
    ids=["normal", "cauchy", "uniform"],
)
def test_numbers_have_their_law(law: stats.rv_continuous, made: object) -> None:
    """Kolmogorov and Smirnov's test of 2^18 words, at a rate of false alarms of `ALARM`."""
    assert callable(made)
    sample = made(words(2**18))
    assert stats.kstest(sample, law.cdf).pvalue > ALARM
    # The control: a law that is wider by one part in ten.
    assert stats.kstest(sample * 1.1, law.cdf).pvalue < ALARM


def test_normal_numbers_have_the_moments_of_the_law_and_do_not_follow_each_other() -> None:
    sample = normals(words(2**18)) * 2.0**-NORMAL_BITS
    limit = stats.norm.isf(ALARM / 10) / 2**9
    for power, mean, variance in ((1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)):
        assert abs(np.mean(sample**power) - mean) < limit * math.sqrt(variance)
    assert abs(np.mean(sample[1:] * sample[:-1])) < limit
