"""Merkle trees: one digest of many, and short proofs that a digest is among them.

A level of an odd number of nodes is followed by a node of zeros. Leaves are digests whose input begins with a
tag of its own, and a node's with another, so that no node passes for a leaf (RFC 6962, section 2.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from struct import Struct
from typing import Final

__all__ = ["NODE_BYTES", "Tree", "nodes_above", "root_of"]

NODE_BYTES: Final = 32
_PAIR: Final = Struct(f"{2 * NODE_BYTES}s")
_NODE: Final = b"hushbid node 1\0"
_BEGUN: Final = sha256(_NODE)
"""The hash of every node begins so; to copy it takes less than to begin another."""
_NOTHING: Final = bytes(NODE_BYTES)


class Tree:
    """The tree over some digests, in order.

    Args:
        leaves: Of 32 bytes each, at least one.
    """

    def __init__(self, leaves: Sequence[bytes]) -> None:
        self._levels = [list(leaves)]
        while len(level := self._levels[-1]) > 1:
            if len(level) % 2:
                level.append(_NOTHING)
            self._levels.append(nodes_above(b"".join(level)))

    @property
    def root(self) -> bytes:
        return self._levels[-1][0]

    @property
    def depth(self) -> int:
        """Number of nodes in a path."""
        return len(self._levels) - 1

    def path(self, place: int) -> bytes:
        """The siblings on the way from a leaf to the root, from the leaf's on, concatenated."""
        return b"".join(level[place >> up ^ 1] for up, level in enumerate(self._levels[:-1]))


def root_of(leaf: bytes, place: int, path: bytes) -> bytes:
    """The root that a leaf at this place leads to by this path.

    Args:
        place: From 0; of no meaning beyond the path's length.
        path: A whole number of nodes (`Tree.path`).
    """
    node, begun = leaf, _BEGUN.copy
    for at in range(0, len(path), NODE_BYTES):
        sibling, above = path[at : at + NODE_BYTES], begun()
        above.update(sibling + node if place & 1 else node + sibling)
        node, place = above.digest(), place >> 1
    return node


def nodes_above(level: bytes) -> list[bytes]:
    """The nodes above those of a level, which are given one after the other, an even number of them."""
    begun = _BEGUN.copy
    found = []
    for (both,) in _PAIR.iter_unpack(level):
        node = begun()
        node.update(both)
        found.append(node.digest())
    return found
