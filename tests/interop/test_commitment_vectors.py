"""Vectors of commitments, checked by code written from the documents alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.interop.minimal.checks import root_of
from tests.interop.minimal.formats import leaf, rows_statement
from tests.interop.test_vectors import SEALED, VECTORS, owner_key


@pytest.mark.parametrize("tree", VECTORS["commitments"]["trees"], ids=lambda tree: str(tree["type"]))
def test_commitments(tree: dict[str, Any]) -> None:
    depth, owner = VECTORS["commitments"]["depth"], VECTORS["commitments"]["owner"]
    for row in tree["rows"]:
        opening, point = bytes.fromhex(row["in front of the content"]), np.array(row["point"], tree["type"])
        assert opening.hex() == row["salt"] + f"{row['place']:08x}" + row["path"]
        assert len(opening) == 20 + 32 * depth
        node = leaf(opening[:16], point, bytes.fromhex(row["attributes"]))
        assert (node.hex(), root_of(opening, node).hex()) == (row["leaf"], tree["root"])
    statement = rows_statement(SEALED.identifier, owner, depth, bytes.fromhex(tree["root"]))
    assert statement.hex() == tree["statement"]
    assert owner_key().sign(statement).signature.hex() == tree["signature"]
