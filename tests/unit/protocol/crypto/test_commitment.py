"""Trees of rows: what leads to a root and what does not, and what a path reveals."""

from __future__ import annotations

import hashlib
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol.crypto.commitment import (
    SALT_BYTES,
    Opening,
    RowTree,
    opening_bytes,
    root_name,
    row_leaf,
    rows_key,
)
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.wire.arrays import Array

KEY = bytes(range(32))


def rows(count: int, columns: int = 3, dtype: str = "float64") -> Array:
    return (np.random.default_rng(count).random((count, columns)) * 100).astype(dtype)


def attributes(row: int) -> bytes:
    return b"label %d" % (row % 3)


def tree(features: Array, *, key: bytes = KEY, depth: int = 8) -> RowTree:
    return RowTree(features, map(attributes, range(len(features))), key=key, depth=depth)


def leads_to(opening: Opening, point: Array, packed: bytes) -> bytes:
    return opening.root(row_leaf(opening.salt, point, packed))


@given(
    count=st.integers(1, 40), depth=st.integers(6, 12), dtype=st.sampled_from(["uint8", "int64", "float32"])
)
def test_every_row_leads_to_the_root(count: int, depth: int, dtype: str) -> None:
    features = rows(count, dtype=dtype)
    made = tree(features, depth=depth)
    places = set()
    for row in range(count):
        opening = made.opening(row)
        assert leads_to(opening, features[row], attributes(row)) == made.root
        assert Opening.split(opening.packed() + b"content", depth) == (opening, b"content")
        assert len(opening.packed()) == opening_bytes(depth) == SALT_BYTES + 4 + 32 * depth
        places.add(opening.place)
    assert len(places) == count
    assert max(places) < 2**depth
    some = [*range(0, count, 3), 0]
    assert made.packed_openings(some) == [made.opening(row).packed() for row in some]
    assert made.packed_openings([]) == []


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8])
def test_a_tree_may_be_full_and_no_more(count: int) -> None:
    features = rows(count)
    depth = max(1, (count - 1).bit_length())
    made = tree(features, depth=depth)
    assert all(
        leads_to(made.opening(row), features[row], attributes(row)) == made.root for row in range(count)
    )
    with pytest.raises(LocalProtocolError, match="has room for"):
        tree(rows(2**depth + 1), depth=depth)


def test_nothing_else_leads_to_the_root() -> None:
    """Another row, type, label, salt, place, node or length of path."""
    features = rows(20)
    made = tree(features)
    opening, point, packed = made.opening(4), features[4], attributes(4)
    assert leads_to(opening, point, packed) == made.root
    moved = point + np.array([1e-9, 0.0, 0.0])
    for other, own in ((moved, packed), (point.astype("float32"), packed), (point, packed + b"\0")):
        assert leads_to(opening, other, own) != made.root
    for changed in (
        opening._replace(salt=bytes(SALT_BYTES)),
        opening._replace(place=opening.place ^ 1),
        opening._replace(path=opening.path[32:]),
        opening._replace(path=opening.path + bytes(32)),
        opening._replace(path=bytes(32) + opening.path[32:]),
        made.opening(5),
    ):
        assert leads_to(changed, point, packed) != made.root


@pytest.mark.parametrize("length", [0, 1, opening_bytes(8) - 1])
def test_what_is_shorter_than_an_opening_is_none(length: int) -> None:
    assert Opening.split(bytes(length), 8) is None


def test_a_place_beyond_the_tree_is_none() -> None:
    opening = tree(rows(4)).opening(0)
    assert Opening.split(opening._replace(place=2**8).packed(), 8) is None
    assert Opening.split(opening._replace(place=2**8 - 1).packed(), 8) is not None


def test_the_same_rows_have_the_same_root_and_any_other_another() -> None:
    features = rows(30)
    root = tree(features).root
    assert tree(features.copy()).root == root
    changed = features.copy()
    changed[7, 1] += 1e-12
    roots = [
        tree(changed).root,
        tree(features[::-1]).root,
        tree(features[:-1]).root,
        tree(features, key=bytes(32)).root,
        tree(features, depth=9).root,
        RowTree(features, repeat(b"other"), key=KEY, depth=8).root,
    ]
    assert len({root, *roots}) == 7


def test_a_path_tells_neither_how_many_rows_there_are_nor_where_a_row_stands() -> None:
    """A tree of one row has as many nodes that look random as a full one, and places are spread evenly."""
    depth = 10
    for count in (1, 30, 2**depth):
        made = tree(rows(count), depth=depth)
        some = [made.opening(row) for row in range(0, count, max(1, count // 25))]
        for opening in some:
            nodes = {opening.path[at : at + 32] for at in range(0, len(opening.path), 32)}
            assert len(nodes) == depth
            bits = np.unpackbits(np.frombuffer(b"".join(nodes), dtype=np.uint8)).mean()
            assert abs(bits - 0.5) < 0.06  # 4.3 deviations of 2,560 fair bits
        if count > 1:
            places = np.array([opening.place for opening in some])
            assert abs(places.mean() / 2**depth - 0.5) < 0.25
            assert (np.diff(places) < 0).any()


def test_salts_and_places_are_the_keys_own() -> None:
    features = rows(50)
    one, other = tree(features), tree(features, key=bytes(32))
    both = [(one.opening(row), other.opening(row)) for row in range(50)]
    assert len({opening.salt for pair in both for opening in pair}) == 100
    assert sum(mine.place == theirs.place for mine, theirs in both) < 5


def test_a_key_is_of_a_secret_and_of_the_data() -> None:
    keys = [rows_key(bytes([secret]) * 32, bytes([data]) * 32) for secret in (1, 2) for data in (3, 4)]
    assert len(set(keys)) == 4
    assert {len(key) for key in keys} == {32}


def test_mapped_rows_stay_mapped(tmp_path: Path) -> None:
    features = rows(40_000, 4)
    np.save(tmp_path / "rows.npy", features)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    made = tree(mapped, depth=16)
    assert made.root == tree(features, depth=16).root
    assert isinstance(mapped, np.memmap)


def test_the_tree_is_the_one_that_is_written_down() -> None:
    """docs/wire.md, "Commitments": another implementation makes the same."""
    features = np.array([[0.0, 0.5, 1.0], [0.25, 0.5, 0.75]])
    made = RowTree(features, repeat(b"\x92\xc0\xc0"), key=KEY, depth=4)
    assert root_name(made.root, 4) == "37b99161fc2b67c782e5d2537dc27bcf06d4a13998289337e22566dd2eddc4a9/4"
    openings = [made.opening(row) for row in (0, 1)]
    assert [opening.place for opening in openings] == [6, 12]
    for height, lone in ((0, 2), (1, 2), (2, 2)):
        drawn = hashlib.shake_256(b"hushbid rows empty 1\0" + bytes([height]) + KEY).digest(32 * lone)
        beside = [opening.path[32 * height : 32 * (height + 1)] for opening in openings]
        assert beside == [drawn[:32], drawn[32:]]
