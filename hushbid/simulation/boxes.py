"""The sealed boxes of a simulated curator, which survive its crashes like a file of boxes."""

from __future__ import annotations

import hashlib

from hushbid.protocol.errors import LocalProtocolError

__all__ = ["SimulatedBoxes"]


class SimulatedBoxes:
    """Boxes by their SHA-256. A box that was not committed does not survive a crash."""

    def __init__(self) -> None:
        self._boxes: dict[bytes, bytes] = {}
        self._pending: list[bytes] = []

    def add(self, box: bytes) -> None:
        self._pending.append(box)

    def commit(self) -> None:
        """Make every received box durable."""
        self._boxes.update((hashlib.sha256(box).digest(), box) for box in self._pending)
        self._pending.clear()

    def sweep(self) -> None:
        """Do nothing: the boxes go with the simulation."""

    def forget_uncommitted(self) -> None:
        """Lose what a crash loses."""
        self._pending.clear()

    def __call__(self, digest: bytes) -> bytes:
        """The box of a digest.

        Raises:
            LocalProtocolError: The box was not durable, though the record with its digest was.
        """
        if digest not in self._boxes:
            raise LocalProtocolError("A record was durable before its box was.")
        return self._boxes[digest]
