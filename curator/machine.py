"""The curator's state machine: from enrolment over p rounds (`curator.rounds`) to settlement and closing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, Literal, cast

import numpy as np

from curator.delivery import parts_of
from curator.enrolment import check_hello, check_target, prior_of
from curator.events import CandidatesChecked, DestroyBoxes, NoiseDrawn, WeightsComputed
from curator.ledger import Dispute, Refusal, settle, settle_privately
from curator.rounds import Rounds
from curator.statement import GAINED, gain_errors, shared_gains, target_noise
from curator.transitions import PHASES, TRANSITIONS
from protocol import limits
from protocol.errors import BudgetExceeded, ExitCode, Offence, RemoteProtocolError
from protocol.link import Link
from protocol.machine import (
    Event,
    Finish,
    HeadSigned,
    Lost,
    Offended,
    Received,
    Returned,
    SignHead,
    Transition,
)
from protocol.messages import (
    CONTROL_SEQUENCE,
    PROTOCOL_VERSION,
    Close,
    Delivery,
    Farewell,
    Hello,
    Receipt,
    Refused,
    SecretMap,
    Target,
    Welcome,
    unfixed,
)
from protocol.names import CONSUMER
from protocol.payment import Errors, PaidStatement, Price
from protocol.session import Session
from protocol.verification import signs_head

__all__ = ["CONSUMER", "CuratorMachine"]

_LISTED: Final = 8
"""Names that a message lists."""


class CuratorMachine(Rounds):
    """The curator of one session; its arguments are those of `Rounds`."""

    PHASES: ClassVar[tuple[str, ...]] = PHASES
    TRANSITIONS: ClassVar[tuple[Transition, ...]] = TRANSITIONS
    OUTCOMES: ClassVar[tuple[type[Event], ...]] = (NoiseDrawn, WeightsComputed, CandidatesChecked)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._digest = session.digest
        self._unenrolled = set(self.owners)
        self.consumer_enrolled = False
        self.consumer_connected = False
        self._parts: tuple[Delivery, ...] = ()
        self._part = 0
        self._private_settlement: Mapping[str, float] | None = None
        """What owners may be told, once it was released."""
        self._closed: set[str] = set()
        self._farewells: set[str] = set()
        self._dismissed: set[str] = set()
        """Peers that were refused, and have not said hello since."""
        self._outcome: Literal["complete", "abandoned"] = "complete"
        self._ending = Finish(ExitCode.DONE, "")
        self._signed: HeadSigned | None = None

    # -- enrolment ----------------------------------------------------------------------------------

    def _on_started(self, event: Event) -> None:
        self._set_timer("enrolment", self._session.timeouts.enrolment)

    def _on_hello(self, event: Event) -> None:
        received = cast(Received, event)
        peer, hello = received.peer, cast(Hello, received.message)
        if peer != CONSUMER and peer not in self.seats:
            raise RemoteProtocolError(
                Offence.UNKNOWN_PEER,
                "The peer is not on the session's roster.",
                advice="Compare the session files of both sides.",
            )
        link = self.links.get(peer)
        check_hello(peer, "consumer" if peer == CONSUMER else "owner", self._digest, hello, link)
        if link is None:
            link = self.links[peer] = Link()
        public_map = self._opened.public_map
        welcome = Welcome(
            version=PROTOCOL_VERSION,
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
            self._begin_if_complete()

    def _on_target(self, event: Event) -> None:
        target = cast(Target, cast(Received, event).message)
        if cast(Received, event).peer != CONSUMER or self.target is not None:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "There is one target, and it is the consumer's.")
        check_target(target, self._opened)
        self.target = target
        self._statistic = self._opened.summary(target.seed_total, prior_of(target)).statistic()
        self._total = np.zeros(self._statistic.width, dtype=np.int64)
        for owner in self.owners:
            self._send_map(owner)
        self._begin_if_complete()

    def _send_map(self, owner: str) -> None:
        """Pass the consumer's secret map on to an owner, once: who has it can bid."""
        seat, target = self.seats[owner], self.target
        if not self._rule.sealed or target is None or seat.mapped or not seat.connected:
            return
        seat.mapped = True
        start = seat.rank * limits.MAP_BOX_BYTES
        self._send(owner, SecretMap(box=target.maps[start : start + limits.MAP_BOX_BYTES]))

    def _on_ready(self, event: Event) -> None:
        owner = cast(Received, event).peer
        seat = self.seats.get(owner)
        if seat is None or not seat.mapped or seat.enrolled:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "A peer is ready that was not sent the map.")
        self._enrol(owner)
        if self.phase == "enrolling":
            self._begin_if_complete()
        else:
            self._resume(owner)

    def _enrol(self, owner: str) -> None:
        self.seats[owner].enrolled = True
        self._unenrolled.discard(owner)

    def _begin_if_complete(self) -> None:
        if self.target is not None and not self._unenrolled:
            self._begin()

    def _on_enrolment_over(self, event: Event) -> None:
        enrolled = sum(seat.enrolled for seat in self.seats.values())
        if self.target is None:
            what = "did not send its target" if self.consumer_enrolled else "did not come"
            self._give_up(
                ExitCode.TIMEOUT,
                f"The consumer {what} within the enrolment time.",
                "Start it, see its log, or raise timeouts.enrolment.",
            )
        elif enrolled < self._session.session.min_owners:
            self._give_up(
                ExitCode.TIMEOUT,
                f"Of the owners, {enrolled} came within the enrolment time; the session needs "
                f"{self._session.session.min_owners}. Missing: {_listed(sorted(self._unenrolled))}.",
                "Start them, or raise timeouts.enrolment, or lower session.min_owners.",
            )
        else:
            self._begin()

    def _begin(self) -> None:
        self._clear_timer("enrolment")
        self._start_round()

    # -- delivery and closing -----------------------------------------------------------------------

    def _deliver(self) -> None:
        self.phase = "delivering"
        self._parts = parts_of(self.ledger.wins)
        self._part = 0
        self._next_part()

    def _next_part(self) -> None:
        self._part += 1
        self._send(CONSUMER, self._parts[self._part - 1])
        self._set_timer("delivery", self._session.timeouts.delivery)

    def _on_receipt(self, event: Event) -> None:
        receipt = cast(Receipt, cast(Received, event).message)
        if receipt.part != self._part:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, f"A receipt of part {receipt.part}; due was one of part {self._part}."
            )
        self._note_disputes(receipt)
        if self._part < len(self._parts):
            self._next_part()
            return
        self._clear_timer("delivery")
        self._destroy_boxes()
        if self._opened.settlement is not None:
            try:
                self._settle_privately()
            except BudgetExceeded as error:
                self._give_up(ExitCode.FAILED, error.what, error.advice)
                return
        self._begin_closing("complete", Finish(ExitCode.DONE, "The session is complete."))

    def _settle_privately(self) -> None:
        """Charge the private settlement and release it, in one step; its noise came with the last rounds'."""
        self._charge(self._opened.owners_releases)
        ((noise,), _) = self._noise.popleft()
        self._private_settlement = settle_privately(
            self.ledger.wins, self._disputed(), self.owners, self._first_weights, noise
        )

    def _note_disputes(self, receipt: Receipt) -> None:
        """Keep in the books what the consumer disputes; owners are not told (DESIGN §3, "No feedback")."""
        purchases = self._parts[self._part - 1].purchases
        bits = np.unpackbits(np.frombuffer(receipt.disputed, dtype=np.uint8))
        if len(receipt.disputed) != (len(purchases) + 7) // 8 or bits[len(purchases) :].any():
            raise RemoteProtocolError(
                Offence.MALFORMED, f"A receipt's disputes are not of the {len(purchases)} points of its part."
            )
        self.ledger.disputes.extend(
            Dispute(purchase.round, purchase.owner, unfixed(purchase.handle))
            for purchase, disputed in zip(purchases, bits.tolist(), strict=False)
            if disputed
        )

    def _destroy_boxes(self) -> None:
        """Forget what the consumer did not buy, and what it now has (DESIGN §3, "`sealed`, further")."""
        if self._rule.sealed:
            self._boxes_destroyed = True
            for pooled in self._pooled:
                pooled.candidate = None
            for seat in self.seats.values():
                seat.bid = None
            self._unverified, self._verifying = [], ()
            self._do(DestroyBoxes())

    def _on_delivery_over(self, event: Event) -> None:
        """End the process and keep the delivery: started again, the curator waits for the receipt anew."""
        ending = Finish(
            ExitCode.TIMEOUT,
            f"The consumer sent no receipt of part {self._part} of the delivery in time.",
            "The chosen points are kept: have the consumer started, and start the curator again with the "
            "same state directory.",
            final=False,
        )
        self._do(ending)

    def _begin_closing(self, outcome: Literal["complete", "abandoned"], ending: Finish) -> None:
        """Tell all who can be reached that the session is over, and wait until they have it, but not long.

        A connection that is ended too soon takes along what its peer has not read yet; and who is away may
        come back.
        """
        self.phase = "closing"
        self._outcome, self._ending = outcome, ending
        for timer in ("enrolment", "round", "pause", "cadence", "delivery"):
            self._clear_timer(timer)
        self._do(SignHead())

    def _on_head_signed(self, event: Event) -> None:
        self._signed = cast(HeadSigned, event)
        for peer in self._reachable():
            self._close(peer)
        if self.links:
            self._set_timer("closing", self._session.timeouts.closing)
        else:
            self._finish()

    def _close(self, peer: str) -> None:
        if self._signed is not None and peer not in self._closed:
            self._closed.add(peer)
            close = Close(outcome=self._outcome, head=self._signed.head, signature=self._signed.signature)
            self._send(peer, close)

    def _reachable(self) -> list[str]:
        peers = [owner for owner, seat in self.seats.items() if seat.connected]
        return [*peers, CONSUMER] if self.consumer_connected else peers

    def _on_farewell(self, event: Event) -> None:
        peer = cast(Received, event).peer
        if peer not in self._closed:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "A farewell came before the close.")
        farewell = cast(Farewell, cast(Received, event).message)
        if not signs_head(self._opened, peer, farewell.head, farewell.signature):
            # Refused, it is not on record: what does not hold stands in its sender's transcript alone.
            raise RemoteProtocolError(
                Offence.MISMATCH,
                "The signature in a farewell is not its sender's over the head in it.",
                advice="The peer should check its key, and how it signs its transcript's head.",
            )
        self._farewells.add(peer)
        self._finish_if_all_left()

    def _finish_if_all_left(self) -> None:
        """End once all who were told have left; who was here a short while ago may come to be told."""
        if self._farewells >= self._closed | self._expected_back.keys():
            self._finish()

    def _on_closing_over(self, event: Event) -> None:
        self._finish()

    def _on_moot(self, event: Event) -> None:
        """What was under way when the session ended changes nothing any more."""

    def _finish(self) -> None:
        self.phase = "done"
        self._do(self._ending)

    def _give_up(self, code: ExitCode, reason: str, advice: str = "") -> None:
        if self.phase != "closing":
            if self.phase != "delivering":
                self._destroy_boxes()
            self._begin_closing("abandoned", Finish(code, reason, advice))

    # -- peers that go, come back, or break the protocol ----------------------------------------------

    def _on_lost(self, event: Event) -> None:
        """Wait a while for a peer that was here: it may have crashed, and go on where it was."""
        peer = cast(Lost, event).peer
        self._expect_back([peer])
        self._disconnect(peer)

    def _expect_back(self, peers: Iterable[str]) -> None:
        """Wait for peers that will come back, if they can, for each its own time."""
        over = self._now + self._session.timeouts.comeback
        for peer in peers:
            if peer not in self._farewells and peer not in self._dismissed:
                self._expected_back[peer] = over
        if not self._comeback_set:
            self._await_comeback()

    def _await_comeback(self) -> None:
        """Have a timer fire when the first of them has been waited for long enough."""
        if self._expected_back:
            self._comeback_set = True
            self._set_timer_at("comeback", min(self._expected_back.values()))

    def _on_comeback_over(self, event: Event) -> None:
        """See who has been waited for long enough; who was lost later has time left."""
        self._comeback_set = False
        for peer in [peer for peer, over in self._expected_back.items() if over <= self._now]:
            del self._expected_back[peer]
        self._await_comeback()
        if self.phase == "closing":
            self._finish_if_all_left()
        else:
            self._go_on_if_complete()

    def _on_restarted(self, event: Event) -> None:
        """All connections are gone, and all peers are expected back; what is due gets its time anew."""
        self._comeback_set = False
        self._expect_back(self._reachable())
        self.consumer_connected = False
        for seat in self.seats.values():
            seat.connected = False
        self._awaited.clear()
        timeouts = self._session.timeouts
        answers = self._half or timeouts.round
        due = {
            "enrolling": ("enrolment", timeouts.enrolment),
            "bidding": ("pause", timeouts.pause) if self.paused else ("round", answers),
            "asking": ("cadence" if self._half else "round", answers),
            "pacing": ("cadence", self._half),
            "delivering": ("delivery", timeouts.delivery),
            "closing": ("closing", timeouts.closing),
        }
        self._set_timer(*due[self.phase])

    def _connect(self, owner: str) -> None:
        seat = self.seats[owner]
        seat.connected = True
        if seat.broadcast and seat.broadcast == self.round:
            self._awaited.add(owner)
        self._resume(owner)

    def _disconnect(self, peer: str) -> None:
        if peer == CONSUMER:
            self.consumer_connected = False
            return
        self.seats[peer].connected = False
        self._awaited.discard(peer)
        self._go_on_if_complete()

    def _on_returned(self, event: Event) -> None:
        peer = cast(Returned, event).peer
        self._expected_back.pop(peer, None)
        if peer == CONSUMER:
            self.consumer_connected = True
        else:
            self._connect(peer)
        self._close(peer)

    def _on_offended(self, event: Event) -> None:
        offended = cast(Offended, event)
        refusal = Refused(
            code=offended.offence.value,
            detail=offended.detail[: limits.MAX_ERROR_DETAIL],
            advice=offended.advice[: limits.MAX_ERROR_DETAIL],
        )
        self._greet(offended.peer, refusal)
        self.ledger.refusals.append(Refusal(self.round, offended.peer, offended.offence))
        self._dismissed.add(offended.peer)
        self._expected_back.pop(offended.peer, None)
        if offended.sequence == CONTROL_SEQUENCE or offended.peer not in self.links:
            # A hello that was refused ends its own connection only: an earlier one may be in use.
            return
        if offended.peer == CONSUMER and self.target is not None:
            self.consumer_connected = False
            self._give_up(
                ExitCode.FAILED,
                f"The consumer broke the protocol ({offended.offence.value}): {offended.detail}",
                offended.advice,
            )
            return
        self._disconnect(offended.peer)

    def settlement(self) -> Mapping[str, float] | None:
        """What each owner is to be paid by.

        Returns:
            Where the session settles privately, what was released (`curator.ledger.settle_privately`), and
            None before. Else each owner's exact share so far (`curator.ledger.settle`).
        """
        if self._opened.settlement is not None:
            return self._private_settlement
        target = self.target
        if target is None:
            return dict.fromkeys(self.owners, 0.0)
        return settle(
            self.ledger.wins,
            self._disputed(),
            self.owners,
            target.embedding,
            target.seed_total,
            target.seed_size,
            self.seed_weight,
        )

    def statement(self, price: Price) -> tuple[Errors, PaidStatement] | None:
        """The standard errors of `settlement`, and what owners should be paid by; None before there is one.

        Args:
            price: What is paid.
        """
        target, settlement = self.target, self.settlement()
        if target is None or settlement is None:
            return None
        opened, wins, disputed = self._opened, self.ledger.wins, self._disputed()
        noise = target_noise(opened, target)
        if opened.settlement is not None:
            errors: Errors = dict.fromkeys(self.owners, opened.settlement.standard_error)
            unit = "points by worth"
            return errors, PaidStatement.of(unit, settlement, errors, signal=noise.signal, price=price)
        values, theirs = shared_gains(wins, disputed, self.owners, opened, target, noise)
        errors = gain_errors(wins, disputed, self.owners, target, noise, self.seed_weight)
        return errors, PaidStatement.of(GAINED, values, theirs, signal=noise.signal, price=price)

    def _disputed(self) -> set[tuple[int, str, int]]:
        return {(dispute.round, dispute.owner, dispute.handle) for dispute in self.ledger.disputes}


def _listed(names: list[str]) -> str:
    """The names, the first few of many."""
    shown = ", ".join(names[:_LISTED])
    return shown if len(names) <= _LISTED else f"{shown} and {len(names) - _LISTED} more"
