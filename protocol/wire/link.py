"""Numbered frames in both directions between two parties: at least once, in order, without duplicates.

A frame is kept until the other side acknowledges it as durable, in the header of any of its frames. After a
reconnection both sides say what they have, and each resends what the other lacks, from the stored bytes.
"""

from __future__ import annotations

from collections import deque

from hushbid.protocol import limits
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError

__all__ = ["Link"]


class Link:
    """The state of the frames between this party and one peer."""

    __slots__ = ("held", "received", "sent")

    def __init__(self) -> None:
        self.sent = 0
        """Sequence of the last frame given out."""
        self.received = 0
        """Sequence of the last accepted frame."""
        self.held: deque[tuple[int, str, bytes]] = deque()
        """Unacknowledged frames: (sequence, kind, body)."""

    def is_new(self, sequence: int) -> bool:
        """Whether a sequenced frame is the next one; False for a repeated one.

        Raises:
            RemoteProtocolError: `SEQUENCE`: frames before it are missing.
        """
        if sequence > self.received + 1:
            raise RemoteProtocolError(
                Offence.SEQUENCE, f"Frame {sequence} came after frame {self.received}: some are missing."
            )
        return sequence == self.received + 1

    def check_acknowledged(self, acknowledged: int) -> None:
        """Raise `RemoteProtocolError` (`SEQUENCE`) if the peer claims to have unsent frames."""
        if acknowledged > self.sent:
            raise RemoteProtocolError(
                Offence.SEQUENCE, f"The peer acknowledges frame {acknowledged} of {self.sent}."
            )

    def check_held(self, acknowledged: int) -> None:
        """Raise `RemoteProtocolError` (`SEQUENCE`) if the peer answers without ever acknowledging.

        It must be refused while there is still room for the frames under way to it.
        """
        waiting = sum(1 for sequence, _, _ in self.held if sequence > acknowledged)
        if waiting > limits.MAX_UNACKNOWLEDGED:
            raise RemoteProtocolError(
                Offence.SEQUENCE, f"The peer has not acknowledged the last {waiting} frames that it answers."
            )

    def accept(self, sequence: int, acknowledged: int) -> None:
        """Count a new frame as received and drop the frames that it acknowledges."""
        self.received = sequence
        self.release(acknowledged)

    def release(self, acknowledged: int) -> None:
        """Drop the frames that the peer has durably."""
        while self.held and self.held[0][0] <= acknowledged:
            self.held.popleft()

    def give_out(self, kind: str, body: bytes) -> int:
        """Number a frame and hold it; returns its sequence.

        Raises:
            LocalProtocolError: More frames are held than the protocol's turns can leave unacknowledged.
        """
        if len(self.held) >= limits.MAX_HELD_PER_PEER:
            raise LocalProtocolError(f"{len(self.held)} frames are unacknowledged by one peer.")
        self.sent += 1
        self.held.append((self.sent, kind, body))
        return self.sent
