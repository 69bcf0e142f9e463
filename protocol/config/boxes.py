"""What an owner's points have room in: boxes, and the tree by which it commits to its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hushbid.protocol import limits
from hushbid.protocol.config.meaning import in_force
from hushbid.protocol.crypto.sealing import content_bytes
from hushbid.protocol.data.dataset import FEATURE_DTYPES
from hushbid.protocol.privacy.acquisition import RULES

__all__ = ["attribute_rooms", "commitment_depth"]

_LEAST: Final = 3
"""Packed bytes of no label and no identifier."""


def attribute_rooms(rule: str, parameters: Mapping[str, Any], columns: int, owners: int) -> dict[str, int]:
    """The bytes that a box has for a packed label and identifier, by the name of the features' type.

    Args:
        parameters: The rule's own, as the session file has them.
        columns: Of a point.
        owners: Of the session.

    Returns:
        {} if nothing is sealed. A type is not there if no point of it fits into a box.
    """
    known = RULES.get(rule)
    if known is None or not known.sealed:
        return {}
    size = in_force("acquisition", {"rule": rule, **parameters}, columns, owners).get("box_bytes")
    if not isinstance(size, int):
        return {}  # the rule refuses its keys, and so does the session
    rooms = {}
    for dtype in FEATURE_DTYPES:
        room = min(size - content_bytes(columns, dtype, 0), limits.MAX_ATTRIBUTES)
        while room >= _LEAST and content_bytes(columns, dtype, room) > size:
            room -= 1  # a longer one has a longer head
        if room >= _LEAST:
            rooms[dtype.name] = room
    return rooms


def commitment_depth(parameters: Mapping[str, Any]) -> int:
    """The depth of the trees by which owners commit to their rows; 0: they do not.

    Args:
        parameters: The rule's own, as the session file has them.
    """
    depth = parameters.get("commitment_depth")
    # The rule refuses another, and so does the session.
    return depth if isinstance(depth, int) and 0 < depth <= limits.MAX_COMMITMENT_DEPTH else 0
