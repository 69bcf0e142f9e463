"""How many examples a property is looked at with, where these are not a hundred."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples"]


def examples(count: int) -> settings:
    """So many examples of a property, or as large a part of them as the profile in use has of a hundred."""
    return settings(max_examples=max(1, count * settings().max_examples // 100))
