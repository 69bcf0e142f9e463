"""What the curator's machine asks of every way to select points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from hushbid.curator.ledger import Ledger
from hushbid.curator.round import Round
from hushbid.curator.seat import Seat
from hushbid.protocol.machine.machine import Charge, Computation
from hushbid.protocol.privacy.payment import Errors, PaidStatement, Price
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.bids import PointBid
from hushbid.protocol.wire.blind import Award, SealedBroadcast
from hushbid.protocol.wire.messages import Delivery, Target
from hushbid.protocol.wire.unlinked import Choice

__all__ = ["Selection"]


class Selection(ABC):
    """Which points a session buys: what owners hand over, what is checked of it, and the choice.

    The machine asks, and acts on the answers. A selection knows no phase, no link and no timer. It raises
    `RemoteProtocolError` for what a peer must not send, and then has not changed.

    Args:
        session: The opened session.
        seats: The machine's owners, by name.
        ledger: The machine's record, to which a selection adds what was acquired and what is wrong with it.
    """

    target: Target | None = None
    """The consumer's target; None until it arrives, and always at a blind curator."""

    def __init__(self, session: Session, seats: Mapping[str, Seat], ledger: Ledger) -> None:
        self._session = session
        self._seats = seats
        self._ledger = ledger
        self.boxes_destroyed = False

    @abstractmethod
    def begin(self, number: int) -> Computation | SealedBroadcast | None:
        """Begin a round: compute something for its weight, or broadcast; None: wait for the consumer."""

    @abstractmethod
    def check(self) -> Computation | None:
        """Check what owners handed over; None if nothing is left to check."""

    @abstractmethod
    def ask(self, current: Round, bids: Mapping[str, PointBid]) -> tuple[str, ...]:
        """Owners to ask for the points of their bids, in the order of their names.

        Args:
            current: The round, whose stage goes up by one if the rule was asked.
            bids: The bids of the owners that take part.
        """

    @abstractmethod
    def choose(self, current: Round, present: AbstractSet[str]) -> Award | Choice | None:
        """Choose the best points of these owners; return what the consumer is told of it at once."""

    @abstractmethod
    def delivery(self) -> tuple[Delivery, ...]:
        """The chosen points in parts, at least one; none if the consumer has them already."""

    @abstractmethod
    def destroy(self) -> None:
        """Forget all boxes, and keep none that comes later."""

    def settle(self) -> tuple[Charge, ...]:
        """Release a private settlement, if due; return its charges; `BudgetExceeded` if refused."""
        return ()

    @abstractmethod
    def settlement(self) -> Mapping[str, float] | None:
        """The number that each owner is paid by; None before it is known."""

    @abstractmethod
    def statement(self, price: Price) -> tuple[Errors, PaidStatement] | None:
        """The standard errors of `settlement`, and the numbers to pay owners by; None before it is known."""

    @abstractmethod
    def most_wins(self, number: int) -> int:
        """Most points that can have been chosen up to a round."""

    @abstractmethod
    def ensure(self) -> None:
        """Raise `LocalProtocolError` unless the invariants hold."""
