"""Room for an owner's rows: in boxes for a label and an identifier, and in the tree that it commits by."""

from __future__ import annotations

from hushbid.protocol import limits
from hushbid.protocol.crypto.sealing import content_bytes
from hushbid.protocol.data.dataset import Dataset, Outside
from hushbid.protocol.data.outside import room_for
from hushbid.protocol.session.session import Session

__all__ = ["with_room"]


def with_room(session: Session, dataset: Dataset, outside: Outside) -> Dataset:
    """An owner's rows that the session has room for, if those that do not fit are to be dropped; else all.

    Rows whose label and identifier fit into no box are left out; of more rows than a tree takes, the last.

    Raises:
        DataError: None is left.
    """
    if outside != "drop":
        return dataset
    most = limits.MAX_ATTRIBUTES
    if session.rule.sealed:
        width, kind = dataset.features.shape[1], dataset.features.dtype
        while most > 0 and content_bytes(width, kind, most) > session.box_bytes:
            most -= max(1, content_bytes(width, kind, most) - session.box_bytes - 4)
    depth = session.commitment_depth
    return room_for(dataset, most=max(most, 0), rows=2**depth if depth else None)
