"""Trees of digests: each leaf's path leads to the root, and nothing else does."""

from __future__ import annotations

import hashlib

import pytest

from hushbid.protocol.wire.merkle import NODE_BYTES, Tree, root_of


def leaves(count: int) -> list[bytes]:
    return [hashlib.sha256(number.to_bytes(4, "big")).digest() for number in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 33, 1024])
def test_the_path_of_each_leaf_leads_to_the_root(count: int) -> None:
    tree, given = Tree(leaves(count)), leaves(count)
    for place, leaf in enumerate(given):
        path = tree.path(place)
        assert len(path) == NODE_BYTES * tree.depth == NODE_BYTES * (count - 1).bit_length()
        assert root_of(leaf, place, path) == tree.root
        if count > 1:
            assert root_of(leaf, place ^ 1, path) != tree.root
            assert root_of(given[place - 1], place, path) != tree.root
            changed = bytes([path[0] ^ 1]) + path[1:]
            assert root_of(leaf, place, changed) != tree.root


def test_a_root_is_of_its_leaves_in_their_order() -> None:
    given = leaves(6)
    roots = {Tree(each).root for each in (given, given[::-1], given[:5], [*given, given[0]])}
    assert len(roots) == 4


def test_a_tree_of_three_by_hand() -> None:
    a, b, c = leaves(3)

    def node(left: bytes, right: bytes) -> bytes:
        return hashlib.sha256(b"hushbid node 1\0" + left + right).digest()

    tree = Tree([a, b, c])
    assert tree.root == node(node(a, b), node(c, bytes(32)))
    assert tree.path(2) == bytes(32) + node(a, b)
    assert tree.path(0) == b + node(c, bytes(32))


def test_a_node_is_no_leaf() -> None:
    """A leaf's digest covers other bytes than a node's: a subtree does not pass for a point."""
    given = leaves(4)
    tree = Tree(given)
    inner = Tree(given[:2]).root
    assert root_of(inner, 0, tree.path(0)[NODE_BYTES:]) == tree.root  # a shorter path: its depth is signed
    assert len(tree.path(0)) != NODE_BYTES
