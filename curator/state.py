"""The curator's state while a session runs, and the questions that its handlers ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, Self, TypeAlias, TypeVar

from hushbid.curator.ledger import Ledger
from hushbid.curator.round import Round
from hushbid.curator.seat import Seat
from hushbid.curator.selection.base import Selection
from hushbid.protocol.errors import ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.base import Machine, TransitionTable
from hushbid.protocol.machine.machine import Finish, HeadSigned
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.payment import Errors, PaidStatement, Price
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.bids import PointBid
from hushbid.protocol.wire.messages import Delivery, Target

__all__ = ["AnyCurator", "CuratorState", "Ending"]

S_co = TypeVar("S_co", bound=Selection, covariant=True)


@dataclass(slots=True)
class Ending:
    """The end of a session: its delivery, and who was told that it is over."""

    parts: tuple[Delivery, ...] = ()
    """The delivery; empty before it, and always at a blind curator."""
    part: int = 0
    """Number of the last part that was sent, from 1."""
    outcome: Literal["complete", "abandoned"] = "complete"
    finish: Finish = field(default_factory=lambda: Finish(ExitCode.DONE, ""))
    signed: HeadSigned | None = None
    """The transcript's signed head, once parties can be told that the session is over."""
    closed: set[str] = field(default_factory=set)
    """Peers that were told."""
    farewells: set[str] = field(default_factory=set)
    """Peers that have said farewell."""


class CuratorState(Machine, Generic[S_co]):
    """The state of a session at its curator, and its invariants; handlers are functions of it."""

    def __init__(self, session: Session, table: TransitionTable[Self], selection: type[S_co]) -> None:
        super().__init__(table)
        self.session = session
        self.file = session.file
        self.rule = session.rule
        self.half = (self.file.session.fixed_cadence or 0.0) / 2
        """Half of a round's time, in seconds; 0 if rounds have no fixed cadence."""
        self.leave_for_good = session.file.distinct
        """Whether an owner that misses a round is out, because a point is bought once."""
        self.owners = session.file.owners
        self.seats = {owner: Seat(rank) for rank, owner in enumerate(self.owners)}
        self.ledger = Ledger()
        self.selection = selection(session, self.seats, self.ledger)
        # Enrolment.
        self.unenrolled = set(self.owners)
        """Owners that have not enrolled."""
        self.entering = self.rule.herds
        """Whether owners may still enrol, although the only round has begun."""
        self.gathered = not session.commitment_depth
        """Whether the consumer was told what owners committed to, or they need not: who comes now is late."""
        self.committed = 0
        """How many owners committed to their rows in time."""
        self.maps: bytes | None = None
        """The feature map, sealed to each owner; None until it arrives, or if it is public."""
        # Peers.
        self.consumer_enrolled = False
        self.consumer_connected = False
        self.expected_back: dict[str, float] = {}
        """Peers whose connection was lost recently → the time until which their answers are awaited."""
        self.comeback_set = False
        """Whether a timer is set for the first peer expected back."""
        self.dismissed: set[str] = set()
        """Refused peers that have not said hello since."""
        # Rounds.
        self.current = Round(0)
        self.began = self.decided = 0.0
        """Times of the first broadcast and of the last decision, on the curator's clock."""
        # The end.
        self.ending = Ending()

    @property
    def round(self) -> int:
        """Number of the current round, from 1; 0 before the first."""
        return self.current.number

    @property
    def rounds_over(self) -> bool:
        """Whether the current round is the last one."""
        return self.round == self.session.rounds

    @property
    def target(self) -> Target | None:
        """The consumer's target; None until it arrives, and always at a blind curator."""
        return self.selection.target

    @property
    def paused(self) -> bool:
        """Whether the round is paused until enough owners, or the consumer, are here."""
        return self.current.paused or self.awaits_consumer

    @property
    def awaits_consumer(self) -> bool:
        """Whether the round is paused because the consumer, which computes the weights, is missing."""
        return self.session.weigher == CONSUMER and self.phase == "weighing" and not self.consumer_connected

    @property
    def seconds(self) -> float:
        """Seconds from the first broadcast to the end of the last round, the curator's downtime included."""
        return max(0.0, self.decided - self.began)

    def submitted(self, owner: str) -> bool:
        """Whether an owner has submitted all that it will in a tender, and is not needed any more."""
        return self.rule.herds and self.round > 0 and self.seats[owner].has_bid(self.round)

    @property
    def away(self) -> list[str]:
        """Owners without a connection, but for those that have submitted all."""
        return [owner for owner, seat in self.seats.items() if not (seat.connected or self.submitted(owner))]

    def settlement(self) -> Mapping[str, float] | None:
        """The number that each owner is paid by; None before it is known (`Selection.settlement`)."""
        return self.selection.settlement()

    def statement(self, price: Price) -> tuple[Errors, PaidStatement] | None:
        """The standard errors of `settlement`, and the numbers to pay owners by; None before it is known."""
        return self.selection.statement(price)

    # -- for handlers -----------------------------------------------------------------------------------

    def bids(self) -> dict[str, PointBid]:
        """Bids of the owners that take part: each has bid in this round and owes nothing."""
        return {
            owner: seat.bid
            for owner, seat in self.seats.items()
            if seat.bid is not None
            and seat.has_bid(self.round)
            and not (seat.asked or seat.faulty or seat.out)
        }

    def has_turn(self, owner: str) -> bool:
        return self.session.turns.has(owner, self.round)

    def uncommitted(self) -> list[str]:
        """Owners that have not committed to their rows."""
        return [owner for owner, seat in self.seats.items() if seat.commitment is None]

    def reachable(self) -> list[str]:
        """Connected peers."""
        peers = [owner for owner, seat in self.seats.items() if seat.connected]
        return [*peers, CONSUMER] if self.consumer_connected else peers

    def seat_of(self, peer: str) -> Seat:
        seat = self.seats.get(peer)
        if seat is None:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "Only an owner bids.")
        return seat

    def due_from(self, owner: str, number: int) -> Seat:
        """The seat of an owner, whose bid of this round is due."""
        seat = self.seat_of(owner)
        if number != seat.broadcast:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, f"A bid for round {number}; due was one for {seat.broadcast}."
            )
        return seat

    # -- invariants -------------------------------------------------------------------------------------

    def check(self) -> None:
        """The invariants of the curator (DESIGN §1 and §3)."""
        wins = len(self.ledger.wins)
        if wins > self.selection.most_wins(self.round) or self.round > self.session.rounds:
            raise LocalProtocolError(f"{wins} points were won in {self.round} rounds.")
        self.selection.ensure()


AnyCurator: TypeAlias = CuratorState[Selection]
"""A curator with any selection."""
