"""The names of the two parties that every session has; owners choose their own."""

from __future__ import annotations

from typing import Final

__all__ = ["CONSUMER", "CURATOR"]

CURATOR: Final = "curator"
CONSUMER: Final = "consumer"
