"""A round after its bids: points are asked for and verified, and the best points in the pool are chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hushbid.curator.events import CandidatesChecked, CheckCandidates
from hushbid.curator.ledger import Absence, Fault
from hushbid.curator.parcels import Parcel
from hushbid.curator.rounds import Rounds
from hushbid.curator.seat import Seat
from hushbid.curator.verification import check_shape, faults_of
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.privacy.acquisition import Standing
from hushbid.protocol.privacy.acquisition.ranks import bid_ranks
from hushbid.protocol.session.points import NOT_SIGNED
from hushbid.protocol.session.prior import prior_of
from hushbid.protocol.space.scoring import NO_SCORE, Best
from hushbid.protocol.wire.bids import BroughtPoints, PointBid
from hushbid.protocol.wire.messages import (
    Ask,
    NestedTarget,
    Offer,
    SealedCandidate,
    SealedCandidates,
    fixed,
    unfixed,
)

__all__ = ["Choosing"]


class Choosing(Rounds):
    """The second half of every round; its arguments are those of `CuratorState`."""

    # -- verification -----------------------------------------------------------------------------------

    def _verify_or_decide(self) -> None:
        self._clear_timer("round")
        if self._unverified:
            self._verifying = tuple(self._unverified)
            self._unverified = []
            self.phase = "verifying"
            self._do(CheckCandidates(self._verifying))
        else:
            self._ask_or_decide()

    def _on_checked(self, checked: CandidatesChecked) -> None:
        parcels = self._verifying
        sizes = [len(parcel) for parcel in parcels]
        if len(checked.signed) != sum(sizes):
            raise LocalProtocolError(f"{len(checked.signed)} points were checked of {sum(sizes)}.")
        claimed = np.concatenate([parcel.features for parcel in parcels])
        jitters = None if self._opened.jitter is None else self._opened.jitter.of(claimed)
        faults = faults_of(parcels, claimed, jitters, checked.features, checked.signed, self._space)
        self._verifying = ()
        ranks = np.repeat([parcel.rank for parcel in parcels], sizes)
        if faults:
            good = np.ones(len(claimed), dtype=np.bool_)
            good[list(faults)] = False
            claimed, ranks = claimed[good], ranks[good]
            jitters = None if jitters is None else jitters[good]
            self.ledger.faults += _counted_once(parcels, faults)
        self._pool.extend(claimed, ranks, jitters)
        before = 0
        for parcel, size in zip(parcels, sizes, strict=True):
            places = [place for place in range(size) if before + place not in faults]
            before += size
            self._pooled += [parcel] * len(places)
            self._places += places
            self.seats[parcel.owner].faulty |= len(places) < size
            if places and parcel.bid_round == self.round:
                self._round.obtained.add(parcel.owner)
        # A point that arrived meanwhile is verified before its owner counts as present.
        self._verify_or_decide()

    # -- asks and offers --------------------------------------------------------------------------------

    def _ask_or_decide(self) -> None:
        asked = () if self._round.time_over else self._ask_next()
        if not asked:
            self._decide()
            return
        self.phase = "asking"
        self._round.asked = asked
        bids = self._bids()
        for owner in asked:
            handle = self.seats[owner].asked = bids[owner].handle
            self._send(owner, Ask(round=self.round, handle=fixed(handle)))
        if not self._half:
            self._set_timer("round", self._session.timeouts.round)

    def _ask_next(self) -> tuple[str, ...]:
        if self._rule.candidate_with_bid:
            return ()
        ranks = self._ranks() if self._rule.ranked else np.zeros(len(self.owners), dtype=np.intp)
        standings = []
        for owner, bid in self._bids().items():
            if not bid.exhausted:
                seat = self.seats[owner]
                times = seat.times[bid.handle]
                rank = int(ranks[seat.rank])
                standings.append(Standing(owner, self._worth(seat, bid), times, seat.rank, rank))
        standings.sort(key=lambda standing: (-standing.score, standing.owner))
        asked = self._rule.ask(
            self._round.stage, standings, frozenset(self._round.obtained), self.weighing.rule_noise
        )
        self._round.stage += 1
        return asked

    def _worth(self, seat: Seat, bid: PointBid) -> int:
        """The key that orders bids: the score, divided by the price where points have prices."""
        prices = self._opened.prices
        return bid.score if prices is None else prices.per_price(bid.score, seat.rank)

    def _ranks(self) -> npt.NDArray[np.intp]:
        """The ranks of this round's bids, by owner, against the points of present owners."""
        bids = np.full(len(self.owners), NO_SCORE, dtype=np.int64)
        withheld = np.ones(len(self.owners), dtype=np.bool_)
        for owner, bid in self._bids().items():
            rank = self.seats[owner].rank
            withheld[rank] = False
            if not bid.exhausted:
                bids[rank] = bid.score
        pooled = self._pool.best_scores(self._require_weights(), len(bids), withheld=withheld)
        return bid_ranks(bids, pooled)

    def _on_offer(self, owner: str, offer: Offer) -> None:
        self._take_offer(owner, offer)
        self._close_asking_if_complete()

    def _on_late_offer(self, owner: str, offer: Offer) -> None:
        self._take_offer(owner, offer)
        self._resume(owner)

    def _take_offer(self, owner: str, offer: Offer) -> None:
        seat = self._seat_of(owner)
        bid = seat.bid
        if bid is None or not seat.asked or (offer.round, unfixed(offer.handle)) != (bid.round, seat.asked):
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "A point was sent that was not asked for.")
        brought = BroughtPoints(offer.candidate)
        check_shape(brought, self._opened)
        seat.asked = 0
        self._hand_over(owner, bid.round, [bid.handle], [bid.score], brought)

    def _close_asking_if_complete(self) -> None:
        # An owner that missed the time of an earlier stage is not waited for a second time.
        here = (owner for owner in self._round.asked if self.seats[owner].asked)
        if not any(self.seats[owner].connected or owner in self._expected_back for owner in here):
            self._verify_or_decide()

    def _on_asking_over(self) -> None:
        self._verify_or_decide()

    # -- the choice -------------------------------------------------------------------------------------

    def _decide(self) -> None:
        """Choose the best points of the present owners, and continue when it is time."""
        present = self._bids().keys()
        self._choose(present)
        for owner in self.owners:
            if owner not in present and self._has_turn(owner):
                self.ledger.absences.append(Absence(self.round, owner))
                # An owner whose point does not match must not learn it, not even by silence: only being in
                # time counts.
                seat = self.seats[owner]
                seat.out |= self._leave_for_good and not seat.has_bid(self.round)
        self._decided = self._now
        if self._half and not self._round.time_over:
            self.phase = "pacing"
        else:
            self._go_on()

    def _choose(self, present: AbstractSet[str]) -> None:
        """Choose the best points of these owners."""
        away = np.array([owner not in present for owner in self.owners])
        count, withheld = self._opened.bought_in(self.round), away if away.any() else None
        if self._rule.herds:
            self._take(self._herded(count, withheld))
        else:
            self._take(self._pool.first(self._require_weights(), count, withheld=withheld))
        self.weighing.end_round()

    def _herded(self, count: int, withheld: npt.NDArray[np.bool_] | None) -> tuple[Best, ...]:
        """Points of all submissions, chosen by running sums towards the target."""
        target = self._require_target()
        wanted = target.finer if isinstance(target, NestedTarget) else target.embedding
        aim = self._opened.target.aim(wanted, prior_of(target))
        terms = self._opened.terms
        entries = self._pool.herd(aim.statistic.of, aim.mean, count, withheld=withheld, terms=terms)
        return tuple(
            Best(entry, parcel.scores[self._places[entry]])
            for entry in entries
            if (parcel := self._pooled[entry]) is not None
        )

    def _take(self, found: Sequence[Best]) -> None:
        for best in found:
            parcel, self._pooled[best.entry] = self._pooled[best.entry], None
            if parcel is None:
                raise LocalProtocolError(f"Entry {best.entry} of the pool was taken twice.")
            self._pool.withdraw(best.entry)
            point = parcel.point(self._places[best.entry])
            self.ledger.wins.append(replace(point, score=best.score, chosen_round=self.round))
        if found:
            self.weighing.add(np.stack([self._pool.features(best.entry) for best in found]))

    def _on_cadence_over(self) -> None:
        self._round.time_over = True
        if self.phase == "asking":
            self._verify_or_decide()
        elif self.phase == "pacing":
            self._go_on()

    def _go_on(self) -> None:
        if self.round == self._opened.rounds:
            self._deliver()
        else:
            self._start_round()


def _counted_once(parcels: Sequence[Parcel], faults: Mapping[int, str]) -> list[Fault]:
    """The faults of points that were checked together: a signature that does not hold is one fault.

    It covers all points of a batch, or of a message of a submission.

    Args:
        faults: What is wrong with points, by their number among all from 0, in order.
    """
    found: dict[tuple[int, str, str, bytes | int], Fault] = {}
    parcel_of = [parcel for parcel in parcels for _ in range(len(parcel))]
    for number, what in faults.items():
        parcel = parcel_of[number]
        of: bytes | int = number
        if what == NOT_SIGNED and isinstance(parcel.brought.held, SealedCandidate | SealedCandidates):
            of = parcel.brought.held.signature
        key = parcel.bid_round, parcel.owner, what, of
        count = found[key].points + 1 if key in found else 1
        found[key] = Fault(parcel.bid_round, parcel.owner, what, count)
    return list(found.values())
