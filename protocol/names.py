"""The names of parties: two that every session has, and those that owners choose."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

__all__ = ["CONSUMER", "CURATOR", "listed"]

CURATOR: Final = "curator"
CONSUMER: Final = "consumer"

_LISTED: Final = 8


def listed(names: Collection[str]) -> str:
    """The first eight names in order, and the number of others."""
    shown = ", ".join(sorted(names)[:_LISTED])
    return shown if len(names) <= _LISTED else f"{shown} and {len(names) - _LISTED} more"
