"""Peers that go, come back, or break the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hushbid.curator.choosing import Choosing
from hushbid.curator.ledger import Refusal
from hushbid.protocol import limits
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.machine.machine import Lost, Offended, Restarted, Returned
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.messages import CONTROL_SEQUENCE, Refused

__all__ = ["Peers"]


class Peers(Choosing):
    """Handles peers that come, go or are refused; its arguments are those of `CuratorState`."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._comeback_set = False
        """Whether a timer is set for the first peer expected back."""
        self._dismissed: set[str] = set()
        """Refused peers that have not said hello since."""

    def _on_lost(self, event: Lost) -> None:
        """Wait a while for a peer whose connection was lost: it may have crashed and may resume."""
        self._expect_back([event.peer])
        self._disconnect(event.peer)

    def _expect_back(self, peers: Iterable[str]) -> None:
        """Wait for peers that can come back, each for its own time."""
        over = self._now + self._session.timeouts.comeback
        for peer in peers:
            if peer not in self._farewells and peer not in self._dismissed:
                self._expected_back[peer] = over
        if not self._comeback_set:
            self._await_comeback()

    def _await_comeback(self) -> None:
        """Set a timer for when the first of them has been waited for long enough."""
        if self._expected_back:
            self._comeback_set = True
            self._set_timer_at("comeback", min(self._expected_back.values()))

    def _on_comeback_over(self) -> None:
        """Stop waiting for peers whose time is over; those lost later have time left."""
        self._comeback_set = False
        for peer in [peer for peer, over in self._expected_back.items() if over <= self._now]:
            del self._expected_back[peer]
        self._await_comeback()
        if self.phase == "closing":
            self._finish_if_all_left()
        else:
            self._go_on_if_complete()

    def _on_restarted(self, event: Restarted) -> None:
        """All connections are gone, and every peer is expected back; all waiting times start anew."""
        self._comeback_set = False
        self._expect_back(self._reachable())
        self.consumer_connected = False
        for seat in self.seats.values():
            seat.connected = False
        self._round.awaited.clear()
        self._set_timer(*self._timers_due()[self.phase])

    def _timers_due(self) -> Mapping[str, tuple[str, float]]:
        """By phase: the timer that a restarted curator sets, in seconds."""
        timeouts = self._session.timeouts
        answers = self._half or timeouts.round
        return {
            "enrolling": ("enrolment", timeouts.enrolment),
            "bidding": self._due_while_bidding(answers),
            "asking": ("cadence" if self._half else "round", answers),
            "pacing": ("cadence", self._half),
            "delivering": ("delivery", timeouts.delivery),
            "closing": ("closing", timeouts.closing),
        }

    def _due_while_bidding(self, answers: float) -> tuple[str, float]:
        timeouts = self._session.timeouts
        if self._entering:
            return "enrolment", timeouts.enrolment
        return ("pause", timeouts.pause) if self.paused else ("round", answers)

    def _connect(self, owner: str) -> None:
        seat = self.seats[owner]
        seat.connected = True
        if seat.broadcast and seat.broadcast == self.round:
            self._round.awaited.add(owner)
        self._resume(owner)

    def _disconnect(self, peer: str) -> None:
        if peer == CONSUMER:
            self.consumer_connected = False
            return
        self.seats[peer].connected = False
        self._round.awaited.discard(peer)
        self._go_on_if_complete()

    def _go_on_if_complete(self) -> None:
        """In the phases that wait for owners, check again whether anybody is still waited for."""
        if self.phase == "bidding":
            self._close_bidding_if_complete()
        elif self.phase == "asking":
            self._close_asking_if_complete()

    def _on_returned(self, event: Returned) -> None:
        peer = event.peer
        self._expected_back.pop(peer, None)
        if peer == CONSUMER:
            self.consumer_connected = True
        else:
            self._connect(peer)
        self._close(peer)

    def _on_offended(self, offended: Offended) -> None:
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
            # A refused hello ends its own connection only: an earlier one may be in use.
            return
        if offended.peer == CONSUMER and self._maps is not None:
            self.consumer_connected = False
            self._give_up(
                ExitCode.FAILED,
                f"The consumer broke the protocol ({offended.offence.value}): {offended.detail}",
                offended.advice,
            )
            return
        self._disconnect(offended.peer)
