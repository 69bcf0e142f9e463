"""Vectors of commitments: the tree over an owner's rows, and what it signs (docs/wire.md, "Commitments")."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hushbid.protocol.crypto.commitment import RowTree, row_leaf, rows_key
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.crypto.sealing import rows_statement, sign
from hushbid.protocol.data import Dataset, dataset_digest
from hushbid.protocol.session.session import Session

__all__ = ["commitment_vector"]

_DEPTH: Final = 4
_ROWS: Final = (
    (np.array([[0.5, 1.0, 0.125], [0.0, 0.25, 1.0], [1.0, 0.0, 0.75]]), np.array(["b", "a", "b"])),
    (np.array([[7, 255]], dtype=np.uint8), None),
)
"""Rows of two types, and their labels."""


def commitment_vector(session: Session, name: str, owner: Identity) -> dict[str, Any]:
    """Trees of few rows, with each row's opening, as an owner of this session commits to them."""
    return {"owner": name, "depth": _DEPTH, "trees": [_tree(session, name, owner, *rows) for rows in _ROWS]}


def _tree(session: Session, name: str, owner: Identity, features: Any, labels: Any) -> dict[str, Any]:
    dataset = Dataset.from_arrays("rows", features, labels)
    digest = dataset_digest(dataset)
    key = rows_key(owner.seed, digest)
    attributes = map(dataset.attributes, range(len(dataset)))
    tree = RowTree(dataset.features, attributes, key=key, depth=_DEPTH)
    statement = rows_statement(session.identifier, name, _DEPTH, tree.root)
    return {
        "type": dataset.features.dtype.newbyteorder("<").str,
        "digest of the data": digest.hex(),
        "key": key.hex(),
        "rows": [_row(tree, dataset, row) for row in range(len(dataset))],
        "root": tree.root.hex(),
        "statement": statement.hex(),
        "signature": sign(statement, owner.signing).hex(),
    }


def _row(tree: RowTree, dataset: Dataset, row: int) -> dict[str, Any]:
    opening, point, attributes = tree.opening(row), dataset.features[row], dataset.attributes(row)
    return {
        "point": point.tolist(),
        "attributes": attributes.hex(),
        "salt": opening.salt.hex(),
        "place": opening.place,
        "leaf": row_leaf(opening.salt, point, attributes).hex(),
        "path": opening.path.hex(),
        "in front of the content": opening.packed().hex(),
    }
