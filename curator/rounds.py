"""The rounds of a session: weigh, bid, ask, verify, decide.

A round: the broadcast weight is computed → owners bid → the rule may ask some for their points → points are
verified → the best b points of the pool of present owners are taken. All rounds are run (DESIGN §3).

Presence: an owner takes part in a round only if its bid for that round is in and every point that was due
from it has been received and verified. Otherwise its pooled points are withheld too. An owner has at most
one broadcast or ask outstanding; while it has, it is sent nothing further, and when it answers late, its
point is pooled and it resumes with the current broadcast. Where a point is bought once (`session.distinct`),
it does not resume: only who bid in every round has handed over its copies of what was bought. An owner that
has no turn in a round (`protocol.turns`) is sent no broadcast of it, and nobody waits for it.

Time: a round ends once nobody is waited for. At a fixed cadence the clock ends it: bids are taken for the
whole first half of its time, and the second half is for asks, verification and decision. How long these take
depends on data, so the next broadcast waits for the clock.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from curator.events import (
    CandidatesChecked,
    CheckCandidates,
    ComputeWeights,
    DrawNoise,
    NoiseDrawn,
    RoundNoise,
    WeightsComputed,
)
from curator.ledger import Absence, Fault, Ledger, Win
from curator.seat import Seat
from curator.verification import Unverified, check_batch, check_shape, faults_of
from protocol import limits
from protocol.acquisition import Standing
from protocol.acquisition.ranks import bid_ranks
from protocol.errors import BudgetExceeded, ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from protocol.grid import Totals, Weights
from protocol.machine import (
    Charge,
    Event,
    Machine,
    Received,
)
from protocol.messages import (
    Ask,
    Batch,
    Bid,
    Broadcast,
    Candidate,
    Offer,
    PointBid,
    SealedCandidate,
    Target,
    bids_of,
    fixed,
    unfixed,
)
from protocol.releases import Statistic
from protocol.scoring import NO_SCORE, Best, Pool
from protocol.session import Session
from protocol.wire import encode_message

__all__ = ["Pooled", "Rounds"]

NOISE_BATCH: Final = 64
"""Rounds whose noise is drawn together, off the critical path."""


@dataclass(slots=True)
class Pooled:
    """A verified point in the pool; its `candidate` is None once it was taken or destroyed."""

    owner: str
    round: int
    """In which it was bid."""
    handle: int
    candidate: Candidate | SealedCandidate | None


class Rounds(Machine):
    """The part of the curator's machine that runs the rounds, once owners and target are there.

    Args:
        session: The session; of its feature map only the space is used.
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session.file
        self._opened = session
        self._space = session.space
        self._rule = session.rule
        summary = session.summary()
        self._noisy = session.draws_curators_noise()
        self._noise_name = session.noise_name(summary)
        self._costs_of = session.release_costs()
        self._filter = session.summary_filter()
        self._batch = session.batch
        self._leave_for_good = session.file.distinct
        self.seed_weight = session.file.seed_weight
        self.owners = session.file.owners
        self.seats = {owner: Seat(rank) for rank, owner in enumerate(self.owners)}
        self.target: Target | None = None
        self.round = 0
        self.weights: Weights | None = None
        self._first_weights: Weights | None = None
        """Those of round 1, by which a private settlement counts points."""
        self.ledger = Ledger()
        self._statistic = Statistic.identity(self._space.dimension)
        """What of a won point enters the total that is released; known with the target."""
        self._total: Totals = np.zeros(0, dtype=np.int64)
        self._pool = Pool(
            self._space.dimension,
            norm_bound=self._space.norm_bound,
            jitter=session.jitter,
            copies=session.copies(),
            prices=session.prices,
        )
        self._pooled: list[Pooled] = []
        self._unverified: list[Unverified] = []
        self._verifying: tuple[Unverified, ...] = ()
        self._noise: deque[RoundNoise] = deque()
        self.noise_drawn = 0
        """For how many releases it was drawn."""
        self._stage = 0
        self._asked: tuple[str, ...] = ()
        self._obtained: set[str] = set()
        self._overdue = False
        self._half = (self._session.session.fixed_cadence or 0.0) / 2
        """Of a round's time, in seconds; 0: rounds have no fixed cadence."""
        self._time_over = False
        """Whether the clock has ended the round: nobody is asked any more."""
        self._awaited: set[str] = set()
        """Owners that are connected and have this round's broadcast, but have not answered it."""
        self._expected_back: dict[str, float] = {}
        """Peers whose connection was lost a short while ago: until when what is due from each is awaited."""
        self._comeback_set = False
        """Whether a timer will fire for the first of them."""
        self.paused = False
        """Whether the round stands still until enough owners are here."""
        self._boxes_destroyed = False
        self._began = self._decided = 0.0
        """When the first broadcast was made, and when the last round was decided, on the curator's clock."""

    @property
    def seconds(self) -> float:
        """From the first broadcast to the end of the last round, with the time that the curator was down."""
        return max(0.0, self._decided - self._began)

    @abstractmethod
    def _deliver(self) -> None:
        """Go on after the last round."""

    @abstractmethod
    def _give_up(self, code: ExitCode, reason: str, advice: str = "") -> None:
        """End the session without its result."""

    def _start_round(self) -> None:
        self.round += 1
        self.weights = None
        self.phase = "weighing"
        self._stage = 0
        self._obtained = set()
        self._awaited = set()
        self._overdue = self._time_over = False
        if self._noisy and not self._noise:
            last = self.round + NOISE_BATCH - 1
            if last >= self._opened.rounds:
                last = self._opened.owners_releases  # with a private settlement's, the last of all
            self._do(DrawNoise(self.round, last))
        else:
            self._compute_weights()

    def _on_noise(self, event: Event) -> None:
        drawn = cast(NoiseDrawn, event)
        if drawn.first != self.round or self._noise:
            raise LocalProtocolError(f"Noise for round {drawn.first} came in round {self.round}.")
        self._noise.extend(drawn.rounds)
        self.noise_drawn = drawn.first + len(drawn.rounds) - 1
        self._compute_weights()

    def _compute_weights(self) -> None:
        target = self._require_target()
        noise = self._noise[0][0] if self._noisy else ()
        count = self.seed_weight * target.seed_size + self._batch * (self.round - 1)
        self._do(ComputeWeights(self.round, target, self._total.copy(), count, noise))

    def _on_weights(self, event: Event) -> None:
        computed = cast(WeightsComputed, event)
        if computed.round != self.round:
            raise LocalProtocolError(f"Weights of round {computed.round} came in round {self.round}.")
        try:
            self._charge(self.round)
        except BudgetExceeded as error:
            self._give_up(ExitCode.FAILED, error.what, error.advice)
            return
        self.weights = computed.weights
        self.phase = "bidding"
        if self.round == 1:
            self._began = self._now
            self._first_weights = computed.weights[: self._space.dimension]
        message = Broadcast(round=self.round, weights=computed.weights, noise=self._noise_name)
        body = encode_message(message)
        for owner, seat in self.seats.items():
            if seat.free and self._has_turn(owner):
                self._broadcast(owner, message, body)
        self._set_timer("round", self._half or self._session.timeouts.round)

    def _charge(self, release: int) -> None:
        """Charge a release, which is made and has not left: the charge is on record first."""
        if self._filter is not None:
            costs = self._costs_of(release)
            self._filter.charge(*costs)
            self._do(Charge(self._filter.neighbours, release, release, costs))

    def _broadcast(self, owner: str, message: Broadcast, body: bytes | None = None) -> None:
        seat = self.seats[owner]
        seat.broadcast = message.round
        seat.weights = message.weights
        self._awaited.add(owner)
        self._send(owner, message, body)

    def _resume(self, owner: str) -> None:
        """Send a returning owner the current broadcast, if bids are still taken."""
        seat = self.seats[owner]
        takes_part = seat.free and self._has_turn(owner)
        if self.phase == "bidding" and takes_part and not seat.has_bid(self.round):
            message = Broadcast(round=self.round, weights=self._require_weights(), noise=self._noise_name)
            self._broadcast(owner, message)

    def _on_bid(self, event: Event) -> None:
        owner, bid = self._take_bid(event)
        if bid.round == self.round:
            self._close_bidding_if_complete()
        else:
            self._resume(owner)

    def _on_late_bid(self, event: Event) -> None:
        """Take a bid in after bidding closed: even if it is for this round, its owner is absent from it."""
        owner, _ = self._take_bid(event)
        self.seats[owner].late = True

    def _take_bid(self, event: Event) -> tuple[str, Bid | Batch]:
        """Check a bid, keep it, and put its points, if any, among those to verify."""
        received = cast(Received, event)
        owner, message = received.peer, cast(Bid | Batch, received.message)
        seat = self._seat_of(owner)
        if message.round != seat.broadcast:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, f"A bid for round {message.round}; due was one for {seat.broadcast}."
            )
        bids = self._checked_bids(message, seat)
        seat.broadcast = 0
        self._awaited.discard(owner)
        seat.bid = bids[0]
        seat.late = False
        for bid in bids:
            if not bid.exhausted:
                seat.times[bid.handle] = seat.times.get(bid.handle, 0) + 1
                if bid.candidate is not None:
                    self._hand_over(owner, bid, bid.candidate)
        return owner, message

    def _checked_bids(self, message: Bid | Batch, seat: Seat) -> tuple[PointBid, ...]:
        check_batch(message, self._opened)
        bids = bids_of(message)
        numbers = [bid.handle for bid in bids if not bid.exhausted]
        for bid in bids:
            if (bid.candidate is not None) != self._rule.candidate_with_bid:
                raise RemoteProtocolError(
                    Offence.MALFORMED,
                    f"The rule {self._rule.name} wants bids the other way: with or without point.",
                )
            if bid.candidate is not None:
                check_shape(bid.candidate, self._opened)
        if not all(1 <= number <= limits.MAX_POINTS for number in numbers):
            raise RemoteProtocolError(Offence.MALFORMED, "A bid's candidate number is out of range.")
        if len(set(numbers)) < len(numbers) or any(bid.exhausted for bid in bids[: len(numbers)]):
            raise RemoteProtocolError(
                Offence.MALFORMED, "A batch has a point twice under its number, or padding before a point."
            )
        if not seat.handed_over.isdisjoint(numbers):
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "A point was handed over before under its number.")
        return bids

    def _hand_over(self, owner: str, bid: PointBid, candidate: Candidate | SealedCandidate) -> None:
        seat = self.seats[owner]
        # An offer's number needs no check: its owner hands over nothing between the bid and the offer.
        seat.handed_over.add(bid.handle)
        if self._boxes_destroyed:
            return  # it came too late to be wanted, and must not be kept
        weights = cast(Weights, seat.weights)
        self.ledger.points_accessed += isinstance(candidate, Candidate)
        self.ledger.candidates += 1
        self._unverified.append(Unverified(owner, bid.round, bid.handle, bid.score, weights, candidate))

    def _close_bidding_if_complete(self) -> None:
        """Go on once nobody is waited for and enough owners are present."""
        if not self._overdue and (self._half or self._awaited or self._missed()):
            return
        if len(self._present()) < self._session.session.min_owners:
            if not self.paused:
                self._set_timer("pause", self._session.timeouts.pause)
                self.paused = True
            return
        self._clear_timer("pause")
        self.paused = False
        if self._half:
            self._set_timer("cadence", self._half)
        self._verify_or_decide()

    def _missed(self) -> list[str]:
        """Owners that were here a short while ago, and owe this round's bid and nothing older."""
        return [
            owner
            for owner, seat in self.seats.items()
            if owner in self._expected_back
            and self._has_turn(owner)
            and seat.enrolled
            and not seat.out
            and not seat.has_bid(self.round)
            and not seat.asked
            and seat.broadcast in (0, self.round)
        ]

    def _on_round_over(self, event: Event) -> None:
        self._overdue = True
        self._close_bidding_if_complete()

    def _on_pause_over(self, event: Event) -> None:
        self._give_up(
            ExitCode.TIMEOUT,
            f"In round {self.round} only {len(self._present())} owners were present for longer than the "
            f"pause allows; the session needs {self._session.session.min_owners}.",
        )

    def _present(self) -> list[str]:
        """Owners whose bid for this round is in and from whom nothing is due."""
        return [
            owner
            for owner, seat in self.seats.items()
            if seat.has_bid(self.round) and not seat.asked and not seat.faulty and not seat.out
        ]

    # -- points: ask, verify, decide ----------------------------------------------------------------

    def _verify_or_decide(self) -> None:
        self._clear_timer("round")
        if self._unverified:
            self._verifying = tuple(self._unverified)
            self._unverified = []
            self.phase = "verifying"
            self._do(CheckCandidates(self._verifying))
        else:
            self._ask_or_decide()

    def _on_checked(self, event: Event) -> None:
        checked = cast(CandidatesChecked, event)
        entries = self._verifying
        if len(checked.signed) != len(entries):
            raise LocalProtocolError(f"{len(checked.signed)} points were checked of {len(entries)}.")
        claimed, faults = faults_of(
            entries, checked.features, checked.signed, self._space, self._opened.jitter
        )
        self._verifying = ()
        ranks = np.array([self.seats[entry.owner].rank for entry in entries], dtype=np.intp)
        good = np.array([not fault for fault in faults])
        self._pool.extend(claimed[good], ranks[good])
        for entry, fault in zip(entries, faults, strict=True):
            if fault:
                self.seats[entry.owner].faulty = True
                self.ledger.faults.append(Fault(entry.round, entry.owner, fault))
                continue
            self._pooled.append(Pooled(entry.owner, entry.round, entry.handle, entry.candidate))
            if entry.round == self.round:
                self._obtained.add(entry.owner)
        # A point that came meanwhile is verified before its owner counts as present.
        self._verify_or_decide()

    def _ask_or_decide(self) -> None:
        asked = () if self._time_over else self._ask_next()
        if not asked:
            self._decide()
            return
        self.phase = "asking"
        self._asked = asked
        for owner in asked:
            seat = self.seats[owner]
            seat.asked = cast(PointBid, seat.bid).handle
            self._send(owner, Ask(round=self.round, handle=fixed(seat.asked)))
        if not self._half:
            self._set_timer("round", self._session.timeouts.round)

    def _ask_next(self) -> tuple[str, ...]:
        if self._rule.candidate_with_bid:
            return ()
        noise = self._noise[0][1] if self._noisy else ()
        ranks = self._ranks() if self._rule.ranked else np.zeros(len(self.owners), dtype=np.intp)
        standings = []
        for owner in self._present():
            seat = self.seats[owner]
            bid = cast(PointBid, seat.bid)
            if not bid.exhausted:
                times = seat.times[bid.handle]
                rank = int(ranks[seat.rank])
                standings.append(Standing(owner, self._worth(seat, bid), times, seat.rank, rank))
        standings.sort(key=lambda standing: (-standing.score, standing.owner))
        asked = self._rule.ask(self._stage, standings, frozenset(self._obtained), noise)
        self._stage += 1
        return asked

    def _has_turn(self, owner: str) -> bool:
        return self._opened.turns.has(owner, self.round)

    def _worth(self, seat: Seat, bid: PointBid) -> int:
        """What a bid is ordered by: its score, for its price where points have prices."""
        prices = self._opened.prices
        return bid.score if prices is None else prices.per_price(bid.score, seat.rank)

    def _ranks(self) -> npt.NDArray[np.intp]:
        """The ranks of this round's bids, by owner, against the points of the owners that are present."""
        bids = np.full(len(self.owners), NO_SCORE, dtype=np.int64)
        withheld = np.ones(len(self.owners), dtype=np.bool_)
        for owner in self._present():
            seat = self.seats[owner]
            bid = cast(PointBid, seat.bid)
            withheld[seat.rank] = False
            if not bid.exhausted:
                bids[seat.rank] = bid.score
        pooled = self._pool.best_scores(self._require_weights(), len(bids), withheld=withheld)
        return bid_ranks(bids, pooled)

    def _on_offer(self, event: Event) -> None:
        self._take_offer(event)
        self._close_asking_if_complete()

    def _on_late_offer(self, event: Event) -> None:
        self._resume(self._take_offer(event))

    def _take_offer(self, event: Event) -> str:
        received = cast(Received, event)
        owner, offer = received.peer, cast(Offer, received.message)
        seat = self._seat_of(owner)
        bid = seat.bid
        if bid is None or not seat.asked or (offer.round, unfixed(offer.handle)) != (bid.round, seat.asked):
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "A point was sent that was not asked for.")
        check_shape(offer.candidate, self._opened)
        seat.asked = 0
        self._hand_over(owner, bid, offer.candidate)
        return owner

    def _close_asking_if_complete(self) -> None:
        # Who let an earlier stage's time pass is not waited for a second time.
        here = (owner for owner in self._asked if self.seats[owner].asked)
        if not any(self.seats[owner].connected or owner in self._expected_back for owner in here):
            self._verify_or_decide()

    def _go_on_if_complete(self) -> None:
        """See anew whether anybody is waited for, in the phases that wait for owners."""
        if self.phase == "bidding":
            self._close_bidding_if_complete()
        elif self.phase == "asking":
            self._close_asking_if_complete()

    def _on_asking_over(self, event: Event) -> None:
        self._verify_or_decide()

    def _on_cadence_over(self, event: Event) -> None:
        self._time_over = True
        if self.phase == "asking":
            self._verify_or_decide()
        elif self.phase == "pacing":
            self._go_on()

    def _decide(self) -> None:
        """Take the best points of the present owners, as far as there are any, and go on when it is time."""
        present = set(self._present())
        withheld = np.array([owner not in present for owner in self.owners])
        self._take(
            self._pool.first(
                self._require_weights(),
                self._opened.bought_in(self.round),
                withheld=withheld if withheld.any() else None,
            )
        )
        for owner in self.owners:
            if owner not in present and self._has_turn(owner):
                self.ledger.absences.append(Absence(self.round, owner))
                # Whose point does not match is told nothing, by silence neither: being in time decides alone.
                seat = self.seats[owner]
                seat.out |= self._leave_for_good and not seat.has_bid(self.round)
        if self._noisy:
            self._noise.popleft()
        self._decided = self._now
        if self._half and not self._time_over:
            self.phase = "pacing"
        else:
            self._go_on()

    def _go_on(self) -> None:
        if self.round == self._opened.rounds:
            self._deliver()
        else:
            self._start_round()

    def _take(self, found: Sequence[Best]) -> None:
        for best in found:
            pooled = self._pooled[best.entry]
            candidate, pooled.candidate = pooled.candidate, None
            if candidate is None:
                raise LocalProtocolError(f"Entry {best.entry} of the pool was taken twice.")
            self._pool.withdraw(best.entry)
            win = Win(self.round, pooled.owner, best.score, pooled.round, pooled.handle, candidate)
            self.ledger.wins.append(win)
        if found:
            features = np.stack([self._pool.features(best.entry) for best in found])
            self._total += self._statistic.of(features).sum(axis=0)

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
        expected = np.zeros_like(self._total)
        for win in self.ledger.wins:
            expected += self._statistic.of(win.candidate.features[None])[0]
        if not np.array_equal(expected, self._total):
            raise LocalProtocolError("The summary's total is not the sum of its points.")

    def _require_target(self) -> Target:
        if self.target is None:
            raise LocalProtocolError("There is no target yet.")
        return self.target

    def _require_weights(self) -> Weights:
        if self.weights is None:
            raise LocalProtocolError("There is no broadcast weight yet.")
        return self.weights

    def _seat_of(self, peer: str) -> Seat:
        seat = self.seats.get(peer)
        if seat is None:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "Only an owner bids.")
        return seat
