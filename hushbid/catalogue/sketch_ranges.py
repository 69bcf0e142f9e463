"""Ranges of a sketch's numbers, as `hushbid.protocol.ranges` has those of a session."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from annotated_types import Ge, Le

__all__ = ["MAX_CELLS", "Power", "Rows", "Width"]

MAX_CELLS: Final = 2**20
"""Maximum cells of an entry's sketch: rows times columns."""

Rows: TypeAlias = Annotated[int, Ge(1), Le(MAX_CELLS)]
Width: TypeAlias = Annotated[int, Ge(2), Le(MAX_CELLS)]
Power: TypeAlias = Annotated[int, Ge(1), Le(16)]
