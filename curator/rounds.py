"""The rounds of a session: weigh, bid, ask, verify, decide.

A round: the broadcast weight is computed → owners bid → the rule may ask some for their points → points are
verified → the best point of the pool of present owners is taken. All p rounds are run (DESIGN §3).

Presence: an owner takes part in a round only if its bid for that round is in and every point that was due
from it has been received and verified. Otherwise its pooled points are withheld too. An owner has at most
one broadcast or ask outstanding; while it has, it is sent nothing further, and when it answers late, its
point is pooled and it resumes with the current broadcast.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import Final, cast

import numpy as np

from curator.events import (
    ComputeWeights,
    DrawNoise,
    HashPoints,
    NoiseDrawn,
    PointsHashed,
    RoundNoise,
    WeightsComputed,
)
from curator.ledger import Absence, Fault, Ledger, Win
from curator.seat import Seat
from curator.verification import Unverified, check_shape, faults_of
from protocol import limits
from protocol.acquisition import AcquisitionRule, Standing
from protocol.config.session import SessionFile
from protocol.errors import ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from protocol.features import FeatureMap
from protocol.grid import Weights
from protocol.machine import (
    Event,
    Machine,
    Received,
)
from protocol.messages import (
    Ask,
    Bid,
    Broadcast,
    Candidate,
    Offer,
    Target,
    unfixed,
)
from protocol.scoring import Pool
from protocol.wire import encode_message

__all__ = ["Rounds"]

NOISE_BATCH: Final = 64
"""Rounds whose noise is drawn together, off the critical path."""


class Rounds(Machine):
    """The part of the curator's machine that runs the rounds, once owners and target are there.

    Args:
        session: The session file.
        feature_map: The session's map; here only its digest, bounds and `admits` are used.
        rule: The acquisition rule.
        noisy: Whether the summary's release or the rule needs noise.
        noise_name: What broadcasts say of their noise.
    """

    def __init__(
        self,
        session: SessionFile,
        *,
        feature_map: FeatureMap,
        rule: AcquisitionRule,
        noisy: bool,
        noise_name: str,
    ) -> None:
        super().__init__()
        self._session = session
        self._map = feature_map
        self._rule = rule
        self._noisy = noisy
        self._noise_name = noise_name
        self.owners = session.owners
        self.seats = {owner: Seat(rank) for rank, owner in enumerate(self.owners)}
        self.target: Target | None = None
        self.round = 0
        self.weights: Weights | None = None
        self.ledger = Ledger()
        self._total = np.zeros(session.features.dimension, dtype=np.int64)
        self._pool = Pool(session.features.dimension, norm_bound=feature_map.norm_bound)
        self._pooled: list[tuple[str, Candidate | None]] = []
        self._unverified: list[Unverified] = []
        self._verifying: tuple[Unverified, ...] = ()
        self._noise: deque[RoundNoise] = deque()
        self._stage = 0
        self._asked: tuple[str, ...] = ()
        self._obtained: set[str] = set()
        self._overdue = False
        self._awaited: set[str] = set()
        """Owners that are connected and have this round's broadcast, but have not answered it."""
        self._paused = False

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
        self._overdue = False
        if self._noisy and not self._noise:
            last = min(self.round + NOISE_BATCH - 1, self._session.session.points)
            self._do(DrawNoise(self.round, last))
        else:
            self._compute_weights()

    def _on_noise(self, event: Event) -> None:
        drawn = cast(NoiseDrawn, event)
        if drawn.first != self.round or self._noise:
            raise LocalProtocolError(f"Noise for round {drawn.first} came in round {self.round}.")
        self._noise.extend(drawn.rounds)
        self._compute_weights()

    def _compute_weights(self) -> None:
        target = self._require_target()
        noise = self._noise[0][0] if self._noisy else ()
        count = target.seed_size + self.round - 1
        self._do(ComputeWeights(self.round, target.embedding, self._total.copy(), count, noise))

    def _on_weights(self, event: Event) -> None:
        computed = cast(WeightsComputed, event)
        if computed.round != self.round:
            raise LocalProtocolError(f"Weights of round {computed.round} came in round {self.round}.")
        self.weights = computed.weights
        self.phase = "bidding"
        message = Broadcast(round=self.round, weights=computed.weights, noise=self._noise_name)
        body = encode_message(message)
        for owner, seat in self.seats.items():
            if seat.connected and not seat.busy:
                self._broadcast(owner, message, body)
        self._set_timer("round", self._session.timeouts.round)

    def _broadcast(self, owner: str, message: Broadcast, body: bytes | None = None) -> None:
        seat = self.seats[owner]
        seat.broadcast = message.round
        seat.weights = message.weights
        self._awaited.add(owner)
        self._send(owner, message, body)

    def _resume(self, owner: str) -> None:
        """Send a returning owner the current broadcast, if bids are still taken."""
        seat = self.seats[owner]
        if self.phase == "bidding" and seat.connected and not seat.busy and not seat.has_bid(self.round):
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

    def _take_bid(self, event: Event) -> tuple[str, Bid]:
        """Check a bid, keep it, and put its point, if any, among those to verify."""
        received = cast(Received, event)
        owner, bid = received.peer, cast(Bid, received.message)
        seat = self._seat_of(owner)
        if bid.round != seat.broadcast:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, f"A bid for round {bid.round}; due was one for {seat.broadcast}."
            )
        if (bid.candidate is not None) != self._rule.candidate_with_bid:
            raise RemoteProtocolError(
                Offence.MALFORMED,
                f"The rule {self._rule.name} wants bids the other way: with or without point.",
            )
        if bid.candidate is not None:
            check_shape(bid.candidate, self._map)
        handle = unfixed(bid.handle)
        if not bid.exhausted and not 1 <= handle <= limits.MAX_POINTS:
            raise RemoteProtocolError(Offence.MALFORMED, "A bid's candidate number is out of range.")
        seat.broadcast = 0
        self._awaited.discard(owner)
        seat.bid = bid
        seat.late = False
        if not bid.exhausted:
            seat.times[handle] = seat.times.get(handle, 0) + 1
            if bid.candidate is not None:
                self._hand_over(owner, bid, bid.candidate)
        return owner, bid

    def _hand_over(self, owner: str, bid: Bid, candidate: Candidate) -> None:
        weights = cast(Weights, self.seats[owner].weights)
        self.ledger.points_accessed += 1
        self._unverified.append(Unverified(owner, bid.round, unfixed(bid.score), weights, candidate))

    def _close_bidding_if_complete(self) -> None:
        """Go on once nobody is waited for and enough owners are present."""
        if self._awaited and not self._overdue:
            return
        if len(self._present()) < self._session.session.min_owners:
            if not self._paused:
                self._set_timer("pause", self._session.timeouts.pause)
                self._paused = True
            return
        self._clear_timer("pause")
        self._paused = False
        self._verify_or_decide()

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
            if seat.has_bid(self.round) and not seat.asked and not seat.faulty
        ]

    # -- points: ask, verify, decide ----------------------------------------------------------------

    def _verify_or_decide(self) -> None:
        self._clear_timer("round")
        if self._unverified:
            self._verifying = tuple(self._unverified)
            self._unverified = []
            self.phase = "verifying"
            self._do(HashPoints(tuple(entry.candidate.point for entry in self._verifying)))
        else:
            self._ask_or_decide()

    def _on_hashed(self, event: Event) -> None:
        recomputed = cast(PointsHashed, event).features
        entries = self._verifying
        if recomputed.shape[0] != len(entries):
            raise LocalProtocolError(f"{recomputed.shape[0]} points were hashed of {len(entries)}.")
        claimed, faults = faults_of(entries, recomputed, self._map)
        self._verifying = ()
        for row, entry in enumerate(entries):
            if faults[row]:
                self.seats[entry.owner].faulty = True
                self.ledger.faults.append(Fault(entry.round, entry.owner, faults[row]))
            else:
                self._pool.append(claimed[row], rank=self.seats[entry.owner].rank)
                self._pooled.append((entry.owner, entry.candidate))
                if entry.round == self.round:
                    self._obtained.add(entry.owner)
        # A point that came meanwhile is verified before its owner counts as present.
        self._verify_or_decide()

    def _ask_or_decide(self) -> None:
        asked = self._ask_next()
        if not asked:
            self._decide()
            return
        self.phase = "asking"
        self._asked = asked
        for owner in asked:
            seat = self.seats[owner]
            handle = cast(Bid, seat.bid).handle
            seat.asked = unfixed(handle)
            self._send(owner, Ask(round=self.round, handle=handle))
        self._set_timer("round", self._session.timeouts.round)

    def _ask_next(self) -> tuple[str, ...]:
        noise = self._noise[0][1] if self._noisy else ()
        standings = []
        for owner in self._present():
            seat = self.seats[owner]
            bid = cast(Bid, seat.bid)
            if not bid.exhausted:
                times = seat.times[unfixed(bid.handle)]
                standings.append(Standing(owner, unfixed(bid.score), times))
        standings.sort(key=lambda standing: (-standing.score, standing.owner))
        asked = self._rule.ask(self._stage, standings, frozenset(self._obtained), noise)
        self._stage += 1
        return asked

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
        check_shape(offer.candidate, self._map)
        seat.asked = 0
        self._hand_over(owner, bid, offer.candidate)
        return owner

    def _close_asking_if_complete(self) -> None:
        # Who let an earlier stage's time pass is not waited for a second time.
        if not any(self.seats[owner].connected and self.seats[owner].asked for owner in self._asked):
            self._verify_or_decide()

    def _on_asking_over(self, event: Event) -> None:
        self._verify_or_decide()

    def _decide(self) -> None:
        """Take the best point of the present owners, if there is one, and go on to the next round."""
        present = set(self._present())
        withheld = np.array([owner not in present for owner in self.owners])
        best = self._pool.best(self._require_weights(), withheld=withheld if withheld.any() else None)
        if best is not None:
            owner, candidate = self._pooled[best.entry]
            if candidate is None:
                raise LocalProtocolError(f"Entry {best.entry} of the pool was taken twice.")
            self._pool.withdraw(best.entry)
            self._pooled[best.entry] = (owner, None)
            self._total += candidate.features
            self.ledger.wins.append(Win(self.round, owner, best.score, candidate))
        self.ledger.absences.extend(
            Absence(self.round, owner) for owner in self.owners if owner not in present
        )
        if self._noisy:
            self._noise.popleft()
        if self.round == self._session.session.points:
            self._deliver()
        else:
            self._start_round()

    # -- what must hold -------------------------------------------------------------------------------

    def check(self) -> None:
        """The invariants of the curator (DESIGN §1 and §3)."""
        ledger = self.ledger
        if len(ledger.wins) > self.round or self.round > self._session.session.points:
            raise LocalProtocolError(f"{len(ledger.wins)} points were won in {self.round} rounds.")
        if len(self._pool) != len(self._pooled):
            raise LocalProtocolError("The pool and its points differ in number.")
        if len(self._pooled) > ledger.points_accessed:
            raise LocalProtocolError("The pool has more points than were handed over.")

    def check_total(self) -> None:
        """That the summary's total is the seed set's plus the won points': for tests, O(p·d)."""
        expected = self._require_target().seed_total.copy()
        for win in self.ledger.wins:
            expected += win.candidate.features
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
