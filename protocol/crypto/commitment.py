"""Commitments to rows: the root of a tree that an owner names before it is shown anything (DESIGN §3).

An owner that has seen the feature map, or a weight, could make up the very points that are asked for. So it
names the root of its rows first, and each box shows that its point is one of them.

The tree has a public depth D and 2^D places. A row's leaf is the digest of a salt of its own and of the row
(`row_leaf`). Rows lie at places that a key shuffles, and every node without a row below it is drawn from the
key, too. So a path shows neither how many rows there are, nor where in its file a row stands, nor anything of
the rows beside it: it is 32·D bytes that look random to who has not the key.

The key is derived from the owner's secret key and from its data. The same rows have the same root in every
session of one owner, so that the root is a public name of the data; other rows have another root, and share
no node with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.space.mapped import let_go
from hushbid.protocol.wire.arrays import Array
from hushbid.protocol.wire.merkle import NODE_BYTES, nodes_above, root_of

__all__ = [
    "ROOT_BYTES",
    "SALT_BYTES",
    "USUAL_DEPTH",
    "Opening",
    "RowTree",
    "opening_bytes",
    "root_name",
    "row_leaf",
    "rows_key",
]

ROOT_BYTES: Final = NODE_BYTES
"""Bytes of a root."""
USUAL_DEPTH: Final = 20
"""Room for a million rows: the depth in templates and catalogue entries."""
SALT_BYTES: Final = 16
"""Bytes of a row's salt: what is not bought stays hidden from who guesses it."""

_KEY: Final = b"hushbid rows key 1\0"
_SALTS: Final = b"hushbid rows salts 1\0"
_PLACES: Final = b"hushbid rows places 1\0"
_EMPTY: Final = b"hushbid rows empty 1\0"
_ROW: Final = b"hushbid row 1\0"
_SALT: Final = Struct(f"{SALT_BYTES}s")
_PLACE_BYTES: Final = 4
_TURNS: Final = 4
"""Rounds of the shuffle: with four of them it is a pseudorandom permutation (Luby and Rackoff, 1988)."""
_CHUNK: Final = 2**14
"""Rows read at a time: a large memory-mapped table must not become resident as a whole."""


class _Level(NamedTuple):
    """The nodes of a level that have rows below them."""

    places: npt.NDArray[np.uint32]
    """Ascending, shape (n,)."""
    nodes: npt.NDArray[np.uint8]
    """Shape (n, 32)."""


class Opening(NamedTuple):
    """What shows that a row is one of a tree: it travels in the row's box."""

    salt: bytes
    place: int
    path: bytes
    """The nodes beside the way to the root (`hushbid.protocol.wire.merkle.root_of`)."""

    def packed(self) -> bytes:
        """The bytes in front of a box's content: salt, place as u32, big-endian, and path."""
        return self.salt + self.place.to_bytes(_PLACE_BYTES, "big") + self.path

    def root(self, leaf: bytes) -> bytes:
        """The root that a leaf leads to."""
        return root_of(leaf, self.place, self.path)

    @classmethod
    def split(cls, opened: bytes, depth: int) -> tuple[Opening, bytes] | None:
        """The opening in front of a content, and the content; None if it cannot be one of that depth."""
        length = opening_bytes(depth)
        salt, place = opened[:SALT_BYTES], opened[SALT_BYTES : SALT_BYTES + _PLACE_BYTES]
        found = cls(salt, int.from_bytes(place, "big"), opened[SALT_BYTES + _PLACE_BYTES : length])
        return (found, opened[length:]) if len(opened) >= length and found.place >> depth == 0 else None


def root_name(root: bytes, depth: int) -> str:
    """What ledgers, results and catalogue entries call rows: the root in hexadecimal, and the depth."""
    return f"{root.hex()}/{depth}"


def opening_bytes(depth: int) -> int:
    """Bytes of a packed opening in a tree of this depth; 0 for depth 0, where nothing is committed to."""
    return SALT_BYTES + _PLACE_BYTES + NODE_BYTES * depth if depth else 0


def rows_key(secret: bytes, data: bytes) -> bytes:
    """The key of an owner's tree: BLAKE2b-256, keyed with its secret key, of a tag and of its data's digest.

    Args:
        secret: The owner's Ed25519 seed, 32 bytes.
        data: `hushbid.protocol.data.dataset_digest` of its rows.
    """
    return hashlib.blake2b(_KEY + data, key=secret, digest_size=32).digest()


def row_leaf(salt: bytes, point: Array, attributes: bytes) -> bytes:
    """The leaf of a row: SHA-256 of a tag, number type, number of columns, salt, columns and attributes.

    Args:
        salt: `SALT_BYTES` bytes.
        point: Raw columns, shape (columns,).
        attributes: The packed label and identifier (`hushbid.protocol.data.attributes`).
    """
    row = _little(point)
    return hashlib.sha256(_head(row) + salt + row.tobytes() + attributes).digest()


def _little(rows: Array) -> Array:
    """The rows as they travel: little-endian and contiguous."""
    return np.ascontiguousarray(rows, dtype=rows.dtype.newbyteorder("<"))


def _head(rows: Array) -> bytes:
    return b"%s%s\0%s" % (_ROW, rows.dtype.str.encode(), rows.shape[-1].to_bytes(4, "big"))


