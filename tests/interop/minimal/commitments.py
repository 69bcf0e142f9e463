"""A tree over an owner's rows: docs/wire.md, "Commitments"."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt


class Rows:
    """Rows at places of their own in a tree; a node without a row below it is drawn when it is needed."""

    def __init__(self, points: npt.NDArray[Any], attributes: Sequence[bytes], depth: int) -> None:
        self._depth = depth
        self._nodes: dict[tuple[int, int], bytes] = {}
        self._salts = [secrets.token_bytes(16) for _ in points]
        self._places = secrets.SystemRandom().sample(range(2**depth), len(points))
        rows = zip(self._places, self._salts, points, attributes[: len(points)], strict=True)
        for place, salt, point, packed in rows:
            self._nodes[0, place] = leaf(salt, point, packed)
        for height in range(depth):
            for place in [place for at, place in self._nodes if at == height and not place & 1]:
                self._above(height, place)
            for place in [place for at, place in self._nodes if at == height and place & 1]:
                self._above(height, place - 1)
        self.root = self._node(depth, 0)

    def _above(self, height: int, place: int) -> None:
        both = self._node(height, place) + self._node(height, place + 1)
        self._nodes[height + 1, place // 2] = hashlib.sha256(b"hushbid node 1\0" + both).digest()

    def _node(self, height: int, place: int) -> bytes:
        return self._nodes.setdefault((height, place), secrets.token_bytes(32))

    def opening(self, row: int) -> bytes:
        """What stands in front of a row's content."""
        place = self._places[row]
        path = (self._node(height, place >> height ^ 1) for height in range(self._depth))
        return self._salts[row] + place.to_bytes(4, "big") + b"".join(path)


def leaf(salt: bytes, point: npt.NDArray[Any], attributes: bytes) -> bytes:
    """What a row counts as in the tree."""
    row = point.astype(point.dtype.newbyteorder("<"))
    head = b"hushbid row 1\0" + row.dtype.str.encode() + b"\0" + len(row).to_bytes(4, "big")
    return hashlib.sha256(head + salt + row.tobytes() + attributes).digest()


def root_of(opening: bytes, node: bytes) -> bytes:
    """The root that a leaf leads to."""
    place = int.from_bytes(opening[16:20], "big")
    for height, at in enumerate(range(20, len(opening), 32)):
        beside = opening[at : at + 32]
        both = beside + node if place >> height & 1 else node + beside
        node = hashlib.sha256(b"hushbid node 1\0" + both).digest()
    return node if place >> (len(opening) - 20) // 32 == 0 else b""


def rows_statement(session: bytes, owner: str, depth: int, root: bytes) -> bytes:
    """What an owner signs of its rows."""
    name = owner.encode()
    return (
        b"hushbid rows 1\0" + session + bytes(8) + depth.to_bytes(8, "big") + bytes([len(name)]) + name + root
    )
