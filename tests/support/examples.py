"""The number of examples of a property, where it is not a hundred."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples"]


def examples(count: int) -> settings:
    """So many examples of a property, scaled like a hundred by the profile in use."""
    return settings(max_examples=max(1, count * settings().max_examples // 100))
