"""What every consumer keeps of the points that it is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.session.session import Session
from hushbid.protocol.session.wishes import over_budget

__all__ = ["Buying"]


class Buying:
    """The points that were sent so far, checked against what a correct curator can send.

    What the curator must not send raises `RemoteProtocolError`, and changes nothing.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._most = session.file.session.points
        self._received = 0
        """Number of points that were sent, including those still being checked."""
        self._numbers: set[tuple[str, int]] = set()
        """Owner and number of each of them."""

    def ensure(self) -> None:
        if self._received > self._most:
            raise LocalProtocolError(f"{self._received} points were delivered of {self._most}.")

    def _check_wishes(self, numbers: Collection[tuple[str, int]]) -> None:
        """Refuse more points of an owner than its cap allows, and points that cost more than the budget."""
        wishes = self._session.file.wishes
        if wishes is None:
            return
        sold = Counter(owner for owner, _ in numbers)
        for owner, cap in wishes.caps.items():
            if sold[owner] > cap:
                raise RemoteProtocolError(
                    Offence.MALFORMED, f"More points of an owner are delivered than its cap of {cap}."
                )
        if over_budget(self._session.file, sold):
            raise RemoteProtocolError(
                Offence.MALFORMED, f"Points are delivered for more than the budget of {wishes.budget:g}."
            )
