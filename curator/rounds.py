"""A round up to its bids: its weight is computed and broadcast, and owners bid."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from hushbid.curator.closing import Closing
from hushbid.curator.parcels import Parcel
from hushbid.curator.seat import Seat
from hushbid.curator.state import Round
from hushbid.curator.verification import check_batch, check_shape
from hushbid.protocol import limits
from hushbid.protocol.errors import BudgetExceeded, ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.weighing import NoiseDrawn, WeightsComputed
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.bids import BroughtPoints, PointBid, points_of
from hushbid.protocol.wire.codec import encode_message
from hushbid.protocol.wire.messages import (
    Batch,
    Bid,
    Broadcast,
    Call,
    Next,
    SealedBroadcast,
    unfixed,
)

__all__ = ["Rounds"]


class Rounds(Closing):
    """The first half of every round; its arguments are those of `CuratorState`."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._noise_name = session.noise_name(session.summary)

    @abstractmethod
    def _verify_or_decide(self) -> None:
        """Go on once bidding is over."""

    # -- the weight -----------------------------------------------------------------------------------

    def _start_round(self) -> None:
        self._round = Round(self.round + 1)
        self.phase = "weighing"
        self._weigh()

    def _weigh(self) -> None:
        self._do(self.weighing.start(self.round))

    def _on_noise(self, drawn: NoiseDrawn) -> None:
        self._do(self.weighing.drawn(drawn, self.round))

    def _on_weights(self, computed: WeightsComputed) -> None:
        try:
            charges = self.weighing.computed(computed, self.round)
        except BudgetExceeded as error:
            self._give_up(ExitCode.FAILED, error.what, error.advice)
            return
        for charge in charges:
            self._do(charge)
        self._round.weights = computed.weights
        broadcast = Broadcast(round=self.round, weights=computed.weights, noise=self._noise_name)
        self._open_bidding(self._call(broadcast) if self._rule.herds else broadcast)

    def _call(self, broadcast: Broadcast) -> Call:
        target = self._require_target()
        return Call(
            round=broadcast.round,
            weights=broadcast.weights,
            noise=broadcast.noise,
            embedding=target.embedding,
            seed_total=target.seed_total,
            seed_size=target.seed_size,
        )

    def _open_bidding(self, message: Broadcast | SealedBroadcast) -> None:
        self.phase = "bidding"
        if self.round == 1:
            self._began = self._now
        self._round.message = message
        body = encode_message(message)
        for owner, seat in self.seats.items():
            if seat.free and self._has_turn(owner):
                self._broadcast(owner, message, body)
        if not self._entering:
            self._set_timer("round", self._half or self._session.timeouts.round)

    def _broadcast(self, owner: str, message: Broadcast | SealedBroadcast, body: bytes | None = None) -> None:
        seat = self.seats[owner]
        seat.broadcast, seat.parts = message.round, 0
        seat.weights = self._round.weights
        self._round.awaited.add(owner)
        self._send(owner, message, body)

    def _resume(self, owner: str) -> None:
        """Send a returning owner the current broadcast, if bidding is still open."""
        seat = self.seats[owner]
        takes_part = seat.free and self._has_turn(owner)
        message = self._round.message
        if self.phase == "bidding" and message and takes_part and not seat.has_bid(self.round):
            self._broadcast(owner, message)

    # -- bids -----------------------------------------------------------------------------------------

    def _on_bid(self, owner: str, bid: Bid | Batch) -> None:
        self._take_bid(owner, bid)
        if bid.round == self.round:
            self._close_bidding_if_complete()
        else:
            self._resume(owner)

    def _on_late_bid(self, owner: str, bid: Bid | Batch) -> None:
        """Take in a bid after bidding closed; even if it is for this round, its owner is absent from it."""
        self._take_bid(owner, bid)
        self.seats[owner].late = True

    def _take_bid(self, owner: str, message: Bid | Batch) -> None:
        """Check a bid, keep it, and queue its points, if any, for verification."""
        seat = self._due_from(owner, message.round)
        brought = points_of(message)
        bid, handles = self._checked_bids(message, brought, seat)
        seat.parts += 1
        if seat.parts == self._opened.messages:
            self._answered(owner, bid)
        elif self.phase == "bidding":
            self._send(owner, Next(round=message.round))
        if brought is None:
            for handle in handles:
                seat.times[handle] = seat.times.get(handle, 0) + 1
        elif handles:
            scores = message.scores.tolist() if isinstance(message, Batch) else [bid.score]
            self._hand_over(owner, message.round, handles, scores[: len(handles)], brought)

    def _due_from(self, owner: str, number: int) -> Seat:
        """The seat of an owner, whose bid of this round is due."""
        seat = self._seat_of(owner)
        if number != seat.broadcast:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, f"A bid for round {number}; due was one for {seat.broadcast}."
            )
        return seat

    def _answered(self, owner: str, bid: PointBid) -> None:
        seat = self.seats[owner]
        seat.broadcast, seat.bid, seat.late = 0, bid, False
        self._round.awaited.discard(owner)

    def _checked_bids(
        self, message: Bid | Batch, brought: BroughtPoints | None, seat: Seat
    ) -> tuple[PointBid, Sequence[int]]:
        """The first bid of a message, without its point, and the numbers of its points, without padding."""
        check_batch(message, self._opened)
        if (brought is not None) != self._rule.candidate_with_bid:
            raise RemoteProtocolError(
                Offence.MALFORMED,
                f"The rule {self._rule.name} wants bids the other way: with or without point.",
            )
        if brought is not None:
            check_shape(brought, self._opened)
        if isinstance(message, Batch):
            given = message.handles.tolist()
            handles = [handle for handle in given if handle]
            bid = PointBid(message.round, not given[0], int(message.scores[0]), given[0], None)
        else:
            given = [unfixed(message.handle)]
            handles = [] if message.exhausted else given
            bid = PointBid(message.round, message.exhausted, unfixed(message.score), given[0], None)
        if handles and not 1 <= min(handles) <= max(handles) <= limits.MAX_POINTS:
            raise RemoteProtocolError(Offence.MALFORMED, "A bid's candidate number is out of range.")
        if len(set(handles)) < len(handles) or handles != given[: len(handles)]:
            raise RemoteProtocolError(
                Offence.MALFORMED, "A batch has a point twice under its number, or padding before a point."
            )
        if not seat.handed_over.isdisjoint(handles):
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "A point was handed over before under its number.")
        return bid, handles

    def _hand_over(
        self,
        owner: str,
        bid_round: int,
        handles: Sequence[int],
        scores: Sequence[int],
        brought: BroughtPoints,
    ) -> None:
        seat = self.seats[owner]
        if seat.weights is None:
            raise LocalProtocolError(f"A point of {owner} came without a broadcast before it.")
        # An offer's number needs no check: its owner hands over nothing between the bid and the offer.
        seat.handed_over.update(handles)
        if self._boxes_destroyed:
            return  # too late to be useful, and it must not be kept
        self.ledger.points_accessed += 0 if brought.sealed else len(handles)
        self.ledger.candidates += len(handles)
        parcel = Parcel(owner, seat.rank, bid_round, handles, scores, seat.weights, brought)
        self._unverified.append(parcel)

    # -- the end of bidding -----------------------------------------------------------------------------

    def _close_bidding_if_complete(self) -> None:
        """Close bidding once nobody is waited for and enough owners are present."""
        if not self._round.overdue and (self._half or self._round.awaited or self._missed()):
            return
        if self._rule.herds and not self._round.overdue and not self._all_submitted():
            return
        if len(self._bids()) < self._session.session.min_owners:
            if not self.paused:
                self._set_timer("pause", self._session.timeouts.pause)
                self._round.paused = True
            return
        self._clear_timer("pause")
        self._round.paused = False
        if self._half:
            self._set_timer("cadence", self._half)
        self._verify_or_decide()

    def _all_submitted(self) -> bool:
        """Whether nothing more can come; else who is away may come back, as long as there is time.

        Who has the map came in time, and may still be at its rows.
        """
        coming = (seat for seat in self.seats.values() if seat.mapped or self._entering)
        return all(seat.has_bid(self.round) or seat.out for seat in coming)

    def _missed(self) -> list[str]:
        """Owners that were lost a short while ago and owe only this round's bid."""
        return [
            owner
            for owner in self._expected_back
            if (seat := self.seats.get(owner)) is not None  # the consumer has none
            and self._has_turn(owner)
            and seat.enrolled
            and not seat.out
            and not seat.has_bid(self.round)
            and not seat.asked
            and seat.broadcast in (0, self.round)
        ]

    def _on_round_over(self) -> None:
        self._round.overdue = True
        self._close_bidding_if_complete()

    def _on_pause_over(self) -> None:
        self._give_up(
            ExitCode.TIMEOUT,
            f"In round {self.round} only {len(self._bids())} owners were present for longer than the "
            f"pause allows; the session needs {self._session.session.min_owners}.",
        )
