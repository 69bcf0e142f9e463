"""The selection where the curator reads bids: points are verified, and the best of the pool are chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
import numpy.typing as npt

from hushbid.curator.delivery import parts_of
from hushbid.curator.events import CandidatesChecked, CheckCandidates
from hushbid.curator.ledger import Dispute, Ledger, PointFault
from hushbid.curator.parcels import Parcel
from hushbid.curator.round import Round
from hushbid.curator.seat import Seat
from hushbid.curator.selection.base import Selection
from hushbid.curator.verification import check_batch, check_shape, faults_of
from hushbid.protocol import limits
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.machine import Charge, Computation
from hushbid.protocol.machine.weighing import Weighing
from hushbid.protocol.privacy.acquisition import BidStanding
from hushbid.protocol.privacy.acquisition.ranks import bid_ranks
from hushbid.protocol.privacy.payment import Errors, PaidStatement, Price
from hushbid.protocol.session.points import NOT_SIGNED
from hushbid.protocol.session.session import Session
from hushbid.protocol.session.settling import settle, settle_privately
from hushbid.protocol.session.statement import GAINED, gain_errors, shared_gains, target_noise
from hushbid.protocol.space.grid import Weights
from hushbid.protocol.space.scoring import NO_SCORE, Best, Pool
from hushbid.protocol.wire.bids import BroughtPoints, PointBid
from hushbid.protocol.wire.messages import (
    Batch,
    Bid,
    Broadcast,
    Delivery,
    Offer,
    Purchase,
    Receipt,
    SealedCandidate,
    SealedCandidates,
    Target,
    unfixed,
)

__all__ = ["OpenSelection"]


class OpenSelection(Selection):
    """Owners bid scores, and hand points over with their bids or when asked; the best of all are bought.

    Attributes:
        weighing: What the round's weights are computed from.
        unverified: Points handed over that nobody has begun to verify.
        pool: The verified points that were not bought.
        pooled: What brought the pool's points, entry by entry; None if it was chosen or its box destroyed.
    """

    def __init__(self, session: Session, seats: Mapping[str, Seat], ledger: Ledger) -> None:
        super().__init__(session, seats, ledger)
        self._rule = session.rule
        self._space = session.space
        self._noise_name = session.noise_name(session.summary)
        self.weighing = Weighing(session)
        self.unverified: list[Parcel] = []
        self._verifying: tuple[Parcel, ...] = ()
        self.pool = Pool(
            self._space.dimension,
            norm_bound=self._space.norm_bound,
            jitter=session.jitter,
            copies=session.copies(),
            prices=session.prices,
        )
        self.pooled: list[Parcel | None] = []
        self._places: list[int] = []
        """The place of each entry in what brought it."""
        self._private_settlement: Mapping[str, float] | None = None
        """The numbers that owners may be told, once released."""

    # -- the weight -------------------------------------------------------------------------------------

    def take_target(self, target: Target) -> None:
        """Take in the checked target; no round precedes it."""
        self.target = target
        self.weighing.begin(target)

    def begin(self, number: int) -> Computation:
        return self.weighing.start(number)

    def broadcast(self, number: int, weights: Weights) -> Broadcast:
        """What owners are sent of a round's computed weights."""
        return Broadcast(round=number, weights=weights, noise=self._noise_name)

    # -- bids -------------------------------------------------------------------------------------------

    def read(
        self, message: Bid | Batch, brought: BroughtPoints | None, seat: Seat
    ) -> tuple[PointBid, Sequence[int]]:
        """The first bid of a message, without its point, and the numbers of its points, without padding."""
        check_batch(message, self._session)
        if (brought is not None) != self._rule.candidate_with_bid:
            raise RemoteProtocolError(
                Offence.MALFORMED,
                f"The rule {self._rule.name} wants bids the other way: with or without point.",
            )
        if brought is not None:
            check_shape(brought, self._session)
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

    def take_offer(self, owner: str, offer: Offer) -> None:
        """Take in a point that an owner was asked for."""
        seat = self._seats[owner]
        bid = seat.bid
        if bid is None or not seat.asked or (offer.round, unfixed(offer.handle)) != (bid.round, seat.asked):
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "A point was sent that was not asked for.")
        brought = BroughtPoints(offer.candidate)
        check_shape(brought, self._session)
        seat.asked = 0
        self.hand_over(owner, bid.round, [bid.handle], [bid.score], brought)

    def hand_over(
        self,
        owner: str,
        bid_round: int,
        handles: Sequence[int],
        scores: Sequence[int],
        brought: BroughtPoints,
    ) -> None:
        """Queue points for verification."""
        seat = self._seats[owner]
        if seat.weights is None:
            raise LocalProtocolError(f"A point of {owner} came without a broadcast before it.")
        # An offer's number needs no check: its owner hands over nothing between the bid and the offer.
        seat.handed_over.update(handles)
        if self.boxes_destroyed:
            return  # too late to be useful, and it must not be kept
        self._ledger.points_accessed += 0 if brought.sealed else len(handles)
        self._ledger.candidates += len(handles)
        self.unverified.append(Parcel(owner, seat.rank, bid_round, handles, scores, seat.weights, brought))

    # -- verification -----------------------------------------------------------------------------------

    def check(self) -> Computation | None:
        if not self.unverified:
            return None
        self._verifying = tuple(self.unverified)
        self.unverified = []
        return CheckCandidates(self._verifying)

    def checked(self, outcome: CandidatesChecked, current: Round) -> None:
        """Take the points that were checked into the pool, but for those with a fault."""
        parcels = self._verifying
        sizes = [len(parcel) for parcel in parcels]
        if len(outcome.signed) != sum(sizes):
            raise LocalProtocolError(f"{len(outcome.signed)} points were checked of {sum(sizes)}.")
        claimed = np.concatenate([parcel.features for parcel in parcels])
        jitters = None if self._session.jitter is None else self._session.jitter.of(claimed)
        faults = faults_of(parcels, claimed, jitters, outcome.features, outcome.signed, self._space)
        self._verifying = ()
        ranks = np.repeat([parcel.rank for parcel in parcels], sizes)
        if faults:
            good = np.ones(len(claimed), dtype=np.bool_)
            good[list(faults)] = False
            claimed, ranks = claimed[good], ranks[good]
            jitters = None if jitters is None else jitters[good]
            self._ledger.faults += _counted_once(parcels, faults)
        self.pool.extend(claimed, ranks, jitters)
        before = 0
        for parcel, size in zip(parcels, sizes, strict=True):
            places = [place for place in range(size) if before + place not in faults]
            before += size
            self.pooled += [parcel] * len(places)
            self._places += places
            self._seats[parcel.owner].faulty |= len(places) < size
            if places and parcel.bid_round == current.number:
                current.obtained.add(parcel.owner)

    # -- whom to ask ------------------------------------------------------------------------------------

    def ask(self, current: Round, bids: Mapping[str, PointBid]) -> tuple[str, ...]:
        if self._rule.candidate_with_bid:
            return ()
        ranks = self._ranks(current, bids) if self._rule.ranked else np.zeros(len(self._seats), dtype=np.intp)
        standings = []
        for owner, bid in bids.items():
            if not bid.exhausted:
                seat = self._seats[owner]
                times = seat.times[bid.handle]
                rank = int(ranks[seat.rank])
                standings.append(BidStanding(owner, self._worth(seat, bid), times, seat.rank, rank))
        standings.sort(key=lambda standing: (-standing.score, standing.owner))
        asked = self._rule.ask(
            current.stage, standings, frozenset(current.obtained), self.weighing.rule_noise
        )
        current.stage += 1
        return asked

    def _worth(self, seat: Seat, bid: PointBid) -> int:
        """The key that orders bids: the score, divided by the price where points have prices."""
        prices = self._session.prices
        return bid.score if prices is None else prices.per_price(bid.score, seat.rank)

    def _ranks(self, current: Round, given: Mapping[str, PointBid]) -> npt.NDArray[np.intp]:
        """The ranks of this round's bids, by owner, against the points of present owners."""
        bids = np.full(len(self._seats), NO_SCORE, dtype=np.int64)
        withheld = np.ones(len(self._seats), dtype=np.bool_)
        for owner, bid in given.items():
            rank = self._seats[owner].rank
            withheld[rank] = False
            if not bid.exhausted:
                bids[rank] = bid.score
        pooled = self.pool.best_scores(_weights_of(current), len(bids), withheld=withheld)
        return bid_ranks(bids, pooled)

    # -- the choice -------------------------------------------------------------------------------------

    def choose(self, current: Round, present: AbstractSet[str]) -> None:
        away = np.array([owner not in present for owner in self._seats])
        count, withheld = self._session.bought_in(current.number), away if away.any() else None
        self.take(self.best(current, count, withheld), current.number)
        self.weighing.end_round()

    def best(self, current: Round, count: int, withheld: npt.NDArray[np.bool_] | None) -> Sequence[Best]:
        """The points to buy, at most `count`, none of an owner that is withheld."""
        return self.pool.first(_weights_of(current), count, withheld=withheld)

    def take(self, found: Sequence[Best], number: int) -> None:
        for best in found:
            parcel, self.pooled[best.entry] = self.pooled[best.entry], None
            if parcel is None:
                raise LocalProtocolError(f"Entry {best.entry} of the pool was taken twice.")
            self.pool.withdraw(best.entry)
            self._ledger.wins.append(parcel.bought(self._places[best.entry], best.score, number))
        if found:
            self.weighing.add(self.pool.rows([best.entry for best in found]))

    # -- the end ----------------------------------------------------------------------------------------

    def delivery(self) -> tuple[Delivery, ...]:
        return parts_of(self._ledger.wins)

    def note_disputes(self, purchases: Sequence[Purchase], receipt: Receipt) -> None:
        """Record the consumer's disputes; owners are not told (DESIGN §3, "No feedback")."""
        bits = np.unpackbits(np.frombuffer(receipt.disputed, dtype=np.uint8))
        if len(receipt.disputed) != (len(purchases) + 7) // 8 or bits[len(purchases) :].any():
            raise RemoteProtocolError(
                Offence.MALFORMED, f"A receipt's disputes are not of the {len(purchases)} points of its part."
            )
        self._ledger.disputes.extend(
            Dispute(purchase.round, purchase.owner, unfixed(purchase.handle))
            for purchase, disputed in zip(purchases, bits.tolist(), strict=False)
            if disputed
        )

    def destroy(self) -> None:
        self.boxes_destroyed = True
        self.pooled = [None] * len(self.pooled)
        self.unverified, self._verifying = [], ()

    def settle(self) -> tuple[Charge, ...]:
        if self._session.settlement is None:
            return ()
        charges = self.weighing.charge(self._session.owners_releases)
        (noise,) = self.weighing.end_round()  # it came with the last round's
        self._private_settlement = settle_privately(
            self._ledger.wins, self._disputed(), tuple(self._seats), self.weighing.first_weights, noise
        )
        return charges

    def settlement(self) -> Mapping[str, float] | None:
        """The number that each owner is paid by; None before the release of a private settlement.

        Otherwise it is each owner's exact share so far (`hushbid.protocol.session.settling.settle`).
        """
        if self._session.settlement is not None:
            return self._private_settlement
        target = self.target
        if target is None:
            return dict.fromkeys(self._seats, 0.0)
        return settle(
            self._ledger.wins,
            self._disputed(),
            tuple(self._seats),
            target.embedding,
            target.seed_total,
            target.seed_size,
            self._session.file.seed_weight,
        )

    def statement(self, price: Price) -> tuple[Errors, PaidStatement] | None:
        target, settlement = self.target, self.settlement()
        if target is None or settlement is None:
            return None
        session, wins, disputed = self._session, self._ledger.wins, self._disputed()
        owners = tuple(self._seats)
        noise = target_noise(session, target)
        if session.settlement is not None:
            errors: Errors = dict.fromkeys(owners, session.settlement.standard_error)
            unit = "points by worth"
            return errors, PaidStatement.of(unit, settlement, errors, signal=noise.signal, price=price)
        values, theirs = shared_gains(wins, disputed, owners, session, target, noise)
        errors = gain_errors(wins, disputed, owners, target, noise, session.file.seed_weight)
        return errors, PaidStatement.of(GAINED, values, theirs, signal=noise.signal, price=price)

    def _disputed(self) -> set[tuple[int, str, int]]:
        return {(dispute.chosen_round, dispute.owner, dispute.handle) for dispute in self._ledger.disputes}

    # -- invariants -------------------------------------------------------------------------------------

    def most_wins(self, number: int) -> int:
        return min(number * self._session.batch, self._session.file.session.points)

    def ensure(self) -> None:
        if len(self.pool) != len(self.pooled):
            raise LocalProtocolError("The pool and its points differ in number.")
        if len(self.pooled) > self._ledger.candidates:
            raise LocalProtocolError("The pool has more points than were handed over.")

    def check_total(self) -> None:
        """Check that the summary's total is the sum of the won points' statistics; for tests, O(p·d)."""
        weighing = self.weighing
        expected = np.zeros_like(weighing.total)
        for win in self._ledger.wins:
            expected += weighing.statistic.of(win.candidate.features[None])[0]
        if not np.array_equal(expected, weighing.total):
            raise LocalProtocolError("The summary's total is not the sum of its points.")


def _weights_of(current: Round) -> Weights:
    if current.weights is None:
        raise LocalProtocolError("There is no broadcast weight yet.")
    return current.weights


def _counted_once(parcels: Sequence[Parcel], faults: Mapping[int, str]) -> list[PointFault]:
    """The faults of points that were checked together: a signature that does not hold is one fault.

    It covers all points of a batch, or of a message of a submission.

    Args:
        faults: What is wrong with points, by their number among all from 0, in order.
    """
    found: dict[tuple[int, str, str, bytes | int], PointFault] = {}
    parcel_of = [parcel for parcel in parcels for _ in range(len(parcel))]
    for number, what in faults.items():
        parcel = parcel_of[number]
        of: bytes | int = number
        if what == NOT_SIGNED and isinstance(parcel.brought.held, SealedCandidate | SealedCandidates):
            of = parcel.brought.held.signature
        key = parcel.bid_round, parcel.owner, what, of
        count = found[key].points + 1 if key in found else 1
        found[key] = PointFault(parcel.bid_round, parcel.owner, what, count)
    return list(found.values())
