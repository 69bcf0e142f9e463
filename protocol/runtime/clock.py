"""A party's clock, which never goes back: not even when the party starts again on a machine that did too."""

from __future__ import annotations

import time

__all__ = ["Clock"]


class Clock:
    """Seconds that never decrease.

    Args:
        not_before: When the party's last step was, by its transcript.
    """

    def __init__(self, not_before: float = 0.0) -> None:
        # A machine's own clock begins anew with it.
        self._ahead = max(0.0, not_before - time.monotonic())

    def __call__(self) -> float:
        return time.monotonic() + self._ahead