class RowTree:
    """The tree over an owner's rows.

    Args:
        features: The rows, shape (n, columns); may be memory-mapped.
        attributes: The packed label and identifier of each row, in order.
        key: `rows_key`.
        depth: D, from 1.

    Raises:
        LocalProtocolError: There are more than 2^depth rows (`Session.check_rows` refuses them before).
    """

    def __init__(self, features: Array, attributes: Iterable[bytes], *, key: bytes, depth: int) -> None:
        count = len(features)
        if count > 2**depth:
            raise LocalProtocolError(f"{count} rows, where a tree has room for {2**depth}.")
        self._key = key
        self._salts = hashlib.shake_256(_SALTS + key).digest(SALT_BYTES * count)
        self._places = _shuffled(count, key, depth)
        order = np.argsort(self._places)
        self._at = np.empty(count, dtype=np.intp)
        self._at[order] = np.arange(count)
        """The position of each row's leaf among the leaves."""
        level = _Level(self._places[order], _as_nodes(self._leaves(features, attributes))[order])
        heights: list[npt.NDArray[np.uint8]] = []
        self._beside = np.empty((depth, count), dtype=np.uint32)
        """Of each height, and of each leaf, the node on its path, as a number of `_nodes`."""
        node, before = np.arange(count), 0
        for height in range(depth):
            level, pairs, slots = self._above(level, height)
            slot = slots[node]
            self._beside[height] = before + (slot ^ 1)
            node, before = slot >> 1, before + len(pairs)
            heights.append(pairs)
        self._nodes = np.concatenate(heights)
        """Of all heights below the root, those without a row below them included; shape (m, 32)."""
        self.root: bytes = level.nodes[0].tobytes()

    def opening(self, row: int) -> Opening:
        """What shows that a row is one of the tree."""
        path = self._nodes[self._beside[:, self._at[row]]]
        return Opening(self._salt(row), int(self._places[row]), path.tobytes())

    def packed_openings(self, rows: Sequence[int]) -> list[bytes]:
        """`Opening.packed` of each of the rows."""
        of = np.asarray(rows, dtype=np.intp)
        paths = self._nodes[self._beside[:, self._at[of]].T].tobytes()
        places, size = self._places[of].astype(">u4").tobytes(), NODE_BYTES * len(self._beside)
        return [
            self._salt(row)
            + places[_PLACE_BYTES * at : _PLACE_BYTES * (at + 1)]
            + paths[size * at : size * (at + 1)]
            for at, row in enumerate(rows)
        ]

    def _salt(self, row: int) -> bytes:
        return self._salts[SALT_BYTES * row : SALT_BYTES * (row + 1)]

    def _leaves(self, features: Array, attributes: Iterable[bytes]) -> Iterator[bytes]:
        split = Struct(f"{features.shape[1] * features.dtype.itemsize}s")
        salts, packed = _SALT.iter_unpack(self._salts), iter(attributes)
        for start in range(0, len(features), _CHUNK):
            chunk = _little(features[start : start + _CHUNK])
            begun, rows = hashlib.sha256(_head(chunk)).copy, chunk.tobytes()
            let_go(features)
            for (row,), (salt,), own in zip(split.iter_unpack(rows), salts, packed, strict=False):
                leaf = begun()
                leaf.update(salt + row + own)
                yield leaf.digest()

    def _nothing(self, height: int, count: int) -> npt.NDArray[np.uint8]:
        """The nodes of a height without a row below, each beside one with, by place: shape (count, 32)."""
        drawn = hashlib.shake_256(_EMPTY + bytes([height]) + self._key)
        return np.frombuffer(drawn.digest(NODE_BYTES * count), dtype=np.uint8).reshape(count, NODE_BYTES)

    def _above(
        self, level: _Level, height: int
    ) -> tuple[_Level, npt.NDArray[np.uint8], npt.NDArray[np.intp]]:
        """The level above one, all nodes just below it, and where the one's stand among these."""
        above: npt.NDArray[np.uint32] = level.places >> np.uint32(1)
        first = np.ones(len(above), dtype=np.bool_)
        np.not_equal(above[1:], above[:-1], out=first[1:])
        parents = above[first]
        slots = 2 * (np.cumsum(first) - 1) + (level.places & 1)
        pairs = np.empty((2 * len(parents), NODE_BYTES), dtype=np.uint8)
        pairs[slots] = level.nodes
        alone = np.ones(len(pairs), dtype=np.bool_)
        alone[slots] = False
        pairs[alone] = self._nothing(height, len(pairs) - len(slots))
        return _Level(parents, _as_nodes(nodes_above(pairs.tobytes()))), pairs, slots


def _shuffled(count: int, key: bytes, depth: int) -> npt.NDArray[np.uint32]:
    """The places of rows 0, 1, …: different ones below 2^depth, uint32 of shape (count,).

    A Feistel network whose functions are tables drawn from the key.
    """
    low = (depth + 1) // 2
    high = depth - low
    rows = np.arange(count, dtype=np.uint32)
    halves = [rows & (2**low - 1), rows >> low]
    for turn in range(_TURNS):
        of, changed = turn % 2, 1 - turn % 2
        entries, bits = 2 ** (low, high)[of], (low, high)[changed]
        drawn = hashlib.shake_256(_PLACES + bytes([turn]) + key).digest(_PLACE_BYTES * entries)
        table = np.frombuffer(drawn, dtype=">u4").astype(np.uint32) & (2**bits - 1)
        halves[changed] ^= table[halves[of]]
    places: npt.NDArray[np.uint32] = halves[1] << low | halves[0]
    return places


def _as_nodes(digests: Iterable[bytes]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, NODE_BYTES)
