"""Whether the curator is here: a participant's state machine without I/O, to which time is an argument.

The loop of owners and the consumer (`protocol.runtime.network.connection`) and the network of fault sweeps
(`hushbid.evidence.sweep.network`) follow it. They bring what happens on the connection, and feed what comes
out, `Connected`, `Lost` and `Returned`, to the participant's machine. `curator.presence` is the other side.
"""

from __future__ import annotations

from protocol.config.session import TimeoutSection
from protocol.machine.machine import Connected, Lost, Returned
from protocol.names import CURATOR

__all__ = ["CuratorPresence"]


class CuratorPresence:
    """The curator as one participant's process sees it: gone until there is a connection.

    It is lost when its connection ends, and back when it speaks on another one.

    Args:
        timeouts: The session's, of which `silence` counts, in seconds.
        now: When the process began its loop, in seconds.
    """

    def __init__(self, timeouts: TimeoutSection, now: float) -> None:
        self.connected = False
        """Whether there is a connection."""
        self._silence = timeouts.silence
        self._heard = now
        self._lost = False

    def established(self, now: float) -> Connected:
        """A connection stands; whether the curator is back is told by what it says on it."""
        self.connected = True
        self._heard = now
        return Connected()

    def heard(self, now: float) -> Returned | None:
        """A frame has come; what is read of a connection that has ended since is no sign of life.

        Returns:
            That the curator is back, if it was lost.
        """
        self._heard = now
        if not (self._lost and self.connected):
            return None
        self._lost = False
        return Returned(CURATOR)

    def taken_in(self) -> Lost | None:
        """The machine has taken that frame in.

        Returns:
            That the curator is lost, once more, if the connection had ended: the frame may have been a
            welcome, after which the machine waits for no lost curator.
        """
        if self.connected:
            return None
        self._lost = False
        return self.ended()

    def ended(self) -> Lost | None:
        """The connection has ended, or is given up.

        Returns:
            That the curator is lost, if it was not before.
        """
        self.connected = False
        if self._lost:
            return None
        self._lost = True
        return Lost(CURATOR)

    def is_silent(self, now: float) -> bool:
        """Whether the connection is to be given up: a curator that is silent may have lost track of it."""
        return self.connected and now - self._heard > self._silence
