"""Whether the curator is here: a participant's state machine without I/O that takes time as an argument.

The loop of owners and the consumer (`hushbid.protocol.runtime.network.connection`) and the network of the
fault sweeps (`hushbid.evidence.sweep.network`) use it. They report what happens on the connection, and pass
its results, `Connected`, `Lost` and `Returned`, to the participant's machine. `hushbid.curator.presence` is
the curator's side.
"""

from __future__ import annotations

from hushbid.protocol.config.session import TimeoutSection
from hushbid.protocol.machine.machine import Connected, Lost, Returned
from hushbid.protocol.names import CURATOR

__all__ = ["CuratorPresence"]


class CuratorPresence:
    """The curator as one participant's process sees it: gone until there is a connection.

    It is lost when its connection ends, and back when it speaks on another one.

    Args:
        timeouts: The session's time-outs, in seconds; only `silence` matters here.
        now: Start of the process's loop, in seconds.
    """

    def __init__(self, timeouts: TimeoutSection, now: float) -> None:
        self.connected = False
        """Whether there is a connection."""
        self._silence = timeouts.silence
        self._heard = now
        self._lost = False

    def established(self, now: float) -> Connected:
        """Note a new connection; only a frame on it shows that the curator is back."""
        self.connected = True
        self._heard = now
        return Connected()

    def heard(self, now: float) -> Returned | None:
        """Note a frame, and return `Returned` if the curator was lost.

        A frame from a connection that has ended since is no sign of life.
        """
        self._heard = now
        if not (self._lost and self.connected):
            return None
        self._lost = False
        return Returned(CURATOR)

    def taken_in(self) -> Lost | None:
        """Note that the machine has processed that frame.

        Returns `Lost` again if the connection had ended: the frame may have been a welcome, after which the
        machine no longer waits for a lost curator.
        """
        if self.connected:
            return None
        self._lost = False
        return self.ended()

    def ended(self) -> Lost | None:
        """Note that the connection has ended, or is given up; `Lost` unless the curator was lost already."""
        self.connected = False
        if self._lost:
            return None
        self._lost = True
        return Lost(CURATOR)

    def is_silent(self, now: float) -> bool:
        """Whether to give up the connection: a silent curator may have lost track of it."""
        return self.connected and now - self._heard > self._silence
