"""Peers that go, come back, or break the protocol."""

from __future__ import annotations

from collections.abc import Iterable

from hushbid.curator.ending import close, finish_if_all_left, give_up
from hushbid.curator.ledger import Refusal
from hushbid.curator.rounds import close_asking_if_complete, close_bidding_if_complete, resume
from hushbid.curator.state import AnyCurator
from hushbid.protocol import limits
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.machine.machine import Lost, Offended, Restarted, Returned
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.wire.messages import CONTROL_SEQUENCE, Refused

__all__ = [
    "connect",
    "on_comeback_over",
    "on_comeback_over_at_the_end",
    "on_lost",
    "on_offended",
    "on_restarted",
    "on_returned",
]


def on_lost(curator: AnyCurator, event: Lost) -> None:
    """Wait a while for a peer whose connection was lost: it may have crashed and may resume."""
    _expect_back(curator, [event.peer])
    _disconnect(curator, event.peer)


def _expect_back(curator: AnyCurator, peers: Iterable[str]) -> None:
    """Wait for peers that can come back, each for its own time."""
    over = curator.now + curator.file.timeouts.comeback
    for peer in peers:
        if peer not in curator.ending.farewells and peer not in curator.dismissed:
            curator.expected_back[peer] = over
    if not curator.comeback_set:
        _await_comeback(curator)


def _await_comeback(curator: AnyCurator) -> None:
    """Set a timer for when the first of them has been waited for long enough."""
    if curator.expected_back:
        curator.comeback_set = True
        curator.set_timer_at("comeback", min(curator.expected_back.values()))


def on_comeback_over(curator: AnyCurator) -> None:
    """Go on without peers that have not come back in time."""
    _stop_waiting(curator)
    _go_on_if_complete(curator)


def on_comeback_over_at_the_end(curator: AnyCurator) -> None:
    """End without peers that have not come back in time."""
    _stop_waiting(curator)
    finish_if_all_left(curator)


def _stop_waiting(curator: AnyCurator) -> None:
    """Stop waiting for peers whose time is over; those lost later have time left."""
    curator.comeback_set = False
    for peer in [peer for peer, over in curator.expected_back.items() if over <= curator.now]:
        del curator.expected_back[peer]
    _await_comeback(curator)


def on_restarted(curator: AnyCurator, event: Restarted) -> None:
    """All connections are gone, and every peer is expected back; all waiting times start anew."""
    curator.comeback_set = False
    _expect_back(curator, curator.reachable())
    curator.consumer_connected = False
    for seat in curator.seats.values():
        seat.connected = False
    curator.current.awaited.clear()
    curator.set_timer(*_timer_due(curator))


def _timer_due(curator: AnyCurator) -> tuple[str, float]:
    """The timer that a restarted curator sets in its phase, and its seconds."""
    timeouts = curator.file.timeouts
    answers = curator.half or timeouts.round
    if curator.phase == "bidding":
        if curator.entering:
            return "enrolment", timeouts.enrolment
        return ("pause", timeouts.pause) if curator.paused else ("round", answers)
    return {
        "enrolling": ("enrolment", timeouts.enrolment),
        "weighing": ("pause", timeouts.pause),  # for the weight of the consumer of a blind curator
        "asking": ("cadence" if curator.half else "round", answers),
        "pacing": ("cadence", curator.half),
        "delivering": ("delivery", timeouts.delivery),
        "closing": ("closing", timeouts.closing),
    }[curator.phase]


def connect(curator: AnyCurator, owner: str) -> None:
    """Note that an owner is here, and send it the current broadcast if it can still answer."""
    seat = curator.seats[owner]
    seat.connected = True
    if seat.broadcast and seat.broadcast == curator.round:
        curator.current.awaited.add(owner)
    resume(curator, owner)


def _disconnect(curator: AnyCurator, peer: str) -> None:
    if peer == CONSUMER:
        curator.consumer_connected = False
        return
    curator.seats[peer].connected = False
    curator.current.awaited.discard(peer)
    _go_on_if_complete(curator)


def _go_on_if_complete(curator: AnyCurator) -> None:
    """In the phases that wait for owners, check again whether anybody is still waited for."""
    if curator.phase == "bidding":
        close_bidding_if_complete(curator)
    elif curator.phase == "asking":
        close_asking_if_complete(curator)


def on_returned(curator: AnyCurator, event: Returned) -> None:
    """Note that a silent peer is back."""
    peer = event.peer
    curator.expected_back.pop(peer, None)
    if peer == CONSUMER:
        curator.consumer_connected = True
    else:
        connect(curator, peer)
    close(curator, peer)


def on_offended(curator: AnyCurator, offended: Offended) -> None:
    """Refuse a peer, and give up the session if it cannot go on without it."""
    refusal = Refused(
        code=offended.offence.value,
        detail=offended.detail[: limits.MAX_ERROR_DETAIL],
        advice=offended.advice[: limits.MAX_ERROR_DETAIL],
    )
    curator.greet(offended.peer, refusal)
    curator.ledger.refusals.append(Refusal(curator.round, offended.peer, offended.offence))
    curator.dismissed.add(offended.peer)
    curator.expected_back.pop(offended.peer, None)
    if offended.sequence == CONTROL_SEQUENCE or offended.peer not in curator.links:
        # A refused hello ends its own connection only: an earlier one may be in use.
        return
    if offended.peer == CONSUMER and curator.maps is not None:
        curator.consumer_connected = False
        give_up(
            curator,
            ExitCode.FAILED,
            f"The consumer broke the protocol ({offended.offence.value}): {offended.detail}",
            offended.advice,
        )
        return
    _disconnect(curator, offended.peer)
