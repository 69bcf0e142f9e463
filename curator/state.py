"""The curator's state while a session runs: the current round, its owners, and the bought points."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hushbid.curator.ledger import Ledger
from hushbid.curator.parcels import Parcel
from hushbid.curator.seat import Seat
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.base import Machine
from hushbid.protocol.machine.weighing import Weighing
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import Weights
from hushbid.protocol.space.scoring import Pool
from hushbid.protocol.wire.bids import PointBid
from hushbid.protocol.wire.messages import Broadcast, SealedBroadcast, Target

__all__ = ["CuratorState", "Round"]


@dataclass(slots=True)
class Round:
    """The current round, made anew each time. Whatever outlives a round is in a `Seat` or the ledger."""

    number: int
    """Counted from 1; 0 before the first round."""
    weights: Weights | None = None
    """The broadcast weight; None until it is computed, and always at a blind curator."""
    message: Broadcast | SealedBroadcast | None = None
    """The broadcast; None until it exists."""
    awaited: set[str] = field(default_factory=set)
    """Connected owners that have this round's broadcast and have not answered it."""
    overdue: bool = False
    """Whether the time for bids is over: nobody waits for missing bids any more."""
    paused: bool = False
    """Whether the round is paused until enough owners are here."""
    time_over: bool = False
    """Whether the clock has ended the round: no owner is asked any more."""
    stage: int = 0
    """Number of times that the rule has chosen whom to ask."""
    asked: tuple[str, ...] = ()
    """Owners asked in the last stage."""
    obtained: set[str] = field(default_factory=set)
    """Owners whose point of this round is in the pool."""


class CuratorState(Machine):
    """The curator's state and its invariants. The handlers are in the classes derived from it."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session.file
        self._opened = session
        self._space = session.space
        self._rule = session.rule
        self.weighing = Weighing(session)
        self._batch = session.batch
        self._leave_for_good = session.file.distinct
        """Whether an owner that misses a round is out, because a point is bought once."""
        self._half = (self._session.session.fixed_cadence or 0.0) / 2
        """Half of a round's time, in seconds; 0 if rounds have no fixed cadence."""
        self.seed_weight = session.file.seed_weight
        self.owners = session.file.owners
        self.seats = {owner: Seat(rank) for rank, owner in enumerate(self.owners)}
        self._unenrolled = set(self.owners)
        """Owners that have not enrolled."""
        self._entering = self._rule.herds
        """Whether owners may still enrol, although the only round has begun."""
        self.gathered = not session.commitment_depth
        """Whether the consumer was told what owners committed to, or they need not: who comes now is late."""
        self._committed = 0
        """How many owners committed to their rows in time."""
        self.consumer_enrolled = False
        self.consumer_connected = False
        self._expected_back: dict[str, float] = {}
        """Peers whose connection was lost recently → the time until which their answers are awaited."""
        self.target: Target | None = None
        """The consumer's target; None until it arrives, and always at a blind curator."""
        self._maps: bytes | None = None
        """The feature map, sealed to each owner; None until it arrives, or if it is public."""
        self._round = Round(0)
        self._unverified: list[Parcel] = []
        self._verifying: tuple[Parcel, ...] = ()
        self._pool = Pool(
            self._space.dimension,
            norm_bound=self._space.norm_bound,
            jitter=session.jitter,
            copies=session.copies(),
            prices=session.prices,
        )
        self._pooled: list[Parcel | None] = []
        """What brought the pool's points, entry by entry; None if it was chosen or its box destroyed."""
        self._places: list[int] = []
        """The place of each entry in what brought it."""
        self._boxes_destroyed = False
        self.ledger = Ledger()
        self._began = self._decided = 0.0
        """Times of the first broadcast and of the last decision, on the curator's clock."""

    @property
    def round(self) -> int:
        """Number of the current round, from 1; 0 before the first."""
        return self._round.number

    @property
    def weights(self) -> Weights | None:
        return self._round.weights

    @property
    def paused(self) -> bool:
        """Whether the round is paused until enough owners, or the consumer, are here."""
        return self._round.paused or self.awaits_consumer

    @property
    def awaits_consumer(self) -> bool:
        """Whether the round is paused because the consumer, which computes the weights, is missing."""
        return False

    @property
    def seconds(self) -> float:
        """Seconds from the first broadcast to the end of the last round, the curator's downtime included."""
        return max(0.0, self._decided - self._began)

    def submitted(self, owner: str) -> bool:
        """Whether an owner has submitted all that it will in a tender, and is not needed any more."""
        return self._rule.herds and self.round > 0 and self.seats[owner].has_bid(self.round)

    @property
    def away(self) -> list[str]:
        """Owners without a connection, but for those that have submitted all."""
        return [owner for owner, seat in self.seats.items() if not (seat.connected or self.submitted(owner))]

    # -- presence and pool ------------------------------------------------------------------------------

    def _bids(self) -> dict[str, PointBid]:
        """Bids of the owners that take part: each has bid in this round and owes nothing."""
        return {
            owner: seat.bid
            for owner, seat in self.seats.items()
            if seat.bid is not None
            and seat.has_bid(self.round)
            and not (seat.asked or seat.faulty or seat.out)
        }

    def _has_turn(self, owner: str) -> bool:
        return self._opened.turns.has(owner, self.round)

    def _reachable(self) -> list[str]:
        peers = [owner for owner, seat in self.seats.items() if seat.connected]
        return [*peers, CONSUMER] if self.consumer_connected else peers

    def _seat_of(self, peer: str) -> Seat:
        seat = self.seats.get(peer)
        if seat is None:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "Only an owner bids.")
        return seat

    def _require_weights(self) -> Weights:
        if self._round.weights is None:
            raise LocalProtocolError("There is no broadcast weight yet.")
        return self._round.weights

    def _require_target(self) -> Target:
        if self.target is None:
            raise LocalProtocolError("There is no target yet.")
        return self.target

    # -- invariants -------------------------------------------------------------------------------------

    def check(self) -> None:
        """The invariants of the curator (DESIGN §1 and §3)."""
        ledger = self.ledger
        most = self._session.session.points
        if not self._rule.herds:
            most = min(self.round * self._batch, most)
        if len(ledger.wins) > most or self.round > self._opened.rounds:
            raise LocalProtocolError(f"{len(ledger.wins)} points were won in {self.round} rounds.")
        if len(self._pool) != len(self._pooled):
            raise LocalProtocolError("The pool and its points differ in number.")
        if len(self._pooled) > ledger.candidates:
            raise LocalProtocolError("The pool has more points than were handed over.")

    def check_total(self) -> None:
        """Check that the summary's total is the sum of the won points' statistics; for tests, O(p·d)."""
        weighing = self.weighing
        expected = np.zeros_like(weighing.total)
        for win in self.ledger.wins:
            expected += weighing.statistic.of(win.candidate.features[None])[0]
        if not np.array_equal(expected, weighing.total):
            raise LocalProtocolError("The summary's total is not the sum of its points.")
