"""Maps of cosines: their whole numbers, as docs/wire.md specifies them, and their kernel error."""

from __future__ import annotations

import hashlib
import math
import re
import struct
from typing import Any

import numpy as np
import pytest

from hushbid.protocol import limits
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.space.expansion import ANGLE_BITS
from hushbid.protocol.space.features import FEATURE_SPACES, FourierMap, feature_map, feature_space
from hushbid.protocol.space.features.fourier import FourierSpace, waves
from tests.unit.protocol.space.test_expansion import slow_cosine, slow_normal

MAPS = ("paired", "cosine")
PUBLIC: dict[str, Any] = {"dimension": 8, "gamma": 0.3, "lower": -1.0, "upper": 3.0, "columns": 3}


def build(name: str = "paired", seed: int | bytes = 5, **change: Any) -> FourierMap:
    made = feature_map(name, seed=seed, **{**PUBLIC, **change})
    assert isinstance(made, FourierMap)
    return made


def by_specification(
    name: str, seed: bytes, points: list[list[float]], d: int, gamma: float, low: float, high: float
) -> tuple[list[list[int]], bytes]:
    """φ and digest by Python's own whole numbers, from docs/wire.md alone."""
    columns, m = len(points[0]), d // 2 if name == "paired" else d
    mantissa, q = math.frexp(math.sqrt(gamma / (2.0 * math.pi * math.pi)))
    width, fraction = round(mantissa * 2.0**31), 17 - q
    grid = min(32 - math.ceil(math.log2(columns)), 52 - fraction)
    turn = fraction + grid
    rows, phases = [], []
    for f in range(m):
        stream = hashlib.shake_256(f"hushbid feature map 2 {name}\0".encode() + seed + struct.pack("<Q", f))
        words = struct.unpack(f"<{columns + 1}Q", stream.digest(8 * columns + 8))
        rows.append([(slow_normal(word) * width + 2**41) >> 42 for word in words[:-1]])
        phases.append(words[-1] >> (64 - turn))
    state = hashlib.sha256(name.encode() + b"\0" + struct.pack("<4Q", m, columns, grid, turn))
    state.update(b"".join(struct.pack(f"<{columns}i", *row) for row in rows))
    state.update(struct.pack(f"<{m}Q", *phases))
    radius = math.isqrt(2**63 // d)
    hashed = []
    for point in points:
        scaled = [min(max(round((x - low) * (2.0**grid / (high - low))), 0), 2**grid) for x in point]
        angles = [
            ((sum(w * x for w, x in zip(row, scaled, strict=True)) + phase) >> (turn - 16)) % 2**16
            for row, phase in zip(rows, phases, strict=True)
        ]
        wanted = angles if name == "cosine" else angles + [(k - 2**14) % 2**16 for k in angles]
        hashed.append([(slow_cosine(k << 16) * radius + 2**45) >> 46 for k in wanted])
    return hashed, state.digest()


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("gamma", [1e-9, 0.01, 0.3, 4000.0])
@pytest.mark.parametrize("seed", [5, bytes(range(32))], ids=["public", "secret"])
def test_a_map_is_that_of_the_specification(name: str, gamma: float, seed: int | bytes) -> None:
    said = f"number\0{seed}\0".encode() if isinstance(seed, int) else b"secret\0" + seed
    points = np.random.default_rng(3).uniform(-1.5, 3.5, (20, 3))
    made = build(name, seed, gamma=gamma)
    hashed, digest = by_specification(name, said, points.tolist(), 8, gamma, -1.0, 3.0)
    assert made.hash(points).tolist() == hashed
    assert made.digest == digest


@pytest.mark.parametrize("dimension", [4, 6, 8, 140, 142, 1000, 4096, limits.MAX_FEATURES])
def test_tables_are_the_cosines_of_all_angles_to_the_nearest_unit(dimension: int) -> None:
    cosine, sine = waves(dimension)
    angles = np.arange(2**ANGLE_BITS) * (2.0 * math.pi / 2**ANGLE_BITS)
    radius = 2.0**15 * math.sqrt(2.0 / dimension)
    for table, exact in ((cosine, np.cos(angles)), (sine, np.sin(angles))):
        assert np.abs(table - radius * exact).max() < 0.5 + radius * 5 * 2.0**-30
    assert cosine.dtype == np.int16
    assert not cosine.flags.writeable


@pytest.mark.parametrize("dimension", [4, 140, 4096])
def test_no_table_has_a_longer_pair_than_the_norm_that_sensitivities_are_stated_with(dimension: int) -> None:
    cosine, sine = (wave.astype(np.int64) for wave in waves(dimension))
    longest = math.isqrt(int((cosine**2 + sine**2).max()) * dimension // 2) + 1
    space = feature_space("paired", **{**PUBLIC, "dimension": dimension})
    assert (longest - 1) * 2.0**-15 <= space.norm_bound <= longest * 2.0**-15
    assert space.norm_bound < 1.0 + 2.0**-15 * math.sqrt(dimension)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("columns", [1, 2, 3, 784, 1000, 65_536, limits.MAX_COLUMNS])
@pytest.mark.parametrize("gamma", [1e-12, 1e-6, 0.01, 1.0, 1e4])
def test_no_sum_can_leave_what_float64_holds_exactly(name: str, columns: int, gamma: float) -> None:
    """Largest frequency, times the largest coordinate, in every column, and the largest phase."""
    space = feature_space(name, **{**PUBLIC, "columns": columns, "gamma": gamma})
    assert isinstance(space, FourierSpace)
    farthest = slow_normal(0)
    largest = (farthest * space.width + 2**41) >> 42
    assert space.width <= 2**31
    assert columns * largest * 2**space.point_bits + 2**space.turn_bits <= 2**53
    assert space.turn_bits >= ANGLE_BITS + 8
    assert largest < 2**20


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize(
    ("gamma", "columns", "kind"), [(1e12, 784, "narrow"), (1e300, 1, "narrow"), (1e-300, 1, "wide")]
)
def test_a_kernel_that_the_grid_cannot_carry_is_refused(
    name: str, gamma: float, columns: int, kind: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"gamma {gamma} makes too {kind}")) as caught:
        feature_space(name, **{**PUBLIC, "gamma": gamma, "columns": columns})
    assert "features.gamma" in caught.value.advice


@pytest.mark.parametrize("name", MAPS)
def test_bounds_between_which_the_grid_does_not_fit_are_refused_by_column(name: str) -> None:
    upper = np.array([1.0, 1e-310, 1.0])
    with pytest.raises(ConfigError, match="column 1 are too close"):
        feature_space(name, **{**PUBLIC, "lower": 0.0, "upper": upper})
    assert build(name, lower=0.0, upper=1e-290).hash(np.full((1, 3), 5e-291)).any()


@pytest.mark.parametrize("name", MAPS)
def test_points_off_the_grid_go_to_the_nearest_place_and_ties_to_the_even_one(name: str) -> None:
    made = build(name, lower=0.0, upper=1.0, columns=1, gamma=4.0)
    step = 2.0**-made.space.point_bits
    assert made.space.point_bits == 32
    for place in (7, 8):
        here = made.hash(np.array([[place * step]]))
        for off in (-0.49, 0.49, *((-0.5, 0.5) if place % 2 == 0 else ())):
            assert np.array_equal(made._on_grid(np.array([[(place + off) * step]]), 0), [[place]])
            assert np.array_equal(made.hash(np.array([[(place + off) * step]])), here)


@pytest.mark.parametrize("name", FEATURE_SPACES)
def test_points_outside_of_the_bounds_have_the_features_of_the_nearer_bound(name: str) -> None:
    made = feature_map(name, seed=5, **PUBLIC)
    outside = np.array([[-1.5, 0.0, 99.0], [1.0, 3.0 + 1e-9, -1e30]][: 1 if name == "lsh" else 2])
    assert np.array_equal(made.hash(outside), made.hash(np.clip(outside, -1.0, 3.0)))


@pytest.mark.parametrize("name", MAPS)
def test_frequencies_and_phases_in_radians_are_those_that_are_used(name: str) -> None:
    """The W and b of optimisers and attacks make φ, up to the rounding of angles and features."""
    made = build(name, dimension=140)
    points = np.random.default_rng(1).uniform(-1.0, 3.0, (200, 3))
    angles = made.space.scale(points) @ made.frequencies.T + made.phases
    parts = [np.cos(angles)] + ([np.sin(angles)] if name == "paired" else [])
    exact = 2.0**15 * math.sqrt(2.0 / 140) * np.hstack(parts)
    assert (
        np.abs(made.hash(points) - exact).max()
        < 0.5 + 2.0**15 * math.sqrt(2.0 / 140) * math.pi / 2**16 + 0.01
    )


def test_many_columns_make_a_map_of_moderate_memory_and_the_kernel_of_their_distance() -> None:
    """65,536 columns: the mean of 100 frequencies is the kernel within five standard errors."""
    columns, d = 65_536, 200
    made = build(dimension=d, gamma=1e-4, columns=columns, lower=0.0, upper=1.0)
    points = np.random.default_rng(1).uniform(0.0, 1.0, (6, columns))
    found = (made.hash(points).astype(float) * 2.0**-15) @ (made.hash(points).astype(float) * 2.0**-15).T
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    assert np.abs(found - np.exp(-1e-4 * squared)).max() < 5.0 * math.sqrt(0.5 / (d / 2))
