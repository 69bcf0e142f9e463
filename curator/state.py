"""The curator's state while a session runs: the current round, its owners, and the bought points."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from curator.ledger import Ledger
from curator.seat import Seat
from curator.verification import Unverified
from protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from protocol.machine.machine import Machine
from protocol.machine.weighing import Weighing
from protocol.names import CONSUMER
from protocol.session.session import Session
from protocol.session.settling import HandedOver
from protocol.space.grid import Weights
from protocol.space.scoring import Pool
from protocol.wire.messages import Broadcast, PointBid, SealedBroadcast, Target

__all__ = ["CuratorState", "Round"]


@dataclass(slots=True)
class Round:
    """The current round; each round has a new one. What outlives a round stands in a `Seat` or the ledger."""

    number: int
    """From 1; 0: none has begun."""
    weights: Weights | None = None
    """The weight that is broadcast; None until it is computed, and to a blind curator."""
    message: Broadcast | SealedBroadcast | None = None
    """The weight that is broadcast; None until it is there."""
    awaited: set[str] = field(default_factory=set)
    """Owners that are connected and have this round's broadcast, but have not answered it."""
    overdue: bool = False
    """Whether the time for bids is over: who has not bid is not waited for."""
    paused: bool = False
    """Whether the round stands still until enough owners are here."""
    time_over: bool = False
    """Whether the clock has ended the round: nobody is asked any more."""
    stage: int = 0
    """How often the rule has chosen whom to ask."""
    asked: tuple[str, ...] = ()
    """Owners that the last stage asked."""
    obtained: set[str] = field(default_factory=set)
    """Owners whose point of this round is in the pool."""


class CuratorState(Machine):
    """The curator's state, and what must hold of it. The handlers are in the classes above it.

    Args:
        session: The session; of its feature map only the space is used.
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session.file
        self._opened = session
        self._space = session.space
        self._rule = session.rule
        self.weighing = Weighing(session)
        self._batch = session.batch
        self._leave_for_good = session.file.distinct
        """Whether who misses a round is out: a point is bought once."""
        self._half = (self._session.session.fixed_cadence or 0.0) / 2
        """Seconds of a round; 0: rounds have no fixed cadence."""
        self.seed_weight = session.file.seed_weight
        self.owners = session.file.owners
        self.seats = {owner: Seat(rank) for rank, owner in enumerate(self.owners)}
        self.consumer_enrolled = False
        self.consumer_connected = False
        self._expected_back: dict[str, float] = {}
        """Peers whose connection was lost a short while ago: until when what is due from each is awaited."""
        self.target: Target | None = None
        """The consumer's; None until it is there, and to a blind curator."""
        self._maps: bytes | None = None
        """The feature map, sealed to each owner; None until it is there, or that there is none."""
        self._round = Round(0)
        self._first_weights: Weights | None = None
        """Those of round 1, by which a private settlement counts points."""
        self._unverified: list[Unverified] = []
        self._verifying: tuple[Unverified, ...] = ()
        self._pool = Pool(
            self._space.dimension,
            norm_bound=self._space.norm_bound,
            jitter=session.jitter,
            copies=session.copies(),
            prices=session.prices,
        )
        self._pooled: list[HandedOver | None] = []
        """The pool's points, entry by entry; None: it was chosen, or its box destroyed."""
        self._boxes_destroyed = False
        self.ledger = Ledger()
        self._began = self._decided = 0.0
        """When the first broadcast was made, and when the last round was decided, on the curator's clock."""

    @property
    def round(self) -> int:
        """Number of the round under way, from 1; 0: none has begun."""
        return self._round.number

    @property
    def weights(self) -> Weights | None:
        """The weight of the round under way; None until it is computed."""
        return self._round.weights

    @property
    def paused(self) -> bool:
        """Whether the round stands still until enough owners are here, or the consumer is."""
        return self._round.paused or self.awaits_consumer

    @property
    def awaits_consumer(self) -> bool:
        """Whether the round stands still for want of a consumer that weighs."""
        return False

    @property
    def seconds(self) -> float:
        """From the first broadcast to the end of the last round, with the time that the curator was down."""
        return max(0.0, self._decided - self._began)

    # -- who is here, and what is there ---------------------------------------------------------------

    def _bids(self) -> dict[str, PointBid]:
        """Bids of the owners that take part: theirs for this round is in, and nothing is due from them."""
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

    def _charge(self, release: int) -> None:
        for charge in self.weighing.charge(release):
            self._do(charge)

    # -- what must hold -------------------------------------------------------------------------------

    def check(self) -> None:
        """The invariants of the curator (DESIGN §1 and §3)."""
        ledger = self.ledger
        most = min(self.round * self._batch, self._session.session.points)
        if len(ledger.wins) > most or self.round > self._opened.rounds:
            raise LocalProtocolError(f"{len(ledger.wins)} points were won in {self.round} rounds.")
        if len(self._pool) != len(self._pooled):
            raise LocalProtocolError("The pool and its points differ in number.")
        if len(self._pooled) > ledger.candidates:
            raise LocalProtocolError("The pool has more points than were handed over.")

    def check_total(self) -> None:
        """That the summary's total is the sum of the won points' statistic: for tests, O(p·d)."""
        weighing = self.weighing
        expected = np.zeros_like(weighing.total)
        for win in self.ledger.wins:
            expected += weighing.statistic.of(win.candidate.features[None])[0]
        if not np.array_equal(expected, weighing.total):
            raise LocalProtocolError("The summary's total is not the sum of its points.")
