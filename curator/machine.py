"""The curator's state machine: enrolment, target, p rounds (`curator.rounds`), delivery, closing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal, cast

from curator.delivery import parts_of
from curator.enrolment import check_hello, check_target
from curator.ledger import Refusal, settle
from curator.rounds import Rounds
from curator.transitions import PHASES, TRANSITIONS
from protocol import limits
from protocol.acquisition import AcquisitionRule
from protocol.config.session import SessionFile
from protocol.errors import ExitCode, Offence, RemoteProtocolError
from protocol.features import FeatureMap
from protocol.link import Link
from protocol.machine import (
    Event,
    Finish,
    Lost,
    Offended,
    Received,
    Returned,
    Transition,
)
from protocol.messages import (
    CONTROL_SEQUENCE,
    PROTOCOL_VERSION,
    Close,
    Delivery,
    Hello,
    Receipt,
    Refused,
    Target,
    Welcome,
)

__all__ = ["CONSUMER", "CuratorMachine"]

CONSUMER: Final = "consumer"
_LISTED: Final = 8
"""Names that a message lists."""


class CuratorMachine(Rounds):
    """The curator of one session; its arguments are those of `Rounds`."""

    PHASES: ClassVar[tuple[str, ...]] = PHASES
    TRANSITIONS: ClassVar[tuple[Transition, ...]] = TRANSITIONS

    def __init__(
        self,
        session: SessionFile,
        *,
        feature_map: FeatureMap,
        rule: AcquisitionRule,
        noisy: bool,
        noise_name: str,
    ) -> None:
        super().__init__(session, feature_map=feature_map, rule=rule, noisy=noisy, noise_name=noise_name)
        self._digest = session.digest()
        self._unenrolled = set(self.owners)
        self.consumer_enrolled = False
        self.consumer_connected = False
        self._parts: tuple[Delivery, ...] = ()
        self._part = 0
        self._closed: set[str] = set()
        self._farewells: set[str] = set()
        self._outcome: Literal["complete", "abandoned"] = "complete"
        self._ending = Finish(ExitCode.DONE, "")

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
        welcome = Welcome(
            version=PROTOCOL_VERSION, feature_map=self._map.digest, sent=link.sent, received=link.received
        )
        self._greet(peer, welcome)
        self._resend(peer, hello.received)
        if peer == CONSUMER:
            self.consumer_enrolled = self.consumer_connected = True
        else:
            self.seats[peer].enrolled = True
            self._unenrolled.discard(peer)
            self._connect(peer)
        self._close_if_closing(peer)
        if self.phase == "enrolling":
            self._begin_if_complete()

    def _on_target(self, event: Event) -> None:
        target = cast(Target, cast(Received, event).message)
        if cast(Received, event).peer != CONSUMER or self.target is not None:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "There is one target, and it is the consumer's.")
        check_target(target, self._map)
        self.target = target
        self._total = target.seed_total.copy()
        self._begin_if_complete()

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
        if self._part < len(self._parts):
            self._next_part()
            return
        self._clear_timer("delivery")
        self._begin_closing("complete", Finish(ExitCode.DONE, "The session is complete."))

    def _on_delivery_over(self, event: Event) -> None:
        self._give_up(
            ExitCode.TIMEOUT,
            f"The consumer sent no receipt of part {self._part} of the delivery in time.",
            "The chosen points are kept in the curator's transcript.",
        )

    def _begin_closing(self, outcome: Literal["complete", "abandoned"], ending: Finish) -> None:
        """Tell all who can be reached that the session is over, and wait until they have it, but not long.

        A connection that is ended too soon takes along what its peer has not read yet; and who is away may
        come back.
        """
        self.phase = "closing"
        self._outcome, self._ending = outcome, ending
        for timer in ("enrolment", "round", "pause", "delivery"):
            self._clear_timer(timer)
        for peer in self._reachable():
            self._close(peer)
        if self.links:
            self._set_timer("closing", self._session.timeouts.closing)
        else:
            self._finish()

    def _close(self, peer: str) -> None:
        self._closed.add(peer)
        self._send(peer, Close(outcome=self._outcome))

    def _close_if_closing(self, peer: str) -> None:
        """Tell a peer that was away when the others were told that the session is over."""
        if self.phase == "closing" and peer not in self._closed:
            self._close(peer)

    def _reachable(self) -> list[str]:
        peers = [owner for owner, seat in self.seats.items() if seat.connected]
        return [*peers, CONSUMER] if self.consumer_connected else peers

    def _on_farewell(self, event: Event) -> None:
        peer = cast(Received, event).peer
        if peer not in self._closed:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "A farewell came before the close.")
        self._farewells.add(peer)
        if self._farewells >= self._closed:
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
            self._begin_closing("abandoned", Finish(code, reason, advice))

    # -- peers that go, come back, or break the protocol ----------------------------------------------

    def _on_lost(self, event: Event) -> None:
        self._disconnect(cast(Lost, event).peer)

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
        if self.phase == "bidding":
            self._close_bidding_if_complete()
        elif self.phase == "asking":
            self._close_asking_if_complete()

    def _on_returned(self, event: Event) -> None:
        peer = cast(Returned, event).peer
        if peer == CONSUMER:
            self.consumer_connected = True
        else:
            self._connect(peer)
        self._close_if_closing(peer)

    def _on_offended(self, event: Event) -> None:
        offended = cast(Offended, event)
        refusal = Refused(
            code=offended.offence.value,
            detail=offended.detail[: limits.MAX_ERROR_DETAIL],
            advice=offended.advice[: limits.MAX_ERROR_DETAIL],
        )
        self._greet(offended.peer, refusal)
        self.ledger.refusals.append(Refusal(self.round, offended.peer, offended.offence))
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

    def settlement(self) -> Mapping[str, float]:
        """Each owner's share so far (`curator.ledger.settle`)."""
        target = self.target
        if target is None:
            return dict.fromkeys(self.owners, 0.0)
        return settle(self.ledger.wins, self.owners, target.embedding, target.seed_total, target.seed_size)


def _listed(names: list[str]) -> str:
    """The names, the first few of many."""
    shown = ", ".join(names[:_LISTED])
    return shown if len(names) <= _LISTED else f"{shown} and {len(names) - _LISTED} more"
