"""A delivery that comes after the last round, part by part."""

from __future__ import annotations

from hushbid.consumer.buying.base import Buying
from hushbid.protocol import limits
from hushbid.protocol.errors import Offence, RemoteProtocolError
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.messages import Candidate, Delivery, Purchase, unfixed

__all__ = ["OpenBuying"]


class OpenBuying(Buying):
    """All points come after the last round.

    Attributes:
        part: Number of the last part that came, from 1.
        checking: The points of the part that is being checked.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._sealed = session.rule.sealed
        self._turns = session.turns
        self.part = 0
        self._parts = 0
        self.checking: tuple[Purchase, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether the last part has come."""
        return self.part == self._parts

    def take_delivery(self, delivery: Delivery) -> None:
        """Take in the next part of the delivery, to be checked."""
        if delivery.part != self.part + 1 or (self._parts and delivery.parts != self._parts):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, f"Part {delivery.part} of the delivery came after part {self.part}."
            )
        if delivery.part > delivery.parts:
            raise RemoteProtocolError(Offence.MALFORMED, "The delivery has more parts than it says.")
        if self._received + len(delivery.purchases) > self._most:
            raise RemoteProtocolError(Offence.MALFORMED, f"More than the {self._most} points are delivered.")
        for purchase in delivery.purchases:
            self._check_purchase(purchase)
        numbers = [(purchase.owner, unfixed(purchase.handle)) for purchase in delivery.purchases]
        if len(self._numbers.union(numbers)) < self._received + len(numbers):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "A point is delivered a second time under its owner's number of it."
            )
        self._check_wishes(self._numbers.union(numbers))
        self._numbers.update(numbers)
        self.part, self._parts = delivery.part, delivery.parts
        self._received += len(delivery.purchases)
        self.checking = delivery.purchases

    def _check_purchase(self, purchase: Purchase) -> None:
        file, candidate = self._session.file, purchase.candidate
        features = file.features
        if purchase.owner not in file.roster.owners:
            raise RemoteProtocolError(
                Offence.MALFORMED, "A delivered point's owner is not on the session's roster."
            )
        # The number opens its box.
        if self._session.numbered_boxes and not 1 <= unfixed(purchase.handle) <= limits.MAX_POINTS:
            raise RemoteProtocolError(Offence.MALFORMED, "A delivered point's number is out of range.")
        if not purchase.round <= file.rounds:
            raise RemoteProtocolError(Offence.MALFORMED, "A delivered point's round is not the session's.")
        if not self._turns.has(purchase.owner, purchase.round):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "A point was chosen in a round in which its owner has no turn."
            )
        if isinstance(candidate, Candidate) is self._sealed:
            raise RemoteProtocolError(
                Offence.MALFORMED,
                "A point is delivered open where they are sealed, or sealed where they are open.",
            )
        if candidate.features.shape != (features.dimension,) or (
            isinstance(candidate, Candidate) and candidate.point.shape != (features.columns,)
        ):
            raise RemoteProtocolError(
                Offence.MALFORMED, f"A delivered point does not have {features.columns} columns."
            )
