"""A tree over an owner's rows: docs/wire.md, "Commitments"."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from tests.interop.minimal.formats import leaf, node


class Rows:
    """Rows at their places in a tree; a node without a row below it is drawn when it is needed."""

    def __init__(self, points: npt.NDArray[Any], attributes: Sequence[bytes], depth: int) -> None:
        self._depth = depth
        self._nodes: dict[tuple[int, int], bytes] = {}
        self._salts = [secrets.token_bytes(16) for _ in points]
        self._places = secrets.SystemRandom().sample(range(2**depth), len(points))
        rows = zip(self._places, self._salts, points, attributes[: len(points)], strict=True)
        for place, salt, point, packed in rows:
            self._nodes[0, place] = leaf(salt, point, packed)
        for height in range(depth):
            for place in {place // 2 for at, place in self._nodes if at == height}:
                both = self._node(height, 2 * place), self._node(height, 2 * place + 1)
                self._nodes[height + 1, place] = node(*both)
        self.root = self._node(depth, 0)

    def _node(self, height: int, place: int) -> bytes:
        return self._nodes.setdefault((height, place), secrets.token_bytes(32))

    def opening(self, row: int) -> bytes:
        """The bytes before a row's content."""
        place = self._places[row]
        path = (self._node(height, place >> height ^ 1) for height in range(self._depth))
        return self._salts[row] + place.to_bytes(4, "big") + b"".join(path)
