"""The curator's state machine: the rules of a session in words, its table, and the enrolment.

A session: owners and consumer enrol → owners commit to their rows, where the session says so → p rounds → the
chosen points are delivered → all is closed.

A round: the weight is computed and broadcast → owners bid → the rule may ask some for their points → points
are verified → the best b points in the pool of present owners are chosen. All rounds are run (DESIGN §3).

Presence: an owner takes part in a round only if the curator has its bid for that round and has received and
verified every point due from it. Otherwise its pooled points are withheld too. An owner has at most one
broadcast or ask outstanding. Until it answers it is sent nothing further; when it answers late, its point is
pooled and it resumes with the current broadcast. Where a point is bought once (`session.distinct`), it does
not resume: only an owner that bid in every round has handed over its copies of the points bought. An owner
without a turn in a round (`hushbid.protocol.session.turns`) gets no broadcast of it, and nobody waits for it.

Time: a round ends once nobody is waited for. At a fixed cadence the clock ends it: the first half of its time
is for bids, the second for asks, verification and decision. How long those take depends on data, so the next
broadcast waits for the clock.

The table's handlers are in the module of their phase: enrolment here, weights and bids in
`hushbid.curator.rounds`, points and the choice in `hushbid.curator.choosing`, delivery and closing in
`hushbid.curator.closing`, and peers that come and go in `hushbid.curator.peers`. Each class builds on the one
before; all share the state in `hushbid.curator.state`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Final

from hushbid.curator.enrolment import check_commitment, check_hello, check_target
from hushbid.curator.events import CandidatesChecked
from hushbid.curator.peers import Peers
from hushbid.protocol import limits
from hushbid.protocol.errors import ExitCode, Offence, RemoteProtocolError
from hushbid.protocol.machine.base import Transition, expand
from hushbid.protocol.machine.machine import Event, Started
from hushbid.protocol.machine.weighing import NoiseDrawn, WeightsComputed
from hushbid.protocol.names import CONSUMER, listed
from hushbid.protocol.wire.link import Link
from hushbid.protocol.wire.messages import Commitment, Hello, Ready, Roots, SecretMap, Target, Welcome

__all__ = ["PHASES", "TRANSITIONS", "CuratorMachine"]

_LISTED: Final = 8
"""Most names that a message lists."""

PHASES: Final = (
    "enrolling",
    "weighing",
    "bidding",
    "verifying",
    "asking",
    "pacing",
    "delivering",
    "closing",
    "done",
)

_QUIET: Final = ("weighing", "verifying", "pacing", "delivering", "closing")
"""Phases in which a late answer is taken in and changes nothing else."""
_OPEN: Final = PHASES[:-1]
_DECIDED: Final = ("weighing", "delivering")
"""The phases after a decided round: the next round, or the delivery."""
_BIDDING_TO: Final = ("bidding", "verifying", "asking", *_DECIDED)
_ASKING_TO: Final = ("asking", "verifying", *_DECIDED)
_RESTING: Final = ("enrolling", "bidding", "asking", "pacing", "delivering", "closing")
"""Phases in which a step can end, and in which a restarted curator resumes."""

TRANSITIONS: Final[tuple[Transition, ...]] = (
    # Enrolment ends when all owners and the target have arrived, or when its time is over.
    Transition("enrolling", "started", "_on_started", ("enrolling",)),
    Transition("enrolling", "received:hello", "_on_hello", ("enrolling", "weighing")),
    Transition("enrolling", "received:commitment", "_on_commitment", ("enrolling",)),
    Transition("enrolling", "received:target", "_on_target", ("enrolling", "weighing")),
    Transition("enrolling", "received:ready", "_on_ready", ("enrolling", "weighing")),
    Transition("enrolling", "timer:enrolment", "_on_enrolment_over", ("enrolling", "weighing", "closing")),
    # Under `tender` the only round begins with the target, and owners may enrol until the time is over.
    Transition("weighing", "timer:enrolment", "_close_enrolment", ("weighing", "closing")),
    Transition(
        "bidding", "timer:enrolment", "_close_enrolment", ("bidding", "verifying", "delivering", "closing")
    ),
    # A round.
    Transition("weighing", "noise-drawn", "_on_noise", ("weighing",)),
    Transition("weighing", "weights-computed", "_on_weights", ("bidding", "closing")),
    Transition("bidding", "received:bid", "_on_bid", (*_BIDDING_TO, "pacing")),
    Transition("bidding", "timer:round", "_on_round_over", (*_BIDDING_TO, "pacing")),
    Transition("bidding", "timer:pause", "_on_pause_over", ("closing",)),
    Transition(
        "verifying", "candidates-checked", "_on_checked", ("verifying", "asking", "pacing", *_DECIDED)
    ),
    Transition("asking", "received:offer", "_on_offer", ("asking", "verifying")),
    Transition("asking", "timer:round", "_on_asking_over", _ASKING_TO),
    # The end of a round's time, where rounds have a fixed cadence.
    Transition("asking", "timer:cadence", "_on_cadence_over", ("verifying", *_DECIDED)),
    Transition("verifying", "timer:cadence", "_on_cadence_over", ("verifying",)),
    Transition("pacing", "timer:cadence", "_on_cadence_over", _DECIDED),
    # Late answers.
    *expand((*_QUIET, "asking"), "received:bid", "_on_late_bid"),
    *expand((*_QUIET, "bidding"), "received:offer", "_on_late_offer"),
    # Delivery and closing.
    Transition("delivering", "received:receipt", "_on_receipt", ("delivering", "closing")),
    Transition("delivering", "timer:delivery", "_on_delivery_over", ("delivering",)),
    Transition("closing", "head-signed", "_on_head_signed", ("closing", "done")),
    Transition("closing", "received:farewell", "_on_farewell", ("closing", "done")),
    Transition("closing", "timer:closing", "_on_closing_over", ("done",)),
    # Results of work that was in progress when the session was given up.
    *(
        Transition("closing", trigger, "_on_moot", ("closing",))
        for trigger in ("noise-drawn", "weights-computed", "candidates-checked")
    ),
    Transition("closing", "received:target", "_on_moot_message", ("closing",)),
    Transition("closing", "received:receipt", "_on_moot_message", ("closing",)),
    # Peers that come, go, come back, or break the protocol.
    *expand((*_QUIET, "bidding", "asking"), "received:hello", "_on_hello"),
    *expand((*_QUIET, "bidding"), "received:ready", "_on_ready"),  # sealed points: no owner is asked
    *expand((*_QUIET, "bidding"), "received:commitment", "_on_commitment"),
    Transition("bidding", "lost", "_on_lost", _BIDDING_TO),
    Transition("asking", "lost", "_on_lost", (*_ASKING_TO, "pacing")),
    *expand(("enrolling", *_QUIET), "lost", "_on_lost"),
    *expand(_OPEN, "returned", "_on_returned"),
    Transition("bidding", "timer:comeback", "_on_comeback_over", _BIDDING_TO),
    Transition("asking", "timer:comeback", "_on_comeback_over", (*_ASKING_TO, "pacing")),
    Transition("closing", "timer:comeback", "_on_comeback_over", ("closing", "done")),
    *expand(
        ("enrolling", "weighing", "verifying", "pacing", "delivering"),
        "timer:comeback",
        "_on_comeback_over",
    ),
    *expand(_RESTING, "restarted", "_on_restarted"),
    Transition("enrolling", "offended", "_on_offended", ("enrolling", "closing")),
    Transition("bidding", "offended", "_on_offended", (*_BIDDING_TO, "closing")),
    Transition("asking", "offended", "_on_offended", (*_ASKING_TO, "pacing", "closing")),
    *(
        Transition(phase, "offended", "_on_offended", (phase, "closing"))
        for phase in ("weighing", "verifying", "pacing", "delivering")
    ),
    *expand(("closing",), "offended", "_on_offended"),
)


class CuratorMachine(Peers):
    """The curator of one session; its arguments are those of `CuratorState`."""

    PHASES: ClassVar[tuple[str, ...]] = PHASES
    TRANSITIONS: ClassVar[tuple[Transition, ...]] = TRANSITIONS
    OUTCOMES: ClassVar[tuple[type[Event], ...]] = (NoiseDrawn, WeightsComputed, CandidatesChecked)

    def _on_started(self, event: Started) -> None:
        self._set_timer("enrolment", self._session.timeouts.enrolment)

    def _on_hello(self, peer: str, hello: Hello) -> None:
        if peer != CONSUMER and peer not in self.seats:
            raise RemoteProtocolError(
                Offence.UNKNOWN_PEER,
                "The peer is not on the session's roster.",
                advice="Compare the session files of both sides.",
            )
        link = self.links.get(peer)
        check_hello(peer, "consumer" if peer == CONSUMER else "owner", self._opened, hello, link)
        if link is None:
            link = self.links[peer] = Link()
        public_map = self._opened.public_map
        welcome = Welcome(
            version=self._opened.protocol_version,
            feature_map=None if public_map is None else public_map.digest,
            sent=link.sent,
            received=link.received,
        )
        self._greet(peer, welcome)
        self._resend(peer, hello.received)
        self._expected_back.pop(peer, None)
        self._dismissed.discard(peer)
        if peer == CONSUMER:
            self.consumer_enrolled = self.consumer_connected = True
        else:
            if not self._rule.sealed:
                self._enrol(peer)
            self._connect(peer)
            self._send_map(peer)
        self._close(peer)
        if self.phase == "enrolling":
            self._gather_if_complete()
            self._begin_if_complete()

    def _on_commitment(self, owner: str, commitment: Commitment) -> None:
        """Keep what an owner commits to; who comes after the consumer was told is late, and gets no map."""
        seat = self._seat_of(owner)
        if not self._opened.commitment_depth or seat.committed:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "An owner commits to its rows once, where the session says so."
            )
        check_commitment(owner, commitment, self._opened)
        seat.committed = True
        if not self.gathered and self.phase == "enrolling":  # else it is late, or the session is given up
            seat.commitment = commitment
            self._committed += 1
            self._gather_if_complete()

    def _gather_if_complete(self) -> None:
        if not self.gathered and self.consumer_enrolled and self._committed == len(self.owners):
            self._gather()

    def _uncommitted(self) -> list[str]:
        """Owners that have not committed to their rows."""
        return [owner for owner, seat in self.seats.items() if seat.commitment is None]

    def _gather(self) -> None:
        """Tell the consumer what owners committed to: the feature map is drawn after that."""
        self.gathered = True
        self._send(CONSUMER, Roots.told(seat.commitment for seat in self.seats.values()))
        self._unenrolled.difference_update(self._uncommitted())
        # The target takes its time, and so do owners that have the map.
        self._set_timer("enrolment", self._session.timeouts.enrolment)

    def _on_target(self, peer: str, target: Target) -> None:
        if peer != CONSUMER or self._maps is not None:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "There is one target, and it is the consumer's.")
        self._require_roots()
        check_target(target, self._opened)
        self.target = target
        self.weighing.begin(target)
        self._take_maps(target.maps)

    def _require_roots(self) -> None:
        """Refuse a map that was drawn before the consumer was told what owners committed to."""
        if not self.gathered:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "A feature map came before the consumer was told of the owners' rows."
            )

    def _take_maps(self, maps: bytes) -> None:
        self._maps = maps
        for owner in self.owners:
            self._send_map(owner)
        self._begin_if_complete()

    def _send_map(self, owner: str) -> None:
        """Pass the consumer's secret map on to an owner, once: an owner that has it can bid."""
        seat, maps = self.seats[owner], self._maps
        if not self._rule.sealed or maps is None or seat.mapped or not seat.connected:
            return
        if self._opened.commitment_depth and seat.commitment is None:
            return
        if self._rule.herds and self.phase != "enrolling" and not self._entering:
            return  # it came too late, whether others still have time or not
        seat.mapped = True
        start = seat.rank * limits.MAP_BOX_BYTES
        self._send(owner, SecretMap(box=maps[start : start + limits.MAP_BOX_BYTES]))

    def _on_ready(self, owner: str, ready: Ready) -> None:
        seat = self.seats.get(owner)
        if seat is None or not seat.mapped or seat.enrolled:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "A peer is ready that was not sent the map.")
        self._enrol(owner)
        if self.phase == "enrolling":
            self._begin_if_complete()
            return
        self._resume(owner)
        if not self._unenrolled:
            self._close_enrolment()

    def _enrol(self, owner: str) -> None:
        self.seats[owner].enrolled = True
        self._unenrolled.discard(owner)

    def _begin_if_complete(self) -> None:
        if self._maps is not None and (self._rule.herds or not self._unenrolled):
            self._begin()

    def _on_enrolment_over(self) -> None:
        if not self.gathered and self.consumer_enrolled:
            missing = self._uncommitted()
            if len(self.owners) - len(missing) < self._session.session.min_owners:
                self._give_up_for_few(missing)
            else:
                self._gather()
            return
        enrolled = sum(seat.enrolled for seat in self.seats.values())
        if self._maps is None:
            what = "did not send its target" if self.consumer_enrolled else "did not come"
            self._give_up(
                ExitCode.TIMEOUT,
                f"The consumer {what} within the enrolment time.",
                "Start it, see its log, or raise timeouts.enrolment.",
            )
        elif enrolled < self._session.session.min_owners:
            late = self._uncommitted() if self._opened.commitment_depth else ()
            self._give_up_for_few(self._unenrolled.union(late))
        else:
            self._begin()

    def _give_up_for_few(self, missing: Collection[str]) -> None:
        self._give_up(
            ExitCode.TIMEOUT,
            f"Of the owners, {len(self.owners) - len(missing)} came within the enrolment time; the session "
            f"needs {self._session.session.min_owners}. Missing: {listed(sorted(missing), _LISTED)}.",
            "Start them, or raise timeouts.enrolment, or lower session.min_owners.",
        )

    def _begin(self) -> None:
        if not (self._entering and self._unenrolled):
            self._clear_timer("enrolment")
            self._entering = False
        self._start_round()

    def _close_enrolment(self) -> None:
        """Let owners have their time for an answer from now on; who comes later is too late."""
        if self._entering:
            self._entering = False
            self._clear_timer("enrolment")
            missing = [owner for owner, seat in self.seats.items() if not seat.mapped]
            if len(self.owners) - len(missing) < self._session.session.min_owners:
                self._give_up_for_few(missing)
            elif self.phase == "bidding":
                self._set_timer("round", self._half or self._session.timeouts.round)
                self._close_bidding_if_complete()
